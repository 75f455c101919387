package conformance

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	waitTwo   = in{"WaitTimeSeconds": 2}
	waitLong  = in{"WaitTimeSeconds": 20}
	ten       = in{"MaxNumberOfMessages": 10}
	peek      = in{"VisibilityTimeout": 0}
	allSystem = in{"AttributeNames": []string{"All"}}
	allUser   = in{"MessageAttributeNames": []string{"All"}}
	// early is before the end of waitLong, and late enough for a busy machine.
	early    = 17 * time.Second
	thirteen = regexp.MustCompile(`^[0-9]{13}$`)
)

func unbase64(s *scene, text string) string {
	s.Helper()
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.Errorf("%q is not base64: %v", text, err)
	}
	return string(value)
}

// R1–R29: receiving, hiding and deleting.
func TestReceiving(t *testing.T) {
	play(t, []script{
		{id: "R1", title: "how many messages", play: func(s *scene) {
			q := s.queue()
			for _, n := range []string{"0", "11", "-1"} {
				s.refused("ReceiveMessage", in{"QueueUrl": q, "MaxNumberOfMessages": int(atoi(s, n))}, fails(invalidValue,
					"Value "+n+" for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."))
			}
		}},
		{id: "R2", title: "how long to wait", play: func(s *scene) {
			q := s.queue()
			for _, n := range []string{"21", "-1"} {
				s.refused("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": int(atoi(s, n))}, fails(invalidValue,
					"Value "+n+" for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."))
			}
		}},
		{id: "R3", title: "a long poll does not wait to fill its batch", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			s.took(func() { s.one(q, ten, waitLong) }, 0, early)
		}},
		{id: "R4", title: "an empty long poll lasts its time", play: func(s *scene) {
			q := s.queue()
			s.took(func() { s.none(q, waitTwo) }, 1900*time.Millisecond, early)
		}},
		{id: "R4b", title: "the queue's own wait time", play: func(s *scene) {
			q := s.queue("ReceiveMessageWaitTimeSeconds", "1")
			s.took(func() { s.none(q) }, 900*time.Millisecond, early)
		}},
		{id: "R5", title: "an explicit 0 does not wait", play: func(s *scene) {
			q := s.queue("ReceiveMessageWaitTimeSeconds", "20")
			s.took(func() { s.none(q, in{"WaitTimeSeconds": 0}) }, 0, early)
		}},
		{id: "R6", title: "a second delivery has a handle of its own", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			first := s.one(q, in{"VisibilityTimeout": 1}, allSystem)
			second := s.one(q, waitLong, allSystem)
			if handle(first) == handle(second) || first.text("MessageId") != second.text("MessageId") {
				s.Errorf("handles %q and %q of messages %s and %s", handle(first), handle(second), first["MessageId"], second["MessageId"])
			}
			if a, b := first.text("Attributes", "ApproximateReceiveCount"), second.text("Attributes", "ApproximateReceiveCount"); a != "1" || b != "2" {
				s.Errorf("counts: got %s and %s, want 1 and 2", a, b)
			}
		}},
		{id: "R7", title: "a visibility timeout of the receive", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			s.one(q, peek)
			s.one(q, in{"VisibilityTimeout": 30})
			s.none(q)
		}},
		{id: "R8", title: "an older handle releases the message", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			old := s.one(q, peek)
			s.one(q, in{"VisibilityTimeout": 30})
			s.change(q, handle(old), 0)
			s.one(q)
		}},
		{id: "R9", title: "a released message is hidden again by its handle", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			s.change(q, h, 0)
			s.counts(q, "1", "0", "0")
			s.change(q, h, 30)
			s.none(q)
			s.counts(q, "0", "1", "0")
		}},
		{id: "R10", title: "a handle deletes after its time", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q, in{"VisibilityTimeout": 1}))
			s.awaitCounts(q, "1", "0", "0") // the time is over, and nobody has received it since
			s.delete(q, h)
			s.none(q)
			s.counts(q, "0", "0", "0")
		}},
		{id: "R11", title: "deleting again", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			for range 3 {
				s.delete(q, h)
			}
			s.counts(q, "0", "0", "0")
		}},
		{id: "R12-R13", title: "handles that this service did not issue", play: illegalHandles},
		{id: "R14", title: "hiding a deleted message", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			s.delete(q, h)
			want := "Value " + h + " for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 42}, fails(invalidValue, want))
			out := s.ok("ChangeMessageVisibilityBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "1", "ReceiptHandle": h, "VisibilityTimeout": 42}}})
			s.entryFailed(out, 0, "1", invalidValue, "")
		}},
		{id: "R15", title: "missing parameters", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			noHandle := fails(missingParameter, "The request must contain the parameter ReceiptHandle.")
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h}, fails(missingParameter, "The request must contain the parameter VisibilityTimeout."))
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "VisibilityTimeout": 1}, noHandle)
			s.refused("DeleteMessage", in{"QueueUrl": q}, noHandle)
			s.refused("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": ""}, noHandle)
		}},
		{id: "R16", title: "a changed timeout is of one delivery", play: func(s *scene) {
			q := s.queue("VisibilityTimeout", "30")
			s.send(q, "x")
			s.change(q, handle(s.one(q)), 1)
			s.one(q, waitLong)
			s.none(q, waitTwo)
		}},
		{id: "R17-R18", title: "one bad handle in a batch", play: func(s *scene) {
			q := s.queue()
			s.send(q, "a")
			s.send(q, "b")
			messages := s.receive(q, ten)
			out := s.ok("ChangeMessageVisibilityBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "good", "ReceiptHandle": handle(messages[0]), "VisibilityTimeout": 0},
				{"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 0},
				{"Id": "range", "ReceiptHandle": handle(messages[1]), "VisibilityTimeout": 43201},
				{"Id": "missing", "ReceiptHandle": handle(messages[1])},
			}})
			s.entryFailed(out, 0, "bad", "ReceiptHandleIsInvalid", "")
			s.entryFailed(out, 1, "range", invalidValue, "Value 43201 for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and 43200.")
			s.entryFailed(out, 2, "missing", missingParameter, "The request must contain the parameter ChangeMessageVisibilityBatchRequestEntry.4.VisibilityTimeout.")
			if len(out.list("Successful")) != 1 || out.text("Successful", 0, "Id") != "good" {
				s.Errorf("Successful: got %v, want good", out["Successful"])
			}
			s.counts(q, "1", "1", "0")
			out = s.ok("DeleteMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "bad", "ReceiptHandle": "garbage"},
				{"Id": "a", "ReceiptHandle": handle(messages[0])},
				{"Id": "missing"},
				{"Id": "b", "ReceiptHandle": handle(messages[1])},
			}})
			s.entryFailed(out, 0, "bad", "ReceiptHandleIsInvalid", "")
			s.entryFailed(out, 1, "missing", missingParameter, "")
			if len(out.list("Successful")) != 2 || out.text("Successful", 0, "Id") != "a" || out.text("Successful", 1, "Id") != "b" {
				s.Errorf("Successful: got %v, want a and b", out["Successful"])
			}
			s.counts(q, "0", "0", "0")
		}},
		{id: "R19", title: "retention ends while a message is in flight", long: true, play: func(s *scene) {
			q := s.queue("MessageRetentionPeriod", "60", "VisibilityTimeout", "60")
			s.send(q, "x")
			time.Sleep(5 * time.Second)
			h := handle(s.one(q))
			s.none(q, waitLong)
			s.none(q, waitLong)
			s.none(q, waitLong) // past the minute
			s.counts(q, "0", "0", "0")
			s.none(q, in{"WaitTimeSeconds": 8}) // past the visibility timeout
			s.delete(q, h)
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 1}, fails(invalidValue))
		}},
		{id: "R20", title: "a delayed message wakes a long poll", play: func(s *scene) {
			q := s.queue()
			s.send(q, "later", in{"DelaySeconds": 900})
			s.none(q)
			s.took(func() {
				s.send(q, "soon", in{"DelaySeconds": 1})
				s.bodies(s.receive(q, waitLong), "soon")
			}, time.Second, early)
		}},
		{id: "R21", title: "delayed messages are counted apart", play: func(s *scene) {
			q := s.queue("DelaySeconds", "900")
			s.send(q, "a", in{"DelaySeconds": 0})
			s.send(q, "b")
			s.send(q, "c", in{"DelaySeconds": 800})
			s.counts(q, "1", "0", "2")
			soon := s.queue()
			s.send(soon, "a")
			for range 2 {
				s.send(soon, "b", in{"DelaySeconds": 2})
			}
			s.awaitCounts(soon, "3", "0", "0")
		}},
		{id: "R22", title: "all system attributes", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			m := s.one(q, allSystem)
			if got := strings.Join(m.names("Attributes"), " "); got != "ApproximateFirstReceiveTimestamp ApproximateReceiveCount SenderId SentTimestamp" {
				s.Errorf("got %s", got)
			}
			for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
				if value := m.text("Attributes", name); !thirteen.MatchString(value) {
					s.Errorf("%s: got %q, want 13 digits", name, value)
				}
			}
		}},
		{id: "R23", title: "the old and the new list of system attributes", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			for _, members := range []in{
				{"AttributeNames": []string{"SenderId"}, "MessageSystemAttributeNames": []string{"All"}},
				{"AttributeNames": []string{"All"}, "MessageSystemAttributeNames": []string{"SenderId"}},
				{"MessageSystemAttributeNames": []string{"All"}},
				{"AttributeNames": []string{"SenderId", "SentTimestamp"}, "MessageSystemAttributeNames": []string{"ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"}},
			} {
				if got := len(s.one(q, peek, members).names("Attributes")); got != 4 && (s.wire == jsonWire || len(members) == 1) {
					s.Errorf("%v: got %d attributes, want 4", members, got)
				}
			}
			m := s.one(q, peek, in{"AttributeNames": []string{"AWSTraceHeader", "MessageGroupId", "QueueArn"}})
			if m.at("Attributes") != nil {
				s.Errorf("attributes that the message does not have: got %v, want none", m["Attributes"])
			}
			s.refused("ReceiveMessage", in{"QueueUrl": q, "AttributeNames": []string{"Foobar"}}, unknownAttribute("Foobar"))
			s.refused("ReceiveMessage", in{"QueueUrl": q, "MessageSystemAttributeNames": []string{"Foobar"}}, fails("InvalidAttributeName"))
		}},
		{id: "R24-R27", title: "message attributes by name and prefix", play: func(s *scene) {
			q := s.queue()
			s.send(q, "msg", messageAttributes(in{"Hello": text("There"), "General": text("Kenobi"), "Help.Me": text("Me")}))
			for _, c := range []struct{ ask, names, digest string }{
				{"Hel.*", "Hello Help.Me", "83fee93c1bcd8b9a5a923ffacdc636c7"},
				{"Help", "", ""},
				{"..foo", "", ""},
				{"AWS.", "", ""},
				{"hello", "", ""},
				{"Hello Nope", "Hello", "a311262e065454b75da111d535b8dacd"},
				{"Hello General", "General Hello", "fca026605781cb4126a1e9044df24232"},
				{"Hello Hel.*", "Hello Help.Me", "83fee93c1bcd8b9a5a923ffacdc636c7"},
				{"All", "General Hello Help.Me", "4c360f3fdafd970e05fae2f149d997f5"},
				{"*", "General Hello Help.Me", "4c360f3fdafd970e05fae2f149d997f5"},
				{".*", "General Hello Help.Me", "4c360f3fdafd970e05fae2f149d997f5"},
			} {
				m := s.one(q, peek, in{"MessageAttributeNames": strings.Fields(c.ask)})
				if got := strings.Join(m.names("MessageAttributes"), " "); got != c.names || m.text("MD5OfMessageAttributes") != c.digest {
					s.Errorf("%s: got %q %s, want %q %s", c.ask, got, m.text("MD5OfMessageAttributes"), c.names, c.digest)
				}
			}
		}},
		{id: "R28", title: "an older message comes first when it is back", play: func(s *scene) {
			q := s.queue()
			s.send(q, "a")
			s.one(q, in{"VisibilityTimeout": 1})
			s.send(q, "b")
			s.awaitCounts(q, "2", "0", "0")
			s.bodies([]tree{s.one(q)}, "a")
			s.bodies([]tree{s.one(q)}, "b")
		}},
		{id: "R29", title: "twelve hours at most", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			for _, n := range []string{"43201", "-1"} {
				s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": int(atoi(s, n))}, fails(invalidValue,
					"Value "+n+" for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200."))
			}
			s.none(q, waitTwo) // let two seconds pass
			s.change(q, h, 43180)
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 43200}, fails(invalidValue,
				"Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"))
			out := s.ok("ChangeMessageVisibilityBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "1", "ReceiptHandle": h, "VisibilityTimeout": 43200}}})
			s.entryFailed(out, 0, "1", invalidValue, "")
		}},
	})
}

