package conformance

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"
)

// fifo makes a FIFO queue.
func (s *scene) fifo(attributes ...string) string {
	s.Helper()
	return s.create(s.name()+".fifo", append([]string{"FifoQueue", "true"}, attributes...)...)
}

// sendAll sends bodies, each in the group that is named before its hyphen, with
// a deduplication id of its own.
func (s *scene) sendAll(q string, bodies ...string) (sent []tree) {
	s.Helper()
	for _, body := range bodies {
		group, _, _ := strings.Cut(body, "-")
		sent = append(sent, s.send(q, body, in{"MessageGroupId": group}, dedup(rand.Text())))
	}
	return sent
}

func dedup(id string) in { return in{"MessageDeduplicationId": id} }

var inGroup = in{"MessageGroupId": "g"}

// most is a receive of at most n messages, hidden for some seconds.
func most(n, seconds int) in { return in{"MaxNumberOfMessages": n, "VisibilityTimeout": seconds} }

// handleExpired is the refusal of a dead FIFO handle (AWS recording
// test_fifo_delete_after_visibility_timeout).
func handleExpired(handle string) failure {
	return fails(invalidValue, "Value "+handle+" for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")
}

// F1–F13, F21: order and lock by group.
func TestFIFO(t *testing.T) {
	play(t, []script{
		{id: "F1", title: "one message of a group at a time", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "a-1", "a-2")
			m := s.one(q, most(1, 30))
			s.bodies([]tree{m}, "a-1")
			s.none(q)
			s.delete(q, handle(m))
			s.bodies(s.receive(q), "a-2")
		}},
		{id: "F2", title: "several messages of a group, then the next group", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g1-m1", "g2-m1", "g1-m2", "g1-m3")
			s.bodies(s.receive(q, ten), "g1-m1", "g1-m2", "g1-m3", "g2-m1")
		}},
		{id: "F3", title: "groups come back by the end of their leases", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g1-m1", "g1-m2", "g1-m3", "g1-m4", "g2-m1", "g3-m1")
			s.bodies(s.receive(q, most(2, 7)), "g1-m1", "g1-m2")
			s.bodies(s.receive(q, most(1, 8)), "g2-m1")
			time.Sleep(8500 * time.Millisecond)
			s.bodies(s.receive(q, most(10, 0)), "g3-m1", "g1-m1", "g1-m2", "g1-m3", "g1-m4", "g2-m1")
		}},
		{id: "F4", title: "a timeout of 0", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g1-m1", "g2-m1", "g2-m2", "g3-m1", "g1-m2")
			s.bodies(s.receive(q, most(3, 0)), "g1-m1", "g1-m2", "g2-m1")
			s.bodies(s.receive(q, most(10, 0)), "g3-m1", "g1-m1", "g1-m2", "g2-m1", "g2-m2")
		}},
		{id: "F5", title: "the first message is let go", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g1-m1", "g1-m2", "g2-m1")
			messages := s.receive(q, most(2, 30))
			s.bodies(messages, "g1-m1", "g1-m2")
			s.change(q, handle(messages[0]), 0)
			s.bodies(s.receive(q, most(3, 30)), "g2-m1", "g1-m1")
		}},
		{id: "F6", title: "the first message is let go after a while", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g1-m1", "g1-m2", "g2-m1")
			messages := s.receive(q, most(2, 60))
			s.change(q, handle(messages[0]), 1)
			time.Sleep(1500 * time.Millisecond)
			s.bodies(s.receive(q, most(3, 30)), "g2-m1", "g1-m1")
		}},
		{id: "F7", title: "what is before the first hidden message", play: visiblePrefix},
		{id: "F8", title: "a whole receive is deleted", play: func(s *scene) {
			q := s.deduplicated()
			messages := s.receive(q, most(2, 30))
			s.bodies(messages, "g1-m1", "g1-m2")
			s.delete(q, handle(messages[0]))
			s.delete(q, handle(messages[1]))
			s.bodies(s.receive(q, ten), "g2-m1", "g2-m2", "g1-m3", "g1-m4", "g3-m1")
		}},
		{id: "F9", title: "a part of a receive is deleted", play: func(s *scene) {
			q := s.deduplicated()
			messages := s.receive(q, most(2, 30))
			s.delete(q, handle(messages[0]))
			s.bodies(s.receive(q, ten), "g2-m1", "g2-m2", "g3-m1")
		}},
		{id: "F10", title: "a poll waits for a group", play: groupWakesPoll},
		{id: "F11", title: "a handle dies with its lease", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1", "g-2")
			h := handle(s.one(q, most(1, 1)))
			s.awaitCounts(q, "2", "0", "0")
			s.refused("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": h}, handleExpired(h))
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 5}, handleExpired(h))
			m := s.one(q, most(1, 60))
			s.bodies([]tree{m}, "g-1")
			s.refused("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": h}, handleExpired(h)) // nor does another lease revive it
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 5}, handleExpired(h))
			out := s.ok("DeleteMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "a", "ReceiptHandle": h}, {"Id": "b", "ReceiptHandle": handle(m)}}})
			s.entryFailed(out, 0, "a", "ReceiptHandleIsInvalid", "The receipt handle has expired")
			s.delete(q, handle(m)) // again
			s.bodies(s.receive(q), "g-2")
		}},
		{id: "F12", title: "a longer lease keeps the handle alive", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1")
			h := handle(s.one(q, most(1, 10)))
			s.change(q, h, 60)
			time.Sleep(10500 * time.Millisecond)
			s.delete(q, h)
			s.counts(q, "0", "0", "0")
		}},
		{id: "F13", title: "what waits behind a message in flight is counted as visible", play: func(s *scene) {
			q := s.fifo("ContentBasedDeduplication", "True")
			for _, body := range []string{"g1-1", "g2-1", "g3-1", "g1-2", "g2-2", "g3-2"} {
				s.send(q, body, in{"MessageGroupId": body[:2]})
			}
			s.bodies(s.receive(q, most(1, 30)), "g1-1")
			s.bodies(s.receive(q, most(1, 30)), "g2-1")
			s.counts(q, "4", "2", "0")
		}},
		{id: "F21", title: "an emptied group goes on", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1")
			s.delete(q, handle(s.one(q)))
			s.none(q)
			s.sendAll(q, "g-2")
			s.bodies(s.receive(q), "g-2")
		}},
		{id: "T5", title: "a purge frees the groups", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1", "g-2")
			s.one(q)
			s.ok("PurgeQueue", in{"QueueUrl": q})
			s.sendAll(q, "g-3")
			s.bodies(s.receive(q), "g-3")
		}},
	})
}

