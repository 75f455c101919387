package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"holdfast.internal/wal"
)

// indexFSM knows the index that it has reached, and nothing else.
type indexFSM struct {
	mu       sync.Mutex
	applied  uint64
	restored int
}

func (f *indexFSM) Apply(e *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = e.Index
	return nil
}

func (f *indexFSM) reached() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

func (f *indexFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("not asked for") }

func (f *indexFSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	state, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restored++
	_, err = fmt.Sscan(string(state), &f.applied)
	return err
}

// guarded is a follower with a guard on stores on disk, and the leader's
// transport.
type guarded struct {
	t         *testing.T
	fsm       *indexFSM
	log       raft.LogStore
	stable    *raft.InmemStore
	snapshots *wal.Snapshots
	inner     *raft.InmemTransport
	leader    *raft.InmemTransport
	members   raft.Configuration
	guard     *guard
	raft      *raft.Raft
	reopened  int
	broken    int
	installed []error
}

// keptOpen is a transport that raft does not close.
type keptOpen struct{ guardedTransport }

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	dir := t.TempDir()
	log, err := wal.OpenLog(filepath.Join(dir, "wal"), wal.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := wal.OpenSnapshots(filepath.Join(dir, "snapshots"), wal.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &guarded{t: t, fsm: &indexFSM{}, log: log, stable: raft.NewInmemStore(), snapshots: snapshots}
	_, f.inner = raft.NewInmemTransport("f")
	_, f.leader = raft.NewInmemTransport("l")
	f.inner.Connect("l", f.leader)
	f.leader.Connect("f", f.inner)
	f.members = raft.Configuration{Servers: []raft.Server{{ID: "f", Address: "f"}, {ID: "l", Address: "l"}, {ID: "z", Address: "z"}}}
	if err := raft.BootstrapCluster(f.config(), log, f.stable, snapshots, f.inner, f.members); err != nil {
		t.Fatal(err)
	}
	f.open()
	t.Cleanup(func() {
		if err := errors.Join(f.raft.Shutdown().Error(), f.inner.Close(), f.leader.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *guarded) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "f", hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout = time.Hour, time.Hour
	c.SnapshotInterval = time.Hour
	c.NoLegacyTelemetry = true
	return c
}

func (f *guarded) open() {
	f.t.Helper()
	if err := mendLog(f.log, f.snapshots); err != nil {
		f.t.Fatal(err)
	}
	f.guard = newGuard(keptOpen{f.inner}, guardConfig{
		log: f.log, snapshots: f.snapshots, applied: f.fsm.reached,
		last: func() uint64 { return f.raft.LastIndex() },
		reopen: func(repair func() error) error {
			f.reopened++
			err := f.raft.Shutdown().Error()
			if err == nil {
				err = repair()
			}
			f.fsm.applied = 0
			f.open()
			return err
		},
		breakLinks: func(raft.ServerAddress) { f.broken++ },
		installed:  func(err error) { f.installed = append(f.installed, err) },
		fatal:      func(err error) { f.t.Errorf("fatal: got %v", err) },
		logger:     slog.New(slog.DiscardHandler),
	})
	var err error
	if f.raft, err = raft.NewRaft(f.config(), f.fsm, f.log, f.stable, f.snapshots, f.guard); err != nil {
		f.t.Fatal(err)
	}
}

func header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("l"), Addr: []byte("l")}
}

// append has the leader of a term send the entries from first to last.
func (f *guarded) append(term, before, beforeTerm, last, commit uint64) bool {
	f.t.Helper()
	request := &raft.AppendEntriesRequest{RPCHeader: header(), Term: term, PrevLogEntry: before, PrevLogTerm: beforeTerm, LeaderCommitIndex: commit}
	for i := before + 1; i <= last; i++ {
		request.Entries = append(request.Entries, &raft.Log{Index: i, Term: term, Type: raft.LogCommand})
	}
	var response raft.AppendEntriesResponse
	if err := f.leader.AppendEntries("f", "f", request, &response); err != nil {
		f.t.Fatal(err)
	}
	return response.Success
}

// install has the leader of term 3 send a snapshot.
func (f *guarded) install(index, term uint64, state io.Reader, size int) (bool, error) {
	f.t.Helper()
	var response raft.InstallSnapshotResponse
	err := f.leader.InstallSnapshot("f", "f", &raft.InstallSnapshotRequest{
		RPCHeader: header(), SnapshotVersion: raft.SnapshotVersionMax, Term: 3, LastLogIndex: index, LastLogTerm: term,
		Configuration: raft.EncodeConfiguration(f.members), ConfigurationIndex: 1, Size: int64(size),
	}, &response, state)
	return response.Success, err
}

func TestGuard(t *testing.T) {
	// The follower has the entries 2 to 10 of term 2, and knows that 2 and 3 are
	// committed.
	for _, c := range []struct {
		name        string
		index, term uint64
		tries       int // until it is answered with success
		restored    int
		first, last uint64 // of the log after that
	}{
		{"conflicting in the middle", 6, 3, 2, 1, 0, 0},
		{"conflicting at the end", 10, 3, 2, 1, 0, 0},
		{"matching in the middle", 6, 2, 1, 0, 1, 10},
		{"equal at the end", 10, 2, 1, 0, 1, 10},
		{"behind the log", 20, 3, 1, 1, 0, 0},
		{"applied", 3, 2, 1, 0, 1, 10},
		{"older than what is applied", 2, 2, 1, 0, 1, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newGuarded(t)
				if !f.append(2, 1, 1, 10, 3) {
					t.Fatal("append in term 2: got refused")
				}
				synctest.Wait()
				for try := 1; ; try++ {
					state := fmt.Sprint(c.index)
					ok, err := f.install(c.index, c.term, bytes.NewReader([]byte(state)), len(state))
					synctest.Wait()
					if ok != (try == c.tries) || ok == (err != nil) {
						t.Fatalf("install, try %d: got %v, %v, want success at try %d", try, ok, err, c.tries)
					}
					if ok {
						break
					}
				}
				if f.fsm.restored != c.restored {
					t.Errorf("restored: got %d times, want %d", f.fsm.restored, c.restored)
				}
				first, _ := f.log.FirstIndex()
				last, _ := f.log.LastIndex()
				if first != c.first || last != c.last {
					t.Errorf("log: got %d to %d, want %d to %d", first, last, c.first, c.last)
				}
				if !f.append(3, c.index, c.term, c.index+1, c.index+1) {
					t.Error("append after the snapshot: got refused")
				}
				synctest.Wait()
				if got := f.fsm.reached(); got != c.index+1 && c.restored == 1 {
					t.Errorf("applied: got %d, want %d", got, c.index+1)
				}
				if got := f.raft.LastIndex(); got != c.index+1 {
					t.Errorf("last index of raft: got %d, want %d", got, c.index+1)
				}
			})
		})
	}
}

func TestGuardHearsHowInstallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGuarded(t)
		if ok, err := f.install(20, 3, strings.NewReader("20"), 3); ok || err == nil {
			t.Errorf("install of a part: got %v, %v, want an error", ok, err)
		}
		if ok, err := f.install(20, 3, strings.NewReader("20"), 2); !ok || err != nil {
			t.Errorf("install: got %v, %v, want success", ok, err)
		}
		synctest.Wait()
		if len(f.installed) != 2 || f.installed[0] == nil || f.installed[1] != nil {
			t.Errorf("heard %v, want an error and nil", f.installed)
		}
	})
}

// A crash after a snapshot was installed and before the log that conflicts with it
// was dropped.
func TestGuardAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGuarded(t)
		f.append(2, 1, 1, 10, 3)
		if err := f.raft.Shutdown().Error(); err != nil {
			t.Fatal(err)
		}
		sink, err := f.snapshots.Create(raft.SnapshotVersionMax, 6, 3, f.members, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(sink, "6")
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		f.fsm.applied = 0
		f.open()
		if !f.append(3, 6, 3, 7, 7) {
			t.Error("append after the snapshot: got refused")
		}
		synctest.Wait()
		if got := f.fsm.reached(); got != 7 {
			t.Errorf("applied: got %d, want 7", got)
		}
	})
}

