package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Behaviour that other implementations of SQS got wrong. README.md has the list of
// these traps, and names the cases that cover the others.
func TestTraps(t *testing.T) {
	play(t, []script{
		{id: "T19", title: "an expired handle still hides, unless its message is gone", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q, in{"VisibilityTimeout": 1}))
			s.awaitCounts(q, "1", "0", "0")
			s.change(q, h, 30)
			s.none(q)
			s.counts(q, "0", "1", "0")
		}},
		{id: "T21", title: "the end of a timeout and of a delay wake a parked poll", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			s.took(func() {
				s.one(q, in{"VisibilityTimeout": 2})
				s.one(q, waitLong)
			}, 2*time.Second, early)
			s.took(func() {
				s.send(q, "y", in{"DelaySeconds": 2})
				s.bodies(s.receive(q, waitLong), "y")
			}, 2*time.Second, early)
		}},
		{id: "T21b", title: "a send and a release wake a parked poll", play: func(s *scene) {
			q := s.queue()
			got := s.poll(q)
			s.send(q, "x")
			m := <-got
			got = s.poll(q)
			s.change(q, handle(m), 0)
			if second := <-got; second.text("Body") != "x" {
				s.Errorf("after the release: got %v, want x", second)
			}
		}},
		{id: "T24", title: "timeouts that overflow", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			for _, n := range []int{1 << 31, 1<<62 + 1, -1 << 62} {
				s.refusedOr(invalidValue, "MalformedInput")("ReceiveMessage", in{"QueueUrl": q, "VisibilityTimeout": n})
				s.refusedOr(invalidValue, "MalformedInput")("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": n})
				s.refusedOr(invalidValue, "MalformedInput")("ReceiveMessage", in{"QueueUrl": q, "MaxNumberOfMessages": n})
				s.refusedOr(invalidValue, "MalformedInput")("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "DelaySeconds": n})
				s.refusedOr(invalidValue, "MalformedInput")("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": n})
				s.refusedOr(invalidValue, "MalformedInput")("ListQueues", in{"MaxResults": n})
			}
			s.counts(q, "0", "1", "0")
		}},
		{id: "T25", title: "an old handle deletes, also after a redelivery", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			old := handle(s.one(q, peek))
			s.one(q)
			s.delete(q, old)
			s.delete(q, old)
			s.counts(q, "0", "0", "0")
		}},
		{id: "T28", title: "a timeout of 0 hides nothing and counts", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			for i := 1; i <= 3; i++ {
				if got := s.one(q, ten, peek, allSystem).text("Attributes", "ApproximateReceiveCount"); got != fmt.Sprint(i) {
					s.Errorf("count: got %s, want %d", got, i)
				}
			}
			s.counts(q, "1", "0", "0")
		}},
		{id: "T30", title: "the time of the first receive stays", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			first := s.one(q, allSystem, in{"VisibilityTimeout": 1})
			second := s.one(q, allSystem, waitLong)
			for _, name := range []string{"ApproximateFirstReceiveTimestamp", "SentTimestamp"} {
				if a, b := first.text("Attributes", name), second.text("Attributes", name); a != b {
					s.Errorf("%s: got %s, then %s", name, a, b)
				}
			}
		}},
		{id: "T36", title: "without its dead-letter queue a message stays", play: func(s *scene) {
			dlq := s.queue()
			q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
			s.send(q, "x")
			s.one(q)
			s.ok("DeleteQueue", in{"QueueUrl": dlq})
			for range 3 {
				s.one(q)
			}
			s.counts(q, "1", "0", "0")
		}},
		{id: "T42", title: "an empty Policy removes it", play: func(s *scene) {
			q := s.queue()
			s.set(q, "Policy", "")
			s.set(q, "Policy", policy(s.arn(q)))
			s.set(q, "Policy", "")
			s.hasAttributes(q, "Policy", "-")
		}},
		{id: "T45", title: "what is set is read back at once", play: func(s *scene) {
			q := s.queue()
			p := policy(s.arn(q))
			s.set(q, "Policy", p, "ReceiveMessageWaitTimeSeconds", "20", "RedriveAllowPolicy", `{"redrivePermission":"allowAll"}`)
			s.hasAttributes(q, "Policy", p, "ReceiveMessageWaitTimeSeconds", "20", "RedriveAllowPolicy", `{"redrivePermission":"allowAll"}`)
		}},
		{id: "T46", title: "documents are stored compact and compared as documents", play: func(s *scene) {
			q := s.queue()
			p := policy(s.arn(q))
			s.set(q, "Policy", " "+strings.ReplaceAll(strings.ReplaceAll(p, `",`, "\",\n  "), `":`, `" : `)+"\n")
			s.hasAttributes(q, "Policy", p)
			s.create(queueName(q), "Policy", p)
			version := `"Version":"2012-10-17",`
			turned := strings.Replace(strings.Replace(p, version, "", 1), `"Id":"p",`, `"Id":"p",`+version, 1)
			s.create(queueName(q), "Policy", turned)
			s.hasAttributes(q, "Policy", p)
			s.refused("CreateQueue", createMembers(queueName(q), "Policy", strings.Replace(p, `"Sid":"s"`, `"Sid":"t"`, 1)), fails("QueueAlreadyExists",
				"A queue already exists with the same name and a different value for attribute Policy"))
		}},
		{id: "T51", title: "a custom type is part of the digest", play: func(s *scene) {
			q := s.queue()
			value := string([]byte{0, 1, 2, 0xff, 0xfe, '\r', '\n'})
			out := s.send(q, "x", messageAttributes(in{"n": in{"DataType": "Number.int", "StringValue": "3"}, "b": in{"DataType": "Binary.x", "BinaryValue": []byte(value)}}))
			m := s.one(q, allUser)
			if got := m.text("MessageAttributes", "n", "DataType"); got != "Number.int" {
				s.Errorf("DataType: got %q, want Number.int", got)
			}
			if got := unbase64(s, m.text("MessageAttributes", "b", "BinaryValue")); got != value {
				s.Errorf("BinaryValue: got %q, want %q", got, value)
			}
			want := attributesDigest([]attribute{{"b", "Binary.x", value, true}, {"n", "Number.int", "3", false}})
			if out.text("MD5OfMessageAttributes") != want || m.text("MD5OfMessageAttributes") != want {
				s.Errorf("digests: sent %s, received %s, want %s", out["MD5OfMessageAttributes"], m["MD5OfMessageAttributes"], want)
			}
		}},
		{id: "T54", title: "null and empty maps of tags", only: jsonWire, play: func(s *scene) {
			s.ok("CreateQueue", in{"QueueName": s.name(), "tags": nil, "Attributes": nil})
			q := s.ok("CreateQueue", in{"QueueName": s.name(), "tags": map[string]string{}, "Attributes": map[string]string{}}).text("QueueUrl")
			s.ok("SetQueueAttributes", in{"QueueUrl": q, "Attributes": map[string]string{}})
		}},
		{id: "T54b", title: "fifty tags in all", play: func(s *scene) {
			q := s.queue()
			s.ok("TagQueue", in{"QueueUrl": q, "Tags": manyTags(50)})
			s.refused("TagQueue", in{"QueueUrl": q, "Tags": pairs("one", "more")}, fails(invalidValue, "Too many tags added for queue "+queueName(q)+"."))
			s.ok("TagQueue", in{"QueueUrl": q, "Tags": pairs("k", "changed")})
			if got := len(s.ok("ListQueueTags", in{"QueueUrl": q}).names("Tags")); got != 50 {
				s.Errorf("got %d tags, want 50", got)
			}
		}},
		{id: "T57", title: "a form posted to the queue's path", only: queryWire, play: func(s *scene) {
			q := s.queue()
			for _, at := range []string{path(q), path(q) + "/"} {
				r := s.wire.render("SendMessage", in{"MessageBody": "x"})
				r.path = at
				s.succeeded("SendMessage", s.do(r))
			}
			s.counts(q, "2", "0", "0")
		}},
		{id: "T57b", title: "parameters in the query string and in the form", only: queryWire, play: func(s *scene) {
			q := s.queue()
			r := s.wire.render("SendMessage", in{"MessageBody": "a b+c"})
			r.path = path(q) + "?DelaySeconds=0&Action=SendMessage"
			s.succeeded("SendMessage", s.do(r))
			s.bodies(s.receive(q), "a b+c")
		}},
		{id: "T58", title: "a Query error is XML whatever the client accepts", only: queryWire, play: func(s *scene) {
			r := s.wire.render("SendMessage", in{"QueueUrl": "nope", "MessageBody": "x"})
			for _, accept := range []string{"", "*/*", "application/json"} {
				r.header["Accept"] = accept
				s.failed("SendMessage", s.do(r), queueMissing)
			}
		}},
		{id: "left-poll", title: "a client that leaves its poll takes nothing", play: func(s *scene) {
			q := s.queue()
			leaver := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
			if a, err := s.wire.do(leaver, s.endpoint, s.wire.render("ReceiveMessage", in{"QueueUrl": q}.with(waitLong))); err == nil {
				s.Fatalf("the poll ended with %d before it was left", a.status)
			}
			s.send(q, "x")
			if got := s.one(q, allSystem, in{"WaitTimeSeconds": 5}).text("Attributes", "ApproximateReceiveCount"); got != "1" {
				s.Errorf("count: got %s, want 1", got)
			}
		}},
		{id: "deleted-poll", title: "deleting a queue ends its polls", play: func(s *scene) {
			q := s.queue()
			ended := make(chan answer)
			go func() {
				a, err := s.wire.do(client, s.endpoint, s.wire.render("ReceiveMessage", in{"QueueUrl": q}.with(waitLong)))
				if err != nil {
					s.Error(err)
				}
				ended <- a
			}()
			time.Sleep(500 * time.Millisecond) // let it park; if it did not, the answer is the same
			s.ok("DeleteQueue", in{"QueueUrl": q})
			s.took(func() { s.failed("ReceiveMessage", <-ended, queueMissing) }, 0, early)
		}},
		{id: "one-poller", title: "one message wakes one poller", play: func(s *scene) {
			q := s.queue()
			var polls sync.WaitGroup
			var received atomic.Int32
			for range 4 {
				polls.Go(func() { received.Add(int32(len(s.receive(q, in{"WaitTimeSeconds": 8})))) })
			}
			s.send(q, "x")
			polls.Wait()
			if got := received.Load(); got != 1 {
				s.Errorf("got %d messages, want 1", got)
			}
			s.counts(q, "0", "1", "0")
		}},
		{id: "over-limit", title: "the in-flight limit", setting: strict, play: func(s *scene) {
			q := s.queue()
			for i := range 7 {
				s.send(q, fmt.Sprint(i))
			}
			if got := len(s.receive(q, ten)); got != 5 {
				s.Errorf("got %d messages, want the 5 that may be in flight", got)
			}
			s.refused("ReceiveMessage", in{"QueueUrl": q}, fails("OverLimit"))
			s.refused("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 0}, fails("OverLimit"))
			s.took(func() { s.none(q, in{"WaitTimeSeconds": 1}) }, 900*time.Millisecond, early)
			s.counts(q, "2", "5", "0")
		}},
		{id: "over-limit-FIFO", title: "a lease that ends makes room, whatever group it is of", setting: strict, play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "a-1", "a-2", "a-3", "a-4", "a-5", "b-1")
			messages := s.receive(q, most(10, 60))
			s.bodies(messages, "a-1", "a-2", "a-3", "a-4", "a-5")
			s.none(q) // and no error
			s.change(q, handle(messages[2]), 1)
			s.took(func() { s.bodies(s.receive(q, waitLong), "b-1") }, 900*time.Millisecond, early)
		}},
		{id: "remade", title: "a handle of a queue that was made anew", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			h := handle(s.one(q))
			s.ok("DeleteQueue", in{"QueueUrl": q})
			s.create(queueName(q))
			s.send(q, "y")
			s.one(q)
			s.refused("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": h}, fails("ReceiptHandleIsInvalid"))
			s.counts(q, "0", "1", "0")
		}},
		{id: "poison", title: "a message received three times comes after the others", play: func(s *scene) {
			q := s.queue()
			s.send(q, "poison")
			for range 3 {
				s.bodies(s.receive(q, peek), "poison")
			}
			s.send(q, "fresh")
			s.bodies(s.receive(q, ten), "fresh", "poison")
		}},
		{id: "order", title: "a batch is received in the order of its entries", play: func(s *scene) {
			q := s.queue()
			var entries []in
			var want []string
			for i := range 10 {
				body := fmt.Sprint("m", i)
				entries, want = append(entries, in{"Id": body, "MessageBody": body}), append(want, body)
			}
			s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": entries})
			s.bodies(s.receive(q, ten), want...)
		}},
		{id: "retention", title: "a shorter retention holds for old messages", long: true, play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			s.set(q, "MessageRetentionPeriod", "60")
			s.counts(q, "1", "0", "0")
			time.Sleep(62 * time.Second)
			s.none(q)
			s.counts(q, "0", "0", "0")
		}},
	})
}

