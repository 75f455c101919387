package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// dataDir makes a data directory with entries 1 to 60, a vote, and snapshots
// at 20 and 40.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := openStable(t, filepath.Join(dir, StableFile))
	if err := s.SetUint64(keyTerm, 4); err != nil {
		t.Fatal(err)
	}
	vote(t, s, 3, "node-a")
	s.Close()
	snapshots := openSnapshots(t, filepath.Join(dir, SnapshotDir))
	mustTake(t, snapshots, 40, 2, 2000)
	leaveOlder(t, filepath.Join(dir, SnapshotDir))
	l := openLog(t, filepath.Join(dir, LogDir), LogOptions{SegmentSize: 2000})
	for i := uint64(1); i <= 60; i++ {
		store(t, l, entries(i, i, 2, 200))
	}
	l.Close()
	return dir
}

func verify(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyOfAHealthyDirectory(t *testing.T) {
	dir := dataDir(t)
	before := snapshotFiles(t, dir)
	r := verify(t, dir)
	segments := segmentPaths(t, filepath.Join(dir, LogDir))
	want := Report{
		Log: LogReport{
			Segments: len(segments), Entries: 60, First: 1, Last: 60, LastTerm: 2,
			Bytes: int64(len(segmentOf(entries(1, 60, 2, 200)))),
		},
		Stable: StableReport{Term: 4, VoteTerm: 3, VotedFor: "node-a"},
		Snapshots: []SnapshotReport{
			{ID: "2-40-1", Index: 40, Term: 2, Size: 2000},
			{ID: "1-10-1", Index: 10, Term: 1, Size: 1000},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	if !reflect.DeepEqual(before, snapshotFiles(t, dir)) {
		t.Error("Verify changed a file")
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	segmentOfLog := func(t *testing.T, dir string, i int) string { return segmentPaths(t, filepath.Join(dir, LogDir))[i] }
	for _, tt := range []struct {
		name    string
		damage  func(t *testing.T, dir string) error
		problem string // "": none
		note    string
	}{
		{"flip in the log", func(t *testing.T, dir string) error {
			return patch(segmentOfLog(t, dir, 1), func(b []byte) []byte { b[300] ^= 1; return b })
		}, "checksum differs", ""},
		{"torn tail", func(t *testing.T, dir string) error {
			return patch(segmentOfLog(t, dir, len(segmentPaths(t, filepath.Join(dir, LogDir)))-1),
				func(b []byte) []byte { return b[:len(b)-1] })
		}, "", "torn tail"},
		{"interrupted truncation", func(t *testing.T, dir string) error {
			path := segmentOfLog(t, dir, 2)
			return os.Rename(path, path+endSuffix)
		}, "", "interrupted"},
		{"flip in the newest snapshot", func(_ *testing.T, dir string) error {
			return patch(filepath.Join(dir, SnapshotDir, "2-40-1", stateFile), func(b []byte) []byte { b[9] ^= 1; return b })
		}, "2-40-1", ""},
		{"flip in the older snapshot", func(_ *testing.T, dir string) error {
			return patch(filepath.Join(dir, SnapshotDir, "1-10-1", stateFile), func(b []byte) []byte { b[9] ^= 1; return b })
		}, "", "1-10-1"},
		{"entries between snapshot and log", func(t *testing.T, dir string) error {
			var errs []error
			for _, path := range segmentPaths(t, filepath.Join(dir, LogDir)) {
				if first, _, _ := parseSegmentName(filepath.Base(path)); first <= 41 {
					errs = append(errs, os.Remove(path))
				}
			}
			return errors.Join(errs...)
		}, "reaches only to entry 40", ""},
		{"stable store", func(_ *testing.T, dir string) error {
			return patch(filepath.Join(dir, StableFile), func(b []byte) []byte {
				for i := range b {
					b[i] ^= 0xff
				}
				return b
			})
		}, StableFile, ""},
		{"stable store lost", func(_ *testing.T, dir string) error {
			return os.Remove(filepath.Join(dir, StableFile))
		}, "has term 0", ""},
		{"log lost", func(_ *testing.T, dir string) error {
			return os.RemoveAll(filepath.Join(dir, LogDir))
		}, "there are snapshots, but no log", "no raft log"},
		{"files of the log lost", func(t *testing.T, dir string) error {
			var errs []error
			for _, path := range segmentPaths(t, filepath.Join(dir, LogDir)) {
				errs = append(errs, os.Remove(path))
			}
			return errors.Join(errs...)
		}, "there are snapshots, but no log", ""},
		{"stable store emptied", func(_ *testing.T, dir string) error {
			return os.Truncate(filepath.Join(dir, StableFile), 0)
		}, "has term 0", "the stable store is empty"},
		{"log and stable store lost", func(t *testing.T, dir string) error {
			openLog(t, filepath.Join(dir, "empty"), LogOptions{}).Close()
			return errors.Join(os.RemoveAll(filepath.Join(dir, LogDir)), os.Remove(filepath.Join(dir, StableFile)),
				os.Rename(filepath.Join(dir, "empty"), filepath.Join(dir, LogDir)))
		}, "has term 0", ""},
		{"only a vote is left", func(_ *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, LogDir)), os.RemoveAll(filepath.Join(dir, SnapshotDir)))
		}, "in term 4, but without log and snapshots", "no raft log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := dataDir(t)
			if err := tt.damage(t, dir); err != nil {
				t.Fatal(err)
			}
			r := verify(t, dir)
			problems, notes := strings.Join(r.Problems, "\n"), strings.Join(r.Notes, "\n")
			if r.OK() != (tt.problem == "") || !strings.Contains(problems, tt.problem) || !strings.Contains(notes, tt.note) {
				t.Errorf("got problems %q, notes %q; want one with %q, one with %q", problems, notes, tt.problem, tt.note)
			}
		})
	}
}

