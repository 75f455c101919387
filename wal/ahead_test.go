package wal

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
)

// settle waits until no zeros are on their way.
func settle(t *testing.T, l *Log) {
	t.Helper()
	l.writing.Lock()
	defer l.writing.Unlock()
	if a := l.engine.(*tidwall).ahead; a != nil {
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// copyDir copies what a log has on disk, as a kill of its process would leave it.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "wal")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// killedLog is a log of entries 1 to last that was killed, so that zeros are
// behind its records, its only file, and where the records end.
func killedLog(t *testing.T, last uint64, size int) (dir, path string, end int) {
	t.Helper()
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{SegmentSize: 16 << 10})
	for i := range last {
		store(t, l, entries(i+1, i+1, 1, size))
	}
	settle(t, l)
	dir = copyDir(t, l.dir)
	path = segmentPaths(t, dir)[0]
	return dir, path, int(l.Bytes())
}

func TestZerosAheadOfRecords(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{SegmentSize: 3 << 20})
	path := filepath.Join(l.dir, segmentName(1))
	store(t, l, entries(1, 2, 1, 1000))
	settle(t, l)
	if b := read(t, path); int64(len(b)) != l.Bytes()+aheadChunk || len(bytes.Trim(b[l.Bytes():], "\x00")) > 0 {
		t.Errorf("the file has %d bytes, want %d of records and %d zeros", len(b), l.Bytes(), aheadChunk)
	}
	next := uint64(3)
	for ; l.Bytes() < aheadChunk; next++ {
		store(t, l, entries(next, next, 1, 10_000))
	}
	settle(t, l)
	if info, err := os.Stat(path); err != nil || info.Size() < l.Bytes()+aheadLow {
		t.Errorf("the file has %v bytes, want %d and at least %d zeros: %v", info.Size(), l.Bytes(), aheadLow, err)
	}
	for ; len(l.engine.(*tidwall).segments) == 1; next++ {
		store(t, l, entries(next, next, 1, 10_000))
	}
	if info, err := os.Stat(path); err != nil || info.Size() != l.engine.(*tidwall).segments[0].size {
		t.Errorf("the complete file has %v bytes, want %d: %v", info.Size(), l.engine.(*tidwall).segments[0].size, err)
	}
	store(t, l, entries(next, next, 1, 10_000))
	settle(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(l.dir, l.engine.(*tidwall).tail().name)
	if info, err := os.Stat(path); err != nil || info.Size() != l.engine.(*tidwall).tail().size {
		t.Errorf("after Close the file has %v bytes, want %d: %v", info.Size(), l.engine.(*tidwall).tail().size, err)
	}
}

// Records catch up with zeros that are on their way, segments begin, the back is
// truncated: whenever the process is killed, the next one finds all, and has
// nothing to say about it.
func TestKilledWithZerosAhead(t *testing.T) {
	var said bytes.Buffer
	options := LogOptions{SegmentSize: 1 << 20, RingBytes: 1, Logger: slog.New(slog.NewTextHandler(&said, nil))}
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), options)
	var all []*raft.Log
	for i, size := range []int{10, 200_000, 5, 300_000, 450_000, 400_000, 20, 90_000, 700_000, 1_300_000, 7} {
		last := uint64(len(all))
		if i == 7 { // entries of a leader that is none any more
			last -= 3
			if err := l.DeleteRange(last+1, last+3); err != nil {
				t.Fatal(err)
			}
			all = all[:last]
		}
		batch := entries(last+1, last+1+uint64(i%3), 1, size)
		all = append(all, batch...)
		store(t, l, batch)
		next, err := OpenLog(copyDir(t, l.dir), options)
		if err != nil {
			t.Fatalf("after a batch of %d bytes: %v", size, err)
		}
		checkBounds(t, next, 1, uint64(len(all)))
		for _, e := range all {
			checkEntry(t, next, e)
		}
		store(t, next, entries(uint64(len(all))+1, uint64(len(all))+1, 2, 50))
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
	if said.Len() > 0 {
		t.Errorf("the log says %s", said.String())
	}
}

func TestTornRecordBeforeZeros(t *testing.T) {
	const size = 700
	dir, path, end := killedLog(t, 5, size)
	whole := read(t, path)
	start := len(segmentOf(entries(1, 4, 1, size)))
	for from := start; from < end; from++ {
		torn := bytes.Clone(whole)
		clear(torn[from:])
		write(t, path, torn)
		checkStarts(t, dir, startsAt(from, start), 4, size, 0)
		if t.Failed() {
			t.Fatalf("zeros from byte %d of %d of the last record", from-start, end-start)
		}
	}
}

