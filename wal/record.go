package wal

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
)

const (
	// recordHeader is what precedes extensions and data.
	recordHeader = 8 + 8 + 8 + 1 + 8 + 4 + 4 + 4

	// recordEnd is the last byte of each record. It is not zero, so that zeros at
	// the end of a record are what a crash left, whatever is stored.
	recordEnd = 0xED

	// emptyRecord is the size of a record without extensions and data. A record
	// is never shorter, so zero bytes never parse as one.
	emptyRecord = recordHeader + 1
)

// The places of the header's fields; all integers are little-endian.
const (
	atChecksum   = 0 // xxhash64 of all that follows
	atIndex      = 8
	atTerm       = 16
	atType       = 24
	atAppendedAt = 25 // nanoseconds since the Unix epoch; 0 stands for none
	atExtensions = 33 // their length in bytes
	atData       = 37 // its length in bytes; with it a record is found without its frame
	atPosition   = 41 // how many records of the same StoreLogs are before it
)

var (
	errShortRecord = errors.New("record is shorter than its header")
	errChecksum    = errors.New("checksum differs")
	errRecordSize  = errors.New("record is not as long as its header says")
)

// appendRecord appends the encoding of e to dst. position is its place in the
// batch that is made durable at once, from 0 on.
func appendRecord(dst []byte, e *raft.Log, position int) []byte {
	var header [recordHeader]byte
	binary.LittleEndian.PutUint64(header[atIndex:], e.Index)
	binary.LittleEndian.PutUint64(header[atTerm:], e.Term)
	header[atType] = byte(e.Type)
	if !e.AppendedAt.IsZero() {
		binary.LittleEndian.PutUint64(header[atAppendedAt:], uint64(e.AppendedAt.UnixNano()))
	}
	binary.LittleEndian.PutUint32(header[atExtensions:], uint32(len(e.Extensions)))
	binary.LittleEndian.PutUint32(header[atData:], uint32(len(e.Data)))
	binary.LittleEndian.PutUint32(header[atPosition:], uint32(position))
	start := len(dst)
	dst = append(dst, header[:]...)
	dst = append(dst, e.Extensions...)
	dst = append(dst, e.Data...)
	dst = append(dst, recordEnd)
	binary.LittleEndian.PutUint64(dst[start:], xxhash.Sum64(dst[start+atIndex:]))
	return dst
}

// decodeRecord verifies b and reads it into e, whose Extensions and Data alias
// b afterwards; empty ones become nil.
func decodeRecord(b []byte, e *raft.Log) error {
	if len(b) < emptyRecord {
		return errShortRecord
	}
	if binary.LittleEndian.Uint64(b[atChecksum:]) != xxhash.Sum64(b[atIndex:]) {
		return errChecksum
	}
	if recordSize(b) != int64(len(b)) {
		return errRecordSize
	}
	extensions, rest := binary.LittleEndian.Uint32(b[atExtensions:]), b[recordHeader:len(b)-1]
	*e = raft.Log{
		Index:      recordIndex(b),
		Term:       binary.LittleEndian.Uint64(b[atTerm:]),
		Type:       raft.LogType(b[atType]),
		Extensions: nonEmpty(rest[:extensions:extensions]),
		Data:       nonEmpty(rest[extensions:len(rest):len(rest)]),
	}
	if at := int64(binary.LittleEndian.Uint64(b[atAppendedAt:])); at != 0 {
		e.AppendedAt = time.Unix(0, at)
	}
	return nil
}

// recordIndex reads the index of a record that has a whole header.
func recordIndex(b []byte) uint64 { return binary.LittleEndian.Uint64(b[atIndex:]) }

// recordSize reads the length of a record that has a whole header, in bytes.
func recordSize(b []byte) int64 {
	return emptyRecord + int64(binary.LittleEndian.Uint32(b[atExtensions:])) + int64(binary.LittleEndian.Uint32(b[atData:]))
}

// batchIndex reads the index of the first record of the batch in which a record
// that has a whole header was stored: all before that one were durable when it was
// written.
func batchIndex(b []byte) uint64 {
	return recordIndex(b) - uint64(binary.LittleEndian.Uint32(b[atPosition:]))
}

func nonEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
