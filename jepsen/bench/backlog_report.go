package bench

import (
	"fmt"
	"io"
	"time"
)

// What a node with a backlog must reach.
const (
	backlogMemory = 1 << 30 // bytes
	backlogRatio  = 0.8
	backlogReady  = 10 * time.Second
	backlogWait   = 50 * time.Millisecond // of a snapshot, and of another queue's call
	backlogSpace  = 5 * time.Minute
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
// oldest message for a while, and then let go as a whole.
type BacklogRun struct {
	Backlog       string   `json:"backlog"`           // all; half: every second message was received and deleted; expiring
	FillRate      float64  `json:"fill_rate"`         // messages per second
	HalveRate     float64  `json:"halve_rate"`        // messages deleted per second; 0 without
	FillMemory    int64    `json:"fill_rss_bytes"`    // the most while it was filled and halved
	Pause         float64  `json:"snapshot_pause_ms"` // the longest for which a snapshot kept commands waiting
	Files         int      `json:"segments"`          // after the restart
	FileBytes     int64    `json:"segment_bytes"`     // the same
	Ready         float64  `json:"ready_ms"`          // of the restart
	ReadyCPU      float64  `json:"ready_cpu_ms"`      // processor time of that
	Rate          float64  `json:"rate"`              // received and deleted, messages per second
	Reference     int      `json:"reference"`         // messages of the queue that it is compared with
	ReferenceRate float64  `json:"reference_rate"`    // of that queue, as Rate
	Ratio         float64  `json:"ratio"`             // of the two
	ReadBytes     int64    `json:"read_bytes"`        // from the disk, in the turns of the backlog
	DrainMemory   int64    `json:"drain_rss_bytes"`   // the most from the restart on
	Emptied       Emptying `json:"emptied"`
	Met           bool     `json:"met"` // all aims
}

// Emptying is how what was left of a backlog was let go, and what that did to
// the calls of another queue.
type Emptying struct {
	By       string  `json:"by"`                // the action
	Answer   float64 `json:"answer_ms"`         // of that action
	AloneP99 float64 `json:"others_p99_ms"`     // of the other queue's calls before
	AloneMax float64 `json:"others_max_ms"`     // the same
	P99      float64 `json:"meanwhile_p99_ms"`  // of the other queue's calls until the space was back
	Max      float64 `json:"meanwhile_max_ms"`  // the same
	Space    float64 `json:"space_back_s"`      // until nine tenths of the segments' bytes were free
	Bytes    int64   `json:"space_back_bytes"`  // how many that were
	Left     int64   `json:"space_kept_bytes"`  // what the segments have then
	Pause    float64 `json:"snapshot_pause_ms"` // as in BacklogRun, meanwhile
}

// judge sets the run against the aims.
func (r *BacklogRun) judge() {
	wait := milliseconds(backlogWait)
	r.Met = r.FillMemory < backlogMemory && r.DrainMemory < backlogMemory && r.Ratio >= backlogRatio &&
		r.Ready < milliseconds(backlogReady) && r.Pause < wait &&
		r.Emptied.Max < wait && r.Emptied.Pause < wait && r.Emptied.Space < backlogSpace.Seconds()
}

func (r *BacklogRun) write(out io.Writer, messages int) error {
	verdict := "met"
	if !r.Met {
		verdict = "missed"
	}
	const mib = 1 << 20
	e := &r.Emptied
	_, err := fmt.Fprintf(out, "backlog of %d (%s): filled at %.0f/s, halved at %.0f/s, at most %d MiB of memory, snapshots paused it for at most %.1f ms\n"+
		"  restart: ready in %.0f ms (%.0f ms of processor time), %d segments of %d MiB\n"+
		"  received from the oldest at %.0f/s, %.2f of a queue with %d (%.0f/s); at most %d MiB of memory, %d MiB read from disk\n"+
		"  %s: answered in %.1f ms; calls of another queue at most %.1f ms, p99 %.1f ms (before: %.1f ms, %.1f ms); %d MiB free after %.1f s; snapshots paused for at most %.1f ms\n"+
		"  aims (memory < 1 GiB, ratio ≥ %.1f, ready < %v, pauses and other calls < %v, space back in %v): %s\n",
		messages, r.Backlog, r.FillRate, r.HalveRate, r.FillMemory/mib, r.Pause, r.Ready, r.ReadyCPU, r.Files, r.FileBytes/mib,
		r.Rate, r.Ratio, r.Reference, r.ReferenceRate, r.DrainMemory/mib, r.ReadBytes/mib,
		e.By, e.Answer, e.Max, e.P99, e.AloneMax, e.AloneP99, e.Bytes/mib, e.Space, e.Pause,
		backlogRatio, backlogReady, backlogWait, backlogSpace, verdict)
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
