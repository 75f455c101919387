package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// SegmentOptions is the configuration of Segments; the zero value is usable.
type SegmentOptions struct {
	// Logger is told what is removed at open, and what could not be removed or
	// merged. Default: none.
	Logger *slog.Logger
	// Now is the clock that measures how long the disk takes. Default time.Now.
	Now func() time.Time
	// Pause is called between two writes of at most 1 MiB, with the time that the
	// disk should be left to others. Default time.Sleep.
	Pause func(time.Duration)

	files  files // tests
	limits segmentLimits
}

// segmentLimits are about the size of segments; other than the defaults in tests
// only.
type segmentLimits struct {
	bytes  int64  // of frames, from which on a segment is full
	bodies uint64 // the same
	small  int64  // bytes of live bodies, below which a segment is merged with its neighbours
	merge  int64  // bytes of live bodies that one snapshot merges at most
}

func (o SegmentOptions) withDefaults() SegmentOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the injected clock; it decides nothing
	}
	if o.Pause == nil {
		o.Pause = time.Sleep
	}
	if o.files == nil {
		o.files = osFiles{}
	}
	if o.limits == (segmentLimits{}) {
		o.limits = segmentLimits{bytes: 64 << 20, bodies: 1 << 20, small: 8 << 20, merge: 64 << 20}
	}
	return o
}

// Segments is the body store on disk. What is appended is in memory, in chunks
// of consecutive numbers, until a snapshot has written what is live of it to
// segment files; from then on it is read from there.
//
// A segment holds bodies of one interval of numbers; intervals never overlap.
// Snapshots are the only writers. A file is removed when neither the bodies as
// they are now, nor a kept snapshot, nor an open reader of one refers to it;
// whoever pinned a body of it before can still read it.
//
// Safe for concurrent use.
type Segments struct {
	dir     string
	options SegmentOptions
	files   fileCache
	index   pageCache
	stopped atomic.Bool

	writing sync.Mutex // serialises WriteLive; taken before mu

	mu       sync.RWMutex
	open     *openChunk
	closed   []*openChunk   // ascending; above all segments
	list     []*bodySegment // ascending
	version  uint64         // of list and closed, but for what CloseChunk adds
	unsaved  int64          // bytes in closed
	known    map[uint64]*bodySegment
	serial   uint64 // the last one used in a name
	repaired repairs
	// replaced are those of the generation before, held until the next snapshot:
	// apply waits for the change of generations, and must not wait for a disk.
	replaced []*bodySegment
}

// OpenSegments opens the store in dir, which it creates if it is missing; the
// parent of dir must exist. It is empty until a snapshot is restored:
// OpenSnapshots, given the store, opens the segments that snapshots refer to
// and removes the others.
func OpenSegments(dir string, o SegmentOptions) (*Segments, error) {
	s := &Segments{dir: dir, options: o.withDefaults(), open: &openChunk{}, known: map[uint64]*bodySegment{}}
	if err := makeDir(s.options.files, dir); err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	names, err := segmentFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	for serial := range names {
		s.serial = max(s.serial, serial)
	}
	return s, nil
}

// segmentFiles are the names of the segment files in dir, by serial.
func segmentFiles(dir string) (map[uint64]string, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[uint64]string{}
	for _, entry := range found {
		if serial, ok := parseSegmentFileName(entry.Name()); ok {
			names[serial] = entry.Name()
		}
	}
	return names, nil
}

// Append keeps record, which must never change, under number, which must be
// one more than that of the call before.
func (s *Segments) Append(number uint64, record []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.add(number, record)
}

// Pin returns a function that gives the body of that number, at any time and
// from any goroutine, whatever happens to the body meanwhile. It reads the disk,
// if the body is not in memory; the error is ErrDamagedBody if what was read is
// not what was written. Its first call lets go of the body: later ones fail if
// the body was removed. False: there is no such body. True may be wrong for one
// that died before the last snapshot; the function then has an error. Pin itself
// reads nothing.
func (s *Segments) Pin(number uint64) (func() ([]byte, error), bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	chunk, in := s.find(number)
	if chunk != nil {
		record, found := chunk.find(number)
		return func() ([]byte, error) { return record, nil }, found
	}
	if body, ok := s.repaired.bodies[number]; ok && in != nil {
		return func() ([]byte, error) { return body, nil }, true
	}
	if in != nil {
		return in.pin(number), true
	}
	return nil, false
}

// find returns the chunk or the segment whose interval has the number, or
// neither. The caller holds mu.
func (s *Segments) find(number uint64) (*openChunk, *bodySegment) {
	if first, limit := s.open.span(); number >= first && number < limit {
		return s.open, nil
	}
	if len(s.closed) > 0 && number >= s.closed[0].first {
		for _, c := range s.closed { // one or two
			if first, limit := c.span(); number >= first && number < limit {
				return c, nil
			}
		}
	}
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].Limit > number })
	if i < len(s.list) && number >= s.list[i].First {
		return nil, s.list[i]
	}
	return nil, nil
}

