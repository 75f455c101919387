package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/wal"
)

// elapsedIn is the time since now.
func elapsedIn(t *testing.T) func() time.Duration {
	t.Helper()
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// A process that stood still while it wrote goes on: its disk does not hang.
func TestWatchdogDoesNotCountAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var code, pause, writing atomic.Int64 // the watchdog reads and writes them, too
		run := elapsedIn(t)
		elapsed := func() time.Duration { return run() + time.Duration(pause.Load()) }
		w := newWatchdog(func(c int, _ error) { code.Store(int64(c)) }, elapsed)
		writing.Store(int64(elapsed()))
		w.busy = func() time.Duration { return elapsed() - time.Duration(writing.Load()) }
		w.tick = func() {}
		w.replaceable = func() bool { return true }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		for range 3 {
			time.Sleep(time.Second)
			synctest.Wait()
			pause.Add(int64(time.Hour))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatal("an hour of pause was taken for a stall")
		}
		writing.Store(int64(elapsed()))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatal("a write of four seconds was taken for a stall")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if code.Load() != ExitStall {
			t.Errorf("got exit code %d for a write of six seconds, want %d", code.Load(), ExitStall)
		}
	})
}

// Most writes are shorter than the time between two looks: the one that a pause
// hits has begun since the last. A write that begins after the pause gets none of
// it for free.
func TestWatchdogDoesNotCountAPauseInANewWrite(t *testing.T) {
	var now, writing time.Duration
	w := newWatchdog(nil, func() time.Duration { return now })
	w.busy = func() time.Duration { return now - writing }
	look := func(after time.Duration) time.Duration {
		now += after
		return w.stall()
	}
	for range 3 {
		writing = now + 200*time.Millisecond
		if got := look(10 * time.Second); got > watchEvery {
			t.Errorf("a pause of ten seconds in a new write is a stall of %s, want at most %s", got, watchEvery)
		}
		if got, most := look(watchEvery), 2*watchEvery; got > most {
			t.Errorf("the same write is a stall of %s at the next look, want at most %s", got, most)
		}
	}
	writing = now + 9*time.Second
	look(9*time.Second + time.Millisecond)
	if got, want := look(watchEvery), watchEvery; got != want {
		t.Errorf("a write that began after a pause is a stall of %s, want %s", got, want)
	}
}

func TestWatchdog(t *testing.T) {
	for _, test := range []struct {
		name    string
		failure error
		busy    time.Duration
		leads   bool
		want    int // 0: goes on
	}{
		{name: "all is well", busy: stallLimit},
		{name: "stall", busy: stallLimit + 1, want: ExitStall},
		{name: "short stall of a leader", busy: leaderStallLimit, leads: true},
		{name: "stall of a leader", busy: leaderStallLimit + 1, leads: true, want: ExitStall},
		{name: "write error", failure: fmt.Errorf("sync: %w", syscall.EIO), want: ExitLogError},
		{name: "damage", failure: fmt.Errorf("read entry 7: %w", wal.ErrCorrupt), want: ExitCorrupt},
		{name: "disk full", failure: fmt.Errorf("write: %w", syscall.ENOSPC), want: ExitNoSpace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code := 0
				w := newWatchdog(func(c int, err error) {
					if err == nil {
						t.Error("fatal without an error")
					}
					code = c
				}, elapsedIn(t))
				w.busy = func() time.Duration { return test.busy }
				w.tick = func() {}
				w.replaceable = func() bool { return test.leads }
				if test.failure != nil {
					w.failed(test.failure)
					w.failed(errors.New("another one")) // must not block
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go w.run(ctx)
				time.Sleep(time.Second)
				synctest.Wait()
				if code != test.want {
					t.Errorf("got exit code %d, want %d", code, test.want)
				}
			})
		})
	}
}

// heldStable writes when it is let.
type heldStable struct {
	raft.StableStore
	letGo chan struct{}
}

func (s heldStable) SetUint64(key []byte, value uint64) error {
	<-s.letGo
	return s.StableStore.SetUint64(key, value)
}

// A disk that hangs with the term of an election ends the node, as one that hangs with
// an entry: raft comes to no entry any more.
func TestTermThatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleConfig()
		ended := make(chan int, 1)
		c.Fatal = func(code int, _ error) { ended <- code }
		n := start(t, c)
		held := heldStable{n.group.stable.StableStore, make(chan struct{})}
		n.group.stable.StableStore = held
		defer close(held.letGo)
		go func() { _ = n.group.stable.SetUint64(keyCurrentTerm, 3) }()
		select {
		case code := <-ended:
			if code != ExitStall {
				t.Errorf("got exit code %d, want %d", code, ExitStall)
			}
		case <-time.After(time.Minute):
			t.Error("the node waits for its disk")
		}
	})
}
