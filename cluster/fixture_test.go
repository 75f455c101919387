package cluster

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/cluster/peer"
)

// nodes is a cluster in one bubble: nodes n1, n2… in memory, with peer ports on a
// lan.
type nodes struct {
	t       *testing.T
	lan     *lan
	configs []Config
	list    []*Node // nil: not running
}

// newNodes makes the configurations of n nodes, none of which runs. Each may be
// changed before it starts.
func newNodes(t *testing.T, n int) *nodes {
	t.Helper()
	c := &nodes{t: t, lan: newLAN(), list: make([]*Node, n)}
	var members []peer.Target
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		members = append(members, peer.Target{Name: name, Address: name + ":1"})
	}
	for i := range n {
		config := bubbleConfig()
		config.NodeName, config.Members = members[i].Name, members
		config.peerDial = c.lan.dialer(members[i].Address)
		config.Fatal = func(code int, err error) { t.Errorf("%s ends itself: exit %d: %v", config.NodeName, code, err) }
		if testing.Verbose() {
			config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("at", config.NodeName)
		}
		c.configs = append(c.configs, config)
	}
	t.Cleanup(func() {
		for i := range c.list {
			c.stop(i)
		}
	})
	return c
}

// startNodes starts a cluster of n nodes and waits until all are ready.
func startNodes(t *testing.T, n int) *nodes {
	t.Helper()
	c := newNodes(t, n)
	for i := range n {
		c.start(i)
	}
	c.awaitReady()
	return c
}

func (c *nodes) address(i int) string { return c.configs[i].Members[i].Address }

// start starts node i, with what it had in memory when it ended.
func (c *nodes) start(i int) *Node {
	c.t.Helper()
	config := c.configs[i]
	config.PeerListener = c.lan.listen(c.address(i))
	n, err := Start(c.t.Context(), config)
	if err != nil {
		c.t.Fatalf("start %s: %v", config.NodeName, err)
	}
	c.list[i] = n
	return n
}

// stop ends node i as SIGTERM does.
func (c *nodes) stop(i int) {
	c.t.Helper()
	n := c.list[i]
	if n == nil {
		return
	}
	c.list[i] = nil
	if err := n.Close(); err != nil {
		c.t.Errorf("close %s: %v", n.config.NodeName, err)
	}
}

// kill ends node i as kill -9 does: no last word to anybody.
func (c *nodes) kill(i int) {
	c.t.Helper()
	c.list[i].group.leading.Store(false)
	_ = c.list[i].port.Close()
	c.stop(i)
}

// cut makes sure that nothing passes from node i to node j.
func (c *nodes) cut(i, j int) { c.lan.cut(c.address(i), c.address(j)) }

// isolate cuts node i off, in both directions.
func (c *nodes) isolate(i int) {
	for j := range c.list {
		if j != i {
			c.cut(i, j)
			c.cut(j, i)
		}
	}
}

// heal undoes all cuts.
func (c *nodes) heal() { c.lan.heal() }

// leader is the index of the node that leads and serves; -1 if there is none.
func (c *nodes) leader() int {
	for i, n := range c.list {
		if n != nil && n.group.leading.Load() {
			return i
		}
	}
	return -1
}

// awaitLeader waits for a node that leads and serves.
func (c *nodes) awaitLeader() int {
	c.t.Helper()
	c.await("leader", 10*time.Second, func() bool { return c.leader() >= 0 })
	return c.leader()
}

// follower is the index of a node that runs and does not lead.
func (c *nodes) follower() int {
	for i, n := range c.list {
		if n != nil && i != c.leader() {
			return i
		}
	}
	return -1
}

// awaitReady waits until all nodes that run are ready.
func (c *nodes) awaitReady() {
	c.t.Helper()
	c.await("all ready", 30*time.Second, func() bool {
		for _, n := range c.list {
			if n == nil {
				continue
			}
			if ready, _ := n.Ready(); !ready {
				return false
			}
		}
		return true
	})
}

// awaitApplied waits until all nodes that run have applied the same entries.
func (c *nodes) awaitApplied() {
	c.t.Helper()
	c.await("all applied", 30*time.Second, func() bool {
		leader := c.leader()
		if leader < 0 {
			return false
		}
		for _, n := range c.list {
			if n != nil && n.machine.AppliedIndex() != c.list[leader].machine.AppliedIndex() {
				return false
			}
		}
		return true
	})
}

// await waits until done, within limit of the bubble's time.
func (c *nodes) await(what string, limit time.Duration, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			for _, n := range c.list {
				if n != nil {
					_, reasons := n.Ready()
					c.t.Logf("%s: not ready because of %q", n.config.NodeName, reasons)
				}
			}
			c.t.Fatalf("not so within %v: %s", limit, what)
		}
	}
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
