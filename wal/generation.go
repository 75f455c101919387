package wal

import (
	"fmt"
	"io"
	"slices"
)

// OpenGeneration replaces all bodies by those of a snapshot, when commit is
// called; next is the next number to be appended, above all others. Without
// commit nothing changes.
//
// If r is the state of a snapshot of a store that was opened with these
// segments (see Snapshots.Open), the bodies stay where they are, and r must not
// be closed before commit. Any other r is a stream as WriteLive writes it; it is
// read to its end and not beyond, in small reads, and what it holds is written
// to segments, which become durable with the next snapshot; without commit, the
// next start removes them. Bytes that WriteLive
// did not write are an error, ErrCorrupt.
func (s *Segments) OpenGeneration(r io.Reader, next uint64) (commit func(), err error) {
	if own, ok := r.(*stateReader); ok && own.snapshot.store == s {
		return s.openOwn(own.snapshot.segments, next)
	}
	made, err := s.readBodies(r, next, nil)
	if err != nil {
		return nil, fmt.Errorf("read bodies: %w", err)
	}
	return func() {
		s.replace(made, next)
		s.drop(made)
	}, nil
}

func (s *Segments) openOwn(segments []*bodySegment, next uint64) (commit func(), err error) {
	if n := len(segments); n > 0 && segments[n-1].Limit > next {
		return nil, corrupt(segments[n-1].path, 0, "it has body %d, the state knows those below %d", segments[n-1].Limit-1, next)
	}
	return func() { s.replace(segments, next) }, nil
}

// replace makes segments, which somebody else holds, all there is.
func (s *Segments) replace(segments []*bodySegment, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaced = append(s.replaced, s.list...)
	s.list = slices.Clone(segments)
	s.holdLocked(s.list)
	s.closed, s.unsaved = nil, 0
	s.repaired = repairs{}
	s.open = &openChunk{first: next, fixed: true}
	s.version++
}

// drop lets go of segments that others hold as well.
func (s *Segments) drop(held []*bodySegment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range held {
		g.refs--
	}
}

// readBodies writes a stream of bodies to segments, each held once. A frame that is
// not intact goes to damaged; without that it is an error.
func (s *Segments) readBodies(r io.Reader, next uint64, damaged func(*segmentRoll, uint64, []byte) error) ([]*bodySegment, error) {
	out := &segmentRoll{store: s}
	var body []byte
	reserve := func(_ uint64, size int) []byte {
		body = slices.Grow(body[:0], size)[:size]
		return body
	}
	take := bodyTaker{intact: out.add}
	if damaged != nil {
		take.damaged = func(number uint64, frame []byte) error { return damaged(out, number, frame) }
	}
	err := readStream(r, next, reserve, take)
	var made []*bodySegment
	if err == nil {
		made, err = out.end()
	}
	if err == nil && len(made) > 0 {
		err = s.options.files.syncDir(s.dir)
	}
	if err != nil {
		out.drop()
		return nil, err
	}
	return made, nil
}
