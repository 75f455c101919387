package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// sendAs sends one message whose content has an id.
func (m *testMachine) sendAs(q sqs.QueueKey, id byte) {
	m.t.Helper()
	c := testSend(q, 1)
	c.Entries[0].MessageID = sqs.MessageID{id}
	content := sqs.AppendContent(nil, &sqs.Content{MessageID: sqs.MessageID{id}, Body: []byte("x")})
	command, err := AppendCommand(nil, c, [][]byte{content})
	if err != nil {
		m.t.Fatal(err)
	}
	m.index++
	data := AppendOperation(AppendEntryHeader(nil, m.now), Origin{}, command)
	l := &raft.Log{Index: m.index, Type: raft.LogCommand, Data: data}
	m.log = append(m.log, l)
	m.Apply(l)
}

// showStep is a step without its content.
func showStep(s Step) string {
	text := fmt.Sprintf("%d %s %s/%d", s.Index, s.Kind, s.Queue.Name, s.Sequence)
	if s.ReceiveCount > 0 {
		text += fmt.Sprintf(" count=%d", s.ReceiveCount)
	}
	if s.AvailableAt > 0 {
		text += fmt.Sprintf(" until=%v", s.AvailableAt.Sub(testStart))
	}
	if s.Kind == StepMoved {
		text += fmt.Sprintf(" to=%s/%d", s.To.Name, s.ToSequence)
	}
	return text
}

func showSteps(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(showStep(s) + "\n")
	}
	return b.String()
}

// storyMachine has lived through all kinds of steps: message 1 was received,
// released, moved to the dead-letter queue and deleted there; message 2 waits,
// message 3 was purged. Snapshots are taken after entries.
func storyMachine(t *testing.T, steps func(Step), snapshots map[uint64][]byte) *testMachine {
	t.Helper()
	m := newTestMachine(t)
	if steps != nil {
		m.Watch(steps)
	}
	pause := func() {
		if _, wanted := snapshots[m.index]; wanted {
			snapshots[m.index] = snapshotOf(t, m.Machine)
		}
		m.now = m.now.Add(time.Second)
	}
	q, dead := testQueue("q"), testQueue("dead")
	policy := sqs.Attribute{
		Name: sqs.RedrivePolicyAttribute, Value: "{}", Redrive: &sqs.RedrivePolicy{Target: dead, MaxReceiveCount: 1},
	}
	m.must(sqs.CreateQueue{Queue: dead}) // entry 2
	pause()
	m.must(sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{policy}})
	pause()
	m.sendAs(q, 1) // entry 4
	pause()
	first := m.receive(q).Result.(sqs.ReceiveMessageResult).Messages[0].Receipt // entry 5
	pause()
	m.must(sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{{Receipt: first, Timeout: time.Minute}}})
	pause()
	m.must(sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{{Receipt: first}}})
	pause()
	m.receive(q) // entry 8 moves it
	pause()
	second := m.receive(dead).Result.(sqs.ReceiveMessageResult).Messages[0].Receipt // entry 9
	pause()
	m.must(sqs.DeleteMessageBatch{Queue: dead, Receipts: []sqs.Receipt{second, second}}) // entry 10
	pause()
	m.sendAs(dead, 3) // entry 11
	pause()
	m.must(sqs.PurgeQueue{Queue: dead})
	pause()
	m.sendAs(q, 2) // entry 13
	pause()
	return m
}

func TestWatch(t *testing.T) {
	var steps []Step
	m := storyMachine(t, func(s Step) { steps = append(steps, s) }, nil)
	const want = `4 sent q/1
5 received q/1 count=1 until=33.031s
6 changed q/1 until=1m4.061s
7 changed q/1
8 moved q/1 to=dead/1
9 received dead/1 count=2 until=37.031s
10 deleted dead/1
10 deleted dead/1
11 sent dead/2
12 purged dead/0
13 sent q/2
`
	if got := showSteps(steps); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if steps[6].Body != steps[0].Body {
		t.Errorf("got the delete of body %d, want %d", steps[6].Body, steps[0].Body)
	}
	data, err := steps[4].Content()
	if content, parseErr := sqs.ParseContent(data); err != nil || parseErr != nil || content.MessageID != (sqs.MessageID{1}) {
		t.Errorf("content of the move: got %v (%v, %v), want that of message 1", content, err, parseErr)
	}
	m.Watch(nil)
	m.must(sqs.PurgeQueue{Queue: testQueue("q")})
	if len(steps) != 11 {
		t.Errorf("got %d steps after the watching ended, want 11", len(steps))
	}
}

// sourcesOf are those of a log from an entry on, with a snapshot behind it.
func sourcesOf(t *testing.T, m *testMachine, first uint64, snapshot []byte) TraceSources {
	t.Helper()
	return TraceSources{
		View: m.View,
		Replay: func(uint64) (*Machine, error) {
			shadow := NewShadow().WithoutRecovery()
			if snapshot == nil {
				return shadow, nil
			}
			return shadow, restore(shadow, snapshot)
		},
		Scan: func(from, to uint64, visit func(*raft.Log) error) error {
			for _, l := range m.log {
				if l.Index < max(from, first) || l.Index > to {
					continue
				}
				scratch := *l
				scratch.Data = append([]byte(nil), l.Data...)
				if err := visit(&scratch); err != nil {
					return err
				}
				clear(scratch.Data) // an entry is valid during the call only
			}
			return nil
		},
		Last: m.index,
	}
}

