package sqs_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// TestLettingGoKeepsNobodyWaiting purges, deletes and expires a queue of a million
// messages, half of which were received. No command and no pulse of it may take so
// long that another queue's call, which waits behind it, takes 50 ms. What is
// measured is the processor time of the thread: others may use the machine, too.
func TestLettingGoKeepsNobodyWaiting(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("too slow to be measured")
	}
	for _, test := range []struct {
		name  string
		start func(p *player)
	}{
		{"purge", func(p *player) { p.do(sqs.PurgeQueue{Queue: key("q")}) }},
		{"delete", func(p *player) { p.do(sqs.DeleteQueue{Queue: key("q")}) }},
		{"expiry", func(p *player) {
			p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{attribute(t, sqs.MessageRetentionPeriod, "60")}})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			longest := longestOf(t, test.start)
			if t.Logf("at most %v", longest); longest > longestWait {
				t.Errorf("one call took %v, want at most %v", longest, longestWait)
			}
		})
	}
}

// longestWait is for one call, of the 50 ms that another queue's call may take.
const longestWait = 25 * time.Millisecond

// TestFreezeKeepsNobodyWaiting copies a million messages for a snapshot, half of
// which were received, and receives on: neither takes long.
func TestFreezeKeepsNobodyWaiting(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("too slow to be measured")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := newPlayer(t)
	p.flood(1_000_000, 10)
	p.receive(500_000, time.Hour)
	began := threadTime(t)
	p.state.Freeze()
	if took := threadTime(t) - began; took > longestWait {
		t.Errorf("the copy took %v, want at most %v", took, longestWait)
	}
	began = threadTime(t)
	p.receive(10, time.Hour)
	if took := threadTime(t) - began; took > longestWait {
		t.Errorf("a receive afterwards took %v, want at most %v", took, longestWait)
	}
}

// longestOf fills a queue, has start let it go, and returns the time of the
// longest call until nothing is left.
func longestOf(t *testing.T, start func(p *player)) (longest time.Duration) {
	t.Helper()
	p := newPlayer(t)
	p.flood(1_000_000, 10)
	p.receive(500_000, time.Second)
	p.at.Now = p.at.Now.Add(2 * time.Minute)
	timed := func(call func()) {
		began := threadTime(t)
		call()
		longest = max(longest, threadTime(t)-began)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timed(func() { start(p) })
	for {
		at, due := p.state.NextPulse()
		if !due || at > p.at.Now {
			break
		}
		timed(func() { p.state.Pulse(p.at) })
	}
	if n := p.state.Messages(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	return longest
}

// threadTime is the processor time that this thread has used.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
