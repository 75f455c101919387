package jepsen_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// The leader is killed under load again and again, each time after all nodes have
// caught up. Clients of the other nodes notice latency, nothing else.
func TestClusterKillLeader(t *testing.T) {
	kills := 4
	switch {
	case *long:
		kills = 50
	case raceEnabled || testing.Short():
		kills = 2
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "2000")
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	load := c.drive(patience)
	enough := func(c checker.Coverage) bool {
		return c.Sent >= 20*kills && c.AcrossFaults >= kills && c.LeasesAcross >= kills/2
	}
	var outages []time.Duration
	for i := 0; i < kills || i < 4*kills && !enough(load.coverage()); i++ { // less happens on a slow machine
		leader := c.leader()
		outages = append(outages, c.outage(probed, c.Others(leader), func() { c.kill(leader) }))
		c.restart(leader)
	}
	slices.Sort(outages)
	median, worst := outages[len(outages)/2], outages[len(outages)-1]
	t.Logf("first success after a kill: median %v, worst %v", median, worst)
	if limit := bar(time.Second, patience); median > limit {
		t.Errorf("median %v, want less than %v", median, limit)
	}
	if limit := bar(2*time.Second, patience); worst > limit {
		t.Errorf("worst %v, want less than %v", worst, limit)
	}
	coverage := load.judge(bar(3*time.Second, 10*time.Second))
	expectNoErrors(t, c.recorder.Operations())
	if !enough(coverage) {
		t.Errorf("the run proves too little: %s", coverage)
	}
}

// All nodes are killed at once, under load.
func TestClusterKillAll(t *testing.T) {
	skipUnderRace(t)
	kills := 2
	if *long {
		kills = 30
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "1000")
	w := c.newWindows()
	load := c.drive(patience)
	for range kills {
		time.Sleep(2 * time.Second) // of load
		w.expectOpen()
		c.restartAll()
		w.expectOpen()
	}
	load.judge(bar(10*time.Second, 15*time.Second)) // nobody was there
	w.expectClosed()
}

// windows are a lease, a delay and a deduplication window that began before a
// fault and end after it.
type windows struct {
	c       *trio
	ordered workload.Queue // holds a message that is leased, and knows its id
	delayed workload.Queue // holds a message that is delayed
	first   history.Operation
	ends    time.Time // of the lease and the delay, at the earliest
}

// onceOnly is sent twice, and stored once.
var onceOnly = workload.FIFOMessage{Body: "once", Group: "group", DedupID: "id"}

func (c *trio) newWindows() *windows {
	c.t.Helper()
	client := c.unrecorded(c.leader())
	w := &windows{c: c, ordered: createFIFO(c.t, client, "ordered.fifo", "30", "queue"), delayed: createQueue(c.t, client, "delayed", "30")}
	length := 15 * time.Second
	if *long {
		length = 4 * time.Minute
	}
	w.ends = time.Now().Add(length)
	w.first = succeed(c.t, client.SendFIFO(c.t.Context(), w.ordered, onceOnly)[0])
	succeed(c.t, client.Receive(c.t.Context(), w.ordered, 1, length, 0))
	succeed(c.t, client.Send(c.t.Context(), w.delayed, "later", length))
	return w
}

// expectOpen checks, on all nodes, that no window has ended early.
func (w *windows) expectOpen() {
	t := w.c.t
	t.Helper()
	for i, n := range w.c.Nodes() {
		client := w.c.unrecorded(n)
		again := succeed(t, client.SendFIFO(t.Context(), w.ordered, onceOnly)[0])
		if again.MessageID != w.first.MessageID {
			t.Fatalf("n%d does not know the deduplication id any more", i+1)
		}
		for _, q := range []workload.Queue{w.ordered, w.delayed} {
			got := succeed(t, client.Receive(t.Context(), q, 1, 0, 0))
			if len(got.Messages) > 0 && time.Now().Before(w.ends) {
				t.Fatalf("n%d hands the message of %s out %v early", i+1, q.Name, time.Until(w.ends))
			}
		}
	}
}

// expectClosed waits until the lease and the delay have ended, which must not be
// late.
func (w *windows) expectClosed() {
	t := w.c.t
	t.Helper()
	client := w.c.unrecorded(w.c.leader())
	time.Sleep(time.Until(w.ends))
	for _, q := range []workload.Queue{w.ordered, w.delayed} {
		if got := succeed(t, client.Receive(t.Context(), q, 1, 30*time.Second, 5*time.Second)); len(got.Messages) != 1 {
			t.Errorf("%s hands out %d messages %v after the end of the window, want 1", q.Name, len(got.Messages), time.Since(w.ends))
		}
	}
	count := succeed(t, client.Count(t.Context(), w.ordered))
	if count.Visible != 0 || count.InFlight != 1 {
		t.Errorf("%d visible and %d in flight, want the one that was sent once", count.Visible, count.InFlight)
	}
}
