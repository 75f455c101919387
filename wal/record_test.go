package wal

import (
	"bytes"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestRecordRoundTrip(t *testing.T) {
	for _, want := range []raft.Log{
		{Index: 1},
		{Index: 1<<64 - 1, Term: 1<<64 - 1, Type: raft.LogConfiguration, Data: []byte("d")},
		{Index: 2, Term: 1, Type: raft.LogNoop, Extensions: []byte("ext")},
		{Index: 3, Data: bytes.Repeat([]byte{0}, 300), Extensions: []byte{0}, AppendedAt: time.Unix(1_700_000_000, 123)},
	} {
		b := appendRecord([]byte("before"), &want, 3)
		var got raft.Log
		if err := decodeRecord(b[len("before"):], &got); err != nil {
			t.Errorf("entry %d: %v", want.Index, err)
			continue
		}
		if err := sameEntry(&got, &want); err != nil {
			t.Error(err)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(appendRecord(nil, entry(7, 2, 40), 0))
	f.Add(appendRecord(nil, &raft.Log{Index: 1, Extensions: []byte("e")}, 1))
	f.Add(make([]byte, recordHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e raft.Log
		if err := decodeRecord(b, &e); err != nil {
			return
		}
		if again := appendRecord(nil, &e, int(recordIndex(b)-batchIndex(b))); !bytes.Equal(again, b) {
			t.Errorf("%x is read as %+v, which is written as %x", b, e, again)
		}
	})
}
