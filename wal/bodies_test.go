package wal

import (
	"bytes"
	"iter"
	"testing"
)

func bodyOf(number uint64, size int) []byte {
	return bytes.Repeat([]byte{byte(number), byte(number >> 8), byte(number >> 16)}, size/3+1)[:size]
}

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

func TestWriteLiveFreesDeadBodies(t *testing.T) {
	b := NewBodies()
	for n := uint64(1); n <= 1000; n++ {
		b.Append(n, bodyOf(n, 100))
	}
	b.CloseChunk()
	b.Append(1001, bodyOf(1001, 100))
	if got, want := b.Pending(), int64(100_100); got != want {
		t.Errorf("pending: got %d, want %d", got, want)
	}
	pinned, _ := b.Pin(5)
	var stream bytes.Buffer
	if err := b.WriteLive(&stream, ranges(10, 2, 500, 1)); err != nil {
		t.Fatal(err)
	}
	if body, err := pinned(); err != nil || !bytes.Equal(body, bodyOf(5, 100)) {
		t.Errorf("pinned body changed: %v", err)
	}
	for _, n := range []uint64{10, 11, 500, 1001} {
		checkBody(t, b, n, 100)
	}
	for _, n := range []uint64{0, 1, 9, 12, 499, 501, 1000, 1002} {
		checkGone(t, b, n)
	}
	if got, want := b.Pending(), int64(100); got != want {
		t.Errorf("pending after the snapshot: got %d, want %d", got, want)
	}
	if got, want := b.Held(), int64(400); got != want {
		t.Errorf("held: got %d, want %d", got, want)
	}

	restored := NewBodies()
	restored.Append(77, bodyOf(77, 3))
	commit, err := restored.OpenGeneration(&stream, 1001)
	if err != nil {
		t.Fatal(err)
	}
	checkBody(t, restored, 77, 3)
	commit()
	checkGone(t, restored, 77)
	for _, n := range []uint64{10, 11, 500} {
		checkBody(t, restored, n, 100)
	}
	restored.Append(1001, bodyOf(1001, 9))
	checkBody(t, restored, 1001, 9)
}
