package raftfsm

import (
	"holdfast.internal/sqs"
)

// StepKind says what happened to a message.
type StepKind string

// The kinds of steps. The last two are about all messages of a queue.
const (
	StepSent         StepKind = "sent"
	StepDuplicate    StepKind = "duplicate" // a send that deduplication dropped
	StepReceived     StepKind = "received"
	StepChanged      StepKind = "changed" // its visibility timeout
	StepDeleted      StepKind = "deleted"
	StepMoved        StepKind = "moved"
	StepPurged       StepKind = "purged"
	StepQueueDeleted StepKind = "queue-deleted"
)

// Step is one thing that happened to one message, or to all of a queue.
type Step struct {
	Index uint64   // of the log entry
	At    sqs.Time // of the log entry
	Kind  StepKind
	Queue sqs.QueueKey
	// Sequence is the message's number in Queue, Body that of its content. Both
	// are 0 for a queue, and Body is for a delete of what was gone already.
	Sequence, Body uint64
	Copy           sqs.Copy      // of the content, as in sqs.Received
	MessageID      sqs.MessageID // of a send; else the content has it
	Content        Fetch         // nil when there is no content to read
	ReceiveCount   int           // of a receive: ApproximateReceiveCount
	// AvailableAt is when the message becomes visible, after a send, a receive
	// or a change; 0 when it is.
	AvailableAt sqs.Time
	To          sqs.QueueKey // of a move
	ToSequence  uint64       // of a move: the message's number in To
	// Redriven is the id that the message has in To, if a move task has made a new
	// one of it.
	Redriven sqs.MessageID
}

// Watch has f called for every step from the next entry on; nil ends that. It is
// called with the lock held, so it must be quick, and must not call the Machine.
// While nobody watches, steps cost nothing.
func (m *Machine) Watch(f func(Step)) {
	if f == nil {
		m.watcher.Store(nil)
		return
	}
	m.watcher.Store(&f)
}

// watch is the watcher's side of one command.
type watch struct {
	*Machine
	tell  func(Step)
	index uint64
	found []sqs.Peeked // the messages that the command names, as they were before it
}

// watched returns nil if nobody watches.
func (m *Machine) watched(index uint64, c Command) *watch {
	f := m.watcher.Load()
	if f == nil {
		return nil
	}
	w := &watch{Machine: m, tell: *f, index: index}
	switch c := c.(type) {
	case sqs.DeleteMessageBatch:
		for _, receipt := range c.Receipts {
			w.found = append(w.found, w.message(c.Queue, receipt.Sequence))
		}
	case sqs.ChangeMessageVisibilityBatch:
		for _, e := range c.Entries {
			w.found = append(w.found, w.message(c.Queue, e.Receipt.Sequence))
		}
	}
	return w
}

// message looks a message up; it is zero if there is none.
func (w *watch) message(queue sqs.QueueKey, sequence uint64) sqs.Peeked {
	if sequence == 0 {
		return sqs.Peeked{}
	}
	page, _ := w.state.queues.Peek(queue, w.state.now, sqs.AnyState, sequence-1, 1)
	if len(page.Messages) == 0 || page.Messages[0].Sequence != sequence {
		return sqs.Peeked{}
	}
	return page.Messages[0]
}

// step completes a step and tells it.
func (w *watch) step(s Step) {
	s.Index, s.At = w.index, w.state.now
	if s.Body != 0 && s.Content == nil {
		s.Content, _ = w.resolve(s.Body, s.Copy)
	}
	w.tell(s)
}

// result tells what a command did that was not refused.
func (w *watch) result(c Command, o *Outcome) {
	switch c := c.(type) {
	case sqs.SendMessageBatch:
		w.sent(c, o.Result.(sqs.SendMessageBatchResult))
	case sqs.ReceiveMessage:
		w.received(c, o)
	case sqs.DeleteMessageBatch:
		for i, err := range o.Result.(sqs.BatchResult).Errors {
			if err == nil {
				w.step(Step{Kind: StepDeleted, Queue: c.Queue, Sequence: c.Receipts[i].Sequence, Body: w.found[i].Body, Copy: w.found[i].Copy})
			}
		}
	case sqs.ChangeMessageVisibilityBatch:
		for i, err := range o.Result.(sqs.BatchResult).Errors {
			if sequence := c.Entries[i].Receipt.Sequence; err == nil {
				w.step(Step{
					Kind: StepChanged, Queue: c.Queue, Sequence: sequence, Body: w.found[i].Body, Copy: w.found[i].Copy,
					AvailableAt: w.message(c.Queue, sequence).AvailableAt,
				})
			}
		}
	case sqs.PurgeQueue:
		w.step(Step{Kind: StepPurged, Queue: c.Queue})
	case sqs.DeleteQueue:
		w.step(Step{Kind: StepQueueDeleted, Queue: c.Queue})
	}
}

// sent tells of the entries of a batch. Their sequence numbers are the last that
// the queue has given.
func (w *watch) sent(c sqs.SendMessageBatch, r sqs.SendMessageBatchResult) {
	stored := uint64(0)
	for i := range r.Entries {
		if r.Entries[i].Body != 0 {
			stored++
		}
	}
	sequence := w.state.queues.LastSequence(c.Queue) - stored
	for i := range r.Entries {
		e := &r.Entries[i]
		switch {
		case e.Err != nil:
		case e.Body == 0:
			w.step(Step{Kind: StepDuplicate, Queue: c.Queue, MessageID: e.MessageID})
		default:
			sequence++
			w.step(Step{
				Kind: StepSent, Queue: c.Queue, Sequence: sequence, Body: e.Body, MessageID: e.MessageID,
				AvailableAt: w.message(c.Queue, sequence).AvailableAt,
			})
		}
	}
}

func (w *watch) received(c sqs.ReceiveMessage, o *Outcome) {
	for i, r := range o.Result.(sqs.ReceiveMessageResult).Messages {
		w.step(Step{
			Kind: StepReceived, Queue: c.Queue, Sequence: r.Receipt.Sequence, Body: r.Body, Copy: r.Copy, Content: o.Bodies[i],
			ReceiveCount: r.ReceiveCount, AvailableAt: w.message(c.Queue, r.Receipt.Sequence).AvailableAt,
		})
	}
}

// moved tells of a message that went to another queue.
func (m *Machine) moved(index uint64, e sqs.Event) {
	f := m.watcher.Load()
	if f == nil {
		return
	}
	w := &watch{Machine: m, tell: *f, index: index}
	w.step(Step{
		Kind: StepMoved, Queue: e.Queue, Sequence: e.Move.Sequence, Body: e.Move.Body, Copy: e.Move.Copy,
		To: e.Move.To, ToSequence: e.Move.ToSequence,
		Redriven: w.message(e.Move.To, e.Move.ToSequence).Redriven,
	})
}

// copied tells of a copy of a publish that has come into a queue.
func (m *Machine) copied(index uint64, queue sqs.QueueKey, body uint64, c sqs.Copy) {
	f := m.watcher.Load()
	if f == nil {
		return
	}
	w := &watch{Machine: m, tell: *f, index: index}
	sequence := m.state.queues.LastSequence(queue)
	w.step(Step{
		Kind: StepSent, Queue: queue, Sequence: sequence, Body: body, Copy: c, MessageID: c.MessageID(body),
		AvailableAt: w.message(queue, sequence).AvailableAt,
	})
}
