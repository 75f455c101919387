package wal

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	twal "github.com/tidwall/wal"
)

const (
	// maxBatchKept is the size of batch, in bytes, whose buffer is kept for
	// the next one.
	maxBatchKept = 4 << 20

	// reopenAfter is the number of segments that are forgotten before tidwall
	// is opened anew: it keeps a few hundred bytes for each it has ever seen.
	reopenAfter = 1024
)

// tidwall is the engine on tidwall/wal. It knows the segments by repeating the
// arithmetic by which tidwall begins a new one, for tidwall tells nobody and
// does not sync the directory.
//
// Segments are taken off the front by removing their files, without telling
// tidwall: its own TruncateFront writes the segment that stays anew, which
// held up StoreLogs for 8 ms. That is safe because nothing below bounds is
// ever read, and truncateBack touches only segments from its index on.
type tidwall struct {
	dir         string
	segmentSize int
	files       files

	log       *twal.Log
	batch     twal.Batch
	staged    []int // sizes of the records in batch
	stagedSum int

	segments  []segment // ascending; the last one is written
	last      uint64
	bytes     int64
	ahead     *ahead // of the segment that is written, once it was synced; else of an older one, or nil
	rolled    bool   // a segment began since the last sync
	forgotten int    // segments, since tidwall was opened
}

