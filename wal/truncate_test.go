package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestDeleteFrontRetainsBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{SegmentSize: 10_000, RetainBytes: 50_000, RingBytes: 1})
	for i := uint64(1); i <= 100; i++ {
		store(t, l, entries(i, i, 1, 4000))
	}
	before := l.Bytes()
	if err := l.DeleteRange(1, 5); err != nil {
		t.Fatal(err)
	}
	checkBounds(t, l, 6, 100)
	if l.Bytes() != before {
		t.Errorf("files were removed though there are fewer than RetainBytes behind")
	}
	checkEntry(t, l, entry(2, 1, 4000)) // a follower that lags may still ask
	if got := l.Oldest(); got != 1 {
		t.Errorf("oldest entry on disk: got %d, want 1", got)
	}

	if err := l.DeleteRange(6, 90); err != nil {
		t.Fatal(err)
	}
	checkBounds(t, l, 91, 100)
	kept := l.Oldest()
	retained := (91 - int64(kept)) * 4000
	if retained < 50_000 || retained > 70_000 {
		t.Errorf("%d bytes are retained behind entry 91, want 50,000 and at most a segment more", retained)
	}
	if got, want := len(segmentPaths(t, dir)), len(l.engine.(*tidwall).segments); got != want {
		t.Errorf("%d files are on disk, want %d", got, want)
	}
	checkEntry(t, l, entry(kept, 1, 4000))
	if err := l.GetLog(kept-1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v for a removed entry, want ErrLogNotFound", err)
	}
	l.Close()
	l = openLog(t, dir, LogOptions{SegmentSize: 10_000})
	checkBounds(t, l, kept, 100)
	if got := l.Oldest(); got != kept {
		t.Errorf("oldest entry after a restart: got %d, want %d", got, kept)
	}
}

func TestEngineIsReopenedAfterManyForgottenSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{SegmentSize: 64, RetainBytes: 1, RingBytes: 1})
	next := uint64(1)
	engines := map[any]bool{}
	l.engine.(*tidwall).forgotten = reopenAfter - 50
	for range 4 {
		store(t, l, entries(next, next+19, 1, 30)) // a segment each
		next += 20
		if err := l.DeleteRange(1, next-2); err != nil {
			t.Fatal(err)
		}
		engines[l.engine.(*tidwall).log] = true
		checkEntry(t, l, entry(next-1, 1, 30))
	}
	if len(engines) != 2 {
		t.Errorf("got %d engines, want a second one once %d segments were forgotten", len(engines), reopenAfter)
	}
}

func TestDeleteBackIsExact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{SegmentSize: 1000})
	store(t, l, entries(1, 50, 1, 100))
	for _, from := range []uint64{50, 43, 22} {
		if err := l.DeleteRange(from, from+60); err != nil {
			t.Fatal(err)
		}
		checkBounds(t, l, 1, from-1)
		if err := l.GetLog(from, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("got %v for a deleted entry, want ErrLogNotFound", err)
		}
	}
	store(t, l, entries(22, 30, 2, 50))
	l.Close()
	l = openLog(t, dir, LogOptions{SegmentSize: 1000})
	checkBounds(t, l, 1, 30)
	checkEntry(t, l, entry(21, 1, 100))
	checkEntry(t, l, entry(22, 2, 50))
}

func TestDeleteOfAllIsAReset(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{})
	store(t, l, entries(1, 50, 1, 100))
	if err := l.DeleteRange(1, 50); err != nil {
		t.Fatal(err)
	}
	checkBounds(t, l, 0, 0)
	l.Close()
	l = openLog(t, dir, LogOptions{})
	checkBounds(t, l, 0, 0)
	if got := l.Oldest(); got != 0 {
		t.Errorf("oldest entry of an empty log: got %d, want 0", got)
	}
	store(t, l, entries(7, 9, 2, 10)) // any index, here a lower one
	checkBounds(t, l, 7, 9)
	if got := l.Oldest(); got != 7 {
		t.Errorf("oldest entry: got %d, want 7", got)
	}
	checkEntry(t, l, entry(7, 2, 10))
	if err := l.GetLog(50, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v for an entry from before the reset, want ErrLogNotFound", err)
	}
}

func TestGapResetsTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{})
	store(t, l, entries(1, 50, 1, 100))
	store(t, l, entries(100, 103, 2, 10))
	checkBounds(t, l, 100, 103)
	if err := l.GetLog(50, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v for an entry before the gap, want ErrLogNotFound", err)
	}
	l.Close()
	l = openLog(t, dir, LogOptions{})
	checkBounds(t, l, 100, 103)
	checkEntry(t, l, entry(103, 2, 10))
}

func TestMisuseChangesNothing(t *testing.T) {
	var fatal int
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{Fatal: func(error) { fatal++ }})
	store(t, l, entries(1, 9, 1, 10))
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{"an entry that is there", func() error { return l.StoreLogs(entries(9, 10, 1, 10)) }},
		{"a batch with a hole", func() error {
			return l.StoreLogs([]*raft.Log{entry(10, 1, 10), entry(12, 1, 10)})
		}},
		{"entry 0", func() error { return l.StoreLogs(entries(0, 0, 1, 10)) }},
		{"a range in the middle", func() error { return l.DeleteRange(3, 5) }},
	} {
		if err := tt.call(); err == nil {
			t.Errorf("%s was accepted", tt.name)
		}
	}
	for _, r := range [][2]uint64{{20, 30}, {5, 4}} {
		if err := l.DeleteRange(r[0], r[1]); err != nil {
			t.Errorf("delete of %v, which is nothing: %v", r, err)
		}
	}
	checkBounds(t, l, 1, 9)
	store(t, l, entries(10, 10, 1, 10))
	if fatal > 0 {
		t.Errorf("misuse is no failure of the disk, yet Fatal was called")
	}
}

// model is the log as a map.
type model struct {
	first, last uint64 // 0, 0: empty
	logs        map[uint64]*raft.Log
}

func (m *model) store(batch []*raft.Log) {
	if m.last == 0 || batch[0].Index > m.last+1 {
		m.first, m.logs = batch[0].Index, map[uint64]*raft.Log{}
	}
	for _, e := range batch {
		m.logs[e.Index], m.last = e, e.Index
	}
}

func (m *model) delete(t *testing.T, l *Log, from, to uint64) {
	t.Helper()
	if err := l.DeleteRange(from, to); err != nil {
		t.Fatal(err)
	}
	switch {
	case from <= m.first && to >= m.last:
		m.first, m.last = 0, 0
	case from <= m.first:
		m.first = to + 1
	default:
		m.last = from - 1
	}
}

