package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A snapshot whose bodies are in segments travels to another node as one
// stream: a magic, the size of the state and its xxhash64, 8 bytes each, the state,
// and the bodies of all its segments as a stream of bodies.
const (
	transferMagic  = transferName + "\x01" // the last byte is the version
	transferName   = "HFSNAP\x00"
	transferHeader = int64(len(transferMagic)) + 8 + 8
)

var errNoSegments = errors.New("the store of snapshots was opened without the segments")

// checkTransfer reports whether what begins with head is such a stream. One of
// another version is ErrFormat: it must not be taken for a state.
func checkTransfer(head []byte) (bool, error) {
	if string(head[:len(transferName)]) != transferName {
		return false, nil
	}
	version := int(transferMagic[len(transferName)])
	return true, CheckFormat("stream of a snapshot", int(head[len(transferName)]), version, version)
}

// transferSize is the exact size of the stream.
func transferSize(state int64, segments []*bodySegment) int64 {
	size := transferHeader + state + int64(len(endFrame(0)))
	for _, s := range segments {
		size += s.data()
	}
	return size
}

// snapshotReader is an open snapshot. Read gives the stream for another node;
// the files are held until Close.
type snapshotReader struct {
	store    *Segments // nil: there are only the state and the manifest
	segments []*bodySegment
	state    *os.File
	size     int64 // of the state
	stream   io.Reader
	closing  sync.Once
	closed   error
}

func newSnapshotReader(store *Segments, segments []*bodySegment, state *os.File, size int64, sum uint64) *snapshotReader {
	r := &snapshotReader{store: store, segments: segments, state: state, size: size}
	if store == nil {
		r.stream = failingReader{errNoSegments}
		return r
	}
	header := binary.LittleEndian.AppendUint64([]byte(transferMagic), uint64(size))
	header = binary.LittleEndian.AppendUint64(header, sum)
	parts := []io.Reader{bytes.NewReader(header), io.LimitReader(state, size)}
	var count uint64
	for _, s := range segments {
		parts = append(parts, &segmentReader{segment: s})
		count += s.Count
	}
	r.stream = io.MultiReader(append(parts, bytes.NewReader(endFrame(count)))...)
	return r
}

// Read gives the next bytes of the stream.
func (r *snapshotReader) Read(p []byte) (int, error) { return r.stream.Read(p) }

// Close lets go of the files.
func (r *snapshotReader) Close() error {
	r.closing.Do(func() {
		r.closed = r.state.Close()
		if r.store != nil {
			r.store.release(r.segments)
		}
	})
	return r.closed
}

// StateReader returns a reader of the state alone, for a node that restores its
// own snapshot: Segments.OpenGeneration takes it in place of a stream of bodies.
// It shares its place with Read; closing either closes both.
func (r *snapshotReader) StateReader() io.ReadCloser {
	return &stateReader{Reader: io.LimitReader(r.state, r.size), snapshot: r}
}

type stateReader struct {
	io.Reader
	snapshot *snapshotReader
}

func (r *stateReader) Close() error { return r.snapshot.Close() }

// segmentReader reads the frames of a segment, one by one, with the numbers and
// sizes that the index knows: so rot in a frame damages this body only, wherever it
// is, and the stream can be read behind it.
type segmentReader struct {
	segment *bodySegment
	page    int // of the next frame
	entry   int // in the page
	buffer  []byte
	unread  []byte // of the frame in buffer
}

func (r *segmentReader) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

func (r *segmentReader) advance() error {
	s := r.segment
	if r.page == len(s.pages) {
		return io.EOF
	}
	page, err := s.page(r.page)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	number, at := s.pages[r.page]+uint64(page.delta(r.entry)), page.place(r.entry)
	if r.buffer, err = s.frame(at, r.buffer); errors.Is(err, ErrCorrupt) {
		clear(r.buffer) // its checksum is wrong
	} else if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	binary.LittleEndian.PutUint64(r.buffer, number)
	binary.LittleEndian.PutUint32(r.buffer[atFrameLength:], uint32(at.size-frameHeader))
	r.unread = r.buffer
	if r.entry++; r.entry == s.pageLength(r.page) {
		r.page, r.entry = r.page+1, 0
	}
	return nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
