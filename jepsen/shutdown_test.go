package jepsen_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// awaitParked waits until exactly want receives wait at the node.
func awaitParked(t *testing.T, n *fault.Node, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for got := 0; ; {
		s, err := n.Status(ctx)
		if err != nil {
			t.Fatalf("%d polls parked, want %d: %v", got, want, err)
		}
		if got = s.Groups[0].ParkedPolls; got == want {
			return
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
}

// A node that is asked to stop sends its long pollers home, is gone soon, and
// leaves all that was handed out as it was.
func TestGracefulStop(t *testing.T) {
	const polls = 500
	away := 2 * time.Second
	if *long {
		away = 40 * time.Second
	}
	node := startNode(t)
	client := newClient(t, node)
	held := createQueue(t, client, "held", "300")
	for _, body := range []string{"extend", "delete", "release"} {
		send(t, client, held, body)
	}
	handles := map[string]string{}
	for _, m := range receive(t, client, held, 3, 0) {
		handles[m.Body] = m.Handle
	}
	idle := createQueue(t, client, "idle", "30")

	returned := make([]time.Time, polls)
	answers := make([]history.Operation, polls)
	var parked sync.WaitGroup
	for i := range polls {
		c := &workload.Client{Endpoint: client.Endpoint, Recorder: client.Recorder, HTTP: &http.Client{Transport: &http.Transport{}}}
		parked.Go(func() {
			answers[i] = c.Receive(context.WithoutCancel(t.Context()), idle, 10, history.QueueDefault, 20*time.Second)
			returned[i] = time.Now()
			c.HTTP.CloseIdleConnections()
		})
	}
	awaitParked(t, node, polls)

	asked := time.Now()
	took := stop(t, node)
	parked.Wait()
	if limit := bar(5*time.Second, patience); took > limit {
		t.Errorf("stopping took %v, want at most %v", took, limit)
	}
	for i, o := range answers {
		if o.Outcome != history.OK || len(o.Messages) > 0 {
			t.Errorf("poll %d: %s, status %d, %s, %d messages", i, o.Outcome, o.Status, o.Error, len(o.Messages))
		}
		if d, limit := returned[i].Sub(asked), bar(time.Second, 10*time.Second); d > limit {
			t.Errorf("poll %d came back after %v, want at most %v", i, d, limit)
		}
	}

	time.Sleep(away) // leases go on while the node is away
	restart(t, node)
	succeed(t, client.Change(t.Context(), held, handles["extend"], 600*time.Second))
	succeed(t, client.Delete(t.Context(), held, handles["delete"]))
	receive(t, client, held, 0, 0)
	succeed(t, client.Change(t.Context(), held, handles["release"], 0))
	if m := receive(t, client, held, 1, 5*time.Second)[0]; m.Body != "release" || m.Count != 2 {
		t.Errorf("got %s with count %d, want release with count 2", m.Body, m.Count)
	}
	if c := succeed(t, client.Count(t.Context(), held)); c.Visible != 0 || c.InFlight != 2 || c.Delayed != 0 {
		t.Errorf("%d visible, %d in flight, %d delayed; want 0, 2, 0", c.Visible, c.InFlight, c.Delayed)
	}
}

// A handle acts after a kill as before it, on its own queue only.
func TestHandleSurvivesRestart(t *testing.T) {
	node := startNode(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	other := createQueue(t, client, "other", "300")
	send(t, client, q, "a")
	send(t, client, q, "b")
	first := receive(t, client, q, 2, 0)
	kill(t, node, client.Recorder)
	restart(t, node)

	succeed(t, client.Change(t.Context(), q, first[0].Handle, 0))
	again := receive(t, client, q, 1, 5*time.Second)[0]
	if again.MessageID != first[0].MessageID || again.Count != 2 || again.FirstAt != first[0].FirstAt || again.Handle == first[0].Handle {
		t.Errorf("got %+v after %+v", again, first[0])
	}
	kill(t, node, client.Recorder)
	restart(t, node)
	if o := client.Delete(t.Context(), other, first[1].Handle); o.Outcome != history.Fail || o.Error != "ReceiptHandleIsInvalid" {
		t.Errorf("handle of another queue: %s, %s", o.Outcome, o.Error)
	}
	damaged := []byte(first[1].Handle)
	damaged[len(damaged)/2] ^= 1
	if o := client.Delete(t.Context(), q, string(damaged)); o.Outcome != history.Fail || o.Error != "ReceiptHandleIsInvalid" {
		t.Errorf("damaged handle: %s, %s", o.Outcome, o.Error)
	}
	if c := succeed(t, client.Count(t.Context(), q)); c.InFlight != 2 {
		t.Errorf("%d in flight, want 2", c.InFlight)
	}
	succeed(t, client.Delete(t.Context(), q, first[0].Handle)) // superseded, and still good
	succeed(t, client.Delete(t.Context(), q, first[1].Handle))
	if c := succeed(t, client.Count(t.Context(), q)); c.Visible+c.InFlight+c.Delayed != 0 {
		t.Errorf("%d visible, %d in flight, %d delayed; want none", c.Visible, c.InFlight, c.Delayed)
	}
}
