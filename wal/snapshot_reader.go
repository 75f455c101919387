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
// stream: a magic and the size of the state, 8 bytes each, the state, and the
// bodies of all its segments as a stream of bodies.
const (
	transferMagic  = "HFSNAP\x00\x01" // the last byte is the version
	transferHeader = int64(len(transferMagic)) + 8
)

var errNoSegments = errors.New("the store of snapshots was opened without the segments")

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

func newSnapshotReader(store *Segments, segments []*bodySegment, state *os.File, size int64) *snapshotReader {
	r := &snapshotReader{store: store, segments: segments, state: state, size: size}
	if store == nil {
		r.stream = failingReader{errNoSegments}
		return r
	}
	header := binary.LittleEndian.AppendUint64([]byte(transferMagic), uint64(size))
	parts := []io.Reader{bytes.NewReader(header), io.LimitReader(state, size)}
	var count uint64
	for _, s := range segments {
		parts = append(parts, &segmentReader{segment: s, at: segmentHeader})
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

// segmentReader reads the frames of a segment.
type segmentReader struct {
	segment *bodySegment
	at      int64
}

func (r *segmentReader) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), r.segment.end-r.at)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	if err := r.segment.readAt(p, r.at); err != nil {
		return 0, fmt.Errorf("read segment: %w", err)
	}
	r.at += int64(len(p))
	return len(p), nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