// A log whose newest file was removed is as one that ended there, but for a file that
// is full and not followed by another.
func TestVerifyNotesAFullLastFile(t *testing.T) {
	dir := t.TempDir()
	stable := openStable(t, filepath.Join(dir, StableFile))
	if err := stable.SetUint64(keyTerm, 2); err != nil {
		t.Fatal(err)
	}
	stable.Close()
	l := openLog(t, filepath.Join(dir, LogDir), LogOptions{})
	for i := uint64(1); i <= 6; i++ {
		store(t, l, entries(i, i, 2, 1<<20))
	}
	l.Close()
	if r := verify(t, dir); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no snapshots") {
		t.Errorf("intact: got notes %q, want only that there are no snapshots", r.Notes)
	}
	paths := segmentPaths(t, filepath.Join(dir, LogDir))
	if err := os.Remove(paths[len(paths)-1]); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir)
	if notes := strings.Join(r.Notes, "\n"); !r.OK() || !strings.Contains(notes, "somebody removed newer files") {
		t.Errorf("newest file removed: got problems %q, notes %q; want none, and one of a full file", r.Problems, notes)
	}
}

func TestVerifyBesideARunningNode(t *testing.T) {
	dir := dataDir(t)
	openStable(t, filepath.Join(dir, StableFile))
	openLog(t, filepath.Join(dir, LogDir), LogOptions{})
	r := verify(t, dir)
	if !r.OK() || !r.Stable.Locked || r.Log.Last != 60 {
		t.Errorf("got %+v, want no problem, and a stable store that is locked", r)
	}
}

func TestScan(t *testing.T) {
	dir := filepath.Join(dataDir(t), LogDir)
	paths := segmentPaths(t, dir)
	if err := patch(paths[len(paths)-1], func(b []byte) []byte { return append(b, 0xc8) }); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, first, last uint64 }{
		{0, 0, 1, 60}, {1, 60, 1, 60}, {17, 17, 17, 17}, {55, 99, 55, 60}, {33, 0, 33, 60}, {61, 0, 0, 0}, {0, 3, 1, 3},
	} {
		t.Run(fmt.Sprintf("%d to %d", tt.from, tt.to), func(t *testing.T) {
			next := tt.first
			err := Scan(dir, tt.from, tt.to, func(e *raft.Log) error {
				if err := sameEntry(e, entry(next, 2, 200)); err != nil {
					t.Error(err)
				}
				next++
				return nil
			})
			if last := max(next, 1) - 1; err != nil || last != tt.last {
				t.Errorf("the scan ends at %d with %v, want %d", last, err, tt.last)
			}
		})
	}
	stop := errors.New("enough")
	if err := Scan(dir, 1, 0, func(*raft.Log) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the visitor's error", err)
	}
	if err := patch(paths[1], func(b []byte) []byte { b[100] ^= 1; return b }); err != nil {
		t.Fatal(err)
	}
	if err := Scan(dir, 1, 0, ignore); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestVerifyRefusesOtherDirectories(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "photo.jpg"), []byte("x"))
	if _, err := Verify(dir, nil); !errors.Is(err, ErrNoData) {
		t.Errorf("got %v, want ErrNoData", err)
	}
}