// visiblePrefix is the AWS recording
// test_fifo_group_visibility_extends_with_change_message_visibility.
func visiblePrefix(s *scene) {
	wanted := [][]string{nil, {"g-foo"}, {"g-foo", "g-bar"}}
	var queues [3]string
	for i := range queues {
		queues[i] = s.fifo()
		s.sendAll(queues[i], "g-foo", "g-bar", "g-baz")
		messages := s.receive(queues[i], most(10, 15))
		s.bodies(messages, "g-foo", "g-bar", "g-baz")
		s.change(queues[i], handle(messages[i]), 120)
	}
	time.Sleep(15500 * time.Millisecond)
	for i, q := range queues {
		s.bodies(s.receive(q, most(5, 30)), wanted[i]...)
	}
}

// deduplicated is a queue with the messages of F8 and F9, one of which was sent
// twice.
func (s *scene) deduplicated() string {
	q := s.fifo("ContentBasedDeduplication", "true")
	for _, body := range []string{"g1-m1", "g2-m1", "g1-m2", "g2-m2", "g1-m2", "g1-m3", "g1-m4", "g3-m1"} {
		s.send(q, body, in{"MessageGroupId": body[:2]})
	}
	return q
}

// groupWakesPoll is the AWS recording test_fifo_message_group_visibility.
func groupWakesPoll(s *scene) {
	q := s.fifo()
	found := make(chan tree, 3)
	var polls sync.WaitGroup
	for range 3 {
		polls.Go(func() {
			for _, m := range s.receive(q, waitLong, in{"VisibilityTimeout": 60}) {
				found <- m
			}
		})
	}
	go func() {
		polls.Wait()
		close(found)
	}()
	s.sendAll(q, "g-1")
	first := <-found
	s.bodies([]tree{first}, "g-1")
	s.sendAll(q, "g-2")
	s.none(q)
	select {
	case m := <-found:
		s.Errorf("got %v while its group is locked", m)
	case <-time.After(500 * time.Millisecond):
	}
	s.took(func() {
		s.delete(q, handle(first))
		s.bodies([]tree{<-found}, "g-2")
	}, 0, early)
	s.sendAll(q, "h-1") // for the third poll
	s.bodies([]tree{<-found}, "h-1")
	polls.Wait()
}

