package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// A stream of bodies is a sequence of frames with ascending numbers, ended by
// a frame of number endOfStream that holds the count of those before it.
const (
	frameHeader   = 8 + 4 + 8 // number, length, xxhash64 of both and the body; little-endian
	atFrameLength = 8
	atFrameSum    = 12

	endOfStream = ^uint64(0)

	// maxBody is the size, in bytes, above which a frame is taken for damage:
	// a message is at most 1 MiB.
	maxBody = 16 << 20

	streamBuffer = 64 << 10
)

var errBodyNumber = errors.New("numbers of bodies do not ascend")

func putFrameHeader(header []byte, number uint64, body []byte) {
	binary.LittleEndian.PutUint64(header, number)
	binary.LittleEndian.PutUint32(header[atFrameLength:], uint32(len(body)))
	binary.LittleEndian.PutUint64(header[atFrameSum:], frameSum(header, body))
}

func frameSum(header, body []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(header[:atFrameSum])
	_, _ = d.Write(body)
	return d.Sum64()
}

// streamWriter writes frames.
type streamWriter struct {
	w      *bufio.Writer
	header [frameHeader]byte
	count  uint64
}

func newStreamWriter(w io.Writer) *streamWriter {
	return &streamWriter{w: bufio.NewWriterSize(w, streamBuffer)}
}

func (s *streamWriter) write(number uint64, body []byte) error {
	putFrameHeader(s.header[:], number, body)
	if _, err := s.w.Write(s.header[:]); err != nil {
		return fmt.Errorf("write body %d: %w", number, err)
	}
	return s.writeFrame(number, body)
}

// writeFrame writes a frame that is complete, or what is left of it.
func (s *streamWriter) writeFrame(number uint64, frame []byte) error {
	if _, err := s.w.Write(frame); err != nil {
		return fmt.Errorf("write body %d: %w", number, err)
	}
	s.count++
	return nil
}

func (s *streamWriter) end() error {
	if _, err := s.w.Write(endFrame(s.count)); err != nil {
		return fmt.Errorf("write bodies: %w", err)
	}
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("write bodies: %w", err)
	}
	return nil
}

// endFrame is the last frame of a stream of count bodies.
func endFrame(count uint64) []byte {
	frame := binary.LittleEndian.AppendUint64(make([]byte, frameHeader), count)
	putFrameHeader(frame, endOfStream, frame[frameHeader:])
	return frame
}

// WriteLive writes the live bodies, given as ranges of numbers (first, count)
// in ascending order, all of which lie in closed chunks, and frees the others
// of these chunks: a body that is dead stays dead. It runs beside all other
// calls. After an error of w some of the dead bodies are freed, and what is
// live is as it was.
func (b *Bodies) WriteLive(w io.Writer, live iter.Seq2[uint64, uint64]) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.RLock()
	source, saved := slices.Clone(b.closed), b.unsaved
	p := &repacking{bodies: b, generation: b.generation}
	b.mu.RUnlock()

	cursor, stop := newLiveCursor(live)
	defer stop()
	out := newStreamWriter(w)
	for _, c := range source {
		if err := p.write(c, cursor, out); err != nil {
			return err
		}
	}
	p.swap()
	if err := cursor.end(); err != nil {
		return err
	}
	if err := out.end(); err != nil {
		return err
	}
	b.markSaved(p.generation, saved)
	return nil
}

func (b *Bodies) markSaved(generation uint64, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.generation == generation {
		b.unsaved -= bytes
	}
}

// repacking is one WriteLive: it writes closed chunks and puts others with
// only the live bodies in their place, a few megabytes at a time.
type repacking struct {
	bodies     *Bodies
	generation uint64
	packer     packer
	at         int // place in bodies.closed of the first chunk not yet replaced
	taken      int // chunks from there on whose live bodies are in packer
}

// write writes the live bodies of c, and keeps c if that frees little.
func (p *repacking) write(c chunk, live *liveCursor, out *streamWriter) error {
	packed, isPacked := c.(*packedChunk)
	if !isPacked {
		err := eachLive(c, live, func(number uint64, body []byte) error {
			p.packer.add(number, body)
			return out.write(number, body)
		})
		p.take(err)
		return err
	}
	var found []uint64
	var bytes int64
	err := eachLive(packed, live, func(number uint64, body []byte) error {
		found, bytes = append(found, number), bytes+int64(len(body))
		return out.write(number, body)
	})
	switch {
	case err != nil:
		return err
	case len(found) > 0 && isWorthKeeping(packed, len(found), bytes):
		p.swap()
		p.at++
		return nil
	}
	for _, number := range found {
		body, _ := packed.find(number)
		p.packer.add(number, body)
	}
	p.take(nil)
	return nil
}

