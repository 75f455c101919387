package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// failingLog is a log whose next writes can be made to fail.
type failingLog struct {
	raft.LogStore
	failures atomic.Int64
}

func (l *failingLog) StoreLogs(entries []*raft.Log) error {
	if l.failures.Add(-1) >= 0 {
		return syscall.EIO
	}
	return l.LogStore.StoreLogs(entries)
}

func TestFailedWriteIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		log := &failingLog{LogStore: c.InMemory.log}
		c.InMemory.log = log
		n := start(t, c)
		createQueue(t, n)

		log.failures.Store(1)
		command, content := sendMessage("lost", 0)
		if _, err := n.Do(t.Context(), command, content); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v, want %v: the bytes may be on disk", err, ErrOutcomeUnknown)
		}
		begin := time.Now()
		send(t, n, "kept", 0) // waits for the next term, and meets no error
		if took := time.Since(begin); took == 0 || took > 3*time.Second {
			t.Errorf("the next command took %v, want the time of an election", took)
		}
		if ready, reasons := n.Ready(); !ready {
			t.Errorf("not ready again: %v", reasons)
		}
		if n.Metrics().LeaderChanges < 3 {
			t.Errorf("got %d leader changes, want 3: won, lost, won", n.Metrics().LeaderChanges)
		}
	})
}

// A raft that is opened anew does not lead, whatever the one before it has begun.
func TestRaftOpenedAnewWhileNodeTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		n := start(t, c)
		createQueue(t, n)
		reopen := func() {
			if err := n.group.reopen(func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
		seed, letGo := n.group.seed, make(chan struct{})
		n.group.seed = func() raftfsm.Settings {
			<-letGo
			return seed()
		}
		reopen()
		time.Sleep(3 * time.Second) // it takes over, as far as the seed
		reopen()
		close(letGo)
		synctest.Wait()
		if n.group.leading.Load() && n.group.raft.Load().State() != raft.Leader {
			t.Error("the node leads, and raft does not")
		}
		send(t, n, "m", 0)
	})
}

func TestNoLeaderUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		log := &failingLog{LogStore: c.InMemory.log}
		c.InMemory.log = log
		n := start(t, c)
		log.failures.Store(1 << 40)
		_, _ = n.Do(t.Context(), sqs.CreateQueue{Queue: queue}) // loses the leadership
		before, begin := n.Metrics().Commands, time.Now()
		_, err := n.Do(t.Context(), sqs.CreateQueue{Queue: queue})
		if took := time.Since(begin); err == nil || took > c.RequestTimeout+10*time.Second {
			t.Errorf("got %v after %v, want an error", err, took)
		}
		if ready, _ := n.Ready(); ready {
			t.Errorf("ready without a leader; %d commands were proposed", n.Metrics().Commands-before)
		}
		log.failures.Store(0)
		createQueue(t, n)
	})
}

func TestGrowingCommandsAreRefusedBelowReserve(t *testing.T) {
	c := diskConfig(t)
	n := start(t, c)
	createQueue(t, n)
	send(t, n, "before", 0)
	stop(t, n)

	c.DiskReserve = 1 << 62
	n = start(t, c)
	command, content := sendMessage("refused", 0)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	refused := make(chan error, 1)
	go func() {
		_, err := n.Do(ctx, command, content)
		refused <- err
	}()
	awaitHold(t, n)
	leave()
	if err := <-refused; !errors.Is(err, ErrOverloaded) {
		t.Errorf("got %v, want %v", err, ErrOverloaded)
	}
	createQueue(t, n) // is there: passes
	d := receive(t, n, 0)
	if len(d.Messages) != 1 {
		t.Fatalf("got %d messages, want 1: receives pass", len(d.Messages))
	}
	do(t, n, sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{d.Messages[0].Receipt}})
	if s := n.Status(); s.Disk.State != "low" || !slices.Equal(s.Held, []string{HeldForDisk}) {
		t.Errorf("got disk state %q, held for %q; want low and disk", s.Disk.State, s.Held)
	}
	if n.Metrics().Refused != 1 {
		t.Errorf("got %d refusals, want 1", n.Metrics().Refused)
	}
}