// F14–F20, F22: deduplication and sequence numbers.
func TestDeduplication(t *testing.T) {
	play(t, []script{
		{id: "F14", title: "an id is known after the message is gone", play: func(s *scene) {
			q := s.fifo()
			sent := s.send(q, "x", inGroup, dedup("id"))
			s.delete(q, handle(s.one(q)))
			s.isDuplicate(s.send(q, "other", inGroup, dedup("id")), sent)
			s.none(q)
		}},
		{id: "F15", title: "an id counts in all groups", play: func(s *scene) {
			q := s.fifo()
			sent := s.send(q, "x", in{"MessageGroupId": "g1"}, dedup("id"))
			s.isDuplicate(s.send(q, "x", in{"MessageGroupId": "g2"}, dedup("id")), sent)
			s.bodies(s.receive(q, ten), "x")
		}},
		{id: "F16", title: "an id counts in its group", play: func(s *scene) {
			q := s.fifo("DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perQueue")
			sent := s.send(q, "x", in{"MessageGroupId": "g1"}, dedup("id"))
			s.send(q, "y", in{"MessageGroupId": "g2"}, dedup("id"))
			s.isDuplicate(s.send(q, "z", in{"MessageGroupId": "g1"}, dedup("id")), sent)
			s.bodies(s.receive(q, ten), "x", "y")
		}},
		{id: "F17", title: "the window is counted from the accepted send", setting: quick, play: func(s *scene) {
			q := s.fifo()
			start := time.Now()
			sent := s.send(q, "1", inGroup, dedup("id"))
			accepted := time.Now()
			second := s.send(q, "2", inGroup, dedup("id"))
			if time.Since(start) > 2900*time.Millisecond {
				s.Skip("the machine is too busy to send twice within the window")
			}
			s.isDuplicate(second, sent)
			time.Sleep(time.Until(accepted.Add(3500 * time.Millisecond)))
			third := s.send(q, "3", inGroup, dedup("id"))
			if third.text("MessageId") == sent.text("MessageId") || third.text("SequenceNumber") <= sent.text("SequenceNumber") {
				s.Errorf("got %v, want another message than %v", third, sent)
			}
			s.bodies(s.receive(q, ten), "1", "3")
		}},
		{id: "F18", title: "the body as id", play: func(s *scene) {
			q := s.fifo("ContentBasedDeduplication", "true")
			const hash = "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"
			sent := s.send(q, "same", inGroup)
			s.isDuplicate(s.send(q, "same", inGroup, messageAttributes(in{"a": text("b")})), sent)
			s.isDuplicate(s.send(q, "other", inGroup, dedup(hash)), sent)
			m := s.one(q, ten, allSystem)
			if got := m.text("Attributes", "MessageDeduplicationId"); got != hash {
				s.Errorf("MessageDeduplicationId: got %s, want %s", got, hash)
			}
		}},
		{id: "F19", title: "a purge forgets all ids", play: func(s *scene) {
			q := s.fifo()
			s.send(q, "x", inGroup, dedup("id"))
			s.ok("PurgeQueue", in{"QueueUrl": q})
			s.send(q, "y", inGroup, dedup("id"))
			s.bodies(s.receive(q, ten), "y")
		}},
		{id: "F20", title: "sequence numbers", play: sequenceNumbers},
		{id: "F22", title: "an explicit id goes before the body", play: func(s *scene) {
			q := s.fifo("ContentBasedDeduplication", "true")
			s.send(q, "same", inGroup, dedup("1"))
			s.send(q, "same", inGroup, dedup("2"))
			s.bodies(s.receive(q, ten), "same", "same")
		}},
		{id: "T7", title: "digests of a duplicate are those of what was sent", play: func(s *scene) {
			q := s.fifo()
			s.send(q, "x", inGroup, dedup("id"))
			again := s.send(q, "another body", inGroup, dedup("id"), messageAttributes(in{"MyAttribute": text("foobar")})) // checks the MD5
			if got, want := again.text("MD5OfMessageAttributes"), "adb59cd4678ea5a855436b949cd07ab6"; got != want {
				s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
			}
		}},
		{id: "batch-duplicates", title: "duplicates within a batch", play: func(s *scene) {
			q := s.fifo("ContentBasedDeduplication", "true")
			entry := func(id, body string) in { return in{"Id": id, "MessageBody": body, "MessageGroupId": "g"} }
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{entry("1", "x"), entry("2", "y"), entry("3", "x")}})
			sent := out.list("Successful")
			if len(sent) != 3 {
				s.Fatalf("got %v, want three entries sent", out)
			}
			s.entrySent(out, 2, "3", "x")
			s.isDuplicate(sent[2], sent[0])
			s.bodies(s.receive(q, ten), "x", "y")
		}},
		{id: "too-long", title: "a refused message leaves no id behind", play: func(s *scene) {
			q := s.fifo("MaximumMessageSize", "1024")
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": strings.Repeat("x", 1025)}.with(inGroup).with(dedup("id")), tooLongFor(1024))
			s.send(q, "x", inGroup, dedup("id"))
			s.bodies(s.receive(q, ten), "x")
		}},
	})
}

