package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// Trace is the life of one message, as far as log and state still tell it.
type Trace struct {
	MessageID sqs.MessageID
	Steps     []Step // in the order of the log
	// First and Last are the entries that were read. Before Exact, which
	// follows a snapshot, only the send can be seen: the log has no results, and
	// they are worked out again from the snapshot on.
	First, Exact, Last uint64
	Found              bool         // the message is in the state
	Queue              sqs.QueueKey // where it is, if Found
	Message            sqs.Peeked
}

// TraceSources is where a trace comes from.
type TraceSources struct {
	// View shows the state as it is, with its contents.
	View func(func(View))
	// Replay returns a machine of its own in the state of the newest snapshot, if a
	// log that begins with first goes on from it; an empty one if there is none, or
	// if the log begins with entry 1.
	Replay func(first uint64) (*Machine, error)
	// Scan reads the log from an entry to another, both included; 0 stands for
	// the first or the last. An entry is valid during the call of visit.
	Scan func(from, to uint64, visit func(*raft.Log) error) error
	Last uint64 // the last entry that may be read
}

// NewShadow returns a Machine that keeps no contents: a copy of a state to look
// into, and no replica.
func NewShadow() *Machine { return New(shadowBodies{}, nil) }

// TraceMessage follows a message through the log and the state. It costs a
// second copy of the state's index, and a reading of the whole log. When
// neither the log has the send, it reads the contents of all messages, one page
// after the other. It ends early when ctx is done.
func TraceMessage(ctx context.Context, id sqs.MessageID, sources TraceSources) (Trace, error) {
	t := &tracer{ctx: ctx, sources: sources, trace: Trace{MessageID: id, Last: sources.Last}}
	err := t.run()
	if err != nil {
		err = fmt.Errorf("trace message: %w", err)
	}
	return t.trace, err
}

var (
	errSeen = errors.New("seen enough")
	errGap  = errors.New("entries were removed meanwhile")
)

// tracePage is how many messages are looked at under one lock.
const tracePage = 1000

type tracer struct {
	ctx     context.Context
	sources TraceSources
	trace   Trace

	body  uint64       // of the message; 0: not known yet
	queue sqs.QueueKey // where it is at the entry that is replayed
	// renamed says that the message was found by the id that a move task gave it;
	// what it lived through before was not seen.
	renamed bool
}

func (t *tracer) run() error {
	err := t.sources.Scan(0, t.trace.Last, func(entry *raft.Log) error {
		t.trace.First = entry.Index
		return errSeen
	})
	if err != nil && !errors.Is(err, errSeen) {
		return err
	}
	machine, err := t.sources.Replay(t.trace.First)
	if err != nil {
		return err
	}
	t.trace.Exact = max(machine.AppliedIndex()+1, t.trace.First)
	if machine.AppliedIndex() == 0 && t.trace.First > 1 {
		t.trace.Exact = t.trace.Last + 1 // there is nothing to go on from
	}
	send, err := t.findSend()
	if err != nil {
		return err
	}
	if send != nil {
		t.trace.Steps = append(t.trace.Steps, *send)
		if err := t.findBefore(machine, send.At); err != nil {
			return err
		}
	}
	if err := t.replay(machine); err != nil {
		return err
	}
	if send == nil && (t.body == 0 || t.renamed) {
		if err := t.replayOlder(); err != nil {
			return err
		}
	}
	return t.findNow()
}

// findSend looks for the send where results are not known.
func (t *tracer) findSend() (found *Step, err error) {
	if t.trace.Exact <= t.trace.First {
		return nil, nil
	}
	to := min(t.trace.Exact-1, t.trace.Last)
	err = t.sources.Scan(t.trace.First, to, func(entry *raft.Log) error {
		if err := t.ctx.Err(); err != nil || entry.Type != raft.LogCommand {
			return err
		}
		at, operations, err := DecodeEntry(entry.Data)
		if err != nil {
			return fmt.Errorf("entry %d: %w", entry.Index, err)
		}
		for _, o := range operations {
			c, _, err := DecodeCommand(o.Command)
			if err != nil {
				return fmt.Errorf("entry %d: %w", entry.Index, err)
			}
			if send, ok := c.(sqs.SendMessageBatch); ok && t.isIn(send) {
				found = &Step{Index: entry.Index, At: at, Kind: StepSent, Queue: send.Queue, MessageID: t.trace.MessageID}
			}
		}
		return nil
	})
	return found, err
}

func (t *tracer) isIn(c sqs.SendMessageBatch) bool {
	for i := range c.Entries {
		if c.Entries[i].MessageID == t.trace.MessageID {
			return true
		}
	}
	return false
}

// findBefore looks a message up that was sent before the replay begins: in the
// state from which the replay goes on, with the contents that the node still
// has.
func (t *tracer) findBefore(machine *Machine, sentAt sqs.Time) error {
	queue, message, found, err := t.search(machine.View, func(m *sqs.Peeked) bool {
		return m.SentAt == sentAt || m.SentAt > sentAt && m.DeadLetterSource != sqs.QueueKey{} // FIFO: enqueued anew
	})
	if found {
		t.body, t.queue = message.Body, queue
	}
	return err
}

// replayOlder is for a message that was sent before all of the log and is in the
// state, and for one that a move task has made of another. The log is replayed once
// more to follow the content from the beginning.
func (t *tracer) replayOlder() error {
	if t.body == 0 {
		queue, message, found, err := t.search(t.sources.View, func(*sqs.Peeked) bool { return true })
		if err != nil || !found {
			return err
		}
		t.body, t.queue = message.Body, queue
	}
	t.trace.Steps, t.renamed = nil, false
	machine, err := t.sources.Replay(t.trace.First)
	if err != nil {
		return err
	}
	return t.replay(machine)
}

