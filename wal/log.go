package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

var (
	_ raft.LogStore          = (*Log)(nil)
	_ raft.MonotonicLogStore = (*Log)(nil)
)

// Defaults of LogOptions, in bytes.
const (
	DefaultSegmentSize = 4 << 20
	DefaultRingBytes   = 8 << 20
	DefaultRetainBytes = 256 << 20
	DefaultRetainLimit = 4 << 30
)

// Needed says which entries must stay on disk although raft has deleted them.
type Needed struct {
	// Wanted is the first index that a member may ask for: it and all after it stay
	// up to LogOptions.RetainLimit. 0: all; Nothing: none.
	Wanted uint64
	// Pinned is the first index that stays whatever the size. 0: all; Nothing: none.
	Pinned uint64
}

// Nothing is no index at all.
const Nothing = ^uint64(0)

// maxEncodeKept is the size of the encoding buffer, in bytes, up to which it
// is kept from one StoreLogs to the next.
const maxEncodeKept = 4 << 20

// LogOptions is the configuration of a Log; the zero value is usable.
type LogOptions struct {
	// SegmentSize is the size in bytes at which a file is complete; the record
	// that reaches it is in it. Default DefaultSegmentSize.
	SegmentSize int
	// RingBytes bounds the memory for the newest entries, which GetLog serves
	// without reading the disk. Default DefaultRingBytes.
	RingBytes int
	// RetainBytes is how much of what DeleteRange takes off the front stays on
	// disk, at least, so that a follower that lags can be served from the log.
	// Default DefaultRetainBytes.
	RetainBytes int
	// RetainLimit is how much of it stays, in bytes, at most, as long as Needed
	// wants it. Default DefaultRetainLimit.
	RetainLimit int
	// Needed tells what others need of the log. It is asked when DeleteRange takes
	// something off the front, and must not call the Log. Default: nothing.
	Needed func() Needed
	// Fatal is called once, with the first error of a write, a sync, a
	// truncation or a read of the disk (ErrCorrupt among them). The log refuses
	// everything from then on, so the process must end. Fatal is called by the
	// goroutine that met the error, before its call returns, without a lock.
	Fatal func(error)
	// Observe is called with the duration of each fsync of StoreLogs.
	Observe func(fsync time.Duration)
	// Logger is told of repairs. Default: none.
	Logger *slog.Logger
	// Now is the clock for Observe and Busy. Default time.Now.
	Now func() time.Time

	files  files // tests
	engine func(dir string, segments []segment, last uint64, segmentSize int, f files) (engine, error)
}

func (o LogOptions) withDefaults() LogOptions {
	if o.SegmentSize <= 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.RingBytes <= 0 {
		o.RingBytes = DefaultRingBytes
	}
	if o.RetainBytes <= 0 {
		o.RetainBytes = DefaultRetainBytes
	}
	if o.RetainLimit <= 0 {
		o.RetainLimit = DefaultRetainLimit
	}
	if o.Needed == nil {
		o.Needed = func() Needed { return Needed{Wanted: Nothing, Pinned: Nothing} }
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Observe == nil {
		o.Observe = func(time.Duration) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the injected clock; it decides nothing
	}
	if o.files == nil {
		o.files = osFiles{}
	}
	if o.engine == nil {
		o.engine = openTidwall
	}
	return o
}

// Log is the raft log. It is safe for concurrent use, and readers of recent
// entries do not wait for a write.
//
// Its locks are taken in the order truncating, writing, reading.
type Log struct {
	dir     string
	options LogOptions
	opened  time.Time // the origin of the stopwatches
	bytes   atomic.Int64
	oldest  atomic.Uint64
	written atomic.Uint64
	raised  atomic.Bool // Fatal was called

	storing, deleting stopwatch // of StoreLogs and DeleteRange

	truncating sync.Mutex // one DeleteRange at a time, its removal of files included

	writing sync.Mutex // serialises the engine
	engine  engine
	failed  error // the first error; sticky
	encoded []byte

	// reading guards what readers see without the engine. It changes only
	// after what it says is durable.
	reading     sync.RWMutex
	ring        *ring
	first, last uint64 // 0, 0: empty. The engine may hold entries before first
}

// OpenLog opens the log in dir, which it creates if it is missing, after it
// verified every record: a record that a crash cut off at the very end is
// removed, any other damage is ErrCorrupt, another format is ErrFormat, and nothing
// is changed. The parent of dir must exist, and no other process may use dir (see
// OpenStable).
func OpenLog(dir string, o LogOptions) (*Log, error) {
	o = o.withDefaults()
	l := &Log{dir: dir, options: o, opened: o.Now(), ring: newRing(o.RingBytes)}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open raft log: %w", err)
	}
	return l, nil
}