// isDuplicate checks that a send was answered with the identity of an earlier
// one.
func (s *scene) isDuplicate(got, original tree) {
	s.Helper()
	for _, name := range []string{"MessageId", "SequenceNumber"} {
		if got.text(name) != original.text(name) {
			s.Errorf("%s of the duplicate: got %s, want %s", name, got.text(name), original.text(name))
		}
	}
}

func sequenceNumbers(s *scene) {
	q := s.fifo()
	sent := s.sendAll(q, "g-1", "h-2", "g-3")
	out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
		{"Id": "a", "MessageBody": "i-4", "MessageGroupId": "i", "MessageDeduplicationId": "4"},
		{"Id": "b", "MessageBody": "i-5", "MessageGroupId": "i", "MessageDeduplicationId": "5"},
	}})
	sent = append(sent, out.list("Successful")...)
	bodies := map[string]string{}
	last := ""
	for i, m := range sent {
		number := m.text("SequenceNumber")
		if len(number) != 20 || number <= last {
			s.Errorf("SequenceNumber: got %s after %q, want 20 digits that rise", number, last)
		}
		last = number
		bodies[[]string{"g-1", "h-2", "g-3", "i-4", "i-5"}[i]] = number
	}
	messages := s.receive(q, ten, allSystem)
	s.bodies(messages, "g-1", "g-3", "h-2", "i-4", "i-5")
	for _, m := range messages {
		if got, want := m.text("Attributes", "SequenceNumber"), bodies[m.text("Body")]; got != want {
			s.Errorf("SequenceNumber of %s: got %s, want %s", m.text("Body"), got, want)
		}
	}
	if got, want := strings.Join(messages[0].names("Attributes"), " "), "ApproximateFirstReceiveTimestamp ApproximateReceiveCount "+
		"MessageDeduplicationId MessageGroupId SenderId SentTimestamp SequenceNumber"; got != want {
		s.Errorf("attributes: got %s, want %s", got, want)
	}
}

