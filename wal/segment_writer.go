package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// segmentWriter writes one segment, in pieces that are synced one by one. After
// an error only drop may be called.
type segmentWriter struct {
	store  *Segments
	facts  segmentFacts
	path   string
	out    file
	piece  []byte // not yet written
	offset int64  // behind the last frame
	page   page   // being filled
	filled int    // bodies in it
	first  uint64 // its first number
	base   int64  // the offset of its first frame
	index  []byte // complete pages
	firsts []byte // first numbers of the pages
}

// newSegmentWriter begins a segment with first as its lowest number. piece is
// memory that it may use.
func newSegmentWriter(store *Segments, first uint64, piece []byte) (*segmentWriter, error) {
	w := &segmentWriter{store: store, facts: segmentFacts{Serial: store.nextSerial(), First: first, Limit: first}}
	w.path = filepath.Join(store.dir, w.facts.name())
	out, err := store.options.files.create(w.path)
	if err != nil {
		return nil, err
	}
	w.out = out
	w.piece = append(piece[:0], segmentMagic...)
	w.offset = segmentHeader
	return w, nil
}

// fits reports whether a body of that number may be added: a segment has a
// size, and its numbers an interval, that its index can express.
func (w *segmentWriter) fits(number uint64) bool {
	l := &w.store.options.limits
	return w.offset < l.bytes && w.facts.Count < l.bodies && number-w.facts.First <= maxPageNumber
}

// add writes a body; numbers ascend.
func (w *segmentWriter) add(number uint64, body []byte) error {
	var header [frameHeader]byte
	putFrameHeader(header[:], number, body)
	if err := w.enter(number, frameHeader+len(body)); err != nil {
		return err
	}
	return errors.Join(w.write(header[:]), w.write(body))
}

// addFrame writes a body by its frame, which may be damaged: it is copied as it
// is, so that it is found damaged wherever it goes.
func (w *segmentWriter) addFrame(number uint64, frame []byte) error {
	if err := w.enter(number, len(frame)); err != nil {
		return err
	}
	return w.write(frame)
}

// enter puts a frame into the index.
func (w *segmentWriter) enter(number uint64, size int) error {
	if number < w.facts.Limit {
		return fmt.Errorf("write body %d: %w", number, errBodyNumber)
	}
	if w.filled == 0 {
		w.first, w.base = number, w.offset
		w.firsts = binary.LittleEndian.AppendUint64(w.firsts, number)
	}
	w.offset += int64(size)
	entry := w.page.bytes[pageHeader+w.filled*pageEntry:]
	binary.LittleEndian.PutUint32(entry, uint32(number-w.first))
	binary.LittleEndian.PutUint32(entry[4:], uint32(w.offset-w.base))
	w.facts.Count++
	w.facts.Limit = number + 1
	if w.filled++; w.filled == pageBodies {
		w.endPage()
	}
	return nil
}

func (w *segmentWriter) endPage() {
	if w.filled == 0 {
		return
	}
	w.page.seal(w.first, w.base)
	w.index = append(w.index, w.page.bytes[:]...)
	w.page, w.filled = page{}, 0
}

// write appends to the file, and syncs every full piece.
func (w *segmentWriter) write(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), pieceSize-len(w.piece))
		w.piece = append(w.piece, p[:n]...)
		p = p[n:]
		if len(w.piece) == pieceSize {
			if err := w.writePiece(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *segmentWriter) writePiece() error {
	err := w.store.pace(func() error {
		if _, err := w.out.Write(w.piece); err != nil {
			return err
		}
		return w.out.Sync()
	})
	w.piece = w.piece[:0]
	return err
}

// finish completes the file and syncs it; its name is not durable yet.
func (w *segmentWriter) finish() (*bodySegment, error) {
	w.endPage()
	footer := binary.LittleEndian.AppendUint64(nil, w.facts.First)
	for _, n := range []uint64{w.facts.Limit, w.facts.Count, uint64(w.offset), xxhash.Sum64(w.firsts)} {
		footer = binary.LittleEndian.AppendUint64(footer, n)
	}
	sum := xxhash.Sum64(footer)
	footer = binary.LittleEndian.AppendUint64(footer, sum)
	footer = append(footer, segmentMagic...)
	w.facts.Checksum = formatChecksum(sum)
	w.facts.Size = w.offset + int64(len(w.index)+len(w.firsts)+len(footer))
	for _, part := range [][]byte{w.index, w.firsts, footer} {
		if err := w.write(part); err != nil {
			return nil, err
		}
	}
	if len(w.piece) > 0 {
		if err := w.writePiece(); err != nil {
			return nil, err
		}
	}
	err := w.out.Close()
	w.out = nil
	if err != nil {
		return nil, err
	}
	return w.segment(), nil
}

// segment is what was written, without reading it again.
func (w *segmentWriter) segment() *bodySegment {
	s := &bodySegment{segmentFacts: w.facts, path: w.path, end: w.offset}
	s.pages = make([]uint64, len(w.firsts)/8)
	for i := range s.pages {
		s.pages[i] = binary.LittleEndian.Uint64(w.firsts[i*8:])
	}
	return s
}

// drop removes what was written.
func (w *segmentWriter) drop() error {
	var err error
	if w.out != nil {
		err = w.out.Close()
		w.out = nil
	}
	return errors.Join(err, w.store.options.files.removeAll(w.path))
}

// segmentRoll writes bodies to one segment after the other.
type segmentRoll struct {
	store *Segments
	open  *segmentWriter
	made  []*bodySegment // each is held once
}

// next is the segment that takes the body of that number.
func (r *segmentRoll) next(number uint64) (*segmentWriter, error) {
	var piece []byte
	if r.open != nil {
		if r.open.fits(number) {
			return r.open, nil
		}
		piece = r.open.piece
		if err := r.seal(); err != nil {
			return nil, err
		}
	}
	if piece == nil {
		piece = make([]byte, 0, pieceSize)
	}
	var err error
	r.open, err = newSegmentWriter(r.store, number, piece)
	return r.open, err
}

func (r *segmentRoll) add(number uint64, body []byte) error {
	w, err := r.next(number)
	if err != nil {
		return err
	}
	return w.add(number, body)
}

func (r *segmentRoll) addFrame(number uint64, frame []byte) error {
	w, err := r.next(number)
	if err != nil {
		return err
	}
	return w.addFrame(number, frame)
}

func (r *segmentRoll) seal() error {
	made, err := r.open.finish()
	if err != nil {
		return err
	}
	r.open = nil
	r.made = append(r.made, r.store.register(made))
	return nil
}

// end completes the last segment, and returns all of them.
func (r *segmentRoll) end() ([]*bodySegment, error) {
	if r.open != nil {
		if err := r.seal(); err != nil {
			return nil, err
		}
	}
	return r.made, nil
}

// drop removes all that was written.
func (r *segmentRoll) drop() {
	if r.open != nil {
		if err := r.open.drop(); err != nil {
			r.store.options.Logger.Warn("unfinished segment not removed", "err", err)
		}
		r.open = nil
	}
	r.store.release(r.made)
	r.made = nil
}
