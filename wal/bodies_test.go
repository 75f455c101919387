package wal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func bodyOf(number uint64, size int) []byte {
	return bytes.Repeat([]byte{byte(number), byte(number >> 8), byte(number >> 16)}, size/3+1)[:size]
}

// ranges is pairs of first and count.
func ranges(pairs ...uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(first, count uint64) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}

func checkBody(t *testing.T, b *Bodies, number uint64, size int) {
	t.Helper()
	read, found := b.Pin(number)
	if !found {
		t.Errorf("body %d is gone", number)
		return
	}
	if got, err := read(); err != nil || !bytes.Equal(got, bodyOf(number, size)) {
		t.Errorf("body %d: got %d bytes, error %v", number, len(got), err)
	}
}

func checkGone(t *testing.T, b *Bodies, number uint64) {
	t.Helper()
	if _, found := b.Pin(number); found {
		t.Errorf("body %d is there, want it gone", number)
	}
}

// heldBy is the size of all bodies in memory, in bytes.
func heldBy(b *Bodies) int64 { return b.open.bytes + sumSizes(b.closed) }

func checkSizes(t *testing.T, b *Bodies, pending, held int64) {
	t.Helper()
	if b.Pending() != pending || heldBy(b) != held {
		t.Errorf("got %d bytes pending, %d held; want %d, %d", b.Pending(), heldBy(b), pending, held)
	}
}

func TestWriteLiveFreesDeadBodies(t *testing.T) {
	b := NewBodies()
	for n := uint64(1); n <= 1000; n++ {
		b.Append(n, bodyOf(n, 100))
	}
	b.CloseChunk()
	b.CloseChunk() // nothing is open
	b.Append(1001, bodyOf(1001, 100))
	checkSizes(t, b, 100_100, 100_100)
	pinned, _ := b.Pin(5)
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, ranges(10, 2, 400, 0, 500, 1)); err != nil {
		t.Fatal(err)
	}
	if body, err := pinned(); err != nil || !bytes.Equal(body, bodyOf(5, 100)) {
		t.Errorf("a pinned body changed: %v", err)
	}
	for _, n := range []uint64{10, 11, 500, 1001} {
		checkBody(t, b, n, 100)
	}
	for _, n := range []uint64{0, 1, 9, 12, 499, 501, 1000, 1002} {
		checkGone(t, b, n)
	}
	checkSizes(t, b, 100, 400)

	b.CloseChunk()
	if err := b.WriteLive(&bytes.Buffer{}, ranges()); err != nil {
		t.Fatal(err)
	}
	checkSizes(t, b, 0, 0)
	b.Append(1002, nil)
	checkBody(t, b, 1002, 0)
}

func TestGenerationReplacesAllBodies(t *testing.T) {
	b := NewBodies()
	for n := uint64(10); n < 20; n++ {
		b.Append(n, bodyOf(n, 50))
	}
	b.CloseChunk()
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, ranges(11, 1, 15, 3)); err != nil {
		t.Fatal(err)
	}
	restored := NewBodies()
	restored.Append(77, bodyOf(77, 3))
	pinned, _ := restored.Pin(77)
	stream.WriteString("not ours")
	commit, err := restored.OpenGeneration(&stream, 20)
	if err != nil {
		t.Fatal(err)
	}
	if stream.String() != "not ours" {
		t.Errorf("it was read beyond the end of the bodies")
	}
	checkBody(t, restored, 77, 3)
	commit()
	checkGone(t, restored, 77)
	if body, err := pinned(); err != nil || !bytes.Equal(body, bodyOf(77, 3)) {
		t.Errorf("a pinned body changed: %v", err)
	}
	for _, n := range []uint64{11, 15, 16, 17} {
		checkBody(t, restored, n, 50)
	}
	checkSizes(t, restored, 0, 200)
	restored.Append(20, bodyOf(20, 9))
	checkBody(t, restored, 20, 9)
}

func TestBodiesMisuse(t *testing.T) {
	b := NewBodies()
	for n := uint64(1); n <= 10; n++ {
		b.Append(n, bodyOf(n, 5))
	}
	b.CloseChunk()
	b.Append(11, bodyOf(11, 5))
	for _, tt := range []struct {
		name string
		live iter.Seq2[uint64, uint64]
	}{
		{"number that is not stored", ranges(0, 1)},
		{"number of the open chunk", ranges(10, 2)},
		{"number that goes back", ranges(5, 1, 4, 1)},
	} {
		if err := b.WriteLive(&bytes.Buffer{}, tt.live); err == nil {
			t.Errorf("%s: it was written", tt.name)
		}
	}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "number 12 is next") {
			t.Errorf("a number that is skipped: got panic %q", p)
		}
	}()
	b.Append(13, nil)
}

