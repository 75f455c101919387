package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// A segment is a file of bodies whose numbers lie in one interval: a magic,
// frames as in a stream of bodies, index pages, the first numbers of the pages,
// and a footer. It is never changed once it is complete.
const (
	segmentMagic  = "HFSEG\x00\x00\x01" // the last byte is the version of the format
	segmentHeader = int64(len(segmentMagic))
	segmentSuffix = ".seg"

	// An index page is for pageBodies bodies, fewer in the last one: xxhash64 of
	// the rest, the first number, the offset of its frame; then, for each body,
	// by how much its number is above the first, and where its frame ends,
	// counted from that offset.
	pageBodies    = 64
	pageEntry     = 4 + 4
	pageHeader    = 8 + 8 + 8
	pageSize      = pageHeader + pageBodies*pageEntry
	atPageFirst   = 8
	atPageOffset  = 16
	maxPageNumber = 1<<32 - 1

	// The footer: first number, limit, count, end of the frames, xxhash64 of the
	// first numbers of the pages, xxhash64 of the footer so far, magic.
	segmentFooter  = 7 * 8
	atFooterSum    = 5 * 8
	atFooterMagic  = 6 * 8
	maxSegmentSize = 1 << 40 // above it a size is taken for damage
)

var (
	// errNotStored says that a number has no body in the segment of its interval.
	errNotStored = errors.New("it is not stored")

	errFrame = errors.New("frame of another body")
)

// segmentFacts are what a manifest says of a segment.
type segmentFacts struct {
	Serial   uint64 `json:"serial"` // names the file; never used twice
	First    uint64 `json:"first"`  // the lowest number
	Limit    uint64 `json:"limit"`  // above the highest number
	Count    uint64 `json:"count"`  // of bodies
	Size     int64  `json:"size"`   // of the file, bytes
	Checksum string `json:"checksum"`
}

func (f segmentFacts) name() string { return segmentFileName(f.First, f.Serial) }

// segmentFileName begins with the first number, for whoever looks at the files.
func segmentFileName(first, serial uint64) string {
	return fmt.Sprintf("%020d-%d%s", first, serial, segmentSuffix)
}

// parseSegmentFileName returns the serial in a name; false for another file.
func parseSegmentFileName(name string) (serial uint64, ok bool) {
	numbers, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return 0, false
	}
	first, rest, _ := strings.Cut(numbers, "-")
	if _, err := strconv.ParseUint(first, 10, 64); err != nil {
		return 0, false
	}
	serial, err := strconv.ParseUint(rest, 10, 64)
	return serial, err == nil
}

// bodySegment is a complete segment file. Of its index only the first numbers of
// the pages are in memory: 8 bytes for 64 bodies.
type bodySegment struct {
	segmentFacts
	path  string
	end   int64    // offset behind the frames
	pages []uint64 // first number of each
	files *fileCache
	index *pageCache

	refs   int          // guarded by Segments.mu; at 0 the file is removed
	pins   atomic.Int64 // made, and not yet read; they rise under Segments.mu while it is in the list
	rotten atomic.Bool  // its index is damaged, or the disk cannot read it: it is not merged

	file    *openFile // guarded by fileCache.mu
	removed bool      // the same; only pins read it
}

// pageCount is how many pages the index of count bodies has.
func pageCount(count uint64) int64 { return int64((count + pageBodies - 1) / pageBodies) }

// data is the size of the frames in bytes.
func (s *bodySegment) data() int64 { return s.end - segmentHeader }

// openSegment reads the footer and the first numbers of the pages, and
// compares them with facts: ErrCorrupt if they differ.
func openSegment(dir string, facts segmentFacts) (_ *bodySegment, err error) {
	s := &bodySegment{segmentFacts: facts, path: filepath.Join(dir, facts.name())}
	f, err := os.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, corrupt(s.path, 0, "the file is missing")
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != facts.Size {
		return nil, corrupt(s.path, min(info.Size(), facts.Size), "it has %d bytes, %d were written", info.Size(), facts.Size)
	}
	return s, s.load(f)
}

