package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// fakeRaft commits each entry after a while; the result of a command is the
// command itself.
type fakeRaft struct {
	entries  chan [][]byte // the commands of each entry
	takes    time.Duration
	err      error
	inFlight chan struct{}
}

type fakeFuture struct {
	raft.ApplyFuture
	raft     *fakeRaft
	commands [][]byte
}

func newFakeRaft(takes time.Duration) *fakeRaft {
	return &fakeRaft{entries: make(chan [][]byte, 100), takes: takes, inFlight: make(chan struct{}, maxEntriesInFlight)}
}

func (r *fakeRaft) apply(entry []byte) raft.ApplyFuture {
	select {
	case r.inFlight <- struct{}{}:
	default:
		panic("too many entries in flight")
	}
	_, ops, err := raftfsm.DecodeEntry(entry)
	if err != nil {
		panic(err)
	}
	f := &fakeFuture{raft: r}
	for _, op := range ops {
		f.commands = append(f.commands, op.Command)
	}
	r.entries <- f.commands
	return f
}

func (f *fakeFuture) Error() error {
	time.Sleep(f.raft.takes)
	<-f.raft.inFlight
	return f.raft.err
}

func (f *fakeFuture) Response() any {
	applied := &raftfsm.Applied{}
	for _, c := range f.commands {
		applied.Outcomes = append(applied.Outcomes, raftfsm.Outcome{Result: string(c)})
	}
	return applied
}

// offer submits a command of size bytes, all of them mark.
func offer(ctx context.Context, c *coalescer, mark byte, size int) (string, error) {
	p := c.take()
	p.command = append(p.command[:0], make([]byte, size)...)
	for i := range p.command {
		p.command[i] = mark
	}
	if err := c.submit(ctx, p); err != nil {
		return "", err
	}
	defer c.recycle(p)
	result, _ := p.outcome.Result.(string)
	return result, p.err
}

func fixedTime() sqs.Time { return 1 }

func noFanOut([]byte) int { return 0 }

// TestCoalescerBoundsFanOut: an entry has publishes of 1,000 steps at most, or one
// that has more.
func TestCoalescerBoundsFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRaft(time.Second)
		c := newCoalescer(r.apply, fixedTime, func(command []byte) int { return 100 * int(command[0]) }, func(int64) {})
		defer c.close()
		var answered sync.WaitGroup
		offerAll := func(hundreds ...byte) {
			for _, n := range hundreds {
				answered.Go(func() {
					if _, err := offer(t.Context(), c, n, 10); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
		}
		offerAll(0, 0) // these are in flight while the others come
		offerAll(4, 0, 6, 0, 1, 9, 25, 0, 0, 3)
		answered.Wait()
		var got []string
		for len(r.entries) > 0 {
			marks := []int{}
			for _, command := range <-r.entries {
				marks = append(marks, int(command[0]))
			}
			got = append(got, fmt.Sprint(marks))
		}
		got = got[2:]
		if want := []string{"[4 0 6 0]", "[1 9]", "[25 0 0]", "[3]"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestCoalescerPacksWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRaft(time.Second)
		c := newCoalescer(r.apply, fixedTime, noFanOut, func(int64) {})
		defer c.close()
		answers := make(chan error, 100)
		for i := range 100 {
			go func() {
				got, err := offer(t.Context(), c, byte(i), 10)
				if err == nil && (len(got) != 10 || got[0] != byte(i)) {
					err = errors.New("another command's outcome")
				}
				answers <- err
			}()
			synctest.Wait()
		}
		begin := time.Now()
		for range 100 {
			if err := <-answers; err != nil {
				t.Fatal(err)
			}
		}
		if len(r.entries) != 3 { // two in flight, and one with the 98 that came meanwhile
			t.Errorf("got %d entries, want 3", len(r.entries))
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
	})
}

func TestCoalescerSecondEntryIsAsLargeAsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRaft(time.Second)
		c := newCoalescer(r.apply, fixedTime, noFanOut, func(int64) {})
		offerAll := func(commands, size int) {
			for range commands {
				go func() {
					if _, err := offer(t.Context(), c, 1, size); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
			}
		}
		offerAll(7, 10) // entries of 1, 1, and 5
		time.Sleep(1500 * time.Millisecond)
		if len(r.entries) != 3 {
			t.Fatalf("got %d entries, want 3", len(r.entries))
		}
		offerAll(4, 10)
		if len(r.entries) != 3 {
			t.Errorf("4 commands left while 5 are in flight")
		}
		offerAll(1, 10)
		if len(r.entries) != 4 {
			t.Errorf("5 commands wait although as many are in flight")
		}
		time.Sleep(time.Minute)
		offerAll(7, 10)
		time.Sleep(1500 * time.Millisecond)
		offerAll(1, maxEntrySize)
		if len(r.entries) != 8 {
			t.Errorf("got %d entries, want 8: a full entry waits", len(r.entries))
		}
		c.close()
	})
}

func TestCoalescerEntrySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRaft(time.Second)
		c := newCoalescer(r.apply, fixedTime, noFanOut, func(int64) {})
		for i, size := range []int{1, 1, 200 << 10, 50 << 10, 50 << 10, 1 << 20, 10, 10} {
			go func() {
				if _, err := offer(t.Context(), c, byte(i), size); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		c.close()
		close(r.entries)
		var got []int
		for commands := range r.entries {
			got = append(got, len(commands))
		}
		want := []int{1, 1, 2, 1, 1, 2} // 200+50, 50, 1024 alone, the rest
		if len(got) != len(want) {
			t.Fatalf("got entries of %v commands, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("got entries of %v commands, want %v", got, want)
			}
		}
	})
}

func TestCoalescerDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRaft(time.Minute)
		c := newCoalescer(r.apply, fixedTime, noFanOut, func(int64) {})
		defer c.close()
		results := make(chan error, 3)
		for range 3 { // the third waits for a lane
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := offer(ctx, c, 1, 10)
				results <- err
			}()
			synctest.Wait()
		}
		unknown, nothing := 0, 0
		for range 3 {
			switch err := <-results; {
			case errors.Is(err, ErrOutcomeUnknown):
				unknown++
			case errors.Is(err, ErrNoLeader):
				nothing++
			}
		}
		if unknown != 2 || nothing != 1 {
			t.Errorf("got %d unknown outcomes and %d not applied, want 2 and 1", unknown, nothing)
		}
		time.Sleep(time.Hour)
		if len(r.entries) != 2 {
			t.Errorf("got %d entries, want 2: a command that its caller has left was proposed", len(r.entries))
		}
	})
}

func TestCoalescerErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want error
	}{
		{raft.ErrNotLeader, ErrNoLeader},
		{raft.ErrLeadershipTransferInProgress, ErrNoLeader},
		{raft.ErrEnqueueTimeout, ErrNoLeader},
		{raft.ErrLeadershipLost, ErrOutcomeUnknown},
		{raft.ErrRaftShutdown, ErrOutcomeUnknown},
		{errors.New("write entry: input/output error"), ErrOutcomeUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newFakeRaft(time.Millisecond)
			r.err = test.err
			c := newCoalescer(r.apply, fixedTime, noFanOut, func(int64) {})
			defer c.close()
			if _, err := offer(t.Context(), c, 1, 1); !errors.Is(err, test.want) {
				t.Errorf("%v: got %v, want %v", test.err, err, test.want)
			}
		})
	}
}

func TestCoalescerReleasesEveryByteOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int64
		c := newCoalescer(newFakeRaft(time.Minute).apply, fixedTime, noFanOut, func(n int64) { released.Add(n) })
		for i := range 10 { // some are answered, some were left in an entry, some before
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Second)
				defer cancel()
				p := c.take()
				p.command, p.held = append(p.command[:0], 1), 100
				_ = c.submit(ctx, p) // the error is not the matter here
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		c.close()
		if got := released.Load(); got != 1000 {
			t.Errorf("got %d bytes released, want 1000", got)
		}
	})
}

func TestCoalescerCloseAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoalescer(newFakeRaft(time.Second).apply, fixedTime, noFanOut, func(int64) {})
		answered := make(chan error, 50)
		for range 50 {
			go func() {
				_, err := offer(t.Context(), c, 1, 1)
				answered <- err
			}()
		}
		synctest.Wait()
		c.close()
		for range 50 {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		if _, err := offer(t.Context(), c, 1, 1); !errors.Is(err, ErrNoLeader) {
			t.Errorf("after close: got %v, want %v", err, ErrNoLeader)
		}
	})
}