func TestTraceMessage(t *testing.T) {
	for _, test := range []struct {
		name     string
		id       byte
		first    uint64 // entry of the log
		snapshot uint64 // 0: none
		want     string
		now      string // where the message is
	}{
		{name: "whole log", id: 1, first: 1, want: "4 sent q/1\n5 received q/1 count=1 until=33.031s\n6 changed q/1 until=1m4.061s\n" +
			"7 changed q/1\n8 moved q/1 to=dead/1\n9 received dead/1 count=2 until=37.031s\n10 deleted dead/1\n10 deleted dead/1\n"},
		{name: "still here", id: 2, first: 1, want: "13 sent q/2\n", now: "q/2"},
		{name: "purged", id: 3, first: 1, want: "11 sent dead/2\n12 purged dead/0\n"},
		{name: "send after the snapshot", id: 3, first: 2, snapshot: 9, want: "11 sent dead/2\n12 purged dead/0\n"},
		{
			name: "send in the log before the snapshot", id: 1, first: 3, snapshot: 6,
			want: "4 sent q/0\n7 changed q/1\n8 moved q/1 to=dead/1\n9 received dead/1 count=2 until=37.031s\n10 deleted dead/1\n10 deleted dead/1\n",
		},
		{name: "send before the log, in the state", id: 2, first: 14, snapshot: 13, now: "q/2"},
		{name: "log without a snapshot to go on from", id: 1, first: 3, want: "4 sent q/0\n"},
		{name: "unknown", id: 9, first: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			snapshots := map[uint64][]byte{test.snapshot: nil}
			m := storyMachine(t, nil, snapshots)
			trace, err := TraceMessage(t.Context(), sqs.MessageID{test.id}, sourcesOf(t, m, test.first, snapshots[test.snapshot]))
			if err != nil {
				t.Fatal(err)
			}
			if got := showSteps(trace.Steps); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			now := ""
			if trace.Found {
				now = fmt.Sprintf("%s/%d", trace.Queue.Name, trace.Message.Sequence)
			}
			if now != test.now {
				t.Errorf("got it in %q, want %q", now, test.now)
			}
		})
	}
}

// A message that was sent before all of the log is followed through it.
func TestTraceOfOldMessage(t *testing.T) {
	snapshots := map[uint64][]byte{13: nil}
	m := storyMachine(t, nil, snapshots)
	m.receive(testQueue("q"))
	trace, err := TraceMessage(t.Context(), sqs.MessageID{2}, sourcesOf(t, m, 14, snapshots[13]))
	if got := showSteps(trace.Steps); err != nil || got != "14 received q/2 count=1 until=42.031s\n" {
		t.Errorf("got %q (%v), want the receive", got, err)
	}
	if trace.First != 14 || trace.Exact != 14 || trace.Last != 14 {
		t.Errorf("got entries %d, %d, %d; want 14", trace.First, trace.Exact, trace.Last)
	}
}

func TestTraceEndsEarly(t *testing.T) {
	m := storyMachine(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TraceMessage(ctx, sqs.MessageID{1}, sourcesOf(t, m, 1, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
	m.log = append(m.log[:5:5], m.log[6:]...)
	if _, err := TraceMessage(t.Context(), sqs.MessageID{1}, sourcesOf(t, m, 1, nil)); !errors.Is(err, errGap) {
		t.Errorf("an entry is missing: got error %v, want %v", err, errGap)
	}
}

// A message that a move task has made of another is traced by either id: whether it
// is still there or gone, and from the send of its content on.
func TestTraceOfRedrivenMessage(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		m := newTestMachine(t)
		q, dead := testQueue("q"), testQueue("dead")
		policy := sqs.Attribute{
			Name: sqs.RedrivePolicyAttribute, Value: "{}", Redrive: &sqs.RedrivePolicy{Target: dead, MaxReceiveCount: 1},
		}
		m.must(sqs.CreateQueue{Queue: dead})
		m.must(sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{policy}})
		m.sendAs(q, 1) // entry 4
		m.receive(q)
		m.now = m.now.Add(time.Minute)
		m.receive(q) // entry 6 moves it
		m.must(sqs.StartMessageMoveTask{Source: dead, Task: sqs.TaskID{1}})
		m.must(Pulse{}) // entry 8 moves it back
		back := m.receive(q).Result.(sqs.ReceiveMessageResult).Messages[0]
		want := "4 sent q/1\n5 received q/1 count=1 until=30.031s\n6 moved q/1 to=dead/1\n8 moved dead/1 to=q/2\n9 received q/2 count=1 until=1m30.031s\n"
		if deleted {
			m.must(sqs.DeleteMessageBatch{Queue: q, Receipts: []sqs.Receipt{back.Receipt}})
			want += "10 deleted q/2\n"
		}
		if back.Redriven == (sqs.MessageID{}) {
			t.Fatal("the message has no id of its own")
		}
		for _, id := range []sqs.MessageID{{1}, back.Redriven} {
			trace, err := TraceMessage(t.Context(), id, sourcesOf(t, m, 1, nil))
			if got := showSteps(trace.Steps); err != nil || got != want {
				t.Errorf("id %x, deleted %t: got (%v)\n%swant\n%s", id[:2], deleted, err, got, want)
			}
			if trace.Found == deleted {
				t.Errorf("id %x: found is %t, want %t", id[:2], trace.Found, !deleted)
			}
		}
	}
}