func (l *Log) open() error {
	f := l.options.files
	if err := finishReset(f, l.dir); err != nil {
		return err
	}
	if err := makeDir(f, l.dir); err != nil {
		return err
	}
	layout, err := readLayout(l.dir)
	if err != nil {
		return err
	}
	if err := layout.checkFormat(); err != nil {
		return err
	}
	if err := markFormat(f, l.dir); err != nil {
		return err
	}
	if err := layout.settle(f); err != nil {
		return err
	}
	found, err := layout.scan(func(*raft.Log) error { return nil })
	if err != nil {
		return err
	}
	if err := layout.carryOut(f); err != nil {
		return err
	}
	if found.torn != nil {
		if err := l.repair(layout.segments[len(layout.segments)-1], *found.torn); err != nil {
			return err
		}
	}
	l.engine, err = l.options.engine(l.dir, layout.segments, found.last, l.options.SegmentSize, f)
	if err != nil {
		return err
	}
	if found.first > 0 && found.last >= found.first {
		l.first, l.last = found.first, found.last
	}
	l.measure()
	return nil
}

// measure notes what the engine has on disk, for those who must not wait for it. The
// caller holds writing.
func (l *Log) measure() {
	l.bytes.Store(l.engine.size())
	first, last := l.engine.bounds()
	if first > last {
		first = 0
	}
	l.oldest.Store(first)
}

// repair cuts off what is behind the last record.
func (l *Log) repair(tail segment, t torn) error {
	path := filepath.Join(l.dir, tail.name)
	if err := l.options.files.truncate(path, t.at); err != nil {
		return fmt.Errorf("cut torn tail: %w", err)
	}
	if t.blank {
		return nil
	}
	l.options.Logger.Warn("torn tail of raft log cut off", "path", path, "offset", t.at, "bytes", t.size)
	return nil
}

// IsMonotonic tells raft that the log has no gaps, so that it deletes all of
// it when a snapshot is installed.
func (l *Log) IsMonotonic() bool { return true }

// FirstIndex is the index of the oldest entry as raft has it, 0 if the log is empty.
// GetLog may still find older ones (Oldest).
func (l *Log) FirstIndex() (uint64, error) {
	l.reading.RLock()
	defer l.reading.RUnlock()
	return l.first, nil
}

// LastIndex is the index of the newest entry, 0 if the log is empty.
func (l *Log) LastIndex() (uint64, error) {
	l.reading.RLock()
	defer l.reading.RUnlock()
	return l.last, nil
}

// Oldest is the index of the oldest entry on disk, 0 if there is none. It is below
// FirstIndex as long as others may need what DeleteRange took off the front.
func (l *Log) Oldest() uint64 { return l.oldest.Load() }

// Bytes is what the log occupies on disk, in bytes.
func (l *Log) Bytes() int64 { return l.bytes.Load() }

// Written is how many bytes of entries were given to the disk since the log was
// opened.
func (l *Log) Written() uint64 { return l.written.Load() }

// Busy is how long the StoreLogs or DeleteRange now running has been running,
// the wait for its turn included, or the removal of some of its files; 0 if none is.
// A disk that hangs makes it grow.
func (l *Log) Busy() time.Duration {
	now := l.sinceOpened()
	return max(l.storing.read(now), l.deleting.read(now))
}

func (l *Log) sinceOpened() time.Duration { return l.options.Now().Sub(l.opened) }

// stopwatch tells other goroutines when a call began.
type stopwatch struct{ began atomic.Int64 } // plus 1; 0: no call runs

func (s *stopwatch) start(now time.Duration) { s.began.Store(int64(now) + 1) }
func (s *stopwatch) stop()                   { s.began.Store(0) }

// read is at least a nanosecond while a call runs.
func (s *stopwatch) read(now time.Duration) time.Duration {
	began := s.began.Load()
	if began == 0 {
		return 0
	}
	return max(now-time.Duration(began-1), 1)
}

// GetLog reads the entry at index into e, whose Data and Extensions must not
// be changed. It returns raft.ErrLogNotFound for an entry that is not there,
// and ErrCorrupt for one whose bytes are not those that were stored. Recent
// entries come from memory even after the log has failed.
func (l *Log) GetLog(index uint64, e *raft.Log) error {
	l.reading.RLock()
	found := l.ring.get(index, e)
	l.reading.RUnlock()
	if found {
		return nil
	}
	err := l.readEngine(index, e)
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		l.raise()
	}
	return err
}

