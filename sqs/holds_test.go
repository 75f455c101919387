package sqs_test

import (
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// TestHolds: a receipt holds its message until the lease ends, or until
// anything else happens to the message.
func TestHolds(t *testing.T) {
	type world struct {
		s  *sqs.State
		at sqs.Moment
		q  sqs.QueueKey
	}
	apply := func(w *world, c sqs.Command) sqs.Result {
		t.Helper()
		result, _, err := w.s.Apply(w.at, c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		return result
	}
	receive := func(w *world) []sqs.Received {
		r := apply(w, sqs.ReceiveMessage{Queue: w.q, MaxMessages: 1, VisibilityTimeout: time.Minute})
		return r.(sqs.ReceiveMessageResult).Messages
	}
	change := func(timeout time.Duration) func(*world, sqs.Receipt) {
		return func(w *world, r sqs.Receipt) {
			apply(w, sqs.ChangeMessageVisibilityBatch{Queue: w.q, Entries: []sqs.VisibilityEntry{{Receipt: r, Timeout: timeout}}})
		}
	}
	for _, test := range []struct {
		name string
		then func(*world, sqs.Receipt)
		want bool
	}{
		{"nothing happens", func(*world, sqs.Receipt) {}, true},
		{"most of the lease passes", func(w *world, _ sqs.Receipt) { w.at.Now += 60_060 }, true},
		{"the lease ends", func(w *world, _ sqs.Receipt) { w.at.Now += 60_061 }, false},
		{"it is extended", func(w *world, r sqs.Receipt) { change(time.Hour)(w, r); w.at.Now += 120_000 }, true},
		{"it is given back", change(0), false},
		{"it is deleted", func(w *world, r sqs.Receipt) {
			apply(w, sqs.DeleteMessageBatch{Queue: w.q, Receipts: []sqs.Receipt{r}})
		}, false},
		{"it is received again", func(w *world, r sqs.Receipt) {
			change(0)(w, r)
			if again := receive(w); len(again) != 1 || !w.s.Holds(w.q, again[0].Receipt, w.at.Now) {
				t.Errorf("got %+v, want it held by the second receipt", again)
			}
		}, false},
		{"the queue is purged", func(w *world, _ sqs.Receipt) { apply(w, sqs.PurgeQueue{Queue: w.q}) }, false},
		{"the queue is made anew", func(w *world, _ sqs.Receipt) {
			apply(w, sqs.DeleteQueue{Queue: w.q})
			if sqs.IsFIFO(w.q.Name) {
				return
			}
			apply(w, sqs.CreateQueue{Queue: w.q})
			apply(w, sqs.SendMessageBatch{Queue: w.q, Entries: []sqs.SendEntry{{Delay: sqs.QueueDefault}}})
			receive(w)
		}, false},
		{"it expires", func(w *world, r sqs.Receipt) { change(12*time.Hour)(w, r); w.at.Now += 3_600_000 * 11 }, false},
		{"the queue is damaged", func(w *world, _ sqs.Receipt) { w.s.Damage(w.q) }, false},
	} {
		for _, name := range []string{"q", "q.fifo"} {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				w := &world{s: sqs.New(), at: sqs.Moment{Now: scriptStart, NextBody: 1}, q: key(name)}
				attributes := []sqs.Attribute{{Name: sqs.MessageRetentionPeriod, Value: "36000"}}
				entry := sqs.SendEntry{Delay: sqs.QueueDefault}
				if sqs.IsFIFO(name) {
					attributes = append([]sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}, attributes...)
					entry.GroupID, entry.DeduplicationID = "g", "d"
				}
				apply(w, sqs.CreateQueue{Queue: w.q, Attributes: attributes})
				apply(w, sqs.SendMessageBatch{Queue: w.q, Entries: []sqs.SendEntry{entry}})
				got := receive(w)
				if len(got) != 1 {
					t.Fatalf("got %d messages, want 1", len(got))
				}
				test.then(w, got[0].Receipt)
				if holds := w.s.Holds(w.q, got[0].Receipt, w.at.Now); holds != test.want {
					t.Errorf("got %v, want %v", holds, test.want)
				}
			})
		}
	}
	if sqs.New().Holds(key("none"), sqs.Receipt{}, scriptStart) {
		t.Error("a queue that is not there holds a message")
	}
}
