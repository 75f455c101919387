package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"holdfast.internal/wal"
)

const (
	// stallLimit is how long one write of the log may take. A leader whose disk
	// hangs would stay leader, and acknowledge nothing.
	stallLimit = 10 * time.Second

	// leaderStallLimit is the same for a leader whom others can replace.
	leaderStallLimit = 5 * time.Second

	watchEvery = 250 * time.Millisecond
)

// watchdog ends the process when the log cannot be written. Its goroutine never
// touches the disk, so it runs even if all others hang.
type watchdog struct {
	fatal       func(code int, err error)
	busy        func() time.Duration
	tick        func()      // called all the time
	replaceable func() bool // leads, and others can elect a leader
	failures    chan error
}

func newWatchdog(fatal func(int, error)) *watchdog {
	return &watchdog{fatal: fatal, failures: make(chan error, 1)}
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
			if busy := w.busy(); busy > stallLimit || busy > leaderStallLimit && w.replaceable() {
				w.fatal(ExitStall, fmt.Errorf("write log: hangs for %s", busy))
				return
			}
		}
	}
}

func logErrorCode(err error) int {
	switch {
	case errors.Is(err, wal.ErrCorrupt):
		return ExitCorrupt
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ExitNoSpace
	}
	return ExitLogError
}
