package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

func TestPeek(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		for _, body := range []string{"a", "b", "c"} {
			send(t, n, body, 0)
		}
		receive(t, n, 0)
		page, err := n.Peek(t.Context(), queue, sqs.Visible, 0, 1)
		if err != nil || len(page.Messages) != 1 || !page.More {
			t.Fatalf("got %+v (%v), want one message and more", page, err)
		}
		content, err := sqs.ParseContent(page.Messages[0].Content)
		if err != nil || string(content.Body) != "b" {
			t.Errorf("got body %q (%v), want b", content.Body, err)
		}
		page, err = n.Peek(t.Context(), queue, sqs.Visible, page.Next, 5)
		if err != nil || len(page.Messages) != 1 || page.More || page.Messages[0].Sequence != 3 {
			t.Errorf("second page: got %+v (%v), want message 3 and no more", page, err)
		}
		if d := receive(t, n, 0); len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
			t.Errorf("receive after the peeks: got %+v, want a first delivery", d)
		}
		nowhere := sqs.QueueKey{Account: queue.Account, Name: "nowhere"}
		if _, err := n.Peek(t.Context(), nowhere, sqs.Visible, 0, 1); err == nil || !strings.Contains(err.Error(), "QueueDoesNotExist") {
			t.Errorf("no such queue: got error %v", err)
		}
		if d, ok := n.Queue(queue); !ok || d.Received != 2 {
			t.Errorf("got %+v, %t; want a queue with 2 deliveries", d, ok)
		}
	})
}

// Whichever node is asked shows a queue and what happens to it.
func TestPeekAndTailOnEveryNode(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		var tails []*Tail
		for i, n := range c.list {
			tail, err := n.Tail(queue)
			if err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
			defer tail.Close()
			tails = append(tails, tail)
		}
		send(t, c.list[c.awaitLeader()], "a", 0)
		c.awaitApplied()
		for i, n := range c.list {
			if event, err := tails[i].Next(t.Context()); err != nil || event.Kind != raftfsm.StepSent {
				t.Errorf("node %d: got %+v (%v), want the send", i, event, err)
			}
			page, err := n.Peek(t.Context(), queue, sqs.Visible, 0, 5)
			if err != nil || len(page.Messages) != 1 || page.Messages[0].Err != nil {
				t.Errorf("node %d: got %+v (%v), want a message with its content", i, page, err)
			}
		}
	})
}

// A page of large messages ends early, and the next one goes on behind it.
func TestPeekOfLargeMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		for i := range 10 {
			send(t, n, string(rune('a'+i))+strings.Repeat("x", 1<<20-1), 0)
		}
		seen := uint64(0)
		for after, more := uint64(0), true; more; {
			page, err := n.Peek(t.Context(), queue, sqs.Visible, after, 100)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Messages) > 8 {
				t.Errorf("got a page of %d MiB", len(page.Messages))
			}
			for _, m := range page.Messages {
				if seen++; m.Sequence != seen {
					t.Errorf("got message %d, want %d", m.Sequence, seen)
				}
			}
			after, more = page.Next, page.More
		}
		if seen != 10 {
			t.Errorf("got %d messages, want 10", seen)
		}
	})
}

func TestTail(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		send(t, n, "before", 0)
		tail, err := n.Tail(queue)
		if err != nil {
			t.Fatal(err)
		}
		receive(t, n, 0)
		do(t, n, sqs.PurgeQueue{Queue: queue})
		send(t, n, "after", 0)
		other := sqs.QueueKey{Account: queue.Account, Name: "other"}
		do(t, n, sqs.CreateQueue{Queue: other})
		do(t, n, sqs.PurgeQueue{Queue: other})
		for _, want := range []struct {
			kind raftfsm.StepKind
			id   string
		}{{raftfsm.StepReceived, "before"}, {raftfsm.StepPurged, ""}, {raftfsm.StepSent, "after"}} {
			event, err := tail.Next(t.Context())
			id := strings.TrimRight(string(event.MessageID[:]), "\x00")
			if err != nil || event.Kind != want.kind || id != want.id || event.Dropped != 0 {
				t.Errorf("got %s of %q, %d dropped (%v); want %s of %q", event.Kind, id, event.Dropped, err, want.kind, want.id)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if event, err := tail.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v (%v), want nothing more", event, err)
		}
		n.Drain()
		if _, err := tail.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after Drain: got error %v, want %v", err, io.EOF)
		}
		if _, err := n.Tail(queue); !errors.Is(err, ErrNoLeader) {
			t.Errorf("a tail after Drain: got error %v, want %v", err, ErrNoLeader)
		}
		tail.Close()
	})
}