// The zeros behind an acknowledged record are no reason to take a flip in it for a
// torn tail.
func TestBitFlipBeforeZerosIsRefused(t *testing.T) {
	for _, size := range []int{201, 0} { // an empty entry has a header that ends in zeros
		dir, path, end := killedLog(t, 3, size)
		whole := read(t, path)
		start := len(segmentOf(entries(1, 2, 1, size)))
		for at := start; at < end; at++ {
			for _, bit := range bitsAt(at - start) {
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << bit
				write(t, path, damaged)
				checkRefused(t, dir, path)
				if t.Failed() {
					t.Fatalf("flip of bit %d of byte %d of the last record of size %d", bit, at-start, size)
				}
			}
		}
	}
}

// The disk writes the sectors of a batch in any order: all of it is cut off if one
// is missing, since nothing of it was acknowledged. A hole before a later batch is
// damage.
func TestTornBatch(t *testing.T) {
	const size = 3000
	before := segmentOf(entries(1, 2, 1, size))
	batch, single := segmentOfBatch(entries(3, 6, 1, size)), segmentOf(entries(3, 6, 1, size))
	dir := filepath.Join(t.TempDir(), "wal")
	if err := errors.Join(os.Mkdir(dir, 0o700), markFormat(osFiles{}, dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, segmentName(1))
	for at := (len(before)/sectorSize + 1) * sectorSize; at+sectorSize < len(before)+len(batch); at += sectorSize {
		torn := append(bytes.Clone(before), append(bytes.Clone(batch), make([]byte, 5000)...)...)
		clear(torn[at : at+sectorSize])
		write(t, path, torn)
		record := (at - len(before)) / (len(batch) / 4)
		checkStarts(t, dir, 1, 2+uint64(record), size, 0)
		if behind := (at + sectorSize - len(before)) / (len(batch) / 4); record == behind && record < 3 {
			damaged := append(bytes.Clone(before), append(single, make([]byte, 5000)...)...)
			clear(damaged[at : at+sectorSize])
			write(t, path, damaged)
			checkRefused(t, dir, path)
		}
		if t.Failed() {
			t.Fatalf("hole at byte %d of the batch", at-len(before))
		}
	}
}

// Records that would reach zeros on their way wait for them, or the zeros would come
// later and be in their place.
func TestRecordsWaitForZerosOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{})
		store(t, l, entries(1, 1, 1, 100))
		settle(t, l)
		a, zerosWritten := l.engine.(*tidwall).ahead, make(chan struct{})
		size := int64(len(segmentOf(entries(2, 2, 1, 100))))
		a.done, a.next = zerosWritten, l.Bytes()+2*size-1
		store(t, l, entries(2, 2, 1, 100)) // before the zeros
		var stored atomic.Bool
		go func() {
			store(t, l, entries(3, 3, 1, 100)) // a byte too long
			stored.Store(true)
		}()
		synctest.Wait()
		if stored.Load() {
			t.Error("the entry did not wait")
		}
		close(zerosWritten)
		synctest.Wait()
		if !stored.Load() {
			t.Error("the entry still waits")
		}
	})
}

// A log that has failed writes no zeros any more once it is closed: another one may be
// open by then.
func TestCloseOfAFailedLogWaitsForZeros(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{})
		store(t, l, entries(1, 1, 1, 100))
		settle(t, l)
		zerosWritten := make(chan struct{})
		l.engine.(*tidwall).ahead.done = zerosWritten
		l.failed = errDisk
		closed := make(chan error, 1)
		go func() { closed <- l.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("the log is closed, and zeros are on their way")
		}
		close(zerosWritten)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func TestNoRoomForZeros(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{SegmentSize: 4000})
	store(t, l, entries(1, 1, 1, 100))
	settle(t, l)
	l.engine.(*tidwall).ahead.full = true
	for i := uint64(2); i < 100; i++ {
		store(t, l, entries(i, i, 1, 100))
	}
	next := openLog(t, copyDir(t, l.dir), LogOptions{SegmentSize: 4000})
	checkBounds(t, next, 1, 99)
}

// A process that has no descriptor left for the zeros goes on without.
func TestNoDescriptorForZeros(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{})
	store(t, l, entries(1, 1, 1, 100))
	settle(t, l)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	none := old
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	full, err := writeZeros(filepath.Join(l.dir, segmentName(1)), aheadChunk, 2*aheadChunk)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !full || err != nil {
		t.Errorf("got full %v and %v, want true and no error", full, err)
	}
	store(t, l, entries(2, 2, 1, 100))
}

func TestFailedSyncOfZerosStopsTheLog(t *testing.T) {
	var fatal error
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{Fatal: func(err error) { fatal = err }})
	store(t, l, entries(1, 1, 1, 100))
	settle(t, l)
	broken, done := errors.New("medium error"), make(chan struct{})
	close(done)
	l.engine.(*tidwall).ahead.err, l.engine.(*tidwall).ahead.done = broken, done
	if err := l.StoreLogs(entries(2, 2, 1, 100)); !errors.Is(err, broken) || !errors.Is(fatal, broken) {
		t.Errorf("got %v, and Fatal %v, want %v", err, fatal, broken)
	}
}