func TestWriteLiveFailsAndIsRepeated(t *testing.T) {
	b := NewBodies()
	for n := range uint64(300) {
		b.Append(n, bodyOf(n, 50_000)) // several packed chunks
		if n%90 == 0 {
			b.CloseChunk()
		}
	}
	b.CloseChunk()
	live := ranges(3, 200, 250, 20)
	disk := errors.New("the disk is full")
	for limit := range 11 {
		w := &limitedWriter{left: limit << 20, err: disk}
		if err := b.WriteLive(w, live); !errors.Is(err, disk) {
			t.Fatalf("after %d MiB: got %v, want the writer's error", limit, err)
		}
		if b.Pending() != 300*50_000 {
			t.Fatalf("after a failure %d bytes are pending, want all", b.Pending())
		}
		for n := uint64(3); n < 203; n++ {
			checkBody(t, b, n, 50_000)
		}
	}
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, live); err != nil {
		t.Fatal(err)
	}
	checkSizes(t, b, 0, 220*50_000)
	if _, err := NewBodies().OpenGeneration(&stream, 300); err != nil {
		t.Error(err)
	}
}

type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

func TestDamagedStreamIsRefused(t *testing.T) {
	b := NewBodies()
	for n := range uint64(3) {
		b.Append(n, bodyOf(n, 40))
	}
	b.CloseChunk()
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, ranges(0, 3)); err != nil {
		t.Fatal(err)
	}
	whole := stream.Bytes()
	refused := func(what string, damaged []byte) {
		t.Helper()
		if _, err := NewBodies().OpenGeneration(iotest.HalfReader(bytes.NewReader(damaged)), 3); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", what, err)
		}
	}
	for at := range whole {
		refused(fmt.Sprintf("cut at byte %d", at), whole[:at])
		for bit := range 8 {
			damaged := slices.Clone(whole)
			damaged[at] ^= 1 << bit
			refused(fmt.Sprintf("flip of bit %d of byte %d", bit, at), damaged)
		}
	}
	frame := func(number uint64, body []byte) []byte {
		header := make([]byte, frameHeader)
		putFrameHeader(header, number, body)
		return append(header, body...)
	}
	end := func(count uint64) []byte { return frame(endOfStream, binary.LittleEndian.AppendUint64(nil, count)) }
	refused("frame left out", append(frame(0, nil), end(2)...))
	refused("frame doubled", slices.Concat(frame(1, nil), frame(1, nil), end(2)))
	refused("number beyond the state", append(frame(3, nil), end(1)...))
}

