package cluster

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.internal/sqs"
)

const (
	// maxRate is how much faster or slower than real time cluster time may run
	// while it moves toward the wall clock. Windows are padded for it
	// (sqs.Time.WindowEnd).
	maxRate = 500 // ppm

	// steerEvery is how often the rate is decided anew. In between cluster time
	// runs at an even rate, so readings never go back.
	steerEvery = 10 * time.Millisecond

	// A wall clock that is more than stepGap ahead for stepAfter, without a
	// break, was right all the time (the machine was paused, or its clock was
	// set): cluster time is stepped, once.
	stepGap   = 5 * time.Second
	stepAfter = 10 * time.Second

	// loudGap is the downtime from which a cold start is logged as a warning.
	loudGap = time.Hour
)

// clock estimates cluster time: it advances with elapsed, which knows no steps,
// at a rate that moves it toward the wall clock. It is safe for concurrent use.
type clock struct {
	wall    func() time.Time     // may jump, both ways
	elapsed func() time.Duration // since some moment; never goes back
	log     *slog.Logger

	mu       sync.Mutex
	base     int64         // cluster time when baseAt was read, ns since the epoch
	baseAt   time.Duration // a reading of elapsed
	rate     int64         // ppm to add to real time since baseAt
	aheadAt  time.Duration // since when the wall is more than stepGap ahead
	ahead    bool
	lastRead int64 // ns; readings never go below it
}

// newClock makes a clock whose time is the wall's until start is called.
func newClock(wall func() time.Time, elapsed func() time.Duration, log *slog.Logger) *clock {
	return &clock{wall: wall, elapsed: elapsed, log: log, base: wall().UnixNano(), baseAt: elapsed()}
}

// start sets the clock for a cold start: nobody has an estimate, so time goes on
// from state, the time of the last applied entry, or from the wall clock if that
// is ahead. The state's time is zero in a cluster that is yet to be formed.
func (c *clock) start(state sqs.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.wall().UnixNano()
	from := int64(state) * int64(time.Millisecond)
	gap := time.Duration(wall - from)
	switch {
	case from == 0:
	case gap > loudGap:
		c.log.Warn("cluster time jumps forward at a cold start: leases, delays and retention went on meanwhile", "gap", gap)
	case gap < 0:
		c.log.Warn("cluster time is ahead of the wall clock: it runs slower until they meet", "gap", gap)
	}
	c.base, c.baseAt, c.rate, c.ahead = max(wall, from), c.elapsed(), 0, false
	c.lastRead = c.base
}

// now is the cluster time that this node would stamp on an entry. It never goes
// back.
func (c *clock) now() sqs.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	t := c.at(at)
	if at-c.baseAt >= steerEvery {
		t = c.steer(t, at)
	}
	c.lastRead = max(c.lastRead, t)
	return sqs.Time(c.lastRead / int64(time.Millisecond))
}

// offset is how far the wall clock is ahead of cluster time, and the rate in
// ppm at which cluster time follows it.
func (c *clock) offset() (ahead time.Duration, rate int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.wall().UnixNano() - c.at(c.elapsed())), c.rate
}

// at is cluster time when elapsed reads e.
func (c *clock) at(e time.Duration) int64 {
	run := int64(e - c.baseAt)
	return c.base + run + run/1_000_000*c.rate + run%1_000_000*c.rate/1_000_000
}

// steer makes t, cluster time when elapsed read at, the new base, and decides
// the rate from it on. It returns the time, which it may have stepped.
func (c *clock) steer(t int64, at time.Duration) int64 {
	gap := time.Duration(c.wall().UnixNano() - t)
	if c.steps(gap, at) {
		c.log.Warn("cluster time steps forward to the wall clock", "gap", gap)
		t += int64(gap)
		gap = 0
	}
	// A gap of 1 µs is worth 1 ppm: it is closed in about a second, and a gap of
	// half a millisecond or more at the full rate.
	c.base, c.baseAt = t, at
	c.rate = min(max(gap.Microseconds(), -maxRate), maxRate)
	return t
}

// steps reports whether the wall clock has been far enough ahead for long enough.
func (c *clock) steps(gap, at time.Duration) bool {
	if gap <= stepGap {
		c.ahead = false
		return false
	}
	if !c.ahead {
		c.ahead, c.aheadAt = true, at
		return false
	}
	if at-c.aheadAt < stepAfter {
		return false
	}
	c.ahead = false
	return true
}

// steadyClock is CLOCK_BOOTTIME, which knows no steps and counts the time that the
// machine was suspended. Reading it takes a system call; so in between it goes by
// Go's monotonic clock, which stops while the machine is suspended, and looks
// for a suspension every steadyEvery.
type steadyClock struct {
	began  time.Time    // read for its monotonic part
	looked atomic.Int64 // when CLOCK_BOOTTIME was read, in monotonic ns since began
	ahead  atomic.Int64 // ns that it is ahead of monotonic ns since began; never falls
}

const steadyEvery = 10 * time.Millisecond

func newSteadyClock() *steadyClock {
	c := &steadyClock{began: time.Now()} //nolint:forbidigo // only the monotonic part counts
	c.look()
	return c
}

func (c *steadyClock) elapsed() time.Duration {
	run := c.monotonic()
	looked := c.looked.Load()
	if run-looked >= int64(steadyEvery) && c.looked.CompareAndSwap(looked, run) {
		c.look()
	}
	return time.Duration(run + c.ahead.Load())
}

// look takes in the time that the machine was suspended. The monotonic clock is
// read last, so that a delay between the readings is never taken for one.
func (c *steadyClock) look() {
	boot := int64(bootTime())
	ahead := boot - c.monotonic()
	for known := c.ahead.Load(); ahead > known; known = c.ahead.Load() {
		if c.ahead.CompareAndSwap(known, ahead) {
			return
		}
	}
}

func (c *steadyClock) monotonic() int64 {
	return int64(time.Since(c.began)) //nolint:forbidigo // only the monotonic part counts
}

// bootTime is CLOCK_BOOTTIME.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("cluster: read CLOCK_BOOTTIME: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(ts.Nano())
}
