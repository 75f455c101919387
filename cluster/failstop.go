package cluster

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// newRaft calls start, which is raft.NewRaft. That panics over an entry that it
// cannot read; the panic becomes ErrCorrupt.
func newRaft(start func() (*raft.Raft, error)) (r *raft.Raft, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%w: %v", wal.ErrCorrupt, p)
		}
	}()
	return start()
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

// raftMachine is the machine as raft knows it. It measures for how long each
// snapshot keeps commands waiting, and ends the process over entries that cannot
// be applied, as the watchdog does it.
type raftMachine struct {
	*raftfsm.Machine
	elapsed func() time.Duration
	failed  func(error)
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