// A node whose state is larger than its memory may be says so.
func TestStatusOverTheMemoryLimit(t *testing.T) {
	c := diskConfig(t)
	c.Memory = 1
	runtime.GC() // what is alive is measured by a collection
	s := start(t, c).Status()
	if !slices.Equal(s.Held, []string{HeldForMemory}) || s.Memory.LimitBytes != 1 || s.Memory.HeapBytes <= 1 {
		t.Errorf("got held for %q, memory %+v; want memory, and a limit of 1 byte", s.Held, s.Memory)
	}
}

// awaitHold waits until a command stands in the line of admission.
func awaitHold(t *testing.T, n *Node) {
	t.Helper()
	a := n.group.admission
	waits := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.waiting.Len() > 0
	}
	for end := time.Now().Add(time.Minute); !waits(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no command waits")
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{fmt.Errorf("open log: %w", wal.ErrCorrupt), ExitCorrupt},
		{fmt.Errorf("open raft: %w", ErrRestore), ExitRestore},
		{errors.Join(ErrRestore, wal.ErrCorrupt), ExitCorrupt},
		{fmt.Errorf("open: %w", ErrIdentity), ExitIdentity},
		{fmt.Errorf("open log: %w", wal.ErrFormat), ExitIdentity},
		{fmt.Errorf("write: %w", syscall.ENOSPC), ExitNoSpace},
		{fmt.Errorf("open raft: %w: %w", ErrRestore, syscall.EIO), ExitLogError},
	} {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%v: got exit code %d, want %d", test.err, got, test.want)
		}
	}
}

func TestStartChecksConfig(t *testing.T) {
	for _, c := range []Config{
		{},
		{DataDir: t.TempDir(), NodeName: "a/b"},
		{DataDir: t.TempDir(), NodeName: strings.Repeat("n", 65)},
	} {
		if n, err := Start(t.Context(), c); err == nil {
			t.Errorf("%+v was accepted", c)
			stop(t, n)
		}
	}
}

func TestRaftLogger(t *testing.T) {
	var out bytes.Buffer
	logger := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	logger.Info("entering follower state", "leader-address", "x")
	const election = "heartbeat timeout reached, starting election"
	logger.Warn(election, "last-leader-addr", raft.ServerAddress(""), "last-leader-id", raft.ServerID(""))
	logger.Named("snapshot").Warn(election, "last-leader-id", raft.ServerID("n2"), "lonely")
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("got %d lines, want the second election alone:\n%s", got, out.String())
	}
	for _, want := range []string{"level=INFO", `msg="raft reports"`, `text="` + election + `"`, "last_leader_id=n2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
	if logger.IsDebug() || !logger.IsWarn() {
		t.Error("the level is not that of the slog logger")
	}
}

// TestRaftLevels: an error in the log needs hands, and an ordinary change of the leader
// has none, nor a warning.
func TestRaftLevels(t *testing.T) {
	for _, test := range []struct {
		level hclog.Level
		text  string
		args  []any
		want  slog.Level
	}{
		{hclog.Info, "entering leader state", nil, slog.LevelDebug},
		{hclog.Warn, "heartbeat timeout reached, starting election", []any{"last-leader-id", raft.ServerID("n2")}, slog.LevelInfo},
		{hclog.Warn, "failed to contact", []any{"server-id", "n2"}, slog.LevelDebug},
		{hclog.Error, "peer has newer term, stopping replication", []any{"peer", "n2"}, slog.LevelDebug},
		{hclog.Error, "failed to heartbeat to", []any{"error", io.EOF}, slog.LevelDebug},
		{hclog.Error, "failed to get log", []any{"index", uint64(7), "error", raft.ErrLogNotFound}, slog.LevelDebug},
		{hclog.Error, "failed to get log", []any{"index", uint64(7), "error", wal.ErrCorrupt}, slog.LevelError},
		{hclog.Error, "failed to install snapshot", []any{"error", io.EOF}, slog.LevelWarn},
		{hclog.Warn, "failed to contact quorum of nodes, stepping down", nil, slog.LevelWarn},
		{hclog.Error, "failed to persist vote", []any{"error", io.EOF}, slog.LevelError},
	} {
		if got := levelOf(test.level, test.text, test.args); got != test.want {
			t.Errorf("%s %v: got %v, want %v", test.text, test.args, got, test.want)
		}
	}
}
