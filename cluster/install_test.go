package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// sameState fails the test unless all nodes that run hold the same.
func (c *nodes) sameState() {
	c.t.Helper()
	c.awaitApplied()
	want := c.list[c.leader()].FullDigest()
	for _, n := range c.list {
		if n == nil {
			continue
		}
		if got := n.FullDigest(); got != want {
			c.t.Errorf("digest of %s: got %x, want %x", n.config.NodeName, got, want)
		}
	}
}

// snapshot has the leader take a snapshot and drop the log before it.
func (c *nodes) snapshot() {
	c.t.Helper()
	if err := c.list[c.leader()].group.raft.Load().Snapshot().Error(); err != nil {
		c.t.Fatal(err)
	}
}

// A leader ends with entries that nobody else has. When it is back, the others have
// a snapshot only, of an index that its log reaches: its log is cut, its raft opened
// anew, and the snapshot installed.
func TestLeaderWithLostEntriesTakesSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		old := c.awaitLeader()
		createQueue(t, c.list[old])
		send(t, c.list[old], "first", 0)
		c.awaitApplied()
		last, term := c.list[old].group.raft.Load().LastIndex(), c.list[old].group.raft.Load().CurrentTerm()
		c.kill(old)
		c.await("another leader", 10*time.Second, func() bool { return c.leader() >= 0 })
		for range 5 {
			send(t, c.list[c.leader()], "second", 0)
		}
		c.snapshot()
		send(t, c.list[c.leader()], "third", 0)
		for i := range uint64(30) {
			if err := c.configs[old].InMemory.log.StoreLog(&raft.Log{Index: last + 1 + i, Term: term, Type: raft.LogNoop}); err != nil {
				t.Fatal(err)
			}
		}
		before := c.start(old).group.raft.Load()
		c.await("raft is opened anew", 10*time.Second, func() bool { return c.list[old].group.raft.Load() != before })
		c.sameState()
		if d := receive(t, c.list[c.leader()], 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "first" {
			t.Errorf("got %+v, want the first message", d.Messages)
		}
		c.sameState()
	})
}

// A raft that is opened anew in a running process begins with a snapshot, and does
// not apply to the state what that has already.
func TestReopenedRaftGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		createQueue(t, c.list[c.awaitLeader()])
		send(t, c.list[c.leader()], "before", 0)
		c.awaitApplied()
		if err := c.list[c.follower()].group.reopen(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		send(t, c.list[c.awaitLeader()], "after", 0)
		c.awaitReady()
		c.sameState()
	})
}

// load is senders and receivers on the leader.
type load struct {
	c       *nodes
	stopped chan struct{}
	workers sync.WaitGroup

	mu   sync.Mutex
	sent map[string]bool // first 36 bytes of the bodies
}

// startLoad begins to send messages of 10 KiB to the leader, and to delete every
// second one.
func startLoad(c *nodes, name string) *load {
	l := &load{c: c, stopped: make(chan struct{}), sent: map[string]bool{}}
	leader := c.list[c.awaitLeader()]
	for worker := range 4 {
		l.workers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stopped:
					return
				case <-time.After(5 * time.Millisecond):
				}
				l.send(leader, fmt.Sprintf("%s-%d-%06d", name, worker, i))
			}
		})
	}
	return l
}

