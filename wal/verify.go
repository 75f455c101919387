package wal

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// The names of what this room keeps in a data directory.
const (
	LogDir      = "wal"
	StableFile  = "stable.db"
	SnapshotDir = "snapshots"
	SegmentDir  = "segments"
)

// Report is what Verify found.
type Report struct {
	Log       LogReport
	Stable    StableReport
	Snapshots []SnapshotReport // newest first
	Segments  SegmentReport
	// Problems name a file and what is wrong. All but the damage of single bodies
	// are in the way of a start.
	Problems []string
	// Notes are remarkable and harmless, such as a torn tail, which the next
	// start repairs.
	Notes []string
}

// OK reports whether all is intact, so that a node would start on it.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// LogReport counts the raft log. First and Last are 0 if it is empty.
type LogReport struct {
	Segments    int
	Entries     uint64
	Bytes       int64 // of intact records
	First, Last uint64
	LastTerm    uint64
}

// StableReport is raft's term and its last vote, 0 and "" if there is none.
// Locked: a running node has the file, and nothing else is known.
type StableReport struct {
	Locked   bool
	Term     uint64
	VoteTerm uint64
	VotedFor string // the candidate as raft encodes it
}

// SnapshotReport is one snapshot that was read whole.
type SnapshotReport struct {
	ID          string
	Index, Term uint64
	Size        int64 // bytes
}

// SegmentReport counts the segments of the newest snapshot.
type SegmentReport struct {
	Segments int
	Bodies   uint64 // dead ones that are still there included
	Damaged  uint64 // bodies that are not as they were written
	Missing  uint64 // bodies that the state refers to and no segment has
	Bytes    int64  // of the files
}

// DecodeState reads the state of a snapshot and returns the numbers of the bodies
// that it refers to, as ranges (first, count) in ascending order.
type DecodeState func(state io.Reader) (live iter.Seq2[uint64, uint64], err error)

// Verify reads all that this room keeps in a data directory and changes
// nothing, so it may run beside a node, or beside its files after an accident.
// The state of the newest snapshot is given to decode, if that is not nil; each
// body that it refers to must be there. The error is for what could not be read,
// and ErrNoData; what is wrong with the data is in the report.
func Verify(dataDir string, decode DecodeState) (Report, error) {
	var r Report
	if err := CheckDataDir(dataDir); err != nil {
		return r, err
	}
	if err := r.verifyLog(filepath.Join(dataDir, LogDir)); err != nil {
		return r, fmt.Errorf("verify raft log: %w", err)
	}
	if err := r.verifyStable(filepath.Join(dataDir, StableFile)); err != nil {
		return r, fmt.Errorf("verify stable store: %w", err)
	}
	newest, err := r.verifySnapshots(filepath.Join(dataDir, SnapshotDir))
	if err != nil {
		return r, fmt.Errorf("verify snapshots: %w", err)
	}
	snapshot := filepath.Join(dataDir, SnapshotDir)
	live := noBodies
	if len(r.Snapshots) > 0 {
		snapshot = filepath.Join(snapshot, r.Snapshots[0].ID)
		if decode != nil {
			live = r.decode(filepath.Join(snapshot, stateFile), decode)
		}
	}
	if err := r.verifySegments(filepath.Join(dataDir, SegmentDir), snapshot, newest, live); err != nil {
		return r, fmt.Errorf("verify segments: %w", err)
	}
	if err := r.problem(CheckLogThere(dataDir)); err != nil {
		return r, fmt.Errorf("look for raft log: %w", err)
	}
	return r, r.compare()
}

