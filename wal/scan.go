package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

var (
	errFrameLength  = errors.New("length of record is damaged")
	errFrameCut     = errors.New("record reaches beyond the end of the file")
	errRecordOrder  = errors.New("record has the index of another one")
	errLaterRecord  = errors.New("intact records follow a damaged one")
	errNotTorn      = errors.New("record is whole, so no crash left it so")
	errLengthBefore = errors.New("record is intact, but its length is damaged")
)

// nextFrame splits the first record and its length off data.
func nextFrame(data []byte) (record []byte, size int, err error) {
	length, n := binary.Uvarint(data)
	switch {
	case n == 0:
		return nil, 0, errFrameCut
	case n < 0:
		return nil, 0, errFrameLength
	case length > uint64(len(data)-n):
		return nil, 0, errFrameCut
	}
	return data[n : n+int(length)], n + int(length), nil
}

// scanRecords reads the records at the start of data, whose indexes begin with
// first, and calls visit for each; the entry aliases data. It returns where the
// intact records end and the index that would be next. The error is nil if they
// end where data ends; it is visit's, or says what is wrong at end.
func scanRecords(data []byte, first uint64, visit func(*raft.Log) error) (end int, next uint64, err error) {
	var e raft.Log
	for next = first; end < len(data); next++ {
		record, size, err := nextFrame(data[end:])
		if err != nil {
			return end, next, err
		}
		if err := decodeRecord(record, &e); err != nil {
			return end, next, err
		}
		if e.Index != next {
			return end, next, errRecordOrder
		}
		if err := visit(&e); err != nil {
			return end, next, err
		}
		end += size
	}
	return end, next, nil
}

// checkTorn returns nil if a crash while record index was appended explains
// what data holds from end on, so that cutting it off loses nothing that was
// acknowledged. A crash leaves a part of what was written, and sectors that never
// reached the disk read as zeros, as does all behind what was written. Later
// records of the same batch may be there although this one is not.
func checkTorn(data []byte, end int, index uint64) error {
	rest := data[end:]
	if recordFollows(rest, index) {
		return errLaterRecord
	}
	if n := lengthBefore(rest, index); n > 0 && !isLengthLost(data, end, n) {
		return errLengthBefore
	}
	_, size, err := nextFrame(rest)
	switch {
	case errors.Is(err, errFrameLength): // zeros would have ended it
		return errNotTorn
	case err != nil:
		size = len(rest)
	}
	if err := checkHeader(data, end, index); err != nil {
		return fmt.Errorf("%w: %w", errNotTorn, err)
	}
	if hasZeroSector(data[:end+size], end) {
		return nil
	}
	if !errors.Is(err, errFrameCut) {
		return errNotTorn
	}
	return checkCutRecord(rest, index)
}

// lengthBefore is how many bytes there are before record index, if it is intact;
// else 0.
func lengthBefore(rest []byte, index uint64) int {
	for n := 1; n <= binary.MaxVarintLen64 && n < len(rest); n++ {
		if beginsRecord(rest[n:], index) {
			return n
		}
	}
	return 0
}

// isLengthLost reports whether the n bytes at end, before an intact record, lie
// in two sectors of which the first did not reach the disk.
func isLengthLost(data []byte, end, n int) bool {
	boundary := sectorEnd(end)
	return boundary <= end+n && isZero(data[end:boundary])
}

// checkHeader looks whether the header at end can be that of record index, if all
// of its sectors reached the disk, and something behind it.
func checkHeader(data []byte, end int, index uint64) error {
	length, n := binary.Uvarint(data[end:])
	after := end + n + recordHeader
	if n <= 0 || after >= len(data) || isZero(data[after:]) {
		return nil
	}
	for at := end; at < after; at = sectorEnd(at) {
		if isZero(data[at:min(sectorEnd(at), len(data))]) {
			return nil
		}
	}
	header := data[end+n : after]
	if recordIndex(header) != index {
		return errRecordOrder
	}
	if uint64(recordSize(header)) != length {
		return errRecordSize
	}
	return nil
}

// checkCutRecord looks whether a record of which the end is missing can be
// record index.
func checkCutRecord(rest []byte, index uint64) error {
	_, n := binary.Uvarint(rest)
	if record := rest[n:]; len(record) >= atTerm && recordIndex(record) != index {
		return fmt.Errorf("%w: %w", errNotTorn, errRecordOrder)
	}
	return nil
}

// recordFollows looks for an intact record that was written when record index
// was durable, at any place in rest.
func recordFollows(rest []byte, index uint64) bool {
	most := uint64(len(rest)/emptyRecord) + 1 // records that rest has room for
	for at := range rest {
		record, _, err := nextFrame(rest[at:])
		if err != nil || len(record) < emptyRecord {
			continue
		}
		if distance := recordIndex(record) - index; distance == 0 || distance > most {
			continue
		}
		if batchIndex(record) > index && isRecord(record, recordIndex(record)) {
			return true
		}
	}
	return false
}

// isRecord reports whether b is an intact record of that index, whole.
func isRecord(b []byte, index uint64) bool {
	var e raft.Log
	return len(b) >= emptyRecord && recordIndex(b) == index && decodeRecord(b, &e) == nil
}

// beginsRecord reports whether b begins with an intact record of that index.
func beginsRecord(b []byte, index uint64) bool {
	return len(b) >= emptyRecord && recordSize(b) <= int64(len(b)) && isRecord(b[:recordSize(b)], index)
}

// hasZeroSector reports whether data from end on ends in a zero byte, or
// contains a sector whose bytes are all zero.
func hasZeroSector(data []byte, end int) bool {
	if len(data) > end && data[len(data)-1] == 0 {
		return true
	}
	for at := end; at < len(data); at = sectorEnd(at) {
		if isZero(data[at:min(sectorEnd(at), len(data))]) {
			return true
		}
	}
	return false
}

// sectorEnd is where the sector ends in which the byte at an offset is.
func sectorEnd(at int) int { return (at/sectorSize + 1) * sectorSize }

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
