package cluster

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

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
