package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast.internal/jepsen/fault"
)

const (
	// referenceMessages are in the queue that a larger backlog is compared with.
	referenceMessages = 100_000
	// backlogTurns is how often the backlog and the reference take turns.
	backlogTurns = 3
	// backlogStop is how long a node with a backlog may take to stop.
	backlogStop = 30 * time.Second
)

// What a node with a backlog must reach.
const (
	backlogMemory = 1 << 30 // bytes
	backlogRatio  = 0.8
	backlogReady  = 10 * time.Second
)

// BacklogReport is what Backlog measured.
type BacklogReport struct {
	Version  string       `json:"version"`
	Host     Host         `json:"host"`
	Messages int          `json:"messages"`
	Body     int          `json:"body"`
	Runs     []BacklogRun `json:"runs"`
}

// BacklogRun is one backlog: filled, the node restarted, drained from the
// oldest message for a while.
type BacklogRun struct {
	Backlog       string  `json:"backlog"`         // all, or half: every second body dead
	FillRate      float64 `json:"fill_rate"`       // messages per second
	FillMemory    int64   `json:"fill_rss_bytes"`  // the most while it was filled
	Files         int     `json:"segments"`        // after the restart
	FileBytes     int64   `json:"segment_bytes"`   // the same
	Ready         float64 `json:"ready_ms"`        // of the restart
	Rate          float64 `json:"rate"`            // received and deleted, messages per second
	Reference     int     `json:"reference"`       // messages of the queue that it is compared with
	ReferenceRate float64 `json:"reference_rate"`  // of that queue, as Rate
	Ratio         float64 `json:"ratio"`           // of the two
	DrainMemory   int64   `json:"drain_rss_bytes"` // the most from the restart on
	ReadBytes     int64   `json:"read_bytes"`      // from the disk, in the turns of the backlog
	Met           bool    `json:"met"`             // memory, ratio and time to ready
}

// Backlog starts nodes, fills a queue of each with so many messages, restarts
// them and measures how the messages are received from then on, by turns with
// receives of a queue that is small. In the first run all of the backlog is one
// queue; in the second, every second batch has gone to another queue, which is
// deleted before the restart. o has no endpoints.
func Backlog(ctx context.Context, o Options, messages int, out io.Writer) (BacklogReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return BacklogReport{}, err
	}
	if len(o.Endpoints) > 0 {
		return BacklogReport{}, errors.New("backlog: the node must be one that can be restarted")
	}
	report := BacklogReport{
		Version: o.Version, Host: Host{Cores: runtime.NumCPU()}, Messages: messages, Body: o.Body,
	}
	for _, half := range []bool{false, true} {
		run, err := o.backlog(ctx, messages, half)
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

// backlog is one run. With half, there are twice as many messages at first.
func (o Options) backlog(ctx context.Context, messages int, half bool) (run BacklogRun, err error) {
	o.Queues, run.Backlog, run.Reference = 1, "all", min(messages, referenceMessages)
	if half {
		o.Queues, run.Backlog, messages = 2, "half", 2*messages
	}
	node, stop, err := Serve(ctx, o.Binary, o.Flags...)
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
	start := time.Now()
	if err := fill(ctx, t, o, int64(messages)); err != nil {
		return run, err
	}
	run.FillRate = float64(messages) / time.Since(start).Seconds()
	run.FillMemory = peakMemory(t.pid)
	if half {
		dead := *t
		dead.queues, t.queues = t.queues[1:], t.queues[:1]
		dead.deleteQueues(ctx, o)
		o.Queues = 1
	}
	if run.Ready, err = restart(ctx, node); err != nil {
		return run, err
	}
	t.pid = node.PID()
	if err := run.disk(ctx, node); err != nil {
		return run, err
	}
	if err := run.takeTurns(ctx, t, o); err != nil {
		return run, err
	}
	run.Met = run.FillMemory < backlogMemory && run.DrainMemory < backlogMemory && run.Ratio >= backlogRatio &&
		run.Ready < float64(backlogReady.Milliseconds())
	return run, nil
}

// restart returns how long the node took from its start to ready, in
// milliseconds.
func restart(ctx context.Context, node *fault.Node) (float64, error) {
	stopping, cancel := context.WithTimeout(ctx, backlogStop)
	defer cancel()
	if _, err := node.Stop(stopping); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := node.Restart(ctx); err != nil {
		return 0, err
	}
	return float64(time.Since(start).Milliseconds()), nil
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
	r.DrainMemory = peakMemory(t.pid)
	return nil
}

// drain receives and deletes until the duration is over or nothing is left.
func drain(ctx context.Context, t *target, o Options) (*measurement, error) {
	workers := newWorkers(t, phaseDrain, o)
	defer closeAll(workers)
	var stop atomic.Bool
	timer := time.AfterFunc(o.Duration, func() { stop.Store(true) })
	defer timer.Stop()
	m := &measurement{}
	start := time.Now()
	run(ctx, &stop, phaseDrain, workers, o)
	m.elapsed = time.Since(start)
	for _, w := range workers {
		m.add(&w.tally)
	}
	return m, ctx.Err()
}

// disk asks the node for its segments.
func (r *BacklogRun) disk(ctx context.Context, node *fault.Node) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, node.Admin()+"/status", http.NoBody)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	var status struct {
		Disk struct {
			Segments     int   `json:"segments"`
			SegmentBytes int64 `json:"segment_bytes"`
		} `json:"disk"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	r.Files, r.FileBytes = status.Disk.Segments, status.Disk.SegmentBytes
	return nil
}

func (r *BacklogRun) write(out io.Writer, messages int) error {
	verdict := "met"
	if !r.Met {
		verdict = "missed"
	}
	const mib = 1 << 20
	_, err := fmt.Fprintf(out, "backlog of %d (%s): filled at %.0f/s, at most %d MiB of memory\n"+
		"  restart: ready in %.0f ms, %d segments of %d MiB\n"+
		"  received from the oldest at %.0f/s, %.2f of a queue with %d (%.0f/s); at most %d MiB of memory, %d MiB read from disk\n"+
		"  aims (memory < 1 GiB, ratio ≥ %.1f, ready < %v): %s\n",
		messages, r.Backlog, r.FillRate, r.FillMemory/mib, r.Ready, r.Files, r.FileBytes/mib,
		r.Rate, r.Ratio, r.Reference, r.ReferenceRate, r.DrainMemory/mib, r.ReadBytes/mib,
		backlogRatio, backlogReady, verdict)
	return err
}

// peakMemory is the most memory that a process has had, in bytes; 0 if that is
// not known.
func peakMemory(pid int) int64 { return 1024 * procField(pid, "status", "VmHWM:") }

// readBytes is what a process has read from disks; 0 if that is not known.
func readBytes(pid int) int64 { return procField(pid, "io", "read_bytes:") }

// procField is the number behind a name in a file of /proc/PID.
func procField(pid int, file, name string) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name); found {
			n, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
			return n
		}
	}
	return 0
}