// load reads the footer and the first numbers of the pages from r.
func (s *bodySegment) load(r io.ReaderAt) error {
	if s.Size < segmentHeader+segmentFooter || s.Size > maxSegmentSize {
		return corrupt(s.path, 0, "a segment cannot have %d bytes", s.Size)
	}
	at := s.Size - segmentFooter
	var footer [segmentFooter]byte
	if _, err := r.ReadAt(footer[:], at); err != nil {
		return err
	}
	sum := xxhash.Sum64(footer[:atFooterSum])
	switch {
	case string(footer[atFooterMagic:]) != segmentMagic:
		return corrupt(s.path, at+atFooterMagic, "it does not end as a segment")
	case binary.LittleEndian.Uint64(footer[atFooterSum:]) != sum || formatChecksum(sum) != s.Checksum:
		return corrupt(s.path, at, "footer: %v", errChecksum)
	}
	var fields [5]uint64
	for i := range fields {
		fields[i] = binary.LittleEndian.Uint64(footer[i*8:])
	}
	s.end = int64(fields[3])
	pages := pageCount(s.Count)
	if fields[0] != s.First || fields[1] != s.Limit || fields[2] != s.Count ||
		s.end < segmentHeader || s.end+pages*(pageSize+8)+segmentFooter != s.Size {
		return corrupt(s.path, at, "footer: it describes another segment")
	}
	return s.loadPages(r, at-pages*8, fields[4])
}

func (s *bodySegment) loadPages(r io.ReaderAt, at int64, sum uint64) error {
	numbers := make([]byte, pageCount(s.Count)*8)
	if _, err := r.ReadAt(numbers, at); err != nil {
		return err
	}
	if xxhash.Sum64(numbers) != sum {
		return corrupt(s.path, at, "index: %v", errChecksum)
	}
	s.pages = make([]uint64, len(numbers)/8)
	for i := range s.pages {
		s.pages[i] = binary.LittleEndian.Uint64(numbers[i*8:])
	}
	if !slices.IsSorted(s.pages) {
		return corrupt(s.path, at, "index: %v", errBodyNumber)
	}
	return nil
}

// place is where a frame lies in a segment.
type place struct {
	offset int64
	size   int // of the frame
}

// locate finds the frame of a number; errNotStored if there is none.
func (s *bodySegment) locate(number uint64) (place, error) {
	i := sort.Search(len(s.pages), func(i int) bool { return s.pages[i] > number }) - 1
	if i < 0 {
		return place{}, errNotStored
	}
	p, err := s.page(i)
	if err != nil {
		return place{}, err
	}
	delta := number - s.pages[i]
	n := s.pageLength(i)
	j := sort.Search(n, func(j int) bool { return uint64(p.delta(j)) >= delta })
	if j == n || uint64(p.delta(j)) != delta {
		return place{}, errNotStored
	}
	return p.place(j), nil
}

// pageLength is how many bodies page i has.
func (s *bodySegment) pageLength(i int) int {
	return int(min(s.Count-uint64(i)*pageBodies, pageBodies))
}

// page returns an index page, from the cache or from disk.
func (s *bodySegment) page(i int) (*page, error) {
	if p := s.index.get(s.Serial, i); p != nil {
		return p, nil
	}
	p := &page{serial: s.Serial, number: i}
	at := s.end + int64(i)*pageSize
	if err := s.readAt(p.bytes[:], at); err != nil {
		return nil, err
	}
	if err := p.verify(s.pages[i], s.pageLength(i), s.end); err != nil {
		return nil, corrupt(s.path, at, "index page: %v", err)
	}
	s.index.put(p)
	return p, nil
}

// readAt fills b from the file. What the disk cannot read is ErrCorrupt, too.
func (s *bodySegment) readAt(b []byte, at int64) error {
	f, err := s.files.acquire(s)
	if err != nil {
		return err
	}
	defer s.files.release(f)
	if _, err := f.ReadAt(b, at); err != nil {
		return fmt.Errorf("%w: %w", corrupt(s.path, at, "it cannot be read"), err)
	}
	return nil
}

// body reads and verifies the body of a number. ErrDamagedBody: it is there,
// but not as it was written.
func (s *bodySegment) body(number uint64) ([]byte, error) {
	p, err := s.locate(number)
	if err == nil {
		var frame []byte
		if frame, err = s.frame(p, nil); err == nil {
			err = verifyFrame(frame, number)
		}
		if err == nil {
			return frame[frameHeader:len(frame):len(frame)], nil
		}
		if errors.Is(err, errChecksum) || errors.Is(err, errFrame) {
			err = fmt.Errorf("%w: %s at offset %d: %w", ErrDamagedBody, s.path, p.offset, err)
		}
	}
	if errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrDamagedBody, err)
	}
	return nil, fmt.Errorf("read body %d: %w", number, err)
}

// pin returns a function that reads the body of a number. Until its first call
// has returned, the file stays open even if it is removed.
func (s *bodySegment) pin(number uint64) func() ([]byte, error) {
	s.pins.Add(1)
	var read atomic.Bool
	return func() ([]byte, error) {
		body, err := s.body(number)
		if read.CompareAndSwap(false, true) && s.pins.Add(-1) == 0 {
			s.files.unpinned(s)
		}
		return body, err
	}
}