// A tail that is not read holds nobody up, and says what it lost.
func TestTailDrops(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		tail, err := n.Tail(queue)
		if err != nil {
			t.Fatal(err)
		}
		defer tail.Close()
		for range tailBuffer + 3 {
			send(t, n, "x", 0)
		}
		dropped := uint64(0)
		for range tailBuffer {
			event, err := tail.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			dropped += event.Dropped
		}
		if dropped != 3 {
			t.Errorf("got %d dropped, want 3", dropped)
		}
	})
}

func TestTailsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		var open []*Tail
		for range maxTails {
			tail, err := n.Tail(queue)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, tail)
		}
		if _, err := n.Tail(queue); !errors.Is(err, ErrTails) {
			t.Errorf("got error %v, want %v", err, ErrTails)
		}
		for _, tail := range open {
			tail.Close()
			tail.Close()
		}
		if tail, err := n.Tail(queue); err != nil {
			t.Errorf("after the others were closed: got error %v", err)
		} else {
			tail.Close()
		}
	})
}

func TestTrace(t *testing.T) {
	c := diskConfig(t)
	c.SnapshotEntries = 4
	n := start(t, c)
	createQueue(t, n)
	for range 3 {
		send(t, n, "other", 0)
	}
	awaitSnapshot(t, n)
	send(t, n, "traced", 0)
	for range 4 {
		receive(t, n, 0)
	}
	id := sqs.MessageID{}
	copy(id[:], "traced")
	trace, err := n.Trace(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Steps) != 2 || trace.Steps[0].Kind != raftfsm.StepSent || trace.Steps[1].Kind != raftfsm.StepReceived {
		t.Errorf("got steps %+v, want a send and a receive", trace.Steps)
	}
	if !trace.Found || trace.Message.State != sqs.InFlight || trace.First != 1 {
		t.Errorf("got %+v, want a message in flight, seen from entry 1 on", trace)
	}
	n.tracing.Lock()
	defer n.tracing.Unlock()
	if _, err := n.Trace(t.Context(), id); !errors.Is(err, ErrTracing) {
		t.Errorf("a second trace: got error %v, want %v", err, ErrTracing)
	}
}

// shadow goes on from the newest snapshot, if the log reaches it.
func TestShadow(t *testing.T) {
	c := diskConfig(t)
	c.SnapshotEntries = 3
	n := start(t, c)
	createQueue(t, n)
	for range 4 {
		send(t, n, "x", 0)
	}
	awaitSnapshot(t, n)
	snapshots, err := n.stores.snapshots.List()
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("got %d snapshots (%v)", len(snapshots), err)
	}
	newest := snapshots[0].Index
	for _, test := range []struct{ first, applied uint64 }{
		{1, 0}, {2, newest}, {newest + 1, newest}, {n.machine.AppliedIndex() + 10, 0},
	} {
		machine, err := n.shadow(test.first)
		if err != nil || machine.AppliedIndex() != test.applied {
			t.Errorf("log from %d: got a state of %d (%v), want %d", test.first, machine.AppliedIndex(), err, test.applied)
		}
	}
}

// One warning a minute says that a dead-letter queue is missing.
func TestWarnsOfMissingDeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		c := bubbleConfig()
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		n := start(t, c)
		dead := sqs.QueueKey{Account: queue.Account, Name: "dead"}
		do(t, n, sqs.CreateQueue{Queue: dead})
		createQueue(t, n, sqs.Attribute{
			Name: sqs.RedrivePolicyAttribute, Value: "{}", Redrive: &sqs.RedrivePolicy{Target: dead, MaxReceiveCount: 1},
		})
		do(t, n, sqs.DeleteQueue{Queue: dead})
		send(t, n, "poison", 0)
		took := func(d time.Duration) int {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				if _, err := n.Receive(t.Context(), receiveOne(0), 0, nil); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			return strings.Count(log.String(), "dead-letter queue is missing")
		}
		if got := took(30 * time.Second); got != 1 {
			t.Errorf("after 30 s: got %d warnings, want 1", got)
		}
		if got := took(90 * time.Second); got != 2 {
			t.Errorf("after 120 s: got %d warnings, want 2", got)
		}
		do(t, n, sqs.CreateQueue{Queue: dead})
		if got := took(3 * time.Minute); got != 2 {
			t.Errorf("after the queue is back: got %d warnings, want 2", got)
		}
		if d, _ := n.Queue(queue); d.Stranded != 119 || d.Moved != 1 {
			t.Errorf("got %d stranded, %d moved; want 119 and 1", d.Stranded, d.Moved)
		}
	})
}

// Every way to an empty answer counts (SQS developer guide,
// NumberOfEmptyReceives: short and long polls).
func TestEmptyReceives(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		receive(t, n, 0)
		receive(t, n, time.Second)
		send(t, n, "x", 0)
		receive(t, n, 0) // finds it
		receive(t, n, 0) // only the log can tell whether too much is in flight
		receive(t, n, time.Second)
		if got := n.Metrics().EmptyReceives[queue]; got != 4 {
			t.Errorf("got %d empty receives, want 4", got)
		}
	})
}