// The state is read, and what it refers to must be there.
func TestVerifyDecodesTheState(t *testing.T) {
	dir := t.TempDir()
	n := mustOpenNode(t, dir)
	n.append(100, bodies60)
	n.kill(every(10, 0)) // they stay in no segment
	mustSnapshot(t, n)
	stable := openStable(t, filepath.Join(dir, StableFile))
	log := openLog(t, filepath.Join(dir, LogDir), LogOptions{})
	if err := errors.Join(stable.SetUint64(keyTerm, 1), stable.Close(), log.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		live    iter.Seq2[uint64, uint64]
		missing uint64
	}{
		{"as it is", liveOf(n.machine.Live), 0},
		{"fewer", ranges(2, 3, 91, 1), 0},
		{"none", ranges(), 0},
		{"dead ones at the start of a range", ranges(10, 5), 1},
		{"dead ones at its end", ranges(15, 6), 1},
		{"all that there were", ranges(1, 100), 10},
		{"only dead ones", ranges(10, 1, 20, 1, 100, 1), 3},
		{"numbers above all", ranges(99, 1, 101, 50), 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Verify(dir, func(state io.Reader) (iter.Seq2[uint64, uint64], error) {
				b, err := io.ReadAll(state)
				if !bytes.Contains(b, []byte("Next")) {
					t.Errorf("got %q, want the state", b)
				}
				return tt.live, err
			})
			if err != nil || r.Segments.Missing != tt.missing || r.OK() != (tt.missing == 0) {
				t.Errorf("got %d missing, problems %q, error %v; want %d missing", r.Segments.Missing, r.Problems, err, tt.missing)
			}
		})
	}
	r, err := Verify(dir, func(io.Reader) (iter.Seq2[uint64, uint64], error) { return nil, errors.New("a queue without name") })
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "a queue without name") {
		t.Errorf("got problems %q, error %v; want that of the decoder", r.Problems, err)
	}
}

func TestVerifyReadsSegments(t *testing.T) {
	dir := t.TempDir()
	n := mustOpenNode(t, dir)
	n.append(100, bodies60)
	mustSnapshot(t, n)
	stable := openStable(t, filepath.Join(dir, StableFile))
	log := openLog(t, filepath.Join(dir, LogDir), LogOptions{})
	if err := errors.Join(stable.SetUint64(keyTerm, 1), stable.Close(), log.Close()); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(n.dir, segmentFileName(7, 99))
	write(t, orphan, []byte("x"))
	r := verify(t, dir)
	if want := (SegmentReport{Segments: 2, Bodies: 100, Bytes: n.Stats().Bytes}); r.Segments != want || !r.OK() {
		t.Errorf("got %+v, problems %v; want %+v", r.Segments, r.Problems, want)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), orphan) {
		t.Errorf("got notes %v, want one about %s", r.Notes, orphan)
	}

	bodyOf20 := segmentHeader + 80*19 + frameHeader + 3
	flip(t, n.list[0].path, bodyOf20)
	r = verify(t, dir)
	if r.Segments.Damaged != 1 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "body 20") {
		t.Errorf("got %+v, problems %v; want one about body 20", r.Segments, r.Problems)
	}
	flip(t, n.list[0].path, bodyOf20)

	for _, tt := range []struct {
		name   string
		path   string
		damage func(path string) error
	}{
		{"flip in a page", n.list[1].path, func(path string) error { flip(t, path, n.list[1].end+3); return nil }},
		{"flip in the footer", n.list[1].path, func(path string) error { flip(t, path, n.list[1].Size-20); return nil }},
		{"flip in the manifest", filepath.Join(n.snapshots.dir, "1-1-1", manifestFile), func(path string) error { flip(t, path, 30); return nil }},
		{"no manifest", filepath.Join(n.snapshots.dir, "1-1-1", manifestFile), os.Remove},
		{"no segment", n.list[0].path, os.Remove},
	} {
		whole := read(t, tt.path)
		if err := tt.damage(tt.path); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], tt.path) {
			t.Errorf("%s: got problems %v, want one about %s", tt.name, r.Problems, tt.path)
		}
		if tt.name != "flip in a page" { // that is found when a body is read
			if _, err := openNode(dir, quickFiles{}, smallLimits); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: a start got %v, want ErrCorrupt", tt.name, err)
			}
		}
		write(t, tt.path, whole)
	}
	if r := verify(t, dir); !r.OK() {
		t.Errorf("got problems %v after all was repaired", r.Problems)
	}
}