// CheckDataDir returns ErrNoData if a directory has nothing that this room has made, and
// an error of os.Stat if there is none.
func CheckDataDir(dataDir string) error {
	if _, err := os.Stat(dataDir); err != nil {
		return err
	}
	for _, name := range []string{LogDir, StableFile, SnapshotDir} {
		if exists(filepath.Join(dataDir, name)) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", dataDir, ErrNoData)
}

// problem takes err into the report if it is about damage, else returns it.
func (r *Report) problem(err error) error {
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	r.Problems = append(r.Problems, err.Error())
	return nil
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) verifyLog(dir string) error {
	if !exists(dir) {
		r.note("%s: there is no raft log", dir)
		return nil
	}
	layout, err := readLayout(dir)
	if err != nil {
		return r.problem(err)
	}
	if err := layout.checkFormat(); err != nil {
		return r.problem(err)
	}
	if layout.finish != "" {
		r.note("%s: a truncation was interrupted and will be finished", filepath.Join(dir, layout.finish))
	}
	found, err := scanRunning(layout, func(e *raft.Log) error {
		if r.Log.Entries == 0 {
			r.Log.First = e.Index
		}
		r.Log.Entries++
		r.Log.Last, r.Log.LastTerm = e.Index, e.Term
		return nil
	})
	for _, s := range layout.segments {
		r.Log.Segments++
		r.Log.Bytes += s.size
	}
	if err == nil {
		r.noteFullTail(layout, found.last+1)
	}
	if found.torn != nil && !found.torn.blank {
		r.note("%s: torn tail of %d bytes at offset %d", found.torn.path, found.torn.size, found.torn.at)
	}
	return r.problem(err)
}

// noteFullTail tells of a log that seems to have lost newer files. A start cannot refuse
// it: a crash between two files, or a truncation there, leaves the same.
func (r *Report) noteFullTail(l layout, next uint64) {
	n := len(l.segments)
	if n == 0 || l.segments[n-1].size < DefaultSegmentSize || exists(filepath.Join(l.dir, segmentName(next))) {
		return
	}
	r.note("%s: the last file of the log is full, but there is none for entry %d, which the node begins at once: "+
		"unless a crash or a new leader cut the log just here, somebody removed newer files",
		filepath.Join(l.dir, l.segments[n-1].name), next)
}

func (r *Report) verifyStable(path string) error {
	if !exists(path) {
		r.note("%s: there is no stable store", path)
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 { // a start takes it for a new one
		r.note("%s: the stable store is empty", path)
		return nil
	}
	stable, err := openBolt(path, &bbolt.Options{Timeout: 100 * time.Millisecond, ReadOnly: true})
	if errors.Is(err, bbolt.ErrTimeout) {
		r.Stable.Locked = true
		r.note("%s: not verified, a running process has it", path)
		return nil
	}
	if err != nil {
		return r.problem(err)
	}
	f, err := stable.facts()
	r.Stable = StableReport{Term: f.term, VoteTerm: f.voteTerm, VotedFor: f.candidate}
	return errors.Join(r.problem(err), stable.Close())
}

// verifySnapshots returns the segments of the newest snapshot.
func (r *Report) verifySnapshots(dir string) (newest []segmentFacts, err error) {
	if !exists(dir) {
		r.note("%s: there are no snapshots", dir)
		return nil, nil
	}
	names, err := snapshotNames(dir)
	if err != nil {
		return nil, err
	}
	for i, name := range sortedSnapshots(names) {
		m, segments, err := verifySnapshot(dir, name)
		switch {
		case err == nil:
			if len(r.Snapshots) == 0 {
				newest = segments
			}
			r.Snapshots = append(r.Snapshots, SnapshotReport{ID: m.ID, Index: m.Index, Term: m.Term, Size: m.Size})
		case !exists(filepath.Join(dir, name.text)): // a newer one took its place meanwhile
		case i > 0 && errors.Is(err, ErrCorrupt): // nobody reads it
			r.note("%v", err)
		default:
			if err := r.problem(err); err != nil {
				return nil, err
			}
		}
	}
	return newest, nil
}

func verifySnapshot(dir string, name snapshotName) (snapshotMeta, []segmentFacts, error) {
	m, err := readMeta(dir, name)
	if err == nil {
		err = verifyState(filepath.Join(dir, name.text, stateFile), m)
	}
	if err != nil || m.Manifest == "" {
		return m, nil, err
	}
	bodies, err := readManifest(filepath.Join(dir, name.text), m.Manifest)
	return m, bodies.Segments, err
}

// compare does what a start does with what the parts say of each other. The term of
// a node that runs is unknown, and was compared when it started.
func (r *Report) compare() error {
	if !r.OK() {
		return nil
	}
	e := Extent{First: r.Log.First, LastTerm: r.Log.LastTerm, Term: r.Stable.Term}
	if len(r.Snapshots) > 0 {
		e.Snapshot, e.SnapshotTerm = r.Snapshots[0].Index, r.Snapshots[0].Term
	}
	if r.Stable.Locked {
		e.Term = max(e.LastTerm, e.SnapshotTerm)
	}
	return r.problem(e.Check())
}

// Scan calls visit for each entry from from to to, both included, of the log in
// dir (the directory given to OpenLog); to 0 stands for the end. It changes
// nothing, so it may run beside a node; entries that come or go meanwhile may or
// may not be seen. A torn tail ends it, damage is ErrCorrupt. The entry is valid
// during the call; an error of visit ends the scan and is returned, wrapped.
func Scan(dir string, from, to uint64, visit func(*raft.Log) error) error {
	layout, err := readLayout(dir)
	if err != nil {
		return fmt.Errorf("scan raft log: %w", err)
	}
	if err := layout.checkFormat(); err != nil {
		return fmt.Errorf("scan raft log: %w", err)
	}
	layout.narrow(from, to)
	_, err = scanRunning(layout, func(e *raft.Log) error {
		if e.Index < from || to != 0 && e.Index > to {
			return nil
		}
		return visit(e)
	})
	if err != nil {
		return fmt.Errorf("scan raft log: %w", err)
	}
	return nil
}

// narrow leaves out segments with no entry from from to to.
func (l *layout) narrow(from, to uint64) {
	for len(l.segments) > 1 && l.segments[1].first <= from {
		l.segments = l.segments[1:]
	}
	for len(l.segments) > 1 && to != 0 && l.segments[len(l.segments)-1].first > to {
		l.segments = l.segments[:len(l.segments)-1]
	}
}

// scanRunning is scan for a log that a node may be writing: the oldest segments
// may be gone by now.
func scanRunning(l layout, visit func(*raft.Log) error) (scanned, error) {
	for len(l.segments) > 0 && !exists(filepath.Join(l.dir, l.segments[0].name)) {
		l.segments = l.segments[1:]
	}
	return l.scan(visit)
}