// isWorthKeeping reports whether a packed chunk, of which count bodies of so
// many bytes are live, is neither small nor more than a quarter dead.
func isWorthKeeping(c *packedChunk, count int, bytes int64) bool {
	if count == len(c.offsets) && bytes >= packBytes/2 {
		return true
	}
	return bytes >= packBytes/2 && bytes*4 >= c.size()*3 && count*4 >= len(c.offsets)*3
}

// eachLive calls visit for the live bodies of c.
func eachLive(c chunk, live *liveCursor, visit func(number uint64, body []byte) error) error {
	first, limit := c.span()
	for {
		number, more := live.peek()
		if !more || number >= limit {
			return nil
		}
		if number < first {
			return fmt.Errorf("write body %d: it is not stored", number)
		}
		body, found := c.find(number)
		if !found {
			return fmt.Errorf("write body %d: it is not stored", number)
		}
		if err := visit(number, body); err != nil {
			return err
		}
		live.advance()
	}
}

// take notes that the live bodies of one more chunk are in the packer, and
// replaces chunks once there is enough for one. After an error the packer has
// not all of them, and nothing more is replaced.
func (p *repacking) take(err error) {
	if err != nil {
		return
	}
	p.taken++
	if p.packer.size() >= packBytes/2 {
		p.swap()
	}
}

// swap puts the packed chunks into the place of those they were made from.
func (p *repacking) swap() {
	made := p.packer.take()
	b := p.bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.generation == p.generation && p.taken > 0 {
		b.closed = slices.Concat(b.closed[:p.at], made, b.closed[p.at+p.taken:])
	}
	p.at += len(made)
	p.taken = 0
}

// OpenGeneration reads what WriteLive wrote, not a byte beyond it and in small
// reads, so r should be buffered. The bodies are held aside until commit
// replaces all others by them; next is the next number to be appended, above
// all that are read. Without commit nothing changes. Bytes that WriteLive did
// not write are an error, ErrCorrupt.
func (b *Bodies) OpenGeneration(r io.Reader, next uint64) (commit func(), err error) {
	chunks, err := readBodies(r, next)
	if err != nil {
		return nil, fmt.Errorf("read bodies: %w", err)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closed, b.unsaved = chunks, 0
		b.open = &openChunk{first: next, fixed: true}
		b.generation++
	}, nil
}

func readBodies(r io.Reader, next uint64) ([]chunk, error) {
	var p packer
	err := readStream(r, next, p.reserve, bodyTaker{intact: func(uint64, []byte) error { return nil }})
	return p.take(), err
}

// bodyTaker gets what is read from a stream: bodies that are intact, and the frames
// of others. Without damaged these are an error.
type bodyTaker struct {
	intact  func(number uint64, body []byte) error
	damaged func(number uint64, frame []byte) error
}

// readStream reads a stream of bodies with numbers below next, not a byte beyond
// it. Memory for each body comes from reserve.
func readStream(r io.Reader, next uint64, reserve func(number uint64, size int) []byte, take bodyTaker) error {
	var header [frameHeader]byte
	var lowest, count uint64
	for {
		if err := readFull(r, header[:]); err != nil {
			return err
		}
		number := binary.LittleEndian.Uint64(header[:])
		if number == endOfStream {
			return readEnd(r, header[:], count)
		}
		if number < lowest || number >= next {
			return fmt.Errorf("%w: body %d: %w", ErrCorrupt, number, errBodyNumber)
		}
		size := binary.LittleEndian.Uint32(header[atFrameLength:])
		if size > maxBody {
			return fmt.Errorf("%w: body %d has %d bytes", ErrCorrupt, number, size)
		}
		body := reserve(number, int(size))
		err := readBody(r, header[:], body)
		switch {
		case err == nil:
			err = take.intact(number, body)
		case errors.Is(err, errChecksum) && take.damaged != nil:
			err = take.damaged(number, append(slices.Clone(header[:]), body...))
		default:
			err = fmt.Errorf("body %d: %w", number, err)
		}
		if err != nil {
			return err
		}
		lowest = number + 1
		count++
	}
}

// readEnd reads the rest of the last frame.
func readEnd(r io.Reader, header []byte, count uint64) error {
	var body [8]byte
	if size := binary.LittleEndian.Uint32(header[atFrameLength:]); size != uint32(len(body)) {
		return fmt.Errorf("%w: count has %d bytes", ErrCorrupt, size)
	}
	if err := readBody(r, header, body[:]); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	if n := binary.LittleEndian.Uint64(body[:]); n != count {
		return fmt.Errorf("%w: %d bodies were written, %d are there", ErrCorrupt, n, count)
	}
	return nil
}

func readBody(r io.Reader, header, body []byte) error {
	if err := readFull(r, body); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(header[atFrameSum:]) != frameSum(header, body) {
		return fmt.Errorf("%w: %w", ErrCorrupt, errChecksum)
	}
	return nil
}

// readFull reads all of p; a stream that ends before is damaged.
func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the stream ends early", ErrCorrupt)
	}
	return err
}
