package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// counter is an FSM that counts entries and keeps their bytes' sum.
type counter struct {
	mu         sync.Mutex
	count, sum uint64
}

func (c *counter) Apply(e *raft.Log) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	for _, b := range e.Data {
		c.sum += uint64(b)
	}
	return c.count
}

func (c *counter) state() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.count), c.sum)
}

func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return frozen(c.state()), nil }

func (c *counter) Restore(r io.ReadCloser) error {
	state, err := io.ReadAll(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count, c.sum = binary.BigEndian.Uint64(state), binary.BigEndian.Uint64(state[8:])
	return errors.Join(err, r.Close())
}

type frozen []byte

func (f frozen) Persist(sink raft.SnapshotSink) error {
	_, err := sink.Write(f)
	return err
}

func (f frozen) Release() {}

// node is one raft voter on the stores of a data directory.
type node struct {
	raft   *raft.Raft
	fsm    *counter
	log    *Log
	stable *Stable
}

func startNode(t *testing.T, dir string, bootstrap bool) *node {
	t.Helper()
	n := &node{fsm: &counter{}}
	n.stable = openStable(t, filepath.Join(dir, StableFile))
	n.log = openLog(t, filepath.Join(dir, LogDir), LogOptions{SegmentSize: 64 << 10, RetainBytes: 1})
	snapshots := openSnapshots(t, filepath.Join(dir, SnapshotDir))
	c := raft.DefaultConfig()
	c.LocalID, c.Logger, c.TrailingLogs = "a", hclog.NewNullLogger(), 10
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	address, transport := raft.NewInmemTransport("a")
	if bootstrap {
		servers := raft.Configuration{Servers: []raft.Server{{ID: c.LocalID, Address: address}}}
		if err := raft.BootstrapCluster(c, n.log, n.stable, snapshots, transport, servers); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if n.raft, err = raft.NewRaft(c, n.fsm, n.log, n.stable, snapshots, transport); err != nil {
		t.Fatal(err)
	}
	if !<-n.raft.LeaderCh() {
		t.Fatal("the only voter lost its leadership")
	}
	if err := n.raft.Barrier(10 * time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(n.raft.Shutdown().Error(), n.log.Close(), n.stable.Close()); err != nil {
		t.Fatal(err)
	}
}

func (n *node) apply(t *testing.T, count int) {
	t.Helper()
	var last raft.ApplyFuture
	for i := range count {
		last = n.raft.Apply(bytes.Repeat([]byte{byte(i)}, 500), 0)
	}
	if err := last.Error(); err != nil {
		t.Fatal(err)
	}
}

func TestRaftOnTheseStores(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, true)
	n.apply(t, 1000)
	want := n.fsm.state()
	n.stop(t)

	n = startNode(t, dir, false)
	if got := n.fsm.state(); !bytes.Equal(got, want) {
		t.Errorf("after a restart: got state %x, want %x", got, want)
	}
	before := n.log.Bytes()
	if err := n.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if n.log.Bytes() > before/4 {
		t.Errorf("the snapshot made the log shrink from %d only to %d bytes", before, n.log.Bytes())
	}
	n.apply(t, 100)
	want = n.fsm.state()
	n.stop(t)

	n = startNode(t, dir, false)
	if got := n.fsm.state(); !bytes.Equal(got, want) {
		t.Errorf("after a snapshot and a restart: got state %x, want %x", got, want)
	}
	n.apply(t, 10)
	n.stop(t)
	if r := verify(t, dir); !r.OK() || len(r.Notes) > 0 || len(r.Snapshots) != 1 || r.Stable.VotedFor != "a" {
		t.Errorf("got report %+v", r)
	}
}