// F23: repeated receives.
func TestReceiveAttempts(t *testing.T) {
	attempt := in{"ReceiveRequestAttemptId": "a"}
	play(t, []script{
		{id: "F23", title: "the same messages by the same handles", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1", "g-2", "h-1")
			first := s.receive(q, most(2, 30), attempt)
			s.bodies(first, "g-1", "g-2")
			again := s.receive(q, most(2, 30), attempt, in{"WaitTimeSeconds": 20}, allSystem)
			s.bodies(again, "g-1", "g-2")
			for i := range again {
				if handle(again[i]) != handle(first[i]) {
					s.Errorf("message %d has another handle", i)
				}
				if got := again[i].text("Attributes", "ApproximateReceiveCount"); got != "1" {
					s.Errorf("count: got %s, want 1", got)
				}
			}
			s.bodies(s.receive(q, most(2, 30), in{"ReceiveRequestAttemptId": "b"}), "h-1")
			s.delete(q, handle(first[0]))
			s.none(q, most(2, 30), attempt)
		}},
		{id: "F23b", title: "the leases begin anew", play: func(s *scene) {
			q := s.fifo("VisibilityTimeout", "20") // which a machine that stands still for seconds does not use up
			s.sendAll(q, "g-1")
			h := handle(s.one(q, attempt))
			time.Sleep(11 * time.Second)
			s.one(q, attempt)
			time.Sleep(10 * time.Second)
			s.delete(q, h)
		}},
		{id: "T17", title: "a change of visibility ends the attempt", play: func(s *scene) {
			q := s.fifo()
			s.sendAll(q, "g-1", "g-2")
			first := s.one(q, attempt)
			s.change(q, handle(first), 60)
			s.none(q, attempt)
			s.change(q, handle(first), 0)
			if m := s.one(q, attempt); handle(m) == handle(first) {
				s.Errorf("got the old handle, want a receive of its own")
			}
		}},
		{id: "attempt-id", title: "malformed attempt ids", play: func(s *scene) {
			q := s.fifo()
			for _, id := range []string{"", "a b", strings.Repeat("a", 129)} {
				s.refused("ReceiveMessage", in{"QueueUrl": q, "ReceiveRequestAttemptId": id}, fails(invalidValue))
			}
			s.none(q, in{"ReceiveRequestAttemptId": strings.Repeat("a", 128)})
		}},
	})
}

