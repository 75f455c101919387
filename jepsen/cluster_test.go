package jepsen_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/balance"
	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// trio is a cluster of three under test, with clients of it.
type trio struct {
	*fault.Cluster
	t        *testing.T
	recorder *history.Recorder
}

// startTrio runs three nodes on this machine.
func startTrio(t *testing.T, flags ...string) *trio {
	t.Helper()
	return startTrioWith(t, fault.ClusterOptions{Flags: flags})
}

// startTrioWith runs three nodes with their data in a folder of the test. When the
// test has failed, the ends of their output are shown.
func startTrioWith(t *testing.T, o fault.ClusterOptions) *trio {
	t.Helper()
	o.Binary, o.Dir = binary, t.TempDir()
	c, err := fault.NewCluster(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(); err != nil {
			t.Error(err)
		}
		for i, n := range c.Nodes() {
			output := n.Output()
			if t.Failed() {
				lines := strings.Split(strings.TrimSpace(output), "\n")
				t.Logf("output of n%d ends:\n%s", i+1, strings.Join(lines[max(0, len(lines)-30):], "\n"))
			}
			if strings.Contains(output, "WARNING: DATA RACE") {
				t.Errorf("n%d has a data race", i+1)
			}
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &trio{Cluster: c, t: t, recorder: history.NewRecorder(io.Discard)}
}

// skipUnderRace leaves a test out that would take too long there: what it makes the
// nodes do, others do as well.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("too slow under the race detector")
	}
}

// newNetwork makes a network for three nodes and their clients.
func newNetwork(t *testing.T) *fault.Network {
	t.Helper()
	n, err := fault.NewNetwork(4, 1)
	if errors.Is(err, fault.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// within returns a context that ends after d.
func (c *trio) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	c.t.Cleanup(cancel)
	return ctx
}

// leader waits for the leader, of the given nodes or of all.
func (c *trio) leader(among ...*fault.Node) *fault.Node {
	c.t.Helper()
	n, err := c.Leader(c.within(30*time.Second), among...)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// client returns a client of one node.
func (c *trio) client(n *fault.Node) *workload.Client {
	return &workload.Client{
		Endpoint: n.Endpoint(), Recorder: c.recorder, Process: 1, Timeout: 15 * time.Second,
		HTTP: &http.Client{Transport: c.Transport()},
	}
}

// unrecorded is a client whose operations the history does not hold.
func (c *trio) unrecorded(n *fault.Node) *workload.Client {
	client := c.client(n)
	client.Recorder = history.NewRecorder(io.Discard)
	return client
}

// status is what a node says of itself.
func (c *trio) status(n *fault.Node) fault.Status {
	c.t.Helper()
	s, err := n.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// kill ends the process of a node.
func (c *trio) kill(n *fault.Node) {
	c.t.Helper()
	kill(c.t, n, c.recorder)
}

// restart starts the process of a node again and waits until all nodes have caught
// up.
func (c *trio) restart(n *fault.Node) {
	c.t.Helper()
	restart(c.t, n)
	c.awaitCaughtUp()
}

// restartAll ends the processes of all nodes at once, and starts them again.
func (c *trio) restartAll() {
	c.t.Helper()
	if err := c.Kill(); err != nil {
		c.t.Fatal(err)
	}
	c.recorder.Fault("kill all")
	c.start()
}

// start starts the nodes that do not run, and waits until all are ready.
func (c *trio) start() {
	c.t.Helper()
	if err := c.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *trio) awaitCaughtUp() {
	c.t.Helper()
	if err := c.AwaitCaughtUp(c.within(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
}

// balanced returns a transport whose requests go to the ready nodes in turn.
func (c *trio) balanced() http.RoundTripper {
	c.t.Helper()
	b, err := balance.New(c.Endpoints(), c.Transport())
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	var watching sync.WaitGroup
	watching.Go(func() { b.Watch(ctx, nil) })
	c.t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	awaitTrue(c.t, "three ready nodes", func() bool { return b.Ready() == 3 })
	return b.Transport()
}
