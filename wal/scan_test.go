package wal

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// segmentOf encodes entries as the engine does, each as a batch of its own.
func segmentOf(entries []*raft.Log) []byte {
	var data []byte
	for _, e := range entries {
		data = append(data, segmentOfBatch([]*raft.Log{e})...)
	}
	return data
}

// segmentOfBatch encodes entries that are stored at once.
func segmentOfBatch(batch []*raft.Log) []byte {
	var data []byte
	for i, e := range batch {
		record := appendRecord(nil, e, i)
		data = append(binary.AppendUvarint(data, uint64(len(record))), record...)
	}
	return data
}

func ignore(*raft.Log) error { return nil }

func TestScanRecordsStopsAtDamage(t *testing.T) {
	whole := segmentOf(entries(5, 9, 1, 200))
	two := len(segmentOf(entries(5, 6, 1, 200)))
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 1; return b }
	}
	for _, tt := range []struct {
		name    string
		corrupt func([]byte) []byte
		end     int
		next    uint64
		err     error
	}{
		{"intact", func(b []byte) []byte { return b }, len(whole), 10, nil},
		{"empty", func(b []byte) []byte { return b[:0] }, 0, 5, nil},
		{"flip in data", flip(two + 100), two, 7, errChecksum},
		{"flip in index", flip(two + 2 + atIndex), two, 7, errChecksum},
		{"flip in checksum", flip(two + 2), two, 7, errChecksum},
		{"zero length", func(b []byte) []byte { return append(b[:two], 0, 0) }, two, 7, errShortRecord},
		{"cut", func(b []byte) []byte { return b[:two+10] }, two, 7, errFrameCut},
		{"cut in length", func(b []byte) []byte { return b[:two+1] }, two, 7, errFrameCut},
		{"endless length", func(b []byte) []byte {
			return append(b[:two], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		}, two, 7, errFrameLength},
		{"repeated record", func(b []byte) []byte {
			return append(b[:two], segmentOf(entries(6, 6, 1, 200))...)
		}, two, 7, errRecordOrder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.corrupt(append([]byte(nil), whole...))
			end, next, err := scanRecords(data, 5, ignore)
			if end != tt.end || next != tt.next || !errors.Is(err, tt.err) {
				t.Errorf("got (%d, %d, %v), want (%d, %d, %v)", end, next, err, tt.end, tt.next, tt.err)
			}
		})
	}
}

func TestCheckTorn(t *testing.T) {
	batch := entries(1, 3, 1, 2001) // none ends in a zero byte
	whole, start, third := segmentOf(batch), len(segmentOf(batch[:1])), len(segmentOf(batch[:2]))
	hole := func(b []byte) []byte { clear(b[start+600 : start+1700]); return b }
	for _, tt := range []struct {
		name    string
		corrupt func([]byte) []byte
		err     error
	}{
		{"hole at the end", func(b []byte) []byte { return hole(b)[:third] }, nil},
		{"hole before an intact record", hole, errLaterRecord},
		{"hole before a record that is cut", func(b []byte) []byte { return hole(b)[:len(b)-1] }, nil},
		{"cut", func(b []byte) []byte { return b[:start+51] }, nil},
		{"cut record of another index", func(b []byte) []byte { b[start+2+atIndex]++; return b[:start+51] }, errRecordOrder},
		{"length that is too short", func(b []byte) []byte { b[start] ^= 1; return b[:third] }, errLengthBefore},
		{"length that is too long", func(b []byte) []byte { b[start] ^= 2; return b[:third] }, errLengthBefore},
		{"whole", func(b []byte) []byte { b[start+50] ^= 1; return b[:third] }, errNotTorn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.corrupt(append([]byte(nil), whole...))
			end, next, _ := scanRecords(data, 1, ignore)
			if end != start || next != 2 {
				t.Fatalf("the scan ends at %d before entry %d, want %d before entry 2", end, next, start)
			}
			if err := checkTorn(data, end, next); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
		})
	}
}

// FuzzScanSegment damages a segment in any way: what is read from it must be a
// prefix of what was written.
func FuzzScanSegment(f *testing.F) {
	f.Add(uint16(3), uint16(40), []byte{1})
	f.Add(uint16(0), uint16(0), []byte("anything"))
	f.Add(uint16(900), uint16(5000), make([]byte, 600))
	batch := entries(1, 12, 3, 100)
	whole := segmentOf(batch)
	f.Fuzz(func(t *testing.T, from, cut uint16, patch []byte) {
		data := append([]byte(nil), whole[:min(int(cut), len(whole))]...)
		at := min(int(from), len(data))
		data = append(data[:at], append(patch, data[min(at+len(patch), len(data)):]...)...)
		end, next, err := scanRecords(data, 1, func(e *raft.Log) error {
			if e.Index > uint64(len(batch)) {
				t.Fatalf("entry %d was never written", e.Index)
			}
			return sameEntry(e, batch[e.Index-1])
		})
		if (err == nil) != (end == len(data)) {
			t.Errorf("scan ends at %d of %d with %v", end, len(data), err)
		}
		if err != nil {
			_ = checkTorn(data, end, next)
		}
	})
}
