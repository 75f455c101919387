package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// maxPeekBytes is where a page of messages ends, whatever its limit.
const maxPeekBytes = 8 << 20

// ErrTracing says that a trace is running already. One at a time bounds the
// memory that traces take.
var ErrTracing = errors.New("another trace is running")

// PeekPage is a page of messages of one queue.
type PeekPage struct {
	Messages []PeekedMessage
	Next     uint64 // where the next page goes on
	More     bool   // there may be a next page
}

// PeekedMessage is a message that was looked at.
type PeekedMessage struct {
	sqs.Peeked
	Content []byte // sqs.ParseContent reads it; nil with Err
	Err     error  // the content cannot be read
}

// Queue describes one queue as of now; false when there is no such queue.
func (n *Node) Queue(key sqs.QueueKey) (d sqs.QueueDescription, ok bool) {
	now := n.clock.now()
	n.machine.View(func(v raftfsm.View) { d, ok = v.Queues().Describe(key, now) })
	return d, ok
}

// Peek returns up to limit messages of a state behind the cursor after, oldest
// first, without receiving or counting them, and fewer when they are large. Every
// node can tell, as of what it has applied. The error is that of ctx, or the
// *sqs.Error of a queue that does not exist.
func (n *Node) Peek(ctx context.Context, queue sqs.QueueKey, state sqs.MessageState, after uint64, limit int) (PeekPage, error) {
	page := PeekPage{Next: after, More: true}
	size := 0
	for page.More && len(page.Messages) < limit {
		if err := ctx.Err(); err != nil {
			return page, fmt.Errorf("peek: %w", err)
		}
		found, fetches, ok := n.peek(queue, state, page.Next, limit-len(page.Messages))
		if !ok {
			return page, sqs.NoSuchQueue()
		}
		for i, m := range found.Messages {
			peeked := PeekedMessage{Peeked: m}
			peeked.Content, peeked.Err = fetches[i]()
			page.Messages = append(page.Messages, peeked)
			page.Next = m.Sequence
			if size += len(peeked.Content); size >= maxPeekBytes {
				return page, nil
			}
		}
		page.Next, page.More = found.Next, found.More
	}
	return page, nil
}

// peek is one look under the lock, contents pinned.
func (n *Node) peek(queue sqs.QueueKey, state sqs.MessageState, after uint64, limit int) (page sqs.PeekResult, fetches []raftfsm.Fetch, ok bool) {
	now := n.clock.now()
	n.machine.View(func(v raftfsm.View) {
		page, ok = v.Queues().Peek(queue, now, state, after, limit)
		for _, m := range page.Messages {
			fetch, found := v.Body(m.Body, m.Copy)
			if !found {
				fetch = func() ([]byte, error) { return nil, fmt.Errorf("read body %d: %w", m.Body, raftfsm.ErrNoBody) }
			}
			fetches = append(fetches, fetch)
		}
	})
	return page, fetches, ok
}

// Trace follows a message through the log that is still on disk and the state
// (raftfsm.TraceMessage). The error is ErrTracing, that of ctx, or a fault.
func (n *Node) Trace(ctx context.Context, id sqs.MessageID) (raftfsm.Trace, error) {
	if !n.tracing.TryLock() {
		return raftfsm.Trace{}, ErrTracing
	}
	defer n.tracing.Unlock()
	return raftfsm.TraceMessage(ctx, id, raftfsm.TraceSources{
		View:   n.machine.View,
		Replay: n.shadow,
		Scan:   n.stores.scan,
		Last:   n.machine.AppliedIndex(),
	})
}

// shadow returns a copy of the state of the newest snapshot, if the log, beginning
// with first, goes on from it and does not have all there ever was; else an empty one.
func (n *Node) shadow(first uint64) (*raftfsm.Machine, error) {
	machine := raftfsm.NewShadow()
	snapshots, err := n.stores.snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	if first == 1 || len(snapshots) == 0 || snapshots[0].Index+1 < first {
		return machine, nil
	}
	_, state, err := n.stores.snapshots.Open(snapshots[0].ID)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	return machine, errors.Join(machine.Restore(state), state.Close())
}

// scanStore is wal.Scan for a log of raft's.
func scanStore(log raft.LogStore) func(from, to uint64, visit func(*raft.Log) error) error {
	return func(from, to uint64, visit func(*raft.Log) error) error {
		first, err := log.FirstIndex()
		if err != nil {
			return fmt.Errorf("read first index: %w", err)
		}
		for i := max(from, first); i <= to; i++ {
			var entry raft.Log
			if err := log.GetLog(i, &entry); err != nil {
				return fmt.Errorf("read entry %d: %w", i, err)
			}
			if err := visit(&entry); err != nil {
				return err
			}
		}
		return nil
	}
}
