package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// writeLog makes a log of entries 1 to last in a fresh directory.
func writeLog(t *testing.T, last uint64, size, segmentSize int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{SegmentSize: segmentSize})
	for i := uint64(1); i <= last; i++ {
		store(t, l, entries(i, i, 1, size))
	}
	l.Close()
	return dir
}

func segmentPaths(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "0*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkRepaired opens the log and expects entries 1 to last, that it goes on
// from there, and that all of it is there after another start.
func checkRepaired(t *testing.T, dir string, last uint64, size, segmentSize int) {
	t.Helper()
	checkStarts(t, dir, 2, last, size, segmentSize)
}

// checkStarts is checkRepaired with any number of starts.
func checkStarts(t *testing.T, dir string, starts, last uint64, size, segmentSize int) {
	t.Helper()
	for round := range starts {
		l, err := OpenLog(dir, LogOptions{SegmentSize: segmentSize})
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		if last+round > 0 {
			checkBounds(t, l, 1, last+round)
		}
		for i := uint64(1); i <= last+round; i++ {
			checkEntry(t, l, entry(i, 1, size))
		}
		store(t, l, entries(last+round+1, last+round+1, 1, size))
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// checkRefused opens the log, expects ErrCorrupt and that no file changed.
func checkRefused(t *testing.T, dir, path string) {
	t.Helper()
	before := snapshotFiles(t, dir)
	l, err := OpenLog(dir, LogOptions{})
	if !errors.Is(err, ErrCorrupt) {
		if err == nil {
			l.Close()
		}
		t.Errorf("open: got %v, want ErrCorrupt", err)
		return
	}
	for _, want := range []string{path, "offset", "keep this folder"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message %q does not say %q", err, want)
		}
	}
	if after := snapshotFiles(t, dir); !slices.Equal(before, after) {
		t.Errorf("a refused log was changed")
	}
}

func snapshotFiles(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path+"\x00"+string(read(t, path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// startsAt saves time: the second start matters for few of the bytes.
func startsAt(at, start int) uint64 {
	if (at-start)%50 < 2 {
		return 2
	}
	return 1
}

func TestTornTailAtEveryByte(t *testing.T) {
	for _, size := range []int{10, 700} { // within a sector; over more than one
		dir := writeLog(t, 5, size, 0)
		path := segmentPaths(t, dir)[0]
		whole := read(t, path)
		start := len(segmentOf(entries(1, 4, 1, size)))
		for cut := start; cut < len(whole); cut++ {
			write(t, path, whole[:cut])
			checkStarts(t, dir, startsAt(cut, start), 4, size, 0)
			if t.Failed() {
				t.Fatalf("size %d: the last record was cut at byte %d of %d", size, cut-start, len(whole)-start)
			}
		}
	}
}

func TestTailThatReadsAsZerosFromAnyByte(t *testing.T) {
	const size = 700
	dir := writeLog(t, 5, size, 0)
	path := segmentPaths(t, dir)[0]
	whole := read(t, path)
	start := len(segmentOf(entries(1, 4, 1, size)))
	for from := start; from < len(whole); from++ {
		torn := append([]byte(nil), whole...)
		clear(torn[from:])
		write(t, path, torn)
		checkStarts(t, dir, startsAt(from, start), 4, size, 0)
		if t.Failed() {
			t.Fatalf("zeros from byte %d of %d of the last record", from-start, len(whole)-start)
		}
	}
}

func TestZeroTail(t *testing.T) {
	for _, zeros := range []int{1, 36, 37, 38, 511, 512, 513, 4096, 5000} {
		dir := writeLog(t, 5, 100, 0)
		path := segmentPaths(t, dir)[0]
		write(t, path, append(read(t, path), make([]byte, zeros)...))
		checkRepaired(t, dir, 5, 100, 0)
		if t.Failed() {
			t.Fatalf("%d zeros", zeros)
		}
	}
}

func TestTornFirstRecord(t *testing.T) {
	dir := writeLog(t, 1, 100, 0)
	path := segmentPaths(t, dir)[0]
	write(t, path, read(t, path)[:50])
	checkRepaired(t, dir, 0, 100, 0)
}

// A hole of a sector inside of the last record: the file got its length before
// its data.
func TestSectorThatNeverReachedTheDisk(t *testing.T) {
	dir := writeLog(t, 3, 3000, 0)
	path := segmentPaths(t, dir)[0]
	torn := read(t, path)
	at := (len(segmentOf(entries(1, 2, 1, 3000)))/sectorSize + 2) * sectorSize
	clear(torn[at : at+sectorSize])
	write(t, path, torn)
	checkRepaired(t, dir, 2, 3000, 0)
}

// bitsAt is all bits of a record's length and header, and one of each byte of
// its data.
func bitsAt(offset int) []int {
	if offset < 2+recordHeader {
		return []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	return []int{offset % 8}
}

func TestBitFlipInTheMiddleIsRefused(t *testing.T) {
	dir := writeLog(t, 6, 60, 0)
	path := segmentPaths(t, dir)[0]
	whole := read(t, path)
	start, end := len(segmentOf(entries(1, 2, 1, 60))), len(segmentOf(entries(1, 3, 1, 60)))
	for at := start; at < end; at++ {
		for _, bit := range bitsAt(at - start) {
			damaged := append([]byte(nil), whole...)
			damaged[at] ^= 1 << bit
			write(t, path, damaged)
			checkRefused(t, dir, path)
			if t.Failed() {
				t.Fatalf("flip of bit %d of byte %d of record 3", bit, at-start)
			}
		}
	}
}

// A flip in the last record is no torn tail either: the record was
// acknowledged.
func TestBitFlipInTheLastRecordIsRefused(t *testing.T) {
	const size = 201
	dir := writeLog(t, 3, size, 0)
	path := segmentPaths(t, dir)[0]
	whole := read(t, path)
	start := len(segmentOf(entries(1, 2, 1, size)))
	for at := start; at < len(whole); at++ {
		for _, bit := range bitsAt(at - start) {
			damaged := append([]byte(nil), whole...)
			damaged[at] ^= 1 << bit
			write(t, path, damaged)
			checkRefused(t, dir, path)
			if t.Failed() {
				t.Fatalf("flip of bit %d of byte %d of the last record", bit, at-start)
			}
		}
	}
}

func TestDamageAcrossSegmentsIsRefused(t *testing.T) {
	dir := writeLog(t, 60, 200, 2000)
	paths := segmentPaths(t, dir)
	if len(paths) < 5 {
		t.Fatalf("got %d segments, want some", len(paths))
	}
	for _, path := range paths[:len(paths)-1] {
		whole := read(t, path)
		for at := 0; at < len(whole); at += 97 {
			damaged := append([]byte(nil), whole...)
			damaged[at] ^= 0x10
			write(t, path, damaged)
			checkRefused(t, dir, path)
		}
		write(t, path, whole[:len(whole)-1])
		checkRefused(t, dir, path)
		write(t, path, append(append([]byte(nil), whole...), 0))
		checkRefused(t, dir, path)
		write(t, path, nil)
		checkRefused(t, dir, paths[slices.Index(paths, path)+1])
		write(t, path, whole)
	}
	checkRepaired(t, dir, 60, 200, 2000)
}

func TestMissingSegmentIsRefused(t *testing.T) {
	dir := writeLog(t, 60, 200, 2000)
	paths := segmentPaths(t, dir)
	for i := 1; i < len(paths)-1; i++ {
		whole := read(t, paths[i])
		if err := os.Remove(paths[i]); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, dir, paths[i+1])
		write(t, paths[i], whole)
	}
}

// copyLog copies a log directory to a fresh one.
func copyLog(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "wal")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// An interrupted truncation of the back leaves an END file and some of the
// segments that it replaces.
func TestInterruptedTruncationOfTheBack(t *testing.T) {
	whole := writeLog(t, 40, 200, 2000)
	paths := segmentPaths(t, whole)
	middle := filepath.Base(paths[2])
	first, _, _ := parseSegmentName(middle)
	last := first + 3 // the new end of the log
	for removed := 0; removed <= len(paths)-2; removed++ {
		dir := copyLog(t, whole)
		write(t, filepath.Join(dir, middle+endSuffix), segmentOf(entries(first, last, 1, 200)))
		write(t, filepath.Join(dir, middle+startSuffix+tempSuffix), []byte("half of a fi"))
		for _, path := range paths[2 : 2+removed] { // in the order of the engine
			if err := os.Remove(filepath.Join(dir, filepath.Base(path))); err != nil {
				t.Fatal(err)
			}
		}
		checkRepaired(t, dir, last, 200, 2000)
		if left, _ := filepath.Glob(filepath.Join(dir, "*.*")); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	}
}

func TestInterruptedTruncationOfTheFront(t *testing.T) {
	whole := writeLog(t, 40, 200, 2000)
	paths := segmentPaths(t, whole)
	begin, _, _ := parseSegmentName(filepath.Base(paths[2]))
	next, _, _ := parseSegmentName(filepath.Base(paths[3]))
	for _, first := range []uint64{begin, begin + 2} { // at a boundary and within
		for removed := 0; removed <= 3; removed++ {
			dir := copyLog(t, whole)
			write(t, filepath.Join(dir, segmentName(first)+startSuffix), segmentOf(entries(first, next-1, 1, 200)))
			for _, path := range paths[:removed] {
				if err := os.Remove(filepath.Join(dir, filepath.Base(path))); err != nil {
					t.Fatal(err)
				}
			}
			l := openLog(t, dir, LogOptions{SegmentSize: 2000})
			checkBounds(t, l, first, 40)
			for i := first; i <= 40; i++ {
				checkEntry(t, l, entry(i, 1, 200))
			}
			l.Close()
		}
	}
}

func TestTornTailInALeftover(t *testing.T) {
	dir := writeLog(t, 40, 200, 2000)
	middle := filepath.Base(segmentPaths(t, dir)[2])
	first, _, _ := parseSegmentName(middle)
	torn := segmentOf(entries(first, first+3, 1, 200))
	write(t, filepath.Join(dir, middle+endSuffix), torn[:len(torn)-1])
	checkRepaired(t, dir, first+2, 200, 2000)
}

func TestDamagedLeftoverIsRefusedBeforeAnythingIsRemoved(t *testing.T) {
	dir := writeLog(t, 40, 200, 2000)
	middle := filepath.Base(segmentPaths(t, dir)[2])
	first, _, _ := parseSegmentName(middle)
	damaged := segmentOf(entries(first, first+3, 1, 200))
	damaged[100] ^= 1
	path := filepath.Join(dir, middle+startSuffix)
	write(t, path, damaged)
	checkRefused(t, dir, path)
}

func TestStartAndEndAtOnceIsRefused(t *testing.T) {
	dir := writeLog(t, 40, 200, 2000)
	name := filepath.Base(segmentPaths(t, dir)[2])
	write(t, filepath.Join(dir, name+startSuffix), nil)
	write(t, filepath.Join(dir, name+endSuffix), nil)
	checkRefused(t, dir, name)
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := writeLog(t, 5, 100, 0)
	foreign := filepath.Join(dir, "lost+found")
	write(t, foreign, []byte("x"))
	checkRepaired(t, dir, 5, 100, 0)
	read(t, foreign)
}

func TestInterruptedReset(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state func(dir string) error
		first uint64 // 0: empty
	}{
		{"new one half built", func(dir string) error {
			return os.Mkdir(dir+newSuffix, 0o700)
		}, 1},
		{"new one built", func(dir string) error {
			return buildEmpty(osFiles{}, dir+newSuffix, segment{name: segmentName(50), first: 50})
		}, 1},
		{"old one moved away", func(dir string) error {
			err := buildEmpty(osFiles{}, dir+newSuffix, segment{name: segmentName(50), first: 50})
			return errors.Join(err, os.Rename(dir, dir+oldSuffix))
		}, 0},
		{"old one not yet removed", func(dir string) error {
			err := os.Rename(dir, dir+oldSuffix)
			return errors.Join(err, buildEmpty(osFiles{}, dir, segment{name: segmentName(50), first: 50}))
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeLog(t, 9, 100, 0)
			if err := tt.state(dir); err != nil {
				t.Fatal(err)
			}
			l := openLog(t, dir, LogOptions{})
			if tt.first == 0 {
				checkBounds(t, l, 0, 0)
				store(t, l, entries(50, 51, 2, 10))
				checkBounds(t, l, 50, 51)
			} else {
				checkBounds(t, l, tt.first, 9)
			}
			for _, suffix := range []string{newSuffix, oldSuffix} {
				if exists(dir + suffix) {
					t.Errorf("%s is left", suffix)
				}
			}
		})
	}
}

func TestLogThatWasMovedAwayIsRefused(t *testing.T) {
	dir := writeLog(t, 9, 100, 0)
	if err := os.Rename(dir, dir+oldSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir, LogOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

// Rot that comes after the scan is found when the entry is read.
func TestRotUnderARunningLog(t *testing.T) {
	dir := writeLog(t, 60, 200, 2000)
	var fatal []error
	l := openLog(t, dir, LogOptions{SegmentSize: 2000, Fatal: func(err error) { fatal = append(fatal, err) }})
	path := segmentPaths(t, dir)[1]
	first, _, _ := parseSegmentName(filepath.Base(path))
	damaged := read(t, path)
	damaged[150] ^= 1
	write(t, path, damaged)
	var e raft.Log
	for range 2 {
		if err := l.GetLog(first, &e); !errors.Is(err, ErrCorrupt) {
			t.Errorf("got entry %v, error %v; want ErrCorrupt", e.Index, err)
		}
	}
	if len(fatal) != 1 || !errors.Is(fatal[0], ErrCorrupt) {
		t.Errorf("got Fatal calls %v, want one with ErrCorrupt", fatal)
	}
	if err := l.StoreLogs(entries(61, 61, 1, 10)); err == nil {
		t.Error("a log that failed took an entry")
	}
}

func TestSegmentTableIsWhatIsOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := openLog(t, dir, LogOptions{SegmentSize: 1000})
	check := func(what string) {
		t.Helper()
		var names []string
		var sum int64
		for _, s := range l.engine.(*tidwall).segments {
			names = append(names, fmt.Sprintf("%s %d", s.name, s.size))
		}
		var want []string
		settle(t, l)
		for _, path := range segmentPaths(t, dir) {
			b := read(t, path)
			if tail := l.engine.(*tidwall).tail(); filepath.Base(path) == tail.name && len(bytes.Trim(b[tail.size:], "\x00")) == 0 {
				b = b[:tail.size]
			}
			sum += int64(len(b))
			want = append(want, fmt.Sprintf("%s %d", filepath.Base(path), len(b)))
		}
		if !slices.Equal(names, want) || l.Bytes() != sum {
			t.Fatalf("%s: got %q, %d bytes; on disk are %q, %d bytes", what, names, l.Bytes(), want, sum)
		}
	}
	check("empty")
	next := uint64(1)
	for _, size := range []int{10, 400, 913, 1000 - emptyRecord - 2, 999, 3000, 1, 5} {
		for _, count := range []uint64{1, 2, 7} {
			store(t, l, entries(next, next+count-1, 1, size))
			next += count
			check(fmt.Sprintf("%d entries of %d bytes", count, size))
		}
	}
	for next > 40 {
		from := next - 2
		if err := l.DeleteRange(from, next-1); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("truncation to %d", from-1))
		store(t, l, entries(from, from, 1, 300))
		check("append after truncation")
		next = from + 1
		if next%3 == 0 {
			l.Close()
			l = openLog(t, dir, LogOptions{SegmentSize: 1000})
			check("reopen")
		}
	}
}
