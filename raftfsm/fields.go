package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"holdfast.internal/sqs"
)

// The ways in which bytes can fail to be what they should be.
var (
	errShort    = errors.New("ends inside a field")
	errTrailing = errors.New("goes on after its last field")
	errVarint   = errors.New("integer too long")
	errBool     = errors.New("boolean neither 0 nor 1")
	errCount    = errors.New("too many items")
)

// fields is a walk over the fields of a value that either writes or reads
// them, so that one description serves both. Every method takes a field's
// value and returns it: when writing, what it was given; when reading, what it
// has read. After the first error reading yields zero values, writing goes on.
type fields struct {
	data    []byte // when writing, all that was written; when reading, what is left
	reading bool
	err     error
	names   *interner     // of the strings read; may be nil
	ranges  []NumberRange // room for those read
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	if f.reading {
		f.data = nil
	}
}

// end is the error of the walk; bytes left over are one.
func (f *fields) end() error {
	if f.reading && f.err == nil && len(f.data) > 0 {
		f.fail(errTrailing)
	}
	return f.err
}

// u64 is an unsigned varint.
func (f *fields) u64(v uint64) uint64 {
	if !f.reading {
		f.data = binary.AppendUvarint(f.data, v)
		return v
	}
	v, n := binary.Uvarint(f.data)
	if n <= 0 {
		f.fail(varintError(n))
		return 0
	}
	f.data = f.data[n:]
	return v
}

// i64 is a signed varint (zigzag).
func (f *fields) i64(v int64) int64 {
	if !f.reading {
		f.data = binary.AppendVarint(f.data, v)
		return v
	}
	v, n := binary.Varint(f.data)
	if n <= 0 {
		f.fail(varintError(n))
		return 0
	}
	f.data = f.data[n:]
	return v
}

func varintError(n int) error {
	if n == 0 {
		return errShort
	}
	return errVarint
}

func (f *fields) u32(v uint32) uint32 {
	w := f.u64(uint64(v))
	if w != uint64(uint32(w)) {
		f.fail(errVarint)
		return 0
	}
	return uint32(w)
}

func (f *fields) int(v int) int                     { return int(f.i64(int64(v))) }
func (f *fields) time(v sqs.Time) sqs.Time          { return sqs.Time(f.i64(int64(v))) }
func (f *fields) dur(v time.Duration) time.Duration { return time.Duration(f.i64(int64(v))) }

func (f *fields) byte(v byte) byte {
	if !f.reading {
		f.data = append(f.data, v)
		return v
	}
	if len(f.data) == 0 {
		f.fail(errShort)
		return 0
	}
	v, f.data = f.data[0], f.data[1:]
	return v
}

func (f *fields) bool(v bool) bool {
	var b byte
	if v {
		b = 1
	}
	b = f.byte(b)
	if b > 1 {
		f.fail(errBool)
	}
	return b == 1
}

// fixed is an array, given as a slice of it: no length is stored.
func (f *fields) fixed(v []byte) {
	if !f.reading {
		f.data = append(f.data, v...)
		return
	}
	if len(f.data) < len(v) {
		f.fail(errShort)
		return
	}
	f.data = f.data[copy(v, f.data):]
}

// bytes is a length and as many bytes. What is read aliases the input.
func (f *fields) bytes(v []byte) []byte {
	n := f.u64(uint64(len(v)))
	if !f.reading {
		f.data = append(f.data, v...)
		return v
	}
	if n > uint64(len(f.data)) {
		f.fail(errShort)
		return nil
	}
	v, f.data = f.data[:n:n], f.data[n:]
	return v
}

// str is a string; what is read is a copy.
func (f *fields) str(v string) string {
	if !f.reading {
		f.data = binary.AppendUvarint(f.data, uint64(len(v)))
		f.data = append(f.data, v...)
		return v
	}
	return string(f.bytes(nil))
}

// name is a string that is likely to come again.
func (f *fields) name(v string) string {
	if !f.reading {
		return f.str(v)
	}
	return f.names.string(f.bytes(nil))
}

// count is the number of items in a list: at most limit, and never more than
// there are bytes left, so that a lie cannot ask for much memory.
func (f *fields) count(n, limit int) int {
	v := f.u64(uint64(n))
	if v > uint64(limit) {
		f.fail(fmt.Errorf("%w: %d, at most %d", errCount, v, limit))
		return 0
	}
	if f.reading && v > uint64(len(f.data)) {
		f.fail(errShort)
		return 0
	}
	return int(v)
}

// list is a list of at most limit items.
func list[T any](f *fields, items []T, limit int, item func(*fields, T) T) []T {
	n := f.count(len(items), limit)
	if !f.reading {
		for _, v := range items {
			item(f, v)
		}
		return items
	}
	if n == 0 {
		return nil
	}
	items = make([]T, n)
	for i := range items {
		items[i] = item(f, items[i])
	}
	return items
}

// optional is a value that may be absent.
func optional[T any](f *fields, v *T, item func(*fields, T) T) *T {
	if !f.bool(v != nil) {
		return nil
	}
	if !f.reading {
		item(f, *v)
		return v
	}
	v = new(T)
	*v = item(f, *v)
	return v
}

// interner gives equal byte strings the same string, mostly. It remembers a
// bounded number of short ones, so that the names of busy queues are not
// allocated anew with every command.
type interner struct{ slots [1024]string }

const maxInterned = 128 // bytes

func (i *interner) string(b []byte) string {
	if i == nil || len(b) > maxInterned {
		return string(b)
	}
	slot := &i.slots[xxhash.Sum64(b)%uint64(len(i.slots))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}
