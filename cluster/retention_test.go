package cluster

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/wal"
)

// fixedLog is a log that ends with an index.
type fixedLog struct {
	raft.LogStore
	last uint64
}

func (l *fixedLog) LastIndex() (uint64, error) { return l.last, nil }

func TestRetention(t *testing.T) {
	var lowest uint64
	var now time.Duration
	keep := &retention{lowest: func() uint64 { return lowest }, elapsed: func() time.Duration { return now }}
	log := &fixedLog{last: 150}
	store, err := wal.OpenSnapshots(t.TempDir(), wal.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snapshots := pinnedSnapshots{store, keep, log}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, 100, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(when string, wanted, pinned uint64) {
		t.Helper()
		if got, want := keep.needed(), (wal.Needed{Wanted: wanted, Pinned: pinned}); got != want {
			t.Errorf("%s: got %+v, want %+v", when, got, want)
		}
	}
	lowest = 120
	check("before", 120, wal.Nothing)
	for _, end := range []func(){
		func() { lowest = 200 },
		func() { now += pinnedAfter },
	} {
		lowest, log.last = 40, 150
		_, r, err := snapshots.Open(sink.ID())
		if err != nil {
			t.Fatal(err)
		}
		now += time.Hour
		check("while it is sent", 40, 100)
		log.last = 200
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		lowest, log.last = 199, 300
		check("the receiver is not where the log was", 199, 100)
		now += pinnedAfter - 1
		check("shortly before ten minutes", 199, 100)
		now -= pinnedAfter - 1
		end()
		check("after that", lowest, wal.Nothing)
	}
	_, r, err := snapshots.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lowest = 40
	check("after a try that failed", 40, wal.Nothing)
	if _, _, err = snapshots.Open(sink.ID()); err != nil {
		t.Fatal(err)
	}
	keep.scarce.Store(true)
	check("the disk is scarce", wal.Nothing, wal.Nothing)
}

// fillLog sends 14 messages of a MiB, more than three segments of the
// log, and takes a snapshot.
func fillLog(t *testing.T, n *Node) {
	t.Helper()
	for range 14 {
		send(t, n, strings.Repeat("x", 1<<20), 0)
	}
	if err := n.group.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if got := n.stores.logBytes(); got < 14<<20 {
		t.Fatalf("the log has %d bytes, want all that was sent", got)
	}
}

// What a log has grown to while a snapshot was being sent may have filled the disk:
// a start gives it back before anything is written.
func TestStartGivesBackTheLog(t *testing.T) {
	c := diskConfig(t)
	n := start(t, c)
	createQueue(t, n)
	fillLog(t, n)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	c.retainBytes, c.retainLimit = 1, 1
	n = start(t, c)
	if got := n.stores.logBytes(); got > 9<<20 {
		t.Errorf("after a start the log has %d bytes, want no more than two segments", got)
	}
	if d := receive(t, n, 0); len(d.Messages) != 1 {
		t.Errorf("got %d messages, want 1", len(d.Messages))
	}
}

// A disk below its reserve has the log given back at the next look.
func TestScarceDiskGivesBackTheLog(t *testing.T) {
	c := diskConfig(t)
	c.retainBytes = 1
	n := start(t, c)
	createQueue(t, n)
	p := n.stores.retention.pin(1)
	defer n.stores.retention.end(p, 0)
	fillLog(t, n)
	n.gauges.reserve = 1 << 60
	n.gauges.look()
	if got := n.stores.logBytes(); got > 9<<20 {
		t.Errorf("after a look the log has %d bytes, want no more than two segments", got)
	}
}

// The status tells what is on disk, for that is what a trace can see and a follower
// can get, though raft has deleted some of it.
func TestStatusShowsTheOldestEntryOnDisk(t *testing.T) {
	n := start(t, diskConfig(t))
	createQueue(t, n)
	send(t, n, "kept", 0)
	if err := n.stores.log.DeleteRange(1, 2); err != nil {
		t.Fatal(err)
	}
	if raftFirst, err := n.stores.log.FirstIndex(); err != nil || raftFirst != 3 {
		t.Fatalf("raft's log begins with entry %d, %v, want 3", raftFirst, err)
	}
	if got := n.Status().Groups[0].First; got != 1 {
		t.Errorf("got entry %d as the first, want 1", got)
	}
}

// A node that restores its own snapshot pins nothing.
func TestOwnSnapshotPinsNothing(t *testing.T) {
	c := diskConfig(t)
	n := start(t, c)
	createQueue(t, n)
	send(t, n, "kept", 0)
	if err := n.group.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = start(t, c)
	if got := n.stores.retention.needed().Pinned; got != wal.Nothing {
		t.Errorf("pinned: got the log from %d on, want nothing", got)
	}
	if d := receive(t, n, 0); len(d.Messages) != 1 {
		t.Errorf("got %d messages, want 1", len(d.Messages))
	}
}