// The log behind what is in the newest snapshot, and before it, stays at a start.
func TestMendLogKeepsWhatFits(t *testing.T) {
	log := raft.NewInmemStore()
	snapshots := raft.NewInmemSnapshotStore()
	for i := uint64(1); i <= 10; i++ {
		log.StoreLog(&raft.Log{Index: i, Term: 2})
	}
	if err := mendLog(log, snapshots); err != nil {
		t.Errorf("without a snapshot: got %v, want nil", err)
	}
	for _, index := range []uint64{6, 10, 20} {
		sink, _ := snapshots.Create(raft.SnapshotVersionMax, index, 2, raft.Configuration{}, 1, nil)
		sink.Close()
		if err := mendLog(log, snapshots); err != nil {
			t.Errorf("snapshot %d: got %v, want nil", index, err)
		}
		if last, _ := log.LastIndex(); last != 10 {
			t.Errorf("snapshot %d: got last index %d, want 10", index, last)
		}
	}
}

// gatedLog stores nothing while its gate is shut.
type gatedLog struct {
	*wal.Log
	gate chan struct{}
}

func (l gatedLog) StoreLogs(entries []*raft.Log) error {
	<-l.gate
	return l.Log.StoreLogs(entries)
}

// A snapshot is compared with the log as it will be when raft gets it.
func TestGuardWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGuarded(t)
		if err := f.raft.Shutdown().Error(); err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		f.log = gatedLog{f.log.(*wal.Log), gate}
		f.open()
		var calls sync.WaitGroup
		calls.Go(func() { f.append(2, 1, 1, 10, 3) })
		synctest.Wait()
		calls.Go(func() {
			if ok, err := f.install(10, 2, bytes.NewReader([]byte("10")), 2); !ok {
				t.Errorf("install: got %v, %v, want success", ok, err)
			}
		})
		synctest.Wait()
		close(gate)
		calls.Wait()
		if f.fsm.restored != 0 {
			t.Error("a snapshot that the log has: got installed")
		}
	})
}

// pausedReader gives some bytes and no more, until it is broken.
type pausedReader struct {
	rest   int
	broken chan struct{}
}

func (r *pausedReader) Read(p []byte) (int, error) {
	if r.rest == 0 {
		<-r.broken
		return 0, io.ErrUnexpectedEOF
	}
	n := min(r.rest, len(p))
	r.rest -= n
	return n, nil
}

// A sender that is paused in the middle of a snapshot does not keep the follower
// from its work.
func TestGuardAgainstPausedSender(t *testing.T) {
	for name, index := range map[string]uint64{"new": 20, "known": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newGuarded(t)
				f.append(2, 1, 1, 10, 3)
				synctest.Wait()
				reader := &pausedReader{100_000, make(chan struct{})}
				f.guard.breakLinks = func(leader raft.ServerAddress) {
					if leader != "l" {
						t.Errorf("links that are broken: got those to %q, want l", leader)
					}
					close(reader.broken)
				}
				began := time.Now()
				result := make(chan error, 1)
				go func() {
					_, err := f.install(index, 2, reader, 200_000)
					result <- err
				}()
				time.Sleep(snapshotStall + time.Millisecond)
				if !f.append(3, 10, 2, 11, 11) {
					t.Error("append after the pause: got refused")
				}
				if got := time.Since(began); got > snapshotStall+time.Second {
					t.Errorf("append: got an answer after %v, want about %v", got, snapshotStall)
				}
				if err := <-result; err == nil {
					t.Error("install: got nil, want an error")
				}
			})
		})
	}
}