func (l *load) send(n *Node, id string) {
	id += strings.Repeat("x", 36-len(id))
	c, content := sendMessage(id+strings.Repeat("y", 10<<10), 0)
	if _, err := n.Do(l.c.t.Context(), c, content); err != nil {
		l.c.t.Errorf("send %s: %v", id, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[id] = true
}

func (l *load) stop() map[string]bool {
	close(l.stopped)
	l.workers.Wait()
	return l.sent
}

// startDiskNodes starts a cluster of three nodes on disk, which keep little of
// their logs.
func startDiskNodes(t *testing.T) *nodes {
	t.Helper()
	c := newNodes(t, 3)
	for i := range c.configs {
		c.configs[i].InMemory, c.configs[i].DataDir = nil, t.TempDir()
		c.configs[i].DiskReserve, c.configs[i].retainBytes, c.configs[i].retainLimit = 1, 1, 1
	}
	for i := range c.list {
		c.start(i)
	}
	c.awaitReady()
	return c
}

// leaveBehind cuts a follower off until it cannot go on from the log of the others.
// It returns it, the index that it has, and what was sent meanwhile.
func (c *nodes) leaveBehind() (follower int, has uint64, sent map[string]bool) {
	c.t.Helper()
	createQueue(c.t, c.list[c.awaitLeader()])
	c.awaitApplied()
	follower = c.follower()
	has = c.list[follower].machine.AppliedIndex()
	c.isolate(follower)
	l := startLoad(c, "before")
	time.Sleep(200 * time.Millisecond)
	sent = l.stop()
	for range 3 { // a file of the log each
		send(c.t, c.list[c.leader()], strings.Repeat("z", 5<<20), 0)
	}
	c.snapshot()
	var e raft.Log
	if err := c.list[c.leader()].stores.log.GetLog(has+1, &e); !errors.Is(err, raft.ErrLogNotFound) {
		c.t.Fatalf("entry %d at the leader: got %v, want it dropped", has+1, err)
	}
	return follower, has, sent
}

// checkBodies has a node lead, and receives from it all that was sent.
func (c *nodes) checkBodies(i int, sent map[string]bool) {
	c.t.Helper()
	n := c.list[i]
	c.await("the node leads", 30*time.Second, func() bool {
		if leader := c.leader(); leader >= 0 && leader != i {
			_ = c.list[leader].group.raft.Load().LeadershipTransferToServer(n.group.id, c.configs[i].Members[i].RaftAddress()).Error()
		}
		return n.group.leading.Load()
	})
	for {
		d, err := n.Receive(c.t.Context(), sqs.ReceiveMessage{Queue: queue, MaxMessages: 10, VisibilityTimeout: time.Hour}, 0, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(d.Messages) == 0 {
			break
		}
		for _, m := range d.Messages {
			delete(sent, bodyOf(c.t, m)[:36])
		}
	}
	if len(sent) > 0 {
		c.t.Errorf("messages that the node lacks: got %d, want none", len(sent))
	}
}

// A follower that was away for long takes a snapshot and goes on from the log
// behind it, while more is being sent.
func TestFollowerCatchesUpUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startDiskNodes(t)
		follower, has, sent := c.leaveBehind()
		l := startLoad(c, "during")
		time.Sleep(50 * time.Millisecond)
		c.heal()
		c.await("the snapshot is there", time.Minute, func() bool {
			newest, err := newestSnapshot(c.list[follower].stores.snapshots)
			return err == nil && newest.Index > has
		})
		time.Sleep(200 * time.Millisecond)
		for id := range l.stop() {
			sent[id] = true
		}
		c.awaitReady()
		c.sameState()
		c.checkBodies(follower, sent)
	})
}

// A leader that is paused while it sends a snapshot does not keep the follower, and
// the next attempt succeeds.
func TestSenderPausedWithinSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startDiskNodes(t)
		follower, has, sent := c.leaveBehind()
		leader := c.leader()
		c.heal()
		staged := func() bool {
			found, _ := filepath.Glob(filepath.Join(c.configs[follower].DataDir, snapshotDir, "*.tmp"))
			return len(found) > 0
		}
		for end := time.Now().Add(time.Minute); !staged(); time.Sleep(time.Millisecond / 2) {
			if time.Now().After(end) {
				t.Fatal("no snapshot was staged within a minute")
			}
		}
		c.cut(leader, follower)
		c.await("it is given up", snapshotStall+time.Second, func() bool { return !staged() })
		newest, err := newestSnapshot(c.list[follower].stores.snapshots)
		if err != nil || newest.Index > has {
			t.Fatalf("newest snapshot during the pause: got %d, %v, want none behind %d", newest.Index, err, has)
		}
		c.heal()
		c.awaitReady()
		c.sameState()
		c.checkBodies(follower, sent)
	})
}

// TestFollowerCatchesUpOverASlowLink: raft counts entries, not bytes, and gives each
// request the same time.
func TestFollowerCatchesUpOverASlowLink(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		follower := c.follower()
		c.stop(follower)
		for range 70 { // not enough for a snapshot
			send(t, c.list[c.leader()], strings.Repeat("x", 1<<20), 0)
		}
		c.lan.slow(4 << 20)
		n := c.start(follower)
		leader := c.list[c.leader()]
		c.await("all applied", time.Minute, func() bool { return n.machine.AppliedIndex() == leader.machine.AppliedIndex() })
		c.lan.slow(0)
	})
}
