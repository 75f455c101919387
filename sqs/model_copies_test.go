package sqs_test

import (
	"fmt"
	"math"
	"testing"

	"holdfast.internal/sqs"
)

// sendCopy sends a copy of a content, a new one or one of the latest, to a State,
// its twin and the model. Nothing of a copy is unlike a message of its own but what
// is shown of it.
func (g *generator) sendCopy() string {
	g.model.expire(g.at.Now)
	i := g.IntN(len(modelQueues))
	q := g.model.queue(modelQueues[i])
	c := sqs.CopyEntry{
		Queue: key(modelQueues[i]), Size: g.IntN(100),
		Copy: sqs.Copy{Receiver: [16]byte{1 + byte(g.IntN(3))}, Shape: 1 + uint8(g.IntN(2)), Generation: uint32(g.IntN(2))},
		Body: g.at.NextBody - min(g.at.NextBody-1, uint64(g.IntN(5))),
	}
	g.at.NextBody = max(g.at.NextBody, c.Body+1)
	if sqs.IsFIFO(c.Queue.Name) || g.IntN(3) == 0 {
		c.GroupID = string(rune('x' + g.IntN(3)))
	}
	if sqs.IsFIFO(c.Queue.Name) {
		c.DeduplicationID = fmt.Sprint(g.IntN(1000))
	}
	if q != nil && len(q.messages) > 190 {
		return ""
	}
	err := g.state.SendCopy(g.at, c)
	_ = g.twin.SendCopy(g.at, c)
	if (err != nil) != (q == nil) {
		return fmt.Sprintf("%+v: got %v, queue is there: %v", c, err, q != nil)
	}
	if q == nil {
		return ""
	}
	q.sendCopy(g.at, c)
	return g.compareCensus(sqs.SendMessageBatch{Queue: c.Queue})
}

// sendCopy is a send without a limit of size.
func (q *modelQueue) sendCopy(at sqs.Moment, c sqs.CopyEntry) {
	at.NextBody = c.Body
	send := sqs.SendMessageBatch{Queue: c.Queue, Entries: []sqs.SendEntry{{
		MessageID: c.Copy.MessageID(c.Body), Size: c.Size, Delay: sqs.QueueDefault, GroupID: c.GroupID, DeduplicationID: c.DeduplicationID,
	}}}
	before, limit := len(q.messages), q.maxSize
	q.maxSize = math.MaxInt
	if q.fifo {
		q.sendFIFO(at, send)
	} else {
		q.send(at, send)
	}
	q.maxSize = limit
	if len(q.messages) > before {
		q.messages[before].copied = c.Copy
	}
}

// TestCopyIDs checks that ids of copies differ where they must, and nowhere else.
func TestCopyIDs(t *testing.T) {
	first := sqs.Copy{Receiver: [16]byte{1}, Shape: 1}
	other := []sqs.Copy{{Receiver: [16]byte{2}, Shape: 1}, {Receiver: [16]byte{1}, Shape: 1, Generation: 1}}
	for _, c := range other {
		if c.MessageID(7) == first.MessageID(7) {
			t.Errorf("%+v has the id of %+v", c, first)
		}
	}
	if first.MessageID(7) == first.MessageID(8) {
		t.Error("two contents give one id")
	}
	raw := first
	raw.Shape = 2
	if raw.MessageID(7) != first.MessageID(7) {
		t.Error("the shape changes the id")
	}
	if id := first.MessageID(7); id[6]>>4 != 8 || id[8]>>6 != 2 {
		t.Errorf("%x has not the form of a UUID of version 8", id)
	}
}