// frame reads a frame, unverified, into memory that it may take from buffer. After
// ErrCorrupt that has the right length.
func (s *bodySegment) frame(p place, buffer []byte) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], p.size)[:p.size]
	return buffer, s.readAt(buffer, p.offset)
}

// verifyFrame checks that a frame is that of number and intact.
func verifyFrame(frame []byte, number uint64) error {
	header, body := frame[:frameHeader], frame[frameHeader:]
	switch {
	case binary.LittleEndian.Uint64(header) != number,
		binary.LittleEndian.Uint32(header[atFrameLength:]) != uint32(len(body)):
		return errFrame
	case binary.LittleEndian.Uint64(header[atFrameSum:]) != frameSum(header, body):
		return errChecksum
	}
	return nil
}

// verify reads all of the segment, and calls found with each number. Damage of
// single bodies goes to damaged, any other is the error.
func (s *bodySegment) verify(found func(number uint64), damaged func(number uint64, err error)) error {
	var buffer []byte
	var header [segmentHeader]byte
	if err := s.readAt(header[:], 0); err != nil {
		return err
	}
	if !bytes.Equal(header[:], []byte(segmentMagic)) {
		return corrupt(s.path, 0, "it does not begin as a segment")
	}
	for i, first := range s.pages {
		p, err := s.page(i)
		if err != nil {
			return err
		}
		for j := range s.pageLength(i) {
			number, at := first+uint64(p.delta(j)), p.place(j)
			found(number)
			if buffer, err = s.frame(at, buffer); err != nil {
				return err
			}
			if err := verifyFrame(buffer, number); err != nil {
				damaged(number, fmt.Errorf("%w: %s at offset %d: body %d: %w", ErrDamagedBody, s.path, at.offset, number, err))
			}
		}
	}
	return nil
}

// page is one index page of a segment.
type page struct {
	serial uint64 // of the segment
	number int
	bytes  [pageSize]byte
}

func (p *page) delta(i int) uint32 {
	return binary.LittleEndian.Uint32(p.bytes[pageHeader+i*pageEntry:])
}

func (p *page) frameEnd(i int) uint32 {
	return binary.LittleEndian.Uint32(p.bytes[pageHeader+i*pageEntry+4:])
}

func (p *page) place(i int) place {
	var start uint32
	if i > 0 {
		start = p.frameEnd(i - 1)
	}
	base := int64(binary.LittleEndian.Uint64(p.bytes[atPageOffset:]))
	return place{offset: base + int64(start), size: int(p.frameEnd(i) - start)}
}

// seal writes the header of a page that has its entries.
func (p *page) seal(first uint64, offset int64) {
	binary.LittleEndian.PutUint64(p.bytes[atPageFirst:], first)
	binary.LittleEndian.PutUint64(p.bytes[atPageOffset:], uint64(offset))
	binary.LittleEndian.PutUint64(p.bytes[:], xxhash.Sum64(p.bytes[8:]))
}

// verify checks a page of count bodies, of a segment whose frames end at end.
func (p *page) verify(first uint64, count int, end int64) error {
	if binary.LittleEndian.Uint64(p.bytes[:]) != xxhash.Sum64(p.bytes[8:]) {
		return errChecksum
	}
	if binary.LittleEndian.Uint64(p.bytes[atPageFirst:]) != first || p.delta(0) != 0 {
		return errBodyNumber
	}
	for i := range count {
		at := p.place(i)
		if at.size < frameHeader || at.size > frameHeader+maxBody || at.offset < segmentHeader || at.offset+int64(at.size) > end {
			return fmt.Errorf("body %d cannot lie at offset %d", i, at.offset)
		}
		if i > 0 && p.delta(i) <= p.delta(i-1) {
			return errBodyNumber
		}
	}
	return nil
}

// pageCache keeps the index pages that were read last: receives of a queue read
// the bodies of one page after the other. Its size is about half a MiB.
type pageCache struct{ slots [1024]atomic.Pointer[page] }

func (c *pageCache) slot(serial uint64, number int) *atomic.Pointer[page] {
	mixed := (serial*0x9e3779b97f4a7c15 + uint64(number)) * 0x9e3779b97f4a7c15
	return &c.slots[mixed>>54]
}

func (c *pageCache) get(serial uint64, number int) *page {
	if p := c.slot(serial, number).Load(); p != nil && p.serial == serial && p.number == number {
		return p
	}
	return nil
}

func (c *pageCache) put(p *page) { c.slot(p.serial, p.number).Store(p) }
