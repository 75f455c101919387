package cluster

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// newRaft calls start, which is raft.NewRaft with these stores. That panics when
// it cannot write the term, or over an entry that it cannot read; the latter
// becomes ErrCorrupt.
func newRaft(log *haltingLog, stable *haltingStable, start func() (*raft.Raft, error)) (r *raft.Raft, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if first := stable.first.Load(); first != nil {
			r, err = nil, *first
			return
		}
		r, err = nil, fmt.Errorf("%w: %v", wal.ErrCorrupt, p)
	}()
	r, err = start()
	log.running.Store(true)
	stable.running.Store(true)
	return r, err
}

// haltingLog is the log as raft knows it. Raft panics when it cannot read an
// entry to apply, and would end the process with the code of a usage error before
// the watchdog, which the log has told, can end it with the right one.
type haltingLog struct {
	raft.LogStore
	running atomic.Bool // raft has started, and so has, or will at once, the watchdog
}

// GetLog implements raft.LogStore. It does not return when the log has failed.
func (l *haltingLog) GetLog(index uint64, e *raft.Log) error {
	err := l.LogStore.GetLog(index, e)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, wal.ErrClosed) || !l.running.Load() {
		return err
	}
	select {}
}

// IsMonotonic implements raft.MonotonicLogStore for the log that is wrapped.
func (l *haltingLog) IsMonotonic() bool {
	inner, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && inner.IsMonotonic()
}

// haltingStable is the stable store as raft knows it. Raft panics when it cannot
// write a term, and goes on when it cannot write a vote; but after a failed write
// nobody knows what is on the disk.
type haltingStable struct {
	raft.StableStore
	elapsed func() time.Duration
	running atomic.Bool // as in haltingLog
	failed  func(error)
	first   atomic.Pointer[error] // the first error of a write
	began   atomic.Int64          // the write that runs, by elapsed, ns; 0: none runs
}

// Set implements raft.StableStore. It does not return when a write has failed.
func (s *haltingStable) Set(key, value []byte) error {
	return s.write(func() error { return s.StableStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore, as Set.
func (s *haltingStable) SetUint64(key []byte, value uint64) error {
	return s.write(func() error { return s.StableStore.SetUint64(key, value) })
}

// busy is how long the write that runs now has been running.
func (s *haltingStable) busy() time.Duration {
	began := time.Duration(s.began.Load())
	if began == 0 {
		return 0
	}
	return s.elapsed() - began
}

func (s *haltingStable) write(write func() error) error {
	s.began.Store(max(int64(s.elapsed()), 1))
	err := write()
	s.began.Store(0)
	if err == nil {
		return nil
	}
	s.first.CompareAndSwap(nil, &err)
	if !s.running.Load() {
		return err
	}
	s.failed(err)
	select {}
}

// raftMachine is the machine as raft knows it. It measures for how long each
// snapshot keeps commands waiting, and ends the process over entries that cannot
// be applied, as the watchdog does it, and over a snapshot that was installed and
// cannot be restored: raft would go on, with a state that is not that of its log.
type raftMachine struct {
	*raftfsm.Machine
	elapsed func() time.Duration
	failed  func(error)
	fatal   func(code int, err error)
	refused error        // of the last Restore before raft had started, whose caller logs it only
	running atomic.Bool  // raft has started: it returns an error of Restore no more
	last    atomic.Int64 // ns
	most    atomic.Int64 // ns
}

// ApplyBatch implements raft.BatchingFSM. It does not return when the machine
// panics: nothing may be answered after it.
func (m *raftMachine) ApplyBatch(entries []*raft.Log) []any {
	defer func() {
		if p := recover(); p != nil {
			m.failed(fmt.Errorf("%w: entries from %d on cannot be applied: %v\n%s", wal.ErrCorrupt, entries[0].Index, p, debug.Stack()))
			select {}
		}
	}()
	return m.Machine.ApplyBatch(entries)
}

// Restore implements raft.FSM.
func (m *raftMachine) Restore(source io.ReadCloser) error {
	err := m.Machine.Restore(source)
	if !m.running.Load() {
		m.refused = err
	} else if err != nil {
		err = fmt.Errorf("%w: %w", ErrRestore, err)
		m.fatal(ExitCode(err), err)
	}
	return err
}

// Snapshot implements raft.FSM: the pause is from the wait for the machine's lock
// to the end of the copy.
func (m *raftMachine) Snapshot() (raft.FSMSnapshot, error) {
	began := m.elapsed()
	s, err := m.Machine.Snapshot()
	took := int64(m.elapsed() - began)
	m.last.Store(took)
	m.most.Store(max(m.most.Load(), took)) // raft takes one at a time
	return s, err
}

func (m *raftMachine) newest() time.Duration  { return time.Duration(m.last.Load()) }
func (m *raftMachine) longest() time.Duration { return time.Duration(m.most.Load()) }