// CloseChunk marks the moment of a snapshot: the next WriteLive must be given
// all numbers below the next one that are live now. At most one snapshot may
// be between its CloseChunk and the end of its sink, as it is with raft; one
// that is given up needs no WriteLive.
func (s *Segments) CloseChunk() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.open
	if len(c.records) == 0 {
		return
	}
	_, limit := c.span()
	s.closed = append(s.closed, c)
	s.unsaved += c.bytes
	s.open = &openChunk{first: limit, fixed: true}
}

// Pending is the size of the bodies in memory, which no snapshot has yet,
// whether they are still live or not.
func (s *Segments) Pending() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.open.bytes + s.unsaved
}

// SegmentStats counts what is on disk of the bodies as they are now.
type SegmentStats struct {
	Segments int
	Bodies   uint64 // dead ones that are still there included
	Bytes    int64  // of the files
}

// Stats describes the segments as of now.
func (s *Segments) Stats() SegmentStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := SegmentStats{Segments: len(s.list)}
	for _, g := range s.list {
		t.Bodies += g.Count
		t.Bytes += g.Size
	}
	return t
}

// Stop makes a snapshot that is being written give up, so that the node can
// end; reading goes on.
func (s *Segments) Stop() { s.stopped.Store(true) }

// Close stops, and closes all files; nothing can be read from disk then.
func (s *Segments) Close() error {
	s.Stop()
	return s.files.close()
}

// nextSerial is a serial that no file has had.
func (s *Segments) nextSerial() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}

// register makes a segment known, held once.
func (s *Segments) register(made *bodySegment) *bodySegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	made.files, made.index = &s.files, &s.index
	made.refs = 1
	s.known[made.Serial] = made
	return made
}

// adopt opens the segments that a manifest names, and holds each once more:
// ErrCorrupt if one is missing or damaged.
func (s *Segments) adopt(facts []segmentFacts) ([]*bodySegment, error) {
	adopted := make([]*bodySegment, 0, len(facts))
	for _, f := range facts {
		s.mu.Lock()
		known := s.known[f.Serial]
		if known != nil {
			known.refs++
		}
		s.mu.Unlock()
		if known == nil {
			opened, err := openSegment(s.dir, f)
			if err != nil {
				s.forget(adopted)
				return nil, err
			}
			known = s.register(opened)
		}
		adopted = append(adopted, known)
	}
	return adopted, nil
}

// forget lets go of segments whose files stay.
func (s *Segments) forget(held []*bodySegment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range held {
		if g.refs--; g.refs == 0 {
			delete(s.known, g.Serial)
		}
	}
}

// hold keeps the files of segments that are held already until release.
func (s *Segments) hold(held []*bodySegment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdLocked(held)
}

func (s *Segments) holdLocked(held []*bodySegment) {
	for _, g := range held {
		g.refs++
	}
}

// release lets go of segments, and removes the files of those that nobody
// holds any more.
func (s *Segments) release(held []*bodySegment) {
	var unused []*bodySegment
	s.mu.Lock()
	for _, g := range held {
		if g.refs--; g.refs == 0 {
			delete(s.known, g.Serial)
			unused = append(unused, g)
		}
	}
	s.mu.Unlock()
	for _, g := range unused {
		err := s.files.detach(g)
		if err == nil {
			err = s.pace(func() error { return s.options.files.removeAll(g.path) })
		}
		if err != nil && !errors.Is(err, ErrClosed) {
			s.options.Logger.Warn("segment not removed", "err", err) // the next start does it
		}
	}
}

// removeOrphans removes the files that no snapshot refers to: they are of one
// that did not become durable, or of an older one.
func (s *Segments) removeOrphans() error {
	names, err := segmentFiles(s.dir)
	if err != nil {
		return err
	}
	s.mu.RLock()
	maps.DeleteFunc(names, func(serial uint64, _ string) bool { return s.known[serial] != nil })
	s.mu.RUnlock()
	for _, name := range names {
		if err := s.options.files.removeAll(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("remove segment: %w", err)
		}
		s.options.Logger.Info("segment without snapshot removed", "segment", name)
	}
	return nil
}

// The pause after a write is as long as the write, within these bounds: the log
// has the disk for half of the time.
const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// pace calls write, which writes at most pieceSize bytes and syncs them, and
// leaves the disk to others for a while.
func (s *Segments) pace(write func() error) error {
	if s.stopped.Load() {
		return ErrClosed
	}
	began := s.options.Now()
	if err := write(); err != nil {
		return err
	}
	s.options.Pause(min(max(s.options.Now().Sub(began), minPause), maxPause))
	return nil
}