func (l *Log) readEngine(index uint64, e *raft.Log) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return l.failed
	}
	first, last := l.engine.bounds()
	if index < first || index > last {
		return raft.ErrLogNotFound
	}
	record, err := l.engine.read(index)
	if err != nil {
		return l.fail(fmt.Errorf("read entry %d: %w", index, err))
	}
	if err := decodeRecord(record, e); err != nil {
		return l.fail(corrupt(l.dir, 0, "entry %d was read back: %v", index, err))
	}
	if e.Index != index {
		return l.fail(corrupt(l.dir, 0, "entry %d was read back: %v", index, errRecordOrder))
	}
	return nil
}

// StoreLog is StoreLogs for one entry.
func (l *Log) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

// StoreLogs appends entries, which are consecutive, and returns when they are
// durable. It keeps their Data and Extensions. If the first one leaves a gap
// after the newest entry, all entries before it are dropped: raft does so only
// when a snapshot covers them. After an error the entries may or may not be on
// disk, and the log refuses everything.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	l.storing.start(l.sinceOpened())
	err := l.store(entries)
	l.storing.stop()
	if err != nil {
		l.raise()
	}
	return err
}

func (l *Log) store(entries []*raft.Log) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := checkConsecutive(entries); err != nil {
		return err
	}
	if err := l.makeRoom(entries[0].Index); err != nil {
		return err
	}
	if err := l.write(entries); err != nil {
		return l.fail(err)
	}
	l.publish(entries)
	return nil
}

func checkConsecutive(entries []*raft.Log) error {
	for i, e := range entries {
		if e.Index == 0 || e.Index != entries[0].Index+uint64(i) {
			return fmt.Errorf("store entry %d as number %d of a batch that begins with entry %d", e.Index, i+1, entries[0].Index)
		}
	}
	return nil
}

// makeRoom makes index the next index of the engine. The caller holds writing.
func (l *Log) makeRoom(index uint64) error {
	first, last := l.engine.bounds()
	switch {
	case index == last+1:
		return nil
	case index <= last && first <= last:
		return fmt.Errorf("store entry %d: the log reaches entry %d already", index, last)
	}
	return l.reset(index)
}

func (l *Log) write(entries []*raft.Log) error {
	for i, e := range entries {
		l.encoded = appendRecord(l.encoded[:0], e, i)
		l.engine.stage(e.Index, l.encoded)
		l.written.Add(uint64(len(l.encoded)))
	}
	if cap(l.encoded) > maxEncodeKept {
		l.encoded = nil
	}
	if err := l.engine.flush(); err != nil {
		return err
	}
	began := l.options.Now()
	if err := l.engine.sync(); err != nil {
		return err
	}
	l.options.Observe(l.options.Now().Sub(began))
	return nil
}

// publish shows durable entries to readers. The caller holds writing.
func (l *Log) publish(entries []*raft.Log) {
	l.measure()
	l.reading.Lock()
	defer l.reading.Unlock()
	for _, e := range entries {
		l.ring.push(e)
	}
	if l.first == 0 {
		l.first = entries[0].Index
	}
	l.last = entries[len(entries)-1].Index
}

// fail makes err the answer to all later calls, if it is the first one. The
// caller holds writing, and calls raise when it no longer does.
func (l *Log) fail(err error) error {
	if l.failed == nil {
		l.failed = fmt.Errorf("raft log: %w", err)
	}
	return l.failed
}

// raise calls Fatal, once, if the log has failed.
func (l *Log) raise() {
	l.writing.Lock()
	err := l.failed
	l.writing.Unlock()
	if err == nil || errors.Is(err, ErrClosed) || !l.raised.CompareAndSwap(false, true) {
		return
	}
	l.options.Fatal(err)
}

// Close releases the files, after the calls that run now. All that StoreLogs
// returned for is durable already. Nothing is written once it returns, after a
// failure neither: somebody else may open the directory.
func (l *Log) Close() error {
	l.truncating.Lock()
	defer l.truncating.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if errors.Is(l.failed, ErrClosed) {
		return nil
	}
	if l.failed != nil { // the engine would sync again, and a sync is never retried
		l.engine.rest()
		return nil
	}
	l.failed = ErrClosed
	if err := l.engine.close(); err != nil {
		return fmt.Errorf("close raft log: %w", err)
	}
	return nil
}
