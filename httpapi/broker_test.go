package httpapi_test

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// stateBroker is a Broker over the real state of queues, without a log, and
// with a clock that only tests move.
type stateBroker struct {
	mu       sync.Mutex
	state    *sqs.State
	topics   *sns.State
	now      sqs.Time
	index    uint64
	bodies   map[uint64][]byte
	next     uint64
	settings raftfsm.Settings
	fault    error // what Do and Receive answer, if it is there
	reasons  []string

	commands []raftfsm.Command // all that were carried out
}

func newStateBroker() *stateBroker {
	settings := raftfsm.DefaultSettings()
	settings.HandleKeys = []raftfsm.HandleKey{{ID: 1, Key: [32]byte{1, 2, 3}}}
	settings.Rules.DeleteWait = time.Minute
	return &stateBroker{
		state: sqs.New(), topics: sns.New(), now: 1_700_000_000_000, bodies: map[uint64][]byte{}, next: 1, settings: settings,
	}
}

func (b *stateBroker) Do(_ context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		return raftfsm.Outcome{}, b.fault
	}
	if _, err := raftfsm.AppendCommand(nil, c, bodies); err != nil { // it could not go into the log
		return raftfsm.Outcome{}, err
	}
	if c, ok := c.(sns.Command); ok {
		return b.applyToTopics(c, bodies), nil
	}
	return b.apply(c.(sqs.Command), bodies), nil
}

func (b *stateBroker) applyToTopics(c sns.Command, contents [][]byte) raftfsm.Outcome {
	b.index++
	b.commands = append(b.commands, c)
	if publish, ok := c.(sns.PublishBatch); ok {
		for i := range publish.Entries {
			publish.Entries[i].Content = contents[i]
		}
	}
	result, _, err := b.topics.Apply(sns.Moment{Now: sns.Time(b.now), Outlet: nowhere{}}, c)
	if err != nil {
		return raftfsm.Outcome{Index: b.index, Err: err}
	}
	return raftfsm.Outcome{Index: b.index, Result: result}
}

// nowhere is an outlet without queues.
type nowhere struct{}

func (nowhere) Store([]byte) uint64                  { return 1 }
func (nowhere) Deliver(*sns.Copy) (sns.Outcome, int) { return sns.QueueGone, 0 }

func (b *stateBroker) apply(c sqs.Command, bodies [][]byte) raftfsm.Outcome {
	b.index++
	b.commands = append(b.commands, c)
	result, _, err := b.state.Apply(sqs.Moment{Now: b.now, NextBody: b.next, Rules: b.settings.Rules}, c)
	out := raftfsm.Outcome{Index: b.index, Result: result}
	if err != nil {
		out.Err = err
		return out
	}
	if sent, ok := result.(sqs.SendMessageBatchResult); ok {
		for i, entry := range sent.Entries {
			if entry.Err == nil && entry.Body != 0 {
				b.bodies[entry.Body] = bodies[i]
				b.next = entry.Body + 1
			}
		}
	}
	return out
}

func (b *stateBroker) Receive(_ context.Context, c sqs.ReceiveMessage, _ time.Duration, _ func() bool) (cluster.Delivery, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		return cluster.Delivery{}, b.fault
	}
	out := b.apply(c, nil)
	d := cluster.Delivery{Index: out.Index}
	if out.Err != nil {
		return d, out.Err
	}
	for _, m := range out.Result.(sqs.ReceiveMessageResult).Messages {
		d.Messages = append(d.Messages, cluster.Message{Received: m, Handle: b.settings.MintHandle(m.Receipt), Content: b.bodies[m.Body]})
	}
	return d, nil
}

func (b *stateBroker) ParseHandle(text string) (sqs.Receipt, bool) {
	return b.settings.ParseHandle(text)
}
func (b *stateBroker) AwaitFormed(context.Context) error { return nil }

func (b *stateBroker) Settings() raftfsm.Settings { return b.settings }

func (b *stateBroker) Now() sqs.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *stateBroker) Ready() (bool, []string) { return len(b.reasons) == 0, b.reasons }

// last returns the latest command that was carried out, nil if there was none.
func (b *stateBroker) last() raftfsm.Command {
	if len(b.commands) == 0 {
		return nil
	}
	return b.commands[len(b.commands)-1]
}

// countedIDs returns a source of ids that are the same in every run.
func countedIDs() func() [16]byte {
	var n atomic.Uint64 // connections are served side by side
	return func() (id [16]byte) {
		binary.BigEndian.PutUint64(id[8:], n.Add(1))
		return id
	}
}
