package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// The names in a data directory.
const (
	logDir      = wal.LogDir
	snapshotDir = wal.SnapshotDir
	segmentDir  = wal.SegmentDir
	stableFile  = wal.StableFile
)

// stores are what a group keeps its state in.
type stores struct {
	log       raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	bodies    raftfsm.Bodies
	repair    func(number uint64, body []byte) (kept bool, err error) // of a damaged body

	// scan reads entries of the log, both ends included (wal.Scan).
	scan     func(from, to uint64, visit func(*raft.Log) error) error
	logBytes func() int64            // on disk
	oldest   func() uint64           // index of the oldest entry on disk, 0 if there is none
	segments func() wal.SegmentStats // of the bodies on disk
	busy     func() time.Duration    // how long the write that runs now has been running
	written  func() uint64           // bytes written to the log by this process
	identify func(identity) error    // writes down who the node is
	stop     func()                  // gives up a snapshot that is being written

	retention *retention   // of the log
	trim      func() error // gives back what the log has and nobody needs
	close     func() error
}

// openStores opens the data directory: it takes the node's lock, finds out or
// writes down who the node is, and opens log and snapshots.
func openStores(c Config, fsyncs *histogram, fatal func(error)) (_ *stores, _ identity, err error) {
	if err := makeDirs(c.DataDir); err != nil {
		return nil, identity{}, fmt.Errorf("make data directory: %w", err)
	}
	member := len(c.Members) > 0
	id, known, err := readIdentity(c.DataDir, c.NodeName, member)
	if err != nil {
		return nil, id, openError(c.DataDir, err)
	}
	stable, err := wal.OpenStable(filepath.Join(c.DataDir, stableFile))
	if err != nil {
		return nil, id, err // says what was to be opened, as the others below
	}
	closeAll := stable.Close
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	if !known {
		id = mintIdentity(c.NodeName, member)
		if err := id.write(c.DataDir); err != nil {
			return nil, id, err
		}
	}
	size, _, err := diskSpace(c.DataDir)
	if err != nil {
		return nil, id, fmt.Errorf("ask for size of disk: %w", err)
	}
	if known {
		if err := wal.CheckLogThere(c.DataDir); err != nil {
			return nil, id, fmt.Errorf("open log: %w", err)
		}
	}
	keep := &retention{elapsed: c.Elapsed, lowest: func() uint64 { return 0 }}
	log, err := wal.OpenLog(filepath.Join(c.DataDir, logDir), wal.LogOptions{
		RetainBytes: int(min(c.retainBytes, size/10)), RetainLimit: int(min(c.retainLimit, size/10)), Needed: keep.needed,
		Fatal: fatal, Observe: fsyncs.observe, Logger: c.Logger,
	})
	if err != nil {
		return nil, id, err
	}
	closeAll = func() error { return errors.Join(log.Close(), stable.Close()) }
	segments, err := wal.OpenSegments(filepath.Join(c.DataDir, segmentDir), wal.SegmentOptions{Logger: c.Logger})
	if err != nil {
		return nil, id, err
	}
	closeAll = func() error { return errors.Join(segments.Close(), log.Close(), stable.Close()) }
	snapshots, err := wal.OpenSnapshots(filepath.Join(c.DataDir, snapshotDir), wal.SnapshotOptions{
		Logger: c.Logger, Segments: segments,
	})
	if err != nil {
		return nil, id, err
	}
	if err := trimAtStart(log, snapshots); err != nil {
		return nil, id, fmt.Errorf("trim log: %w", err)
	}
	scan := func(from, to uint64, visit func(*raft.Log) error) error {
		return wal.Scan(filepath.Join(c.DataDir, logDir), from, to, visit)
	}
	return &stores{
		scan: scan, log: log, stable: stable, bodies: segments, repair: segments.Repair,
		snapshots: pinnedSnapshots{snapshots, keep, log}, retention: keep, trim: log.Trim,
		logBytes: log.Bytes, oldest: log.Oldest, segments: segments.Stats, busy: log.Busy, written: log.Written,
		identify: func(id identity) error { return id.write(c.DataDir) },
		stop:     segments.Stop, close: closeAll,
	}, id, nil
}

