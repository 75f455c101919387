package raftfsm

import (
	"io"
	"iter"
)

// union yields the numbers of two series of ranges (first, count), each ascending
// and apart, as one such series.
func union(a, b iter.Seq2[uint64, uint64]) iter.Seq2[uint64, uint64] {
	return func(yield func(first, count uint64) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		first, count, more := next()
		for f, n := range a {
			for more && first < f {
				end := min(first+count, f)
				if !yield(first, end-first) {
					return
				}
				if count -= end - first; count > 0 {
					first = end
					break
				}
				first, count, more = next()
			}
			for more && first < f+n { // what both have
				skip := min(count, f+n-first)
				if count -= skip; count > 0 {
					first += skip
					break
				}
				first, count, more = next()
			}
			if !yield(f, n) {
				return
			}
		}
		for ; more; first, count, more = next() {
			if !yield(first, count) {
				return
			}
		}
	}
}

// Bodies keeps the contents of messages by their numbers. Its signatures have
// builtin types only, so that an implementation need not know this package.
// All methods but Pin, WriteLive and Pending are called by one goroutine, under
// the lock of the Machine; those three may be called concurrently with the others.
type Bodies interface {
	// Append keeps record under number, which is one more than that of the
	// call before. The record may be kept as it is, for nobody changes it; but
	// it is a part of the memory of a whole log entry.
	Append(number uint64, record []byte)

	// Pin returns a function that reads the body of that number, at any time
	// and from any goroutine, whatever happens to the body meanwhile. It
	// reports false if there is no such body; of one that is dead it may report
	// true, and reading is then an error. Pin does not wait for a disk.
	Pin(number uint64) (func() ([]byte, error), bool)

	// CloseChunk marks the moment of a snapshot: the next WriteLive writes
	// what was appended before it.
	CloseChunk()

	// WriteLive writes the live bodies, given as ranges of numbers (first,
	// count) in ascending order, and may forget all others that were appended
	// before CloseChunk.
	WriteLive(w io.Writer, live iter.Seq2[uint64, uint64]) error

	// OpenGeneration reads what WriteLive wrote, up to the end of r, without
	// changing what Pin finds. If r is the StateReader of a snapshot of this
	// node, the bodies are where WriteLive has put them. Calling commit replaces the old bodies by the
	// new ones; the next number to be appended is next. Without that call the
	// new ones are dropped.
	OpenGeneration(r io.Reader, next uint64) (commit func(), err error)

	// Pending is the number of bytes that are in memory and in no snapshot.
	Pending() int64
}