// openTidwall opens the engine on a directory that has been scanned and
// repaired: segments are what the scan found, last is the newest index.
func openTidwall(dir string, segments []segment, last uint64, segmentSize int, f files) (engine, error) {
	t := &tidwall{dir: dir, segmentSize: segmentSize, files: f, segments: segments, last: last}
	if len(segments) == 0 {
		t.segments = []segment{{name: segmentName(1), first: 1}}
	}
	for _, s := range t.segments {
		t.bytes += s.size
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	return t, f.syncDir(dir)
}

func (t *tidwall) open() error {
	log, err := twal.Open(t.dir, &twal.Options{
		NoSync:           true, // sync does it
		SegmentSize:      t.segmentSize,
		SegmentCacheSize: 2,
		AllowEmpty:       true,
		DirPerms:         dirPermissions,
		FilePerms:        filePermissions,
	})
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	if last != t.last {
		return fmt.Errorf("engine ends at entry %d, the scan at %d", last, t.last)
	}
	t.log, t.forgotten = log, 0
	return nil
}

func segmentName(first uint64) string { return fmt.Sprintf("%020d", first) }

func (t *tidwall) tail() *segment { return &t.segments[len(t.segments)-1] }

func (t *tidwall) bounds() (first, last uint64) { return t.segments[0].first, t.last }

func (t *tidwall) size() int64 { return t.bytes }

func (t *tidwall) stage(index uint64, record []byte) {
	t.batch.Write(index, record)
	t.staged = append(t.staged, len(record))
	t.stagedSum += int(frameSize(len(record)))
}

func (t *tidwall) flush() error {
	if t.ahead != nil {
		if err := t.ahead.makeWay(t.tail().size + int64(t.stagedSum)); err != nil {
			return err
		}
	}
	if err := t.log.WriteBatch(&t.batch); err != nil {
		return fmt.Errorf("write %d records after entry %d: %w", len(t.staged), t.last, err)
	}
	if t.tail().size > int64(t.segmentSize) {
		t.roll()
	}
	for _, size := range t.staged {
		t.last++
		t.grow(frameSize(size))
		if t.tail().size >= int64(t.segmentSize) {
			t.roll()
		}
	}
	if t.stagedSum > maxBatchKept {
		t.batch = twal.Batch{}
	}
	t.staged, t.stagedSum = t.staged[:0], 0
	return nil
}

// frameSize is the size of a record of n bytes with its length before it.
func frameSize(n int) int64 {
	var length [binary.MaxVarintLen64]byte
	return int64(binary.PutUvarint(length[:], uint64(n)) + n)
}

func (t *tidwall) grow(n int64) {
	t.tail().size += n
	t.bytes += n
}

func (t *tidwall) roll() {
	t.segments = append(t.segments, segment{name: segmentName(t.last + 1), first: t.last + 1})
	t.rolled = true
}

func (t *tidwall) sync() error {
	if t.rolled && t.ahead != nil {
		if err := t.ahead.leave(); err != nil {
			return err
		}
		t.ahead = nil
	}
	if t.ahead == nil {
		var err error
		if t.ahead, err = openAhead(filepath.Join(t.dir, t.tail().name), int64(t.segmentSize)); err != nil {
			return err
		}
	}
	if err := t.ahead.sync(t.tail().size); err != nil {
		return fmt.Errorf("sync segment %s: %w", t.tail().name, err)
	}
	if !t.rolled {
		return nil
	}
	t.rolled = false
	if err := t.files.syncDir(t.dir); err != nil {
		return fmt.Errorf("sync log directory: %w", err)
	}
	return nil
}

// endAhead leaves of the segment that is written its records.
func (t *tidwall) endAhead() error {
	if t.ahead == nil {
		return nil
	}
	a := t.ahead
	t.ahead = nil
	if err := a.close(t.tail().size); err != nil {
		return fmt.Errorf("cut segment %s to its records: %w", t.tail().name, err)
	}
	return nil
}

func (t *tidwall) read(index uint64) ([]byte, error) { return t.log.Read(index) }

func (t *tidwall) forget(limit, target uint64, retain int64) ([]segment, error) {
	whole := t.wholeSegments(target)
	var behind int64
	for _, s := range t.segments[:whole] {
		behind += s.size
	}
	n, most := 0, min(whole, t.wholeSegments(limit))
	for n < most && behind-t.segments[n].size >= retain {
		behind -= t.segments[n].size
		t.bytes -= t.segments[n].size
		n++
	}
	if n == 0 {
		return nil, nil
	}
	forgotten := t.segments[:n]
	t.segments = append([]segment(nil), t.segments[n:]...)
	if t.forgotten += n; t.forgotten >= reopenAfter {
		return forgotten, t.reopen()
	}
	return forgotten, nil
}

// wholeSegments is the number of segments with no entry above index, but for the
// one that is written.
func (t *tidwall) wholeSegments(index uint64) int {
	return sort.Search(len(t.segments)-1, func(i int) bool { return t.segments[i+1].first-1 > index })
}

func (t *tidwall) reopen() error {
	if err := t.close(); err != nil {
		return fmt.Errorf("close engine to reopen it: %w", err)
	}
	if err := t.open(); err != nil {
		return fmt.Errorf("reopen engine: %w", err)
	}
	return nil
}

// remove deletes the oldest file first, so that a crash leaves no hole. It
// reads no field that changes.
func (t *tidwall) remove(forgotten []segment) error {
	for _, s := range forgotten {
		if err := t.files.removeAll(filepath.Join(t.dir, s.name)); err != nil {
			return fmt.Errorf("remove segment %s: %w", s.name, err)
		}
	}
	if err := t.files.syncDir(t.dir); err != nil {
		return fmt.Errorf("sync log directory: %w", err)
	}
	return nil
}

func (t *tidwall) truncateBack(last uint64) error {
	if err := t.endAhead(); err != nil {
		return err
	}
	if err := t.log.TruncateBack(last); err != nil {
		return fmt.Errorf("truncate after entry %d: %w", last, err)
	}
	if last == t.last {
		return nil
	}
	t.last = last
	for len(t.segments) > 1 && t.tail().first > last {
		t.bytes -= t.tail().size
		t.segments = t.segments[:len(t.segments)-1]
	}
	info, err := os.Stat(filepath.Join(t.dir, t.tail().name))
	if err != nil {
		return err
	}
	t.grow(info.Size() - t.tail().size)
	if err := t.files.syncDir(t.dir); err != nil {
		return fmt.Errorf("sync log directory: %w", err)
	}
	return nil
}

func (t *tidwall) close() error {
	if err := t.endAhead(); err != nil {
		return err
	}
	return t.log.Close()
}

func (t *tidwall) rest() {
	if t.ahead != nil {
		_ = t.ahead.wait() // of a log that has failed already
	}
}