func policy(arn string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Id":"p","Statement":[{"Sid":"s","Effect":"Allow","Principal":{"AWS":"*"},"Action":"SQS:SendMessage","Resource":%q}]}`, arn)
}

// refusedOr plays an action that may be refused in either of two ways: a
// number that does not fit an integer is one that AWS does not tell about.
func (s *scene) refusedOr(codes ...string) func(action string, members in) {
	return func(action string, members in) {
		s.Helper()
		a := s.call(action, members)
		for _, code := range codes {
			if a.code == code && a.status == 400 {
				return
			}
		}
		s.Errorf("%s %v: got %d %q, want one of %q", action, members, a.status, a.code, codes)
	}
}

// awaitCounts waits until the counts are as given: no answer tells when a
// timeout ends.
func (s *scene) awaitCounts(url string, visible, inFlight, delayed string) {
	s.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		got := s.attributes(url)
		if got["ApproximateNumberOfMessages"] == visible && got["ApproximateNumberOfMessagesNotVisible"] == inFlight && got["ApproximateNumberOfMessagesDelayed"] == delayed {
			return
		}
	}
	s.counts(url, visible, inFlight, delayed)
}

// poll starts a long poll; the message that it gets comes on the channel.
func (s *scene) poll(url string) <-chan tree {
	got := make(chan tree, 1)
	go func() {
		defer close(got)
		if messages := s.receive(url, waitLong); len(messages) == 1 {
			got <- messages[0]
		}
	}()
	return got
}
