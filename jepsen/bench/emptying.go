package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"holdfast.internal/jepsen/fault"
)

const (
	// spaceLook is how often the size of the segments is looked at.
	spaceLook = 100 * time.Millisecond
	// spacePatience bounds the wait for free space: a node takes a snapshot after
	// ten minutes at the latest.
	spacePatience = 12 * time.Minute
)

// empty lets go of all messages of the target's queue with one call, and watches
// another queue until the space is back, and for a while before.
func (r *BacklogRun) empty(ctx context.Context, t *target, node *fault.Node, o Options, c call) error {
	e := &r.Emptied
	e.By = actions[c]
	other := &target{endpoints: t.endpoints, pid: t.pid}
	cleanup, err := other.createQueues(ctx, o)
	if err != nil {
		return err
	}
	defer cleanup()
	calm, _, err := probe(ctx, other, o, func() error { return pause(ctx, o.Duration) })
	if err != nil {
		return err
	}
	segments := filepath.Join(node.DataDir(), "segments")
	before, err := bytesIn(segments)
	if err != nil {
		return err
	}
	watched, took, err := probe(ctx, other, o, func() error {
		answered, err := t.call(ctx, o, c)
		if err != nil {
			return err
		}
		e.Answer = milliseconds(answered)
		e.Left, err = awaitSpace(ctx, segments, before/10)
		return err
	})
	if err != nil {
		return err
	}
	after, err := node.Status(ctx)
	if err != nil {
		return err
	}
	e.Space = took.Seconds()
	e.AloneP99, e.AloneMax = milliseconds(calm.quantile(0.99)), milliseconds(calm.max)
	e.P99, e.Max = milliseconds(watched.quantile(0.99)), milliseconds(watched.max)
	e.Bytes = before - e.Left
	e.Pause = float64(after.Disk.SnapshotPauseUS) / 1000
	return nil
}

// probe works on a queue while f runs, and returns the latencies of its calls and
// how long f took.
func probe(ctx context.Context, t *target, o Options, f func() error) (*histogram, time.Duration, error) {
	o.Batch, o.Duration = 1, spacePatience // of the connection
	w := newWorker(t, 0, o)
	w.conn.until(time.Now().Add(o.Duration + patience))
	defer w.conn.close()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.probing(ctx, &stop)
	}()
	start := time.Now()
	err := f()
	took := time.Since(start)
	stop.Store(true)
	<-done
	return &w.latency, took, errors.Join(err, w.first)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call does one call on the target's first queue, and returns how long it took.
func (t *target) call(ctx context.Context, o Options, c call) (time.Duration, error) {
	conn := newConnection(t.endpoints[0])
	conn.until(time.Now().Add(time.Minute))
	defer conn.close()
	r := newRequest(t.endpoints[0].Host, o.Protocol, c)
	s := shape{protocol: o.Protocol, queueURL: t.queues[0]}
	start := time.Now()
	status, answer, err := conn.roundTrip(ctx, s.fill(r, c))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, answer)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", actions[c], err)
	}
	return time.Since(start), nil
}

// awaitSpace waits until the files in a folder have at most so many bytes, and
// returns how many they have.
func awaitSpace(ctx context.Context, dir string, limit int64) (int64, error) {
	for end := time.Now().Add(spacePatience); ; {
		size, err := bytesIn(dir)
		if err != nil || size <= limit {
			return size, err
		}
		if time.Now().After(end) {
			return size, fmt.Errorf("after %v the segments still have %d bytes", spacePatience, size)
		}
		if err := pause(ctx, spaceLook); err != nil {
			return size, err
		}
	}
}

// bytesIn is the size of the files in a folder. Some may go meanwhile.
func bytesIn(dir string) (size int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("measure segments: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("measure segments: %w", err)
		}
		size += info.Size()
	}
	return size, nil
}
