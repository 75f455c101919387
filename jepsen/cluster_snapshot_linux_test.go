package jepsen_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

const (
	pourBody  = 50_000
	pourBatch = 10
)

// pour sends messages to a queue through some nodes, at most rate bytes a second,
// until so many bytes were acknowledged or ctx ends. It returns how many messages
// that are, and how many may be there besides.
func (c *trio) pour(ctx context.Context, q workload.Queue, nodes []*fault.Node, size, rate int64) (sent, unknown int64) {
	c.t.Helper()
	const perCall = pourBody * pourBatch
	ticker := time.NewTicker(time.Second * perCall / time.Duration(rate))
	defer ticker.Stop()
	var acknowledged, lost, calls atomic.Int64
	var pouring sync.WaitGroup
	for i := range 2 * len(nodes) {
		client := c.unrecorded(nodes[i%len(nodes)])
		pouring.Go(func() {
			for ctx.Err() == nil && calls.Add(1) <= size/perCall {
				<-ticker.C
				bodies := make([]string, pourBatch)
				for j := range bodies {
					bodies[j] = history.Body(history.Name{Run: "pour", Process: i, Counter: j}, pourBody)
				}
				for _, o := range client.SendBatch(context.WithoutCancel(ctx), q, bodies) {
					switch o.Outcome {
					case history.OK:
						acknowledged.Add(1)
					case history.Info:
						lost.Add(1)
					}
				}
			}
		})
	}
	pouring.Wait()
	return acknowledged.Load(), lost.Load()
}

// flow sends messages to a queue through some nodes, rate bytes a second, and
// receives and deletes them, until ctx ends: they are in the log, and leave nothing.
func (c *trio) flow(ctx context.Context, q workload.Queue, nodes []*fault.Node, rate int64) {
	var consuming sync.WaitGroup
	for i := range 2 * len(nodes) {
		client := c.unrecorded(nodes[i%len(nodes)])
		consuming.Go(func() {
			for ctx.Err() == nil {
				var handles []string
				for _, m := range client.Receive(context.WithoutCancel(ctx), q, 10, history.QueueDefault, time.Second).Messages {
					handles = append(handles, m.Handle)
				}
				if len(handles) > 0 {
					client.DeleteBatch(context.WithoutCancel(ctx), q, handles)
				}
			}
		})
	}
	c.pour(ctx, q, nodes, 1<<40, rate)
	consuming.Wait()
}

// A follower is away until the others have dropped the log that it lacks. It comes
// back under load, is sent a snapshot, and has the same state as all others.
func TestClusterSnapshotForAFollower(t *testing.T) {
	skipUnderRace(t)
	disk, backlog, rate := int64(256<<20), int64(40<<20), int64(2<<20)
	if *long {
		disk, backlog, rate = 12<<30, 5<<30, 30<<20
	}
	c, _ := startTrioOnDisksOf(t, disk, "--test-mode", "--test-snapshot-entries", "100")
	leader := c.leader()
	q := createQueue(t, c.client(leader), "backlog", "30")
	load := c.drive(patience)
	away := c.Others(leader)[0]
	lacks := c.status(away).Groups[0].Applied + 1
	c.kill(away)
	rest := c.Others(away)
	sent, unknown := c.pour(t.Context(), q, rest, backlog, 1<<40)
	c.awaitLogFrom(leader, lacks+1)
	t.Logf("a snapshot is needed after %d messages", sent)

	ctx, cancel := context.WithCancel(t.Context())
	var flowing sync.WaitGroup
	flow := createQueue(t, c.unrecorded(leader), "flow", "30")
	flowing.Go(func() { c.flow(ctx, flow, rest, rate) })
	start := time.Now()
	if err := away.Launch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitCaughtUp(c.within(20 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Logf("caught up %v after its start", time.Since(start))
	cancel()
	flowing.Wait()
	load.judge(bar(5*time.Second, 10*time.Second))
	c.awaitCaughtUp()
	for i, n := range c.Nodes() {
		o := succeed(t, c.unrecorded(n).Count(t.Context(), q))
		if int64(o.Visible) < sent || int64(o.Visible) > sent+unknown {
			t.Errorf("n%d: %d messages, want %d, and perhaps %d more", i+1, o.Visible, sent, unknown)
		}
	}
}

// awaitLogFrom waits until the log of a node begins at index or behind it.
func (c *trio) awaitLogFrom(n *fault.Node, index uint64) {
	c.t.Helper()
	q := createQueue(c.t, c.unrecorded(n), "filler", "30")
	for end := time.Now().Add(time.Minute); ; {
		first := c.status(n).Groups[0].First
		if first >= index {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("the log begins at %d, want %d: the follower needs no snapshot", first, index)
		}
		c.pour(c.t.Context(), q, []*fault.Node{n}, 10*pourBody*pourBatch, 1<<40) // snapshots follow entries
	}
}
