package cluster

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

const (
	// snapshotLogBytes is how much may be written to the log before a snapshot
	// is due; so much is applied again after a restart.
	snapshotLogBytes = 64 << 20

	// snapshotBodyBytes is how many bytes of bodies may be in no snapshot before
	// one is due. Admission stops at twice as much.
	snapshotBodyBytes = maxPendingBodies / 2

	// snapshotMemoryShare is the same as a part of the memory limit, at which
	// admission stops too: with a small one the bodies would fill it and wait for a
	// snapshot that never comes.
	snapshotMemoryShare = 4

	// snapshotFreedBytes is by how much the bodies of live messages may shrink
	// before a snapshot is due, which gives their place on disk back.
	snapshotFreedBytes = 1 << 30

	// snapshotHalfBytes is the same, if it is half of what is on disk.
	snapshotHalfBytes = snapshotLogBytes

	// snapshotScarceBytes is the same of both, and of the log, while the disk is
	// below its reserve, or memory over its limit: what can be given back is, soon.
	snapshotScarceBytes = 1 << 20

	// snapshotPause is kept after a snapshot, in multiples of its duration, so
	// that a large state is not written all the time.
	snapshotPause = 4

	// snapshotAge is when any change makes a snapshot due.
	snapshotAge = 10 * time.Minute

	// snapshotRetry is the pause after a snapshot that failed.
	snapshotRetry = 10 * time.Second

	// snapshotLook is how often the triggers are looked at.
	snapshotLook = 250 * time.Millisecond
)

// snapshotter has raft take a snapshot when one is due, never two at a time.
type snapshotter struct {
	take    func() error
	applied func() uint64 // index of the last entry
	written func() uint64 // bytes written to the log so far
	pending func() int64  // bytes of bodies in no snapshot
	bodies  int64         // so many of which make one due
	live    func() liveBodies
	disk    func() (free int64, low bool)
	full    func() bool // memory is over its limit
	elapsed func() time.Duration
	ending  func() bool // the node gives up a snapshot that is being written
	entries uint64      // test knob: due after so many entries; 0: off
	machine *raftMachine
	log     *slog.Logger

	last     snapshotMark
	peak     uint64 // most live messages that were seen since
	failedAt time.Duration
	failed   bool
	taken    atomic.Uint64
}

// snapshotMark is where things stood when a snapshot began.
type snapshotMark struct {
	applied  uint64
	written  uint64
	messages uint64
	at       time.Duration // when it ended
	duration time.Duration
}

// liveBodies is how many messages there are, how large a body on disk is on
// average, and how large all are that are there, in bytes.
type liveBodies struct {
	messages uint64
	size     uint64
	disk     uint64
}

// countLive asks the state and the body store. A message has one body, but for
// copies, which will share theirs.
func countLive(machine *raftfsm.Machine, segments wal.SegmentStats) liveBodies {
	l := liveBodies{size: uint64(segments.Bytes) / max(segments.Bodies, 1), disk: uint64(segments.Bytes)}
	machine.View(func(v raftfsm.View) { l.messages = v.Queues().Messages() })
	return l
}

// newSnapshotter begins where the newest snapshot stands: what was written to
// the log since counts, or a node that is killed often would never take one.
func newSnapshotter(c Config, g *group, s *stores, disk *gauges) *snapshotter {
	last, newest := g.raft.Load().LastIndex(), snapshotIndex(g.raft.Load())
	replayed := uint64(0)
	if last > newest {
		replayed = uint64(float64(s.logBytes()) * float64(last-newest) / float64(last-s.oldest()+1))
	}
	live := func() liveBodies { return countLive(g.machine, s.segments()) }
	return &snapshotter{
		live: live,
		disk: func() (int64, bool) {
			r := disk.read()
			return r.free, r.lowDisk
		},
		full:    func() bool { return disk.read().fullHeap },
		take:    func() error { return g.raft.Load().Snapshot().Error() },
		applied: g.machine.AppliedIndex,
		written: func() uint64 { return replayed + s.written() },
		pending: s.bodies.Pending,
		bodies:  min(snapshotBodyBytes, c.Memory/snapshotMemoryShare),
		elapsed: c.Elapsed,
		ending:  func() bool { return false },
		entries: c.SnapshotEntries,
		machine: g.guarded,
		log:     c.Logger,
		// raft's own entries, which the machine does not count, may come last.
		last: snapshotMark{applied: min(newest, g.machine.AppliedIndex()), messages: live().messages, at: c.Elapsed()},
	}
}

// run looks at the triggers until ctx is done.
func (s *snapshotter) run(ctx context.Context) {
	ticker := time.NewTicker(snapshotLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.due() {
				s.snapshot(ctx)
			}
		}
	}
}

// due reports whether one of the triggers says that it is time.
func (s *snapshotter) due() bool {
	now, changes := s.elapsed(), s.applied()-s.last.applied
	switch {
	case changes == 0:
		return false
	case s.failed && now-s.failedAt < snapshotRetry:
		return false
	case s.entries > 0 && changes >= s.entries:
		return true
	case s.pending() >= s.bodies:
		return true
	case now-s.last.at >= snapshotAge:
		return true
	}
	live := s.live()
	written, freed := s.written()-s.last.written, s.freed(live)
	switch {
	case freed >= snapshotFreedBytes:
		return true
	case now-s.last.at < snapshotPause*s.last.duration:
		return false
	case written >= snapshotLogBytes:
		return true
	case freed >= snapshotHalfBytes && freed >= live.disk/2:
		return true
	}
	return max(written, freed) >= snapshotScarceBytes && (s.full() || s.gains(live.messages))
}

// gains reports whether the disk is below its reserve and a snapshot gives more
// of it back than it takes: at least half of the messages are gone, and there is
// room for what it writes, about the live part of the bodies that are in no snapshot.
func (s *snapshotter) gains(live uint64) bool {
	s.peak = max(s.peak, live)
	free, low := s.disk()
	if !low || live > s.peak/2 {
		return false
	}
	return float64(free) >= float64(s.pending())*float64(live)/float64(max(s.peak, 1))
}

// freed is about how many bytes of bodies fewer are live than at the last
// snapshot.
func (s *snapshotter) freed(live liveBodies) uint64 {
	if live.messages >= s.last.messages {
		return 0
	}
	return (s.last.messages - live.messages) * live.size
}

func (s *snapshotter) snapshot(ctx context.Context) {
	began := s.elapsed()
	mark := snapshotMark{applied: s.applied(), written: s.written(), messages: s.live().messages}
	err := s.take()
	now := s.elapsed()
	switch {
	case errors.Is(err, raft.ErrNothingNewToSnapshot):
	case errors.Is(err, wal.ErrClosed): // the node ends
		return
	case err != nil:
		s.failed, s.failedAt = true, now
		if ctx.Err() == nil && !s.ending() {
			s.log.Error("snapshot was not taken", "err", err)
		}
		return
	default:
		s.taken.Add(1)
		if s.full() { // sends wait for what is alive to be counted anew
			runtime.GC()
		}
		s.log.Info("snapshot taken", "applied", mark.applied, "duration", now-began, "pause", s.machine.newest())
	}
	s.failed = false
	mark.at, mark.duration = now, now-began
	s.last, s.peak = mark, 0
}
