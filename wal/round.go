package wal

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
)

// round is what one snapshot does to the body store: it writes the live bodies
// of the closed chunks, and of the segments that it merges, as new segments.
// Nothing that is read changes before commit. Either commit or abandon is called
// once, and is the end of it.
type round struct {
	store   *Segments
	version uint64
	chunks  []*openChunk
	sources []*bodySegment // as they were
	next    []*bodySegment // as they will be
	made    []*bodySegment // the new ones among them
	held    []*bodySegment // by the round
	budget  int64          // bytes that may still be merged
	// repaired are the bodies that replace those on disk: their segments are
	// written anew.
	repaired map[uint64][]byte
	buffer   []byte
}

// WriteLive writes the live bodies, given as ranges of numbers (first, count)
// in ascending order, all of which lie below the last CloseChunk.
//
// If w is the sink of a store of snapshots that was opened with these segments,
// bodies go to segment files that belong to the snapshot: once its sink is
// closed they are read from there, and dead bodies are freed. If that fails,
// nothing has changed.
//
// To any other writer the live bodies are written as a stream, and nothing is
// freed.
func (s *Segments) WriteLive(w io.Writer, live iter.Seq2[uint64, uint64]) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	cursor, stop := newLiveCursor(live)
	defer stop()
	r := s.begin()
	k, own := w.(*sink)
	if !own || k.store.options.Segments != s {
		defer r.abandon()
		return r.stream(w, cursor)
	}
	if err := r.write(cursor); err != nil {
		r.abandon()
		return err
	}
	return k.attach(r)
}

func (s *Segments) begin() *round {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &round{
		store: s, version: s.version, budget: s.options.limits.merge,
		chunks: slices.Clone(s.closed), sources: slices.Clone(s.list), held: slices.Clone(s.list),
		repaired: maps.Clone(s.repaired.bodies),
	}
	s.holdLocked(r.held)
	r.held, s.replaced = append(r.held, s.replaced...), nil
	return r
}

// commit makes the round's segments those that are read, unless the bodies were
// replaced meanwhile. The snapshot that names them is durable.
func (r *round) commit() {
	s := r.store
	var old []*bodySegment
	s.mu.Lock()
	if s.version == r.version {
		old, s.list = s.list, r.next
		s.holdLocked(s.list)
		s.closed = slices.Clone(s.closed[len(r.chunks):])
		for _, c := range r.chunks {
			s.unsaved -= c.bytes
		}
		s.version++
		s.repaired.drop(r)
	}
	s.mu.Unlock()
	s.release(old)
	s.release(r.held)
}

// abandon removes what was written.
func (r *round) abandon() { r.store.release(r.held) }

// A segment is sparse if fewer than one in sparseSegment of its bodies is live.
const sparseSegment = 4

// span is what is live in a segment.
type span struct {
	segment  *bodySegment
	repaired bool
	ranges   [][2]uint64 // first and count
	count    uint64
	bytes    int64 // about
}

// sparse: few bodies of the segment are live.
func (p *span) sparse() bool { return p.count*sparseSegment < p.segment.Count }

// write writes the segments of the snapshot.
func (r *round) write(live *liveCursor) error {
	var run []span // neighbours to be merged
	for _, source := range r.sources {
		p, err := gather(source, live)
		if err != nil {
			return err
		}
		p.repaired = r.isRepaired(source)
		switch {
		case p.count == 0: // nothing is left of it
		case r.merges(&p):
			r.budget -= p.bytes
			run = append(run, p)
		default:
			if err := r.endRun(run); err != nil {
				return err
			}
			run = nil
			r.next = append(r.next, source)
		}
	}
	if err := r.writeChunks(run, live); err != nil || len(r.made) == 0 {
		return err
	}
	return r.store.options.files.syncDir(r.store.dir)
}

func (r *round) merges(p *span) bool {
	worth := p.bytes < r.store.options.limits.small || p.sparse()
	return (worth && p.bytes <= r.budget || p.repaired) && !p.segment.rotten.Load()
}

