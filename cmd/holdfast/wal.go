package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"holdfast.internal/cluster"
	"holdfast.internal/wal"
)

type walCommand struct {
	Verify walVerify `cmd:"" help:"Read all that is in a data folder and say whether it is sound."`
	Dump   walDump   `cmd:"" help:"Print the log, a command a line, in JSON."`
}

type walVerify struct {
	jsonFlag
	Dir string `arg:"" help:"Data folder of a node; it is not changed."`
}

// walReport is the JSON form of a wal.Report.
type walReport struct {
	OK        bool          `json:"ok"`
	Problems  []string      `json:"problems"`
	Notes     []string      `json:"notes"`
	Log       walLog        `json:"log"`
	Stable    walStable     `json:"stable"`
	Snapshots []walSnapshot `json:"snapshots"` // newest first
	Bodies    walBodies     `json:"bodies"`
}

type walLog struct {
	Segments int    `json:"segments"`
	Entries  uint64 `json:"entries"`
	Bytes    int64  `json:"bytes"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	LastTerm uint64 `json:"last_term"`
}

type walStable struct {
	Locked   bool   `json:"locked"` // by a running node; the rest is unknown then
	Term     uint64 `json:"term"`
	VoteTerm uint64 `json:"vote_term"`
	VotedFor string `json:"voted_for"`
}

type walSnapshot struct {
	ID    string `json:"id"`
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Size  int64  `json:"size"`
}

// walBodies are those in the segments of the newest snapshot.
type walBodies struct {
	Segments int    `json:"segments"`
	Bodies   uint64 `json:"bodies"`
	Damaged  uint64 `json:"damaged"`
	Missing  uint64 `json:"missing"`
	Bytes    int64  `json:"bytes"`
}

// Run answers yes when all of the folder is intact.
func (c *walVerify) Run(out *console) error {
	found, err := cluster.VerifyData(c.Dir)
	if err != nil {
		return err
	}
	report := newWALReport(found)
	if c.JSON {
		err = writeJSON(out.stdout, report)
	} else {
		err = report.write(out.stdout)
	}
	if err == nil && !report.OK {
		return &exitError{exitNo, errors.New("")}
	}
	return err
}

func newWALReport(r wal.Report) walReport {
	report := walReport{
		OK:       r.OK(),
		Problems: append([]string{}, r.Problems...),
		Notes:    append([]string{}, r.Notes...),
		Log:      walLog(r.Log),
		Stable: walStable{
			Locked: r.Stable.Locked, Term: r.Stable.Term, VoteTerm: r.Stable.VoteTerm, VotedFor: r.Stable.VotedFor,
		},
		Snapshots: []walSnapshot{},
		Bodies:    walBodies(r.Segments),
	}
	for _, s := range r.Snapshots {
		report.Snapshots = append(report.Snapshots, walSnapshot(s))
	}
	return report
}

func (r walReport) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "log\t%d entries, %d to %d, %s, segments: %d\n",
		r.Log.Entries, r.Log.First, r.Log.Last, sizeText(r.Log.Bytes), r.Log.Segments)
	if r.Stable.Locked {
		_, _ = fmt.Fprintln(table, "vote\tnot read, a running node has it")
	} else {
		_, _ = fmt.Fprintf(table, "vote\tterm %d, voted in %d for %q\n", r.Stable.Term, r.Stable.VoteTerm, r.Stable.VotedFor)
	}
	for _, s := range r.Snapshots {
		_, _ = fmt.Fprintf(table, "snapshot\tat entry %d, %s\n", s.Index, sizeText(s.Size))
	}
	if r.Bodies.Segments > 0 {
		_, _ = fmt.Fprintf(table, "bodies\t%d, %s, segments: %d, damaged: %d, missing: %d\n",
			r.Bodies.Bodies, sizeText(r.Bodies.Bytes), r.Bodies.Segments, r.Bodies.Damaged, r.Bodies.Missing)
	}
	for _, note := range r.Notes {
		_, _ = fmt.Fprintf(table, "note\t%s\n", note)
	}
	for _, problem := range r.Problems {
		_, _ = fmt.Fprintf(table, "problem\t%s\n", problem)
	}
	verdict := "sound"
	if !r.OK {
		verdict = "damaged"
	}
	_, _ = fmt.Fprintf(table, "verdict\t%s\n", verdict)
	return flush(table)
}
