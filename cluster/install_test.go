package cluster

import (
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// digestSink takes in a snapshot up to the digest of the state, which is the
// eighth thing that is written.
type digestSink struct {
	raft.SnapshotSink
	writes int
	digest uint64
}

var errDigest = errors.New("the digest is known")

func (s *digestSink) Write(p []byte) (int, error) {
	if s.writes++; s.writes < 8 {
		return len(p), nil
	}
	s.digest = binary.BigEndian.Uint64(p)
	return 0, errDigest
}

// fullDigest is the digest of all that the machine of node i holds, but bodies.
func (c *nodes) fullDigest(i int) uint64 {
	c.t.Helper()
	snapshot, err := c.list[i].machine.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	var sink digestSink
	if err := snapshot.Persist(&sink); !errors.Is(err, errDigest) {
		c.t.Fatal(err)
	}
	return sink.digest
}

// sameState fails the test unless all nodes that run hold the same.
func (c *nodes) sameState() {
	c.t.Helper()
	c.awaitApplied()
	want := c.fullDigest(c.leader())
	for i, n := range c.list {
		if n != nil && c.fullDigest(i) != want {
			c.t.Errorf("digest of %s: got %x, want %x", n.config.NodeName, c.fullDigest(i), want)
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