func illegalHandles(s *scene) {
	q, other := s.queue(), s.queue()
	s.send(q, "x")
	s.send(other, "x")
	mine, foreign := handle(s.one(q)), handle(s.one(other))
	altered := []byte(mine)
	altered[len(altered)/2] ^= 1
	handles := []string{"garbage", "INVALID", "é", " ", strings.Repeat("A", 1025), string(altered), mine[:len(mine)-1], mine + "A", foreign}
	for _, h := range handles {
		want := fails("ReceiptHandleIsInvalid", `The input receipt handle "`+h+`" is not a valid receipt handle.`)
		s.refused("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": h}, want)
		s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 60}, want)
	}
	s.counts(q, "0", "1", "0")
	s.counts(other, "0", "1", "0")
	s.delete(q, mine)
	if len(mine) > 1024 {
		s.Errorf("a handle of %d characters, want at most 1024", len(mine))
	}
}

// D1–D3, D6: dead letters of standard queues.
func TestDeadLetters(t *testing.T) {
	play(t, []script{
		{id: "D1", title: "a message moves at the receive after its last", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
			sent := s.send(q, "x")
			first := s.one(q, allSystem)
			if got := first.text("Attributes", "ApproximateReceiveCount"); got != "1" {
				s.Errorf("count in the source: got %s, want 1", got)
			}
			s.none(q)
			s.counts(q, "0", "0", "0")
			m := s.one(dlq, allSystem)
			if m.text("MessageId") != sent.text("MessageId") || m.text("Body") != "x" {
				s.Errorf("got %v, want the message sent", m)
			}
			for name, want := range map[string]string{
				"ApproximateReceiveCount":  "2",
				"DeadLetterQueueSourceArn": s.arn(q),
				"SentTimestamp":            first.text("Attributes", "SentTimestamp"), // D6
				"SenderId":                 first.text("Attributes", "SenderId"),
			} {
				if got := m.text("Attributes", name); got != want {
					s.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			// The source's handle is of no use any more.
			s.delete(q, handle(first))
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": handle(first), "VisibilityTimeout": 1}, fails(invalidValue))
			s.counts(dlq, "0", "1", "0")
		}},
		{id: "D2", title: "time alone moves nothing", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"))
			s.send(q, "x")
			s.one(q, in{"VisibilityTimeout": 1})
			s.none(dlq, waitTwo)
			s.counts(q, "1", "0", "0")
			s.none(q)
			s.one(dlq)
		}},
		{id: "D3", title: "attributes move along", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
			s.send(q, "message-1", messageAttributes(in{"MyAttribute": text("foobar")}), traceHeader, in{"MessageGroupId": "g"})
			s.one(q)
			s.none(q)
			m := s.one(dlq, allSystem, allUser)
			if got, want := m.text("MD5OfMessageAttributes"), "adb59cd4678ea5a855436b949cd07ab6"; got != want {
				s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
			}
			if got := m.text("Attributes", "AWSTraceHeader"); !strings.HasPrefix(got, "Root=1-5759e988") {
				s.Errorf("AWSTraceHeader: got %q", got)
			}
			if got := m.text("Attributes", "MessageGroupId"); got != "g" {
				s.Errorf("MessageGroupId: got %q, want g", got)
			}
		}},
		{id: "several", title: "a receive passes over those that move", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "2"))
			for range 3 {
				s.send(q, "old")
			}
			for range 2 {
				if got := len(s.receive(q, ten, peek)); got != 3 {
					s.Fatalf("got %d messages, want 3", got)
				}
			}
			s.send(q, "new")
			s.bodies(s.receive(q, ten), "new")
			s.counts(dlq, "3", "0", "0")
		}},
		{id: "lowered", title: "a lower count holds for messages already received", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "10"), "VisibilityTimeout", "0")
			s.send(q, "x")
			s.one(q)
			s.one(q)
			s.set(q, "RedrivePolicy", redrive(s.arn(dlq), "2"))
			s.none(q)
			s.one(dlq)
		}},
	})
}