// S28–S33: what may be sent to a FIFO queue.
func TestSendingFIFO(t *testing.T) {
	const needsID = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
	const needsGroup = "The request must contain the parameter MessageGroupId."
	play(t, []script{
		{id: "S28", title: "no group", play: func(s *scene) {
			q := s.fifo()
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(dedup("d")), fails(missingParameter, needsGroup))
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}, fails(missingParameter, needsGroup))
		}},
		{id: "S29", title: "no group in one entry of a batch", play: func(s *scene) {
			q := s.fifo("ContentBasedDeduplication", "true")
			s.refused("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "1", "MessageBody": "x", "MessageGroupId": "g"}, {"Id": "2", "MessageBody": "y"},
			}}, fails(invalidValue, needsGroup))
			s.none(q)
		}},
		{id: "S30", title: "no deduplication id", play: func(s *scene) {
			q := s.fifo()
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(inGroup), fails(invalidValue, needsID))
			s.refused("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}, {"Id": "2", "MessageBody": "y", "MessageGroupId": "g"},
			}}, fails(invalidValue, needsID))
			s.none(q)
			s.set(q, "ContentBasedDeduplication", "true")
			s.send(q, "x", inGroup)
		}},
		{id: "S30b", title: "no deduplication id in an entry that has another fault", play: func(s *scene) {
			q := s.fifo()
			faulty := in{"Id": "2", "MessageBody": "y", "MessageGroupId": "g", "DelaySeconds": 2}
			batch := in{"QueueUrl": q, "Entries": []in{{"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}, faulty}}
			s.refused("SendMessageBatch", batch, fails(invalidValue, needsID))
			s.refused("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{faulty}}, fails(invalidValue, needsID))
			s.none(q)
			s.set(q, "ContentBasedDeduplication", "true")
			if out := s.ok("SendMessageBatch", batch); len(out.list("Successful")) != 1 || len(out.list("Failed")) != 1 {
				s.Errorf("with content-based deduplication: got %v", out)
			}
		}},
		{id: "S31", title: "a delay of its own", play: func(s *scene) {
			q := s.fifo()
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "DelaySeconds": 2}.with(inGroup).with(dedup("d")), fails(invalidValue,
				"Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."))
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1", "DelaySeconds": 2},
				{"Id": "2", "MessageBody": "y", "MessageGroupId": "g", "MessageDeduplicationId": "2", "DelaySeconds": 0},
			}})
			s.entryFailed(out, 0, "1", invalidValue, "")
			s.entrySent(out, 0, "2", "y")
		}},
		{id: "S32", title: "the queue's delay applies to a delay of 0", play: func(s *scene) {
			q := s.fifo("DelaySeconds", "12")
			start := time.Now()
			s.send(q, "x", inGroup, dedup("d"), in{"DelaySeconds": 0})
			s.counts(q, "0", "0", "1")
			s.none(q)
			s.one(q, waitLong)
			if d := time.Since(start); d < 12*time.Second {
				s.Errorf("received after %v, want 12 s", d)
			}
		}},
		{id: "S33", title: "deduplication ids", play: func(s *scene) {
			q := s.fifo()
			s.send(q, "x", inGroup, dedup(strings.Repeat("d", 128)))
			for _, id := range []string{strings.Repeat("d", 129), "a b", ""} {
				s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(inGroup).with(dedup(id)), fails(invalidValue,
					"Value "+id+" for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length."))
			}
		}},
	})
}

// D4, D5: dead letters of FIFO queues.
func TestDeadLettersFIFO(t *testing.T) {
	play(t, []script{
		{id: "D4-D5", title: "a FIFO message moves", play: func(s *scene) {
			dlq := s.fifo("ContentBasedDeduplication", "true")
			q := s.fifo("ContentBasedDeduplication", "true", "VisibilityTimeout", "0", "RedrivePolicy", redrive(s.arn(dlq), "2"))
			sent := s.send(q, "foobar", inGroup)
			before := s.one(q, allSystem)
			s.one(q)
			s.none(q)
			m := s.one(dlq, allSystem)
			for name, want := range map[string]string{
				"ApproximateReceiveCount":  "3",
				"DeadLetterQueueSourceArn": s.arn(q),
				"MessageDeduplicationId":   sent.text("MessageId"), // D5
				"MessageGroupId":           "g",
			} {
				if got := m.text("Attributes", name); got != want {
					s.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if m.text("MessageId") != sent.text("MessageId") || m.text("Body") != "foobar" {
				s.Errorf("got %v, want the message sent", m)
			}
			if got, was := m.text("Attributes", "SentTimestamp"), before.text("Attributes", "SentTimestamp"); got <= was {
				s.Errorf("SentTimestamp: got %s, want that of the move, after %s", got, was)
			}
			s.send(q, "foobar2", inGroup)
			s.bodies(s.receive(q), "foobar2")
			// No deduplication id is involved in a move.
			s.send(dlq, "foobar", inGroup)
			s.counts(dlq, "1", "1", "0")
		}},
		{id: "D4b", title: "a move frees the group at once", play: func(s *scene) {
			dlq := s.fifo()
			q := s.fifo("RedrivePolicy", redrive(s.arn(dlq), "1"))
			s.sendAll(q, "g-1", "g-2")
			s.bodies(s.receive(q, most(1, 0)), "g-1")
			s.bodies(s.receive(q, most(1, 30)), "g-2")
			s.bodies(s.receive(dlq), "g-1")
		}},
	})
}
