package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"holdfast.internal/sqs"
)

// entryFormat is the first byte of every entry.
const entryFormat = 1

const entryHeaderSize = 1 + 8 // format, time

// maxAcks is the number of ranges in an origin's Acks: a session has at most so
// many numbers open, so there cannot be more gaps between acknowledged ones.
const maxAcks = 16_384

// ErrFormat says that an entry or a snapshot is of a format, or of a behaviour
// (Settings.Version), that this program does not know. It is not damaged.
var ErrFormat = errors.New("another version's format")

var errOrigin = errors.New("unknown kind of origin")

// Origin says who wants an operation, so that a repeated one is known as such.
// The zero value stands for an operation outside of any session.
type Origin struct {
	Session uint64        // 0: none
	Number  uint64        // of the operation in its session
	Acks    []NumberRange // numbers whose answers have arrived, ascending
}

// Operation is one command of an entry, still encoded, with its origin.
type Operation struct {
	Origin  Origin
	Command []byte
}

// AppendEntryHeader begins an entry whose time is t.
func AppendEntryHeader(dst []byte, t sqs.Time) []byte {
	return binary.BigEndian.AppendUint64(append(dst, entryFormat), uint64(t))
}

// AppendOperation adds an operation to an entry; command is from AppendCommand.
// An entry may have any number of operations. They are applied in their order,
// each on its own.
func AppendOperation(dst []byte, o Origin, command []byte) []byte {
	f := fields{data: dst}
	originFields(&f, o)
	f.bytes(command)
	return f.data
}

const (
	originNone    = 0
	originSession = 1
)

func originFields(f *fields, o Origin) Origin {
	var kind byte = originNone
	if o.Session != 0 {
		kind = originSession
	}
	switch f.byte(kind) {
	case originNone:
		return Origin{}
	case originSession:
		o.Session = f.u64(o.Session)
		o.Number = f.u64(o.Number)
		o.Acks = acksFields(f, o.Acks)
	default:
		f.fail(errOrigin)
	}
	return o
}

// acksFields is a list in the room of f.ranges: most operations have one.
func acksFields(f *fields, acks []NumberRange) []NumberRange {
	if !f.reading {
		return list(f, acks, maxAcks, numberRangeFields)
	}
	n, first := f.count(0, maxAcks), len(f.ranges)
	if n == 0 {
		return nil
	}
	for range n {
		f.ranges = append(f.ranges, numberRangeFields(f, NumberRange{}))
	}
	return f.ranges[first:len(f.ranges):len(f.ranges)]
}

func numberRangeFields(f *fields, r NumberRange) NumberRange {
	r.First = f.u64(r.First)
	r.Last = f.u64(r.Last)
	return r
}

// DecodeOperation reads what AppendOperation wrote, up to the end of b. The
// command aliases b.
func DecodeOperation(b []byte) (Operation, error) {
	f := fields{data: b, reading: true}
	o := Operation{Origin: originFields(&f, Origin{})}
	o.Command = f.bytes(nil)
	if err := f.end(); err != nil {
		return Operation{}, fmt.Errorf("decode operation: %w", err)
	}
	return o, nil
}

// DecodeEntry reads an entry's time and operations. The commands alias b.
func DecodeEntry(b []byte) (sqs.Time, []Operation, error) {
	var r entryRoom
	t, err := r.decode(b)
	if err != nil {
		return 0, nil, err
	}
	return t, r.operations, nil
}

// entryRoom is where the operations of one entry after the other are decoded to.
type entryRoom struct {
	operations []Operation
	ranges     []NumberRange // of their acknowledgements
}

// decode is DecodeEntry in place of what was decoded before.
func (r *entryRoom) decode(b []byte) (sqs.Time, error) {
	if len(b) < entryHeaderSize {
		return 0, fmt.Errorf("decode entry: %w", errShort)
	}
	if b[0] != entryFormat {
		return 0, fmt.Errorf("decode entry: %w: %d", ErrFormat, b[0])
	}
	t := sqs.Time(binary.BigEndian.Uint64(b[1:]))
	f := fields{data: b[entryHeaderSize:], reading: true, ranges: r.ranges[:0]}
	r.operations = r.operations[:0]
	for len(f.data) > 0 {
		o := originFields(&f, Origin{})
		r.operations = append(r.operations, Operation{Origin: o, Command: f.bytes(nil)})
	}
	r.ranges = f.ranges
	if err := f.end(); err != nil {
		return 0, fmt.Errorf("decode entry: operation %d: %w", len(r.operations), err)
	}
	return t, nil
}
