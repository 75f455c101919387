package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// damaged starts a node, stops it, has damage change its stores, and expects
// that the next start refuses them as corrupt, for a reason.
func damaged(t *testing.T, reason string, damage func(t *testing.T, c Config, s *stores)) {
	t.Helper()
	c := diskConfig(t)
	n := start(t, c)
	createQueue(t, n)
	stop(t, n)
	s, _, err := openStores(c, &histogram{elapsed: bootTime}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	damage(t, c, s)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), c)
	if ExitCode(err) != ExitCorrupt || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, exit code %d; want %d and the reason %q", err, ExitCode(err), ExitCorrupt, reason)
	}
}

// A node whose term is behind its log could vote a second time in that term.
func TestStartRefusesTermBehindTheLog(t *testing.T) {
	damaged(t, "has term 2", func(t *testing.T, _ Config, s *stores) {
		last, err := s.log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.log.StoreLogs([]*raft.Log{{Index: last + 1, Term: 3}}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStartRefusesSnapshotWithoutLog(t *testing.T) {
	damaged(t, "there are snapshots, but no log", func(t *testing.T, c Config, s *stores) {
		sink, err := s.snapshots.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 1, nil)
		if err == nil {
			err = errors.Join(sink.Close(), os.RemoveAll(filepath.Join(c.DataDir, logDir)))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestStartRefusesLogBehindNoSnapshot(t *testing.T) {
	damaged(t, "the log begins with entry 100", func(t *testing.T, _ Config, s *stores) {
		if err := s.log.StoreLogs([]*raft.Log{{Index: 100, Term: 2}}); err != nil {
			t.Fatal(err)
		}
	})
}

// Raft panics over what it cannot read.
func TestStartRefusesMembersThatNobodyWrote(t *testing.T) {
	damaged(t, "failed to decode configuration", func(t *testing.T, _ Config, s *stores) {
		last, err := s.log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		e := &raft.Log{Index: last + 1, Term: 2, Type: raft.LogConfiguration, Data: []byte("x")}
		if err := s.log.StoreLogs([]*raft.Log{e}); err != nil {
			t.Fatal(err)
		}
	})
}

// An entry that cannot be applied ends the node, and raft, which would answer
// it, never hears of it again.
func TestEntryThatCannotBeApplied(t *testing.T) {
	failed := make(chan error, 1)
	m := &raftMachine{Machine: raftfsm.New(wal.NewBodies(), nil), failed: func(err error) { failed <- err }}
	returned := make(chan struct{})
	go func() {
		m.ApplyBatch([]*raft.Log{{Index: 7, Type: raft.LogCommand, Data: []byte("no entry")}})
		close(returned)
	}()
	select {
	case err := <-failed:
		if !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), "entry 7") {
			t.Errorf("got %v, want ErrCorrupt and the entry", err)
		}
	case <-returned:
		t.Fatal("the entry was answered")
	}
	expectHalt(t, returned)
}

// expectHalt checks that a goroutine has not returned, and does not soon.
func expectHalt(t *testing.T, returned <-chan struct{}) {
	t.Helper()
	select {
	case <-returned:
		t.Error("returned to raft")
	case <-time.After(20 * time.Millisecond):
	}
}

// unreadableLog cannot read entries.
type unreadableLog struct {
	raft.LogStore
	read chan struct{}
}

func (l unreadableLog) GetLog(uint64, *raft.Log) error {
	l.read <- struct{}{}
	return wal.ErrCorrupt
}

// What raft cannot read while it starts is an error; later it must not get to
// see it, or it would panic.
func TestHaltingLog(t *testing.T) {
	inner := unreadableLog{raft.NewInmemStore(), make(chan struct{}, 1)}
	log := &haltingLog{LogStore: inner}
	if err := log.GetLog(1, &raft.Log{}); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("during the start: got %v, want %v", err, wal.ErrCorrupt)
	}
	<-inner.read
	log.running.Store(true)
	returned := make(chan struct{})
	go func() {
		_ = log.GetLog(1, &raft.Log{})
		close(returned)
	}()
	<-inner.read
	expectHalt(t, returned)
	if log := (&haltingLog{LogStore: raft.NewInmemStore()}); log.IsMonotonic() {
		t.Error("a log in memory is monotonic")
	}
	s, err := wal.OpenLog(filepath.Join(t.TempDir(), "wal"), wal.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if log := (&haltingLog{LogStore: s}); !log.IsMonotonic() {
		t.Error("a log on disk is not monotonic")
	}
}

// brokenStable cannot be written.
type brokenStable struct {
	raft.StableStore
	wrote chan struct{}
}

func (s brokenStable) SetUint64([]byte, uint64) error {
	s.wrote <- struct{}{}
	return fmt.Errorf("set term: %w", syscall.EIO)
}

func TestHaltingStable(t *testing.T) {
	inner := brokenStable{raft.NewInmemStore(), make(chan struct{}, 1)}
	failed := make(chan error, 1)
	stable := &haltingStable{StableStore: inner, elapsed: bootTime, failed: func(err error) { failed <- err }}
	_, err := newRaft(&haltingLog{}, stable, func() (*raft.Raft, error) {
		panic(stable.SetUint64(keyCurrentTerm, 2)) // as raft does it
	})
	if code := ExitCode(err); code != ExitLogError {
		t.Errorf("during the start: got %v, exit code %d; want %d", err, code, ExitLogError)
	}
	<-inner.wrote
	stable.running.Store(true)
	returned := make(chan struct{})
	go func() {
		_ = stable.SetUint64(keyCurrentTerm, 3)
		close(returned)
	}()
	if err := <-failed; logErrorCode(err) != ExitLogError {
		t.Errorf("got %v, exit code %d; want %d", err, logErrorCode(err), ExitLogError)
	}
	expectHalt(t, returned)
}

// termlessStable cannot write a term.
type termlessStable struct{ raft.StableStore }

func (s termlessStable) SetUint64(key []byte, term uint64) error {
	if term > 0 {
		return fmt.Errorf("set term: %w", syscall.EIO)
	}
	return s.StableStore.SetUint64(key, term)
}

// A disk that fails while a node forms its cluster ends it, as one does later.
func TestDiskFailsAtFirstStart(t *testing.T) {
	c := bubbleConfig()
	c.InMemory.stable = termlessStable{raft.NewInmemStore()}
	ended := make(chan int, 1)
	c.Fatal = func(code int, _ error) { ended <- code }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { _, _ = Start(ctx, c) }() // the process ends before it returns
	select {
	case code := <-ended:
		if code != ExitLogError {
			t.Errorf("got exit code %d, want %d", code, ExitLogError)
		}
	case <-ctx.Done():
		t.Error("the node waits for its disk")
	}
}
