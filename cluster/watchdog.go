package cluster

import (
	"context"
	"fmt"
	"time"
)

const (
	// stallLimit is how long one write of the log or vote may take. A leader whose disk
	// hangs would stay leader, and acknowledge nothing.
	stallLimit = 10 * time.Second

	// leaderStallLimit is the same for a leader whom others can replace.
	leaderStallLimit = 5 * time.Second

	watchEvery = 250 * time.Millisecond
)

// watchdog ends the process when log or vote cannot be written. Its goroutine never
// touches the disk, so it runs even if all others hang.
type watchdog struct {
	fatal       func(code int, err error)
	elapsed     func() time.Duration
	busy        func() time.Duration // how long the write takes that is under way
	tick        func()               // called all the time
	replaceable func() bool          // leads, and others can elect a leader
	failures    chan error

	ticked time.Duration // when it looked last, by elapsed
	paused time.Duration // how long the process stood still during this write
}

func newWatchdog(fatal func(int, error), elapsed func() time.Duration) *watchdog {
	return &watchdog{fatal: fatal, elapsed: elapsed, failures: make(chan error, 1), ticked: elapsed()}
}

// failed is told of the first failed write or fsync, or of damage that was met.
// It never blocks.
func (w *watchdog) failed(err error) {
	select {
	case w.failures <- err:
	default:
	}
}

func (w *watchdog) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.failures:
			w.fatal(logErrorCode(err), fmt.Errorf("use log: %w", err))
			return
		case <-ticker.C:
			w.tick()
			if stall := w.stall(); stall > stallLimit || stall > leaderStallLimit && w.replaceable() {
				w.fatal(ExitStall, fmt.Errorf("write log or vote: hangs for %s", stall))
				return
			}
		}
	}
}

// stall is how long the disk has been busy with one write. The time in which the
// process or the machine stood still does not count: the disk may well have been
// done.
func (w *watchdog) stall() time.Duration {
	now, busy := w.elapsed(), w.busy()
	gap := now - w.ticked
	w.ticked = now
	if busy <= gap { // another write than at the last look
		w.paused = 0
	}
	if gap > 2*watchEvery {
		w.paused += gap - watchEvery
	}
	w.paused = min(w.paused, busy) // it may have begun after the pause
	return busy - w.paused
}
