package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/httpapi/admin"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// traceTimeout is how long a node may read its log, which is gigabytes at most.
const traceTimeout = 10 * time.Minute

type queueTrace struct {
	oneNode
	jsonFlag
	staleFlag
	Data      string `env:"HOLDFAST_TRACE_DATA" placeholder:"DIR" help:"Read the data folder of a stopped node instead of asking a running one."`
	MessageID string `arg:"" name:"message-id" help:"MessageId, as SendMessage answered it, or as a receive shows it after a redrive."`
}

// Run answers yes when the message was found, in the log or in the state.
func (c *queueTrace) Run(out *console) error {
	id, ok := admin.ParseMessageID(c.MessageID)
	if !ok {
		return usageError("%q is no MessageId: want one such as 5fea7756-0ea4-451a-a703-a558b933e274", c.MessageID)
	}
	trace, err := c.trace(out.ctx, id)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(out.stdout, trace)
	} else {
		err = writeTrace(out.stdout, &trace)
	}
	if err == nil && len(trace.Steps) == 0 && trace.Now == nil {
		return &exitError{exitNo, errors.New("")}
	}
	return err
}

func (c *queueTrace) trace(ctx context.Context, id sqs.MessageID) (trace admin.Trace, err error) {
	if c.Data != "" {
		return traceFolder(ctx, c.Data, id)
	}
	err = callAdmin(ctx, http.MethodGet, adminURL(c.Admin)+"/messages/"+c.MessageID+"/trace"+c.query(url.Values{}), nil, traceTimeout, &trace)
	return trace, err
}

// traceFolder traces a message in the folder of a stopped node. It builds the
// state as a start would, to look into it.
func traceFolder(ctx context.Context, dir string, id sqs.MessageID) (admin.Trace, error) {
	if err := wal.CheckDataDir(dir); err != nil {
		return admin.Trace{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, wal.StableFile)); err != nil {
		return admin.Trace{}, fmt.Errorf("open data folder: %w", err) // OpenStable would make one
	}
	lock, err := wal.OpenStable(filepath.Join(dir, wal.StableFile))
	if errors.Is(err, wal.ErrLocked) {
		return admin.Trace{}, fmt.Errorf("a node is running on %s: ask it with --admin", dir)
	}
	if err != nil {
		return admin.Trace{}, err
	}
	trace, err := traceLocked(ctx, dir, id)
	return trace, errors.Join(err, lock.Close())
}

// traceLocked traces in a folder of which the caller has the lock.
func traceLocked(ctx context.Context, dir string, id sqs.MessageID) (trace admin.Trace, err error) {
	segments, err := wal.OpenSegments(filepath.Join(dir, wal.SegmentDir), wal.SegmentOptions{})
	if err != nil {
		return trace, err
	}
	defer func() { err = errors.Join(err, segments.Close()) }()
	snapshots, err := wal.OpenSnapshots(filepath.Join(dir, wal.SnapshotDir), wal.SnapshotOptions{Segments: segments})
	if err != nil {
		return trace, err
	}
	scan := func(from, to uint64, visit func(*raft.Log) error) error {
		return wal.Scan(filepath.Join(dir, wal.LogDir), from, to, visit)
	}
	now := raftfsm.New(segments, nil)
	if err := restore(now, snapshots, 0); err != nil {
		return trace, err
	}
	var last uint64
	err = scan(now.AppliedIndex()+1, 0, func(entry *raft.Log) error {
		last = entry.Index
		replay(now, entry)
		return ctx.Err()
	})
	if err != nil {
		return trace, err
	}
	traced, err := raftfsm.TraceMessage(ctx, id, raftfsm.TraceSources{
		View: now.View,
		Replay: func(first uint64) (*raftfsm.Machine, error) {
			shadow := raftfsm.NewShadow()
			if first <= 1 { // the log has all there ever was
				return shadow, nil
			}
			return shadow, restore(shadow, snapshots, first)
		},
		Scan: scan,
		Last: max(last, now.AppliedIndex()),
	})
	return admin.NewTrace(traced), err
}

func writeTrace(w io.Writer, trace *admin.Trace) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(trace.Steps) > 0 {
		_, _ = fmt.Fprintln(table, "entry\ttime\tevent\tqueue\tno")
	}
	for _, step := range trace.Steps {
		cells := []string{fmt.Sprint(step.Index), timeText(step.TimeMS), step.Event, step.Queue, numberText(step.Sequence)}
		if text := stepText(&step); text != "" {
			cells = append(cells, text)
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := flush(table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "now: %s\n%s\n", nowText(trace), sightText(trace))
	return err
}

func numberText(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// stepText is what there is to say of a step beside its columns.
func stepText(step *admin.Step) string {
	var parts []string
	if step.ReceiveCount > 0 {
		parts = append(parts, fmt.Sprintf("receive count %d", step.ReceiveCount))
	}
	if step.To != "" {
		parts = append(parts, fmt.Sprintf("to %s as %d", step.To, step.ToSequence))
	}
	if step.AvailableMS != 0 {
		parts = append(parts, "visible from "+timeText(step.AvailableMS))
	} else if step.Event == string(raftfsm.StepChanged) {
		parts = append(parts, "visible at once")
	}
	return strings.Join(parts, ", ")
}

func nowText(trace *admin.Trace) string {
	m := trace.Now
	switch {
	case m == nil && len(trace.Steps) == 0:
		return "no such message, neither in the log nor in a queue"
	case m == nil:
		return "in no queue: deleted, purged or expired"
	case m.AvailableMS != 0:
		return fmt.Sprintf("%s in %s as %d until %s, receive count %d", m.State, m.Queue, m.Sequence, timeText(m.AvailableMS), m.ReceiveCount)
	}
	return fmt.Sprintf("%s in %s as %d, receive count %d", m.State, m.Queue, m.Sequence, m.ReceiveCount)
}

// sightText says what the trace could not see.
func sightText(trace *admin.Trace) string {
	switch {
	case trace.ExactIndex > trace.LastIndex:
		return fmt.Sprintf("seen: entries %d to %d, their sends only", trace.FirstIndex, trace.LastIndex)
	case trace.ExactIndex > trace.FirstIndex:
		return fmt.Sprintf("seen: entries %d to %d; before %d, sends only", trace.FirstIndex, trace.LastIndex, trace.ExactIndex)
	}
	return fmt.Sprintf("seen: entries %d to %d", trace.FirstIndex, trace.LastIndex)
}