// trimAtStart gives back what the log has beyond its limits. While a snapshot is
// sent it may grow beyond them, and if that filled the disk, the node could not
// start before this.
func trimAtStart(log *wal.Log, snapshots *wal.Snapshots) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return err
	}
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	covered := min(list[0].Index, last)
	if covered <= trailingEntries {
		return nil
	}
	return log.DeleteRange(0, covered-trailingEntries)
}

// diskIsScarce hears whether the disk is below its reserve, and gives back what it
// can of the log.
func (s *stores) diskIsScarce(low bool) {
	s.retention.scarce.Store(low)
	if low {
		_ = s.trim() // an error is fatal, which the log has said
	}
}

// keyCurrentTerm is where raft keeps its term in the stable store.
var keyCurrentTerm = []byte("CurrentTerm")

// check finds what raft would start on and should not (wal.Extent.Check), and reports
// whether the group has yet to be bootstrapped. It undoes a bootstrap that a crash cut
// off: raft writes the term first, then the entry that names the members, and without
// the entry it would wait for ever.
func (s *stores) check() (blank bool, err error) {
	extent, err := s.extent()
	if err != nil {
		return false, err
	}
	if err := extent.Check(); err != nil {
		return false, fmt.Errorf("open group: %w", err)
	}
	if extent.IsBlank() && extent.Term > 0 {
		if err := s.stable.SetUint64(keyCurrentTerm, 0); err != nil {
			return false, fmt.Errorf("reset term: %w", err)
		}
	}
	return extent.IsBlank(), nil
}

// extent is how far the stores reach.
func (s *stores) extent() (e wal.Extent, err error) {
	if e.First, err = s.log.FirstIndex(); err != nil {
		return e, fmt.Errorf("read first index: %w", err)
	}
	if e.First > 0 {
		last, err := s.lastEntry()
		if err != nil {
			return e, err
		}
		e.LastTerm = last.Term
	}
	snapshots, err := s.snapshots.List()
	if err != nil {
		return e, fmt.Errorf("list snapshots: %w", err)
	}
	if len(snapshots) > 0 {
		e.Snapshot, e.SnapshotTerm = snapshots[0].Index, snapshots[0].Term
	}
	if e.Term, err = s.stable.GetUint64(keyCurrentTerm); err != nil && err.Error() != "not found" {
		return e, fmt.Errorf("read term: %w", err)
	}
	return e, nil
}

func (s *stores) lastEntry() (*raft.Log, error) {
	last, err := s.log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read last index: %w", err)
	}
	e := &raft.Log{}
	if err := s.log.GetLog(last, e); err != nil {
		return nil, fmt.Errorf("read last entry: %w", err)
	}
	return e, nil
}

// InMemory is what a node keeps when it has no data directory. A node that is
// started with the InMemory of one that was closed goes on where it ended.
type InMemory struct {
	log       raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	id        atomic.Pointer[identity]
	identify  func(identity) error // for tests: called before an identity is written down
}

// NewInMemory makes an empty one.
func NewInMemory() *InMemory {
	store := raft.NewInmemStore()
	return &InMemory{log: store, stable: store, snapshots: raft.NewInmemSnapshotStore()}
}

func (m *InMemory) open(name string, member bool) (*stores, identity) {
	id := mintIdentity(name, member)
	if !m.id.CompareAndSwap(nil, &id) {
		id = *m.id.Load()
	}
	return &stores{
		log: m.log, stable: m.stable, snapshots: m.snapshots, bodies: wal.NewBodies(),
		scan: scanStore(m.log),

		retention: &retention{},
		trim:      func() error { return nil },
		logBytes:  func() int64 { return 0 },
		oldest: func() uint64 {
			first, _ := m.log.FirstIndex() // it reads a field
			return first
		},
		segments: func() wal.SegmentStats { return wal.SegmentStats{} },
		busy:     func() time.Duration { return 0 },
		written:  func() uint64 { return 0 },
		identify: func(id identity) error {
			if m.identify != nil {
				if err := m.identify(id); err != nil {
					return err
				}
			}
			m.id.Store(&id)
			return nil
		},
		stop:  func() {},
		close: func() error { return nil },
	}, id
}
