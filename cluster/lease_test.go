package cluster

import (
	"errors"
	"testing"
	"time"
)

func TestLease(t *testing.T) {
	var now time.Duration
	fiveNodes := func(others int) bool { return 2*(others+1) > 5 }
	l := newLease(func() time.Duration { return now }, fiveNodes)
	expect := func(what string, want bool) {
		t.Helper()
		if l.holds() != want {
			t.Errorf("%s: got %v, want %v", what, !want, want)
		}
	}
	expect("at the start", false)
	now = time.Second
	l.follows("n2", now)
	expect("one of four follows", false)
	now += 200 * time.Millisecond
	l.follows("n3", now)
	expect("two follow", true)
	now += 99 * time.Millisecond
	expect("the older of two is 299 ms old", true)
	now += time.Millisecond
	expect("the older of two is 300 ms old", false)
	l.follows("n4", now-100*time.Millisecond)
	expect("another one comes late, from between", true)
	now = 10 * time.Second
	l.follows("n2", now)
	expect("the others are old", false)
	l.begin()
	l.follows("n3", now)
	expect("what was in an earlier term does not count", false)

	if err := l.watch(failedFuture{}, now).Error(); err == nil || l.holds() {
		t.Errorf("got %v, and a proof", err)
	}
	proposed := now
	now += time.Minute
	if err := l.watch(doneFuture{}, proposed).Error(); err != nil || l.holds() {
		t.Error("an entry proves the leadership at its answer, not at its proposal")
	}
	if err := l.watch(doneFuture{}, now).Error(); err != nil || !l.holds() {
		t.Error("a committed entry is no proof")
	}
	if alone := (*lease)(nil); !alone.holds() {
		t.Error("a node that is alone has no doubt")
	}
}

// doneFuture is that of an entry that was committed.
type doneFuture struct{ refused }

func (doneFuture) Error() error { return nil }

// failedFuture is that of an entry that was not.
type failedFuture struct{ refused }

func (failedFuture) Error() error { return errors.New("lost") }
