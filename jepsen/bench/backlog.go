package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.internal/jepsen/fault"
)

const (
	// referenceMessages are in the queue that a larger backlog is compared with.
	referenceMessages = 100_000
	// backlogTurns is how often the backlog and the reference take turns.
	backlogTurns = 3

	// While a backlog is halved, the messages that stay are hidden for hiddenFor
	// seconds, so that the others come first; hiddenLimit is how many may be
	// hidden at a time.
	hiddenFor   = 5
	hiddenLimit = 1_000_000
)

// backlogForm is one way in which a backlog comes and goes.
type backlogForm struct {
	name  string
	half  bool // every second message is received and deleted
	empty call // how what is left of it goes
}

// backlogForms returns all forms.
func backlogForms() []backlogForm {
	return []backlogForm{
		{name: "all", empty: callPurgeQueue},
		{name: "half", half: true, empty: callDeleteQueue},
		{name: "expiring", empty: callExpire},
	}
}

// Backlog starts a node for each form, fills a queue with so many messages,
// restarts the node and measures how the messages are received from then on, by
// turns with receives of a queue that is small. Then the rest of the backlog is
// purged, deleted with its queue, or expires, while another queue is watched. o
// has no endpoints.
func Backlog(ctx context.Context, o Options, messages int, out io.Writer) (BacklogReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return BacklogReport{}, err
	}
	if len(o.Endpoints) > 0 {
		return BacklogReport{}, errors.New("backlog: the node must be one that can be restarted")
	}
	o.Queues, o.Client = 1, Raw
	report := BacklogReport{
		Version: o.Version, Host: Host{Cores: runtime.NumCPU()}, Messages: messages, Body: o.Body,
	}
	for _, form := range backlogForms() {
		if len(o.Backlogs) > 0 && !slices.Contains(o.Backlogs, form.name) {
			continue
		}
		run, err := o.backlog(ctx, messages, form)
		if err != nil {
			return report, err
		}
		report.Runs = append(report.Runs, run)
		if err := run.write(out, messages); err != nil {
			return report, fmt.Errorf("write report: %w", err)
		}
	}
	if o.JSON != "" {
		return report, saveJSON(o.JSON, report)
	}
	return report, nil
}

// backlog is one run.
func (o Options) backlog(ctx context.Context, messages int, form backlogForm) (run BacklogRun, err error) {
	run.Backlog, run.Reference = form.name, min(messages, referenceMessages)
	flags := append([]string{"--inflight-limit", strconv.Itoa(hiddenLimit)}, o.Flags...)
	node, stop, err := Serve(ctx, o.Binary, flags...)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	t, err := newTarget([]string{node.Endpoint()}, node.PID())
	if err != nil {
		return run, err
	}
	if _, err := t.createQueues(ctx, o); err != nil {
		return run, err
	}
	if err := run.fill(ctx, t, o, messages, form.half); err != nil {
		return run, err
	}
	before, err := node.Status(ctx)
	if err != nil {
		return run, err
	}
	run.Pause = float64(before.Disk.SnapshotPauseUS) / 1000
	if run.Ready, err = restart(ctx, node); err != nil {
		return run, err
	}
	t.pid = node.PID()
	run.ReadyCPU = milliseconds(processCPU(t.pid))
	after, err := node.Status(ctx)
	if err != nil {
		return run, err
	}
	run.Files, run.FileBytes = after.Disk.Segments, after.Disk.SegmentBytes
	if err := run.takeTurns(ctx, t, o); err != nil {
		return run, err
	}
	if err := run.empty(ctx, t, node, o, form.empty); err != nil {
		return run, err
	}
	run.DrainMemory = peakMemory(t.pid)
	run.judge()
	return run, nil
}

// fill fills the queue, and then deletes every second message, if half.
func (r *BacklogRun) fill(ctx context.Context, t *target, o Options, messages int, half bool) error {
	start := time.Now()
	if err := fill(ctx, t, o, int64(messages)); err != nil {
		return err
	}
	r.FillRate = float64(messages) / time.Since(start).Seconds()
	if half {
		start = time.Now()
		if err := halve(ctx, t, o, int64(messages)/2); err != nil {
			return err
		}
		r.HalveRate = float64(messages/2) / time.Since(start).Seconds()
		if err := pause(ctx, hiddenFor*time.Second); err != nil {
			return err
		}
	}
	r.FillMemory = peakMemory(t.pid)
	return nil
}

// halve receives all messages and deletes so many by their handles: every second
// one of those that each connection has sent.
func halve(ctx context.Context, t *target, o Options, odd int64) error {
	o.Duration = fillPatience // of the connections
	workers := newWorkers(t, phaseDrain, o)
	defer closeAll(workers)
	var left atomic.Int64
	left.Store(odd)
	var group sync.WaitGroup
	for _, w := range workers {
		w.shape.hide = hiddenFor
		w.prepare(0)
		group.Go(func() { w.halving(ctx, &left) })
	}
	group.Wait()
	for _, w := range workers {
		if w.first != nil {
			return fmt.Errorf("halve backlog: %w", w.first)
		}
	}
	return ctx.Err()
}

// restart stops the node, has the kernel forget its files, and returns how long
// the node then took from its start to ready, in milliseconds.
func restart(ctx context.Context, node *fault.Node) (float64, error) {
	stopping, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	if _, err := node.Stop(stopping); err != nil {
		return 0, err
	}
	if err := fault.DropCache(node.DataDir()); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := node.Restart(ctx); err != nil {
		return 0, err
	}
	return milliseconds(time.Since(start)), nil
}

// takeTurns drains the backlog and queues with few messages by turns.
func (r *BacklogRun) takeTurns(ctx context.Context, t *target, o Options) error {
	var backlog, reference measurement
	for range backlogTurns {
		before := readBytes(t.pid)
		m, err := drain(ctx, t, o)
		if err != nil {
			return err
		}
		r.ReadBytes += readBytes(t.pid) - before
		backlog.add(&m.tally)
		backlog.elapsed += m.elapsed

		small := &target{endpoints: t.endpoints, pid: t.pid}
		cleanup, err := small.createQueues(ctx, o)
		if err != nil {
			return err
		}
		if err := fill(ctx, small, o, int64(r.Reference)); err != nil {
			return err
		}
		if m, err = drain(ctx, small, o); err != nil {
			return err
		}
		cleanup()
		reference.add(&m.tally)
		reference.elapsed += m.elapsed
	}
	if n := backlog.errors + reference.errors; n > 0 {
		return fmt.Errorf("drain: %d errors, the first: %w", n, errors.Join(backlog.first, reference.first))
	}
	r.Rate, r.ReferenceRate = backlog.rate(), reference.rate()
	r.Ratio = r.Rate / r.ReferenceRate
	return nil
}

// drain receives and deletes until the duration is over or nothing is left.
func drain(ctx context.Context, t *target, o Options) (*measurement, error) {
	return timed(ctx, t, phaseDrain, o), ctx.Err()
}
