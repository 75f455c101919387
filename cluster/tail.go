package cluster

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

const (
	// tailBuffer is how many steps a tail may be behind before it loses some.
	tailBuffer = 1024

	// maxTails bounds what tails cost each command.
	maxTails = 64
)

// ErrTails says that there are maxTails tails already.
var ErrTails = errors.New("too many tails are open")

// TailEvent is a step of a message of the queue that is tailed.
type TailEvent struct {
	raftfsm.Step
	// Dropped is how many steps were lost right before this one, because the
	// tail was not read fast enough.
	Dropped uint64
}

// Tail listens to the steps of one queue.
type Tail struct {
	queue   sqs.QueueKey
	tails   *tails
	steps   chan raftfsm.Step // closed when there will be no more
	dropped atomic.Uint64
}

// Tail begins to listen to a queue, which need not exist yet, as this node applies
// what happens to it. The error is ErrNoLeader once the node drains, or ErrTails.
// Close must be called.
func (n *Node) Tail(queue sqs.QueueKey) (*Tail, error) { return n.tails.open(queue) }

// Next waits for the next event. The error is io.EOF when the node stops, or
// that of ctx.
func (t *Tail) Next(ctx context.Context) (TailEvent, error) {
	select {
	case step, open := <-t.steps:
		if !open {
			return TailEvent{}, io.EOF
		}
		return TailEvent{Step: t.tails.identify(step), Dropped: t.dropped.Swap(0)}, nil
	case <-ctx.Done():
		return TailEvent{}, ctx.Err()
	}
}

// Close ends the listening.
func (t *Tail) Close() { t.tails.close(t) }

// tails are all tails of a node. The machine is watched only while there is one.
type tails struct {
	machine *raftfsm.Machine

	mu     sync.Mutex // taken inside of the machine's lock, never around it
	all    []*Tail
	closed bool
}

func (h *tails) open(queue sqs.QueueKey) (*Tail, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrNoLeader
	}
	if len(h.all) == maxTails {
		return nil, ErrTails
	}
	t := &Tail{queue: queue, tails: h, steps: make(chan raftfsm.Step, tailBuffer)}
	h.all = append(h.all, t)
	h.machine.Watch(h.hear)
	return t, nil
}

func (h *tails) close(t *Tail) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.all, t); i >= 0 {
		h.all = slices.Delete(h.all, i, i+1)
	}
	if len(h.all) == 0 {
		h.machine.Watch(nil)
	}
}

// drain ends all tails, and lets nobody begin one.
func (h *tails) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.machine.Watch(nil)
	for _, t := range h.all {
		close(t.steps)
	}
	h.all = nil
}

// hear is the machine's watcher. It must not wait for a slow reader. A content
// is not kept: the buffers would pin up to 1 GiB of bodies.
func (h *tails) hear(s raftfsm.Step) {
	s.Content = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.all {
		if s.Queue != t.queue && s.To != t.queue {
			continue
		}
		select {
		case t.steps <- s:
		default:
			t.dropped.Add(1)
		}
	}
}

// identify adds the MessageId from the content, if the node still has it.
func (h *tails) identify(s raftfsm.Step) raftfsm.Step {
	if s.Body == 0 || s.MessageID != (sqs.MessageID{}) {
		return s
	}
	h.machine.View(func(v raftfsm.View) { s.Content, _ = v.Body(s.Body, s.Copy) })
	if s.Content == nil {
		return s
	}
	if data, err := s.Content(); err == nil {
		if content, err := sqs.ParseContent(data); err == nil {
			s.MessageID = content.MessageID
		}
	}
	return s
}
