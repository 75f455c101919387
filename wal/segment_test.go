package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// writeSegment writes bodies of a size to one segment.
func writeSegment(t testing.TB, size int, numbers ...uint64) *bodySegment {
	t.Helper()
	store, err := OpenSegments(filepath.Join(t.TempDir(), SegmentDir), SegmentOptions{files: quickFiles{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	out := &segmentRoll{store: store}
	for _, number := range numbers {
		if err := out.add(number, bodyOf(number, size)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := out.end()
	if err != nil || len(made) != 1 {
		t.Fatalf("%d segments, error %v; want one", len(made), err)
	}
	return made[0]
}

// reopen opens the file of a segment as a start does.
func reopen(t testing.TB, s *bodySegment) (*bodySegment, error) {
	t.Helper()
	opened, err := openSegment(filepath.Dir(s.path), s.segmentFacts)
	if err != nil {
		return nil, err
	}
	opened.files, opened.index = &fileCache{}, &pageCache{}
	t.Cleanup(func() { opened.files.close() })
	return opened, nil
}

func TestSegmentAsWrittenAndAsReopened(t *testing.T) {
	for _, count := range []int{1, 2, pageBodies - 1, pageBodies, pageBodies + 1, 10 * pageBodies} {
		random := rand.New(rand.NewPCG(uint64(count), 1))
		var numbers []uint64
		number := uint64(1) << 40
		for range count {
			number += 1 + random.Uint64N(3)*random.Uint64N(1000)
			numbers = append(numbers, number)
		}
		written := writeSegment(t, 77, numbers...)
		reopened, err := reopen(t, written)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*bodySegment{written, reopened} {
			for _, number := range numbers {
				if body, err := s.body(number); err != nil || !bytes.Equal(body, bodyOf(number, 77)) || cap(body) != len(body) {
					t.Fatalf("body %d of %d: %d bytes, error %v", number, count, len(body), err)
				}
				for _, other := range []uint64{number - 1, number + 1} {
					if _, found := slices.BinarySearch(numbers, other); found {
						continue
					}
					if _, err := s.body(other); !errors.Is(err, errNotStored) {
						t.Fatalf("body %d, which is not there: got %v", other, err)
					}
				}
			}
			if err := s.verify(ignoreBody, func(number uint64, err error) { t.Errorf("body %d: %v", number, err) }); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFlippedBitInASegment flips each byte of a segment: either it is refused
// when it is opened, or single bodies are damaged; and none is ever read wrong.
func TestFlippedBitInASegment(t *testing.T) {
	var numbers []uint64
	for number := uint64(5); number < 5+pageBodies+20; number++ {
		numbers = append(numbers, number)
	}
	s := writeSegment(t, 10, numbers...)
	whole := read(t, s.path)
	for at := range whole {
		flipped := slices.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		write(t, s.path, flipped)
		opened, err := reopen(t, s)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || int64(at) < s.end {
				t.Fatalf("byte %d of %d: got %v", at, len(whole), err)
			}
			continue
		}
		damaged := 0
		for _, number := range numbers {
			body, err := opened.body(number)
			if errors.Is(err, ErrDamagedBody) {
				damaged++
			} else if err != nil || !bytes.Equal(body, bodyOf(number, 10)) {
				t.Fatalf("byte %d: body %d: %d bytes, error %v", at, number, len(body), err)
			}
		}
		told := 0
		err = opened.verify(ignoreBody, func(uint64, error) { told++ })
		switch {
		case int64(at) < segmentHeader: // nothing reads the magic at the front but verify
			if err == nil || damaged != 0 {
				t.Fatalf("byte %d: verify says %v, %d bodies damaged", at, err, damaged)
			}
		case int64(at) < s.end:
			if err != nil || damaged != 1 || told != 1 {
				t.Fatalf("byte %d of a frame: verify says %v and %d, %d bodies damaged; want one", at, err, told, damaged)
			}
		default:
			if !errors.Is(err, ErrCorrupt) || damaged == 0 {
				t.Fatalf("byte %d of a page: verify says %v, %d bodies damaged", at, err, damaged)
			}
		}
	}
}

func TestSegmentOfAnotherSizeIsRefused(t *testing.T) {
	s := writeSegment(t, 10, 1, 2, 3)
	whole := read(t, s.path)
	for _, damaged := range [][]byte{nil, whole[:len(whole)-1], append(slices.Clone(whole), 0), whole[1:]} {
		write(t, s.path, damaged)
		if _, err := reopen(t, s); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes instead of %d: got %v, want ErrCorrupt", len(damaged), len(whole), err)
		}
	}
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, s); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no file: got %v, want ErrCorrupt", err)
	}
}

// A body in another's place has a good checksum.
func TestFrameInTheWrongPlace(t *testing.T) {
	s := writeSegment(t, 10, 1, 2)
	whole := read(t, s.path)
	first := whole[segmentHeader : segmentHeader+frameHeader+10]
	copy(whole[segmentHeader+frameHeader+10:], first)
	write(t, s.path, whole)
	if _, err := s.body(2); !errors.Is(err, ErrDamagedBody) || !errors.Is(err, errFrame) {
		t.Errorf("got %v, want ErrDamagedBody", err)
	}
}

func ignoreBody(uint64) {}

func TestSegmentFilesAreClosed(t *testing.T) {
	cache := &fileCache{}
	var segments []*bodySegment
	dir := t.TempDir()
	for i := range maxOpenSegments + 50 {
		s := &bodySegment{path: filepath.Join(dir, segmentFileName(uint64(i), 1))}
		write(t, s.path, []byte{byte(i)})
		segments = append(segments, s)
	}
	held, err := cache.acquire(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, s := range segments {
			f, err := cache.acquire(s)
			if err != nil {
				t.Fatal(err)
			}
			cache.release(f)
		}
	}
	if len(cache.opened) != maxOpenSegments {
		t.Errorf("%d files are open, want %d", len(cache.opened), maxOpenSegments)
	}
	if _, err := held.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("a file was closed while it was read: %v", err)
	}
	cache.release(held)
	if _, err := held.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, want the file closed by its last reader", err)
	}
	segments[0].pins.Store(1)
	if err := cache.detach(segments[0]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(segments[0].path), cache.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.acquire(segments[1]); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: got %v, want ErrClosed", err)
	}
	f, err := cache.acquire(segments[0])
	if err != nil {
		t.Fatalf("a removed segment cannot be read: %v", err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("a removed segment cannot be read: %v", err)
	}
	segments[0].pins.Store(0)
	cache.unpinned(segments[0])
	cache.release(f)
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, want the removed file closed with its last pin", err)
	}
}

// The index of ten million bodies must fit in a few megabytes.
func TestIndexInMemory(t *testing.T) {
	var numbers []uint64
	for number := range uint64(10_000) {
		numbers = append(numbers, number)
	}
	s := writeSegment(t, 1, numbers...)
	if got := cap(s.pages) * 8 * 1000; got > 2<<20 {
		t.Errorf("%d bytes of memory for the index of 10 million bodies", got)
	}
}

func FuzzOpenSegment(f *testing.F) {
	s := writeSegment(f, 10, 1, 2, 3, 70)
	whole, err := os.ReadFile(s.path)
	if err != nil {
		f.Fatal(err)
	}
	footer := len(whole) - segmentFooter
	f.Add(whole[:footer], whole[footer:footer+atFooterSum], uint64(4))
	f.Fuzz(func(t *testing.T, data, fields []byte, count uint64) {
		// A footer that claims anything, with the right checksums.
		if len(fields) != atFooterSum {
			return
		}
		file := append(slices.Clone(data), fields...)
		sum := xxhash.Sum64(fields)
		file = binary.LittleEndian.AppendUint64(file, sum)
		file = append(file, segmentMagic...)
		dir := t.TempDir()
		facts := segmentFacts{Serial: 1, First: 1, Limit: 71, Count: count, Size: int64(len(file)), Checksum: formatChecksum(sum)}
		write(t, filepath.Join(dir, facts.name()), file)
		opened, err := openSegment(dir, facts)
		if err != nil {
			return
		}
		opened.files, opened.index = &fileCache{}, &pageCache{}
		defer opened.files.close()
		for number := range uint64(80) {
			_, _ = opened.body(number)
		}
		opened.verify(ignoreBody, func(uint64, error) {})
	})
}