func TestRandomOperations(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			runModel(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func runModel(t *testing.T, random *rand.Rand) {
	dir := filepath.Join(t.TempDir(), "wal")
	o := LogOptions{SegmentSize: 500 + random.IntN(3000), RingBytes: 1 + random.IntN(5000), RetainBytes: 1 + random.IntN(5000)}
	l := openLog(t, dir, o)
	m := &model{}
	term := uint64(1)
	for range 60 {
		switch op := random.IntN(20); {
		case op < 11 || m.last == 0:
			next := m.last + 1
			if op == 0 || m.last == 0 && op < 5 {
				next = m.last + 1 + random.Uint64N(20)
			}
			batch := entries(next, next+random.Uint64N(8), term, random.IntN(600))
			store(t, l, batch)
			m.store(batch)
		case op < 14: // the front, as raft compacts
			m.delete(t, l, m.first, m.first+random.Uint64N(m.last-m.first+1))
		case op < 17: // the back, as a follower does
			from := m.first + random.Uint64N(m.last-m.first+1)
			term++
			m.delete(t, l, from, m.last)
		default:
			l.Close()
			l = openLog(t, dir, o)
			m.adopt(t, l)
		}
		m.compare(t, l, random)
		if t.Failed() {
			return
		}
	}
}

// adopt takes over that deleted entries at the front are back after a restart.
func (m *model) adopt(t *testing.T, l *Log) {
	t.Helper()
	first, _ := l.FirstIndex()
	if first > m.first {
		t.Errorf("after a restart the log begins with entry %d, want %d or before", first, m.first)
	}
	m.first = first
}

func (m *model) compare(t *testing.T, l *Log, random *rand.Rand) {
	t.Helper()
	checkBounds(t, l, m.first, m.last)
	for range 10 {
		if m.last > 0 {
			checkEntry(t, l, m.logs[m.first+random.Uint64N(m.last-m.first+1)])
		}
	}
	if err := l.GetLog(m.last+1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v behind the end, want ErrLogNotFound", err)
	}
}

// syncLog notes which directories are synced.
type syncLog struct {
	osFiles
	dirs []string
}

func (s *syncLog) syncDir(path string) error {
	s.dirs = append(s.dirs, filepath.Base(path))
	return s.osFiles.syncDir(path)
}

func TestDirectoryIsSyncedWithEachChangeOfNames(t *testing.T) {
	f := &syncLog{}
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{SegmentSize: 1000, RetainBytes: 1, files: f})
	for _, tt := range []struct {
		name string
		call func() error
		want int
	}{
		{"append", func() error { return l.StoreLogs(entries(1, 1, 1, 100)) }, 0},
		{"append that begins a segment", func() error { return l.StoreLogs(entries(2, 2, 1, 2000)) }, 1},
		{"append of several segments", func() error { return l.StoreLogs(entries(3, 8, 1, 900)) }, 1},
		{"append after that", func() error { return l.StoreLogs(entries(9, 9, 1, 100)) }, 0},
		{"truncation of the back", func() error { return l.DeleteRange(8, 9) }, 1},
		{"removal at the front", func() error { return l.DeleteRange(1, 5) }, 1},
	} {
		f.dirs = nil
		if err := tt.call(); err != nil {
			t.Fatal(err)
		}
		if len(f.dirs) != tt.want || tt.want > 0 && f.dirs[0] != "wal" {
			t.Errorf("%s: got syncs of %q, want %d of wal", tt.name, f.dirs, tt.want)
		}
	}
}

func TestDeleteFrontKeepsWhatIsNeeded(t *testing.T) {
	// 100 entries of 4,000 bytes, 3 in a segment; all but the last 10 are deleted.
	for _, c := range []struct {
		name     string
		needed   Needed
		from, to uint64 // where the first entry that stays is
	}{
		{"nobody", Needed{Nothing, Nothing}, 80, 85},
		{"a member that is behind", Needed{60, Nothing}, 55, 60},
		{"a member that is far behind", Needed{5, Nothing}, 40, 46},
		{"a member that has nothing", Needed{0, Nothing}, 40, 46},
		{"a snapshot being sent", Needed{70, 20}, 15, 20},
		{"a snapshot of the newest entry", Needed{Nothing, 99}, 80, 85},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{
				SegmentSize: 10_000, RetainBytes: 20_000, RetainLimit: 180_000, RingBytes: 1,
				Needed: func() Needed { return c.needed },
			})
			for i := uint64(1); i <= 100; i++ {
				store(t, l, entries(i, i, 1, 4000))
			}
			if err := l.DeleteRange(1, 90); err != nil {
				t.Fatal(err)
			}
			checkBounds(t, l, 91, 100)
			if first, _ := l.engine.bounds(); first < c.from || first > c.to {
				t.Errorf("got entries from %d on disk, want from %d to %d", first, c.from, c.to)
			}
			if got, want := len(segmentPaths(t, l.dir)), len(l.engine.(*tidwall).segments); got != want {
				t.Errorf("got %d files, want %d", got, want)
			}
		})
	}
}

// slowFiles takes a while to remove a file.
type slowFiles struct {
	osFiles
	removing func()
}

func (f slowFiles) removeAll(path string) error {
	f.removing()
	return f.osFiles.removeAll(path)
}

// A disk that is slow to remove many segments does not hang.
func TestRemovalOfManySegmentsIsNoStall(t *testing.T) {
	var l *Log
	var longest time.Duration
	removed, now := 0, time.Unix(1, 0)
	l = openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{
		SegmentSize: 64, RetainBytes: 1, RingBytes: 1,
		Now: func() time.Time { return now },
		files: slowFiles{removing: func() {
			removed++
			now = now.Add(100 * time.Millisecond)
			longest = max(longest, l.Busy())
		}},
	})
	store(t, l, entries(1, 200, 1, 30)) // a segment each
	if err := l.DeleteRange(1, 199); err != nil {
		t.Fatal(err)
	}
	if removed < 190 || longest > 4*time.Second {
		t.Errorf("removed %d segments, busy for %s at a time", removed, longest)
	}
}