// replay applies the log to the machine and takes down the steps of the
// message, as soon as its body is known.
func (t *tracer) replay(machine *Machine) error {
	if t.trace.Exact > t.trace.Last {
		return nil
	}
	machine.Watch(t.step)
	next := t.trace.Exact
	return t.sources.Scan(next, t.trace.Last, func(entry *raft.Log) error {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if entry.Index != next {
			return fmt.Errorf("entry %d follows %d: %w", entry.Index, next-1, errGap)
		}
		next++
		if entry.Type == raft.LogCommand {
			kept := *entry
			kept.Data = append([]byte(nil), entry.Data...) // the scan uses its buffer again
			machine.Apply(&kept)
		}
		return nil
	})
}

func (t *tracer) step(s Step) {
	switch {
	case s.MessageID == t.trace.MessageID:
		if s.Kind == StepSent { // a duplicate has the id of the message that was stored
			t.body, t.queue = s.Body, s.Queue
		}
	case s.Redriven == t.trace.MessageID && s.Redriven != sqs.MessageID{}:
		t.renamed = t.body == 0
		t.body, t.queue = s.Body, s.To
	case s.Body == 0 && s.Sequence == 0:
		if t.body == 0 || s.Queue != t.queue {
			return
		}
		t.queue = sqs.QueueKey{}
	case s.Body != t.body || t.body == 0 || !t.isCopy(s.Copy, s.Body):
		return
	case s.Kind == StepMoved:
		t.queue = s.To
	case s.Kind == StepDeleted:
		t.queue = sqs.QueueKey{}
	}
	s.Content = nil
	t.trace.Steps = append(t.trace.Steps, s)
}

// findNow looks where the message is.
func (t *tracer) findNow() error {
	if t.body == 0 {
		return nil
	}
	var err error
	t.trace.Queue, t.trace.Message, t.trace.Found, err = t.lookUp()
	return err
}

// lookUp looks for the body number, in the queue where the message was last.
func (t *tracer) lookUp() (sqs.QueueKey, sqs.Peeked, bool, error) {
	for after, more := uint64(0), true; more; {
		if err := t.ctx.Err(); err != nil {
			return t.queue, sqs.Peeked{}, false, err
		}
		var page sqs.PeekResult
		t.sources.View(func(v View) {
			page, _ = v.Queues().Peek(t.queue, v.Now(), sqs.AnyState, after, tracePage)
		})
		for _, m := range page.Messages {
			if m.Body == t.body && t.isCopy(m.Copy, m.Body) {
				return t.queue, m, true, nil
			}
		}
		after, more = page.Next, page.More
	}
	return t.queue, sqs.Peeked{}, false, nil
}

// search looks through all queues for a message with the id that is looked for: a
// move task gave it, or its content has it and it may be the one.
func (t *tracer) search(view func(func(View)), maybe func(*sqs.Peeked) bool) (sqs.QueueKey, sqs.Peeked, bool, error) {
	var queues []sqs.QueueCensus
	view(func(v View) { queues = v.Queues().Census(v.Now()) })
	for _, q := range queues {
		for after, more := uint64(0), true; more; {
			if err := t.ctx.Err(); err != nil {
				return q.Queue, sqs.Peeked{}, false, err
			}
			var page sqs.PeekResult
			view(func(v View) { page, _ = v.Queues().Peek(q.Queue, v.Now(), sqs.AnyState, after, tracePage) })
			for i := range page.Messages {
				if m := &page.Messages[i]; m.Redriven == t.trace.MessageID || maybe(m) && t.hasContent(m) {
					return q.Queue, *m, true, nil
				}
			}
			after, more = page.Next, page.More
		}
	}
	return sqs.QueueKey{}, sqs.Peeked{}, false, nil
}

// isCopy reports whether, among the messages that share the content, the one with
// that copy is the one that is traced. One that shares none is.
func (t *tracer) isCopy(c sqs.Copy, body uint64) bool {
	return c == sqs.Copy{} || c.MessageID(body) == t.trace.MessageID
}

// hasContent reports whether the content of a message is that of the one that is
// traced.
func (t *tracer) hasContent(m *sqs.Peeked) bool {
	if m.Copy != (sqs.Copy{}) {
		return t.isCopy(m.Copy, m.Body)
	}
	var fetch Fetch
	t.sources.View(func(v View) { fetch, _ = v.Body(m.Body, m.Copy) })
	if fetch == nil {
		return false
	}
	data, err := fetch()
	if err != nil {
		return false // gone, or unreadable: there is nothing to compare
	}
	content, err := sqs.ParseContent(data)
	return err == nil && content.MessageID == t.trace.MessageID
}

// shadowBodies keeps nothing.
type shadowBodies struct{}

var errNoBodies = errors.New("a shadow has no contents")

func (shadowBodies) Append(uint64, []byte) {}

func (shadowBodies) Pin(uint64) (func() ([]byte, error), bool) { return nil, false }

func (shadowBodies) CloseChunk() {}

func (shadowBodies) WriteLive(io.Writer, iter.Seq2[uint64, uint64]) error { return errNoBodies }

func (shadowBodies) OpenGeneration(io.Reader, uint64) (commit func(), err error) {
	return func() {}, nil
}

func (shadowBodies) Pending() int64 { return 0 }