// TestBodiesAgainstMap runs random rounds of appending, dying and snapshots,
// and compares every body and the stream with a map.
func TestBodiesAgainstMap(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 2))
		b, want := NewBodies(), map[uint64]int{}
		next := uint64(1)
		for range 10 {
			for range random.IntN(2000) {
				size := random.IntN(5000)
				b.Append(next, bodyOf(next, size))
				want[next] = size
				next++
			}
			die := random.IntN(4)
			for n := range want {
				if random.IntN(4) < die {
					delete(want, n)
				}
			}
			b.CloseChunk()
			var stream bytes.Buffer
			if err := b.WriteLive(&stream, liveOf(want)); err != nil {
				t.Fatal(err)
			}
			compareBodies(t, b, want, next)
			if random.IntN(3) == 0 {
				b = NewBodies()
			}
			commit, err := b.OpenGeneration(&stream, next)
			if err != nil {
				t.Fatal(err)
			}
			if random.IntN(2) == 0 || heldBy(b) == 0 {
				commit()
				compareBodies(t, b, want, next)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// liveOf gives numbers as ranges.
func liveOf(want map[uint64]int) iter.Seq2[uint64, uint64] {
	return func(yield func(first, count uint64) bool) {
		numbers := slices.Sorted(maps.Keys(want))
		for i := 0; i < len(numbers); {
			first, n := numbers[i], uint64(0)
			for ; i < len(numbers) && numbers[i] == first+n; i++ {
				n++
			}
			if !yield(first, n) {
				return
			}
		}
	}
}

func compareBodies(t *testing.T, b *Bodies, want map[uint64]int, next uint64) {
	t.Helper()
	var live int64
	for n := range next + 1 {
		size, isLive := want[n]
		if !isLive {
			continue
		}
		live += int64(size)
		checkBody(t, b, n, size)
	}
	checkGone(t, b, next)
	if b.Pending() != 0 {
		t.Errorf("%d bytes are pending after a snapshot", b.Pending())
	}
	if limit := live + live/3 + 1; heldBy(b) < live || heldBy(b) > limit {
		t.Errorf("%d bytes are held for %d live ones", heldBy(b), live)
	}
}

// One live message must not keep the log entry that it came with.
func TestPackedBodiesDoNotReferToEntries(t *testing.T) {
	b := NewBodies()
	entry := bytes.Repeat([]byte{1}, 256<<10)
	b.Append(1, entry[:10:10])
	b.CloseChunk()
	if err := b.WriteLive(&bytes.Buffer{}, ranges(1, 1)); err != nil {
		t.Fatal(err)
	}
	read, _ := b.Pin(1)
	body, _ := read()
	entry[0] = 9
	if body[0] == 9 {
		t.Error("the body is still a part of the entry")
	}
	if c := b.closed[0].(*packedChunk); cap(c.slab) > 64 {
		t.Errorf("%d bytes of memory for 10 of a body", cap(c.slab))
	}
}

// Many small leftovers are merged, so that their number does not grow with
// the number of snapshots.
func TestLeftoversAreMerged(t *testing.T) {
	b := NewBodies()
	var live []uint64
	for round := range uint64(100) {
		for n := round * 50; n < round*50+50; n++ {
			b.Append(n, bodyOf(n, 1000))
		}
		live = append(live, round*50, 1)
		b.CloseChunk()
		if err := b.WriteLive(&bytes.Buffer{}, ranges(live...)); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.closed) > 2 {
		t.Errorf("%d chunks for 100 bodies of 1,000 bytes", len(b.closed))
	}
	checkBody(t, b, 4950, 1000)
}

// A Restore may come while a snapshot is written; the snapshot is of the
// state before.
func TestGenerationChangesDuringWriteLive(t *testing.T) {
	b := NewBodies()
	for n := range uint64(300) {
		b.Append(n, bodyOf(n, 30_000))
	}
	b.CloseChunk()
	var other bytes.Buffer
	if err := (&streamWriter{w: bufio.NewWriter(&other)}).end(); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	err := b.WriteLive(&stream, func(yield func(first, count uint64) bool) {
		if !yield(0, 250) {
			return
		}
		commit, err := b.OpenGeneration(&other, 1000)
		if err != nil {
			t.Error(err)
			return
		}
		commit()
		b.Append(1000, bodyOf(1000, 7))
		yield(250, 10)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkGone(t, b, 0)
	checkBody(t, b, 1000, 7)
	checkSizes(t, b, 7, 7)
	commit, err := b.OpenGeneration(&stream, 300)
	if err != nil {
		t.Fatal(err)
	}
	commit()
	checkBody(t, b, 259, 30_000)
	checkGone(t, b, 260)
}

// TestBodiesConcurrently has readers and an appender beside WriteLive; it is
// for the race detector, and for bodies that vanish while they are replaced.
func TestBodiesConcurrently(t *testing.T) {
	const total, keep = 30_000, 7 // every seventh body lives
	b := NewBodies()
	var group sync.WaitGroup
	appended := make(chan uint64, 64)
	group.Go(func() {
		defer close(appended)
		for n := range uint64(total) {
			b.Append(n, bodyOf(n, 400))
			if n%keep == 0 {
				appended <- n
			}
		}
	})
	for range 2 {
		group.Go(func() {
			var pinned []func() ([]byte, error)
			var numbers []uint64
			for n := range appended {
				read, found := b.Pin(n)
				if !found {
					t.Errorf("body %d is gone", n)
					return
				}
				pinned, numbers = append(pinned, read), append(numbers, n)
				checkBody(t, b, n/2/keep*keep, 400)
			}
			for i, read := range pinned {
				if body, err := read(); err != nil || !bytes.Equal(body, bodyOf(numbers[i], 400)) {
					t.Errorf("pinned body %d: %d bytes, error %v", numbers[i], len(body), err)
				}
			}
		})
	}
	group.Go(func() {
		for range 30 {
			b.CloseChunk()
			b.mu.RLock()
			limit := b.open.first
			b.mu.RUnlock()
			err := b.WriteLive(&bytes.Buffer{}, func(yield func(first, count uint64) bool) {
				for n := uint64(0); n < limit; n += keep {
					if !yield(n, 1) {
						return
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
}

func FuzzOpenGeneration(f *testing.F) {
	b := NewBodies()
	b.Append(0, []byte("body"))
	b.Append(1, nil)
	b.CloseChunk()
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, ranges(0, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, data []byte) {
		b := NewBodies()
		commit, err := b.OpenGeneration(bytes.NewReader(data), 10)
		if err != nil {
			return
		}
		commit()
		b.Append(10, nil)
	})
}

func BenchmarkBodiesAppendAndPin(b *testing.B) {
	store, record := NewBodies(), make([]byte, 1024)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		store.Append(n, record)
		if read, found := store.Pin(n); !found || read == nil {
			b.Fatal("gone")
		}
		if n%(128<<10) == 0 {
			store.CloseChunk()
			if err := store.WriteLive(&limitedWriter{left: 1 << 30}, ranges()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