// gather takes the numbers within a segment from live.
func gather(source *bodySegment, live *liveCursor) (span, error) {
	p := span{segment: source}
	for {
		first, count, ok := live.below(source.Limit)
		if !ok {
			break
		}
		if first < source.First {
			return p, fmt.Errorf("write body %d: %w", first, errNotStored)
		}
		p.ranges = append(p.ranges, [2]uint64{first, count})
		p.count += count
	}
	if live.err != nil {
		return p, live.err
	}
	if p.count > source.Count {
		return p, fmt.Errorf("write bodies %d to %d: %w", source.First, source.Limit-1, errNotStored)
	}
	p.bytes = int64(float64(source.data()) * float64(p.count) / float64(source.Count))
	return p, nil
}

// endRun merges neighbours, if that makes fewer or smaller files of them.
func (r *round) endRun(run []span) error {
	if len(run) == 1 && !run[0].sparse() && !run[0].repaired {
		r.keep(run)
		return nil
	}
	out, err := r.merge(run)
	if err != nil {
		return err
	}
	return r.take(out)
}

func (r *round) keep(run []span) {
	for _, p := range run {
		r.next = append(r.next, p.segment)
	}
}

// take adds finished segments.
func (r *round) take(out *segmentRoll) error {
	made, err := out.end()
	if err != nil {
		out.drop()
		return err
	}
	r.made = append(r.made, made...)
	r.next = append(r.next, made...)
	r.held = append(r.held, made...)
	return nil
}

// merge copies the live bodies of neighbours into new segments. If one of them
// has a damaged index, or a body that the disk cannot read, all of them stay as they
// are.
func (r *round) merge(run []span) (*segmentRoll, error) {
	out := &segmentRoll{store: r.store}
	for _, p := range run {
		err := r.eachFrame(p, out.addFrame)
		if err == nil {
			continue
		}
		out.drop()
		if !errors.Is(err, ErrCorrupt) {
			return nil, err
		}
		p.segment.rotten.Store(true)
		r.store.options.Logger.Error("segment cannot be merged", "err", err)
		r.keep(run)
		return &segmentRoll{store: r.store}, nil
	}
	return out, nil
}

// eachFrame calls visit with the frames of p, unverified, in memory that is used
// again.
func (r *round) eachFrame(p span, visit func(number uint64, frame []byte) error) error {
	for _, live := range p.ranges {
		for number := live[0]; number < live[0]+live[1]; number++ {
			if err := r.readFrame(p.segment, number); err != nil {
				return fmt.Errorf("write body %d: %w", number, err)
			}
			if err := visit(number, r.buffer); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFrame reads the frame of a body, or makes that of a repaired one, into buffer.
func (r *round) readFrame(s *bodySegment, number uint64) error {
	if body, ok := r.repaired[number]; ok {
		r.buffer = appendFrame(r.buffer[:0], number, body)
		return nil
	}
	at, err := s.locate(number)
	if err == nil {
		r.buffer, err = s.frame(at, r.buffer)
	}
	return err
}

// writeChunks writes what is live in the closed chunks, together with the run
// of segments before it.
func (r *round) writeChunks(run []span, live *liveCursor) error {
	if _, more := live.peek(); !more {
		if live.err != nil {
			return live.err
		}
		return r.endRun(run)
	}
	out, err := r.merge(run)
	if err != nil {
		return err
	}
	for _, c := range r.chunks {
		if err := eachLive(c, live, out.add); err != nil {
			out.drop()
			return err
		}
	}
	if err := live.end(); err != nil {
		out.drop()
		return err
	}
	return r.take(out)
}

// stream writes the live bodies to w.
func (r *round) stream(w io.Writer, live *liveCursor) error {
	out := newStreamWriter(w)
	for _, source := range r.sources {
		p, err := gather(source, live)
		if err != nil {
			return err
		}
		err = r.eachFrame(p, func(number uint64, frame []byte) error {
			if err := verifyFrame(frame, number); err != nil {
				return fmt.Errorf("write body %d: %w: %w", number, ErrDamagedBody, err)
			}
			return out.writeFrame(number, frame)
		})
		if err != nil {
			return err
		}
	}
	for _, c := range r.chunks {
		if err := eachLive(c, live, out.write); err != nil {
			return err
		}
	}
	if err := live.end(); err != nil {
		return err
	}
	return out.end()
}

func (r *round) segments() []*bodySegment { return r.next }
