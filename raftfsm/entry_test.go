package raftfsm

import (
	"errors"
	"reflect"
	"testing"

	"holdfast.internal/sqs"
)

func TestEntryRoundTrip(t *testing.T) {
	const at sqs.Time = 1_700_000_000_123
	want := []Operation{
		{Command: []byte("first")},
		{Origin: Origin{Session: 7, Number: 9, Acks: []NumberRange{{1, 5}, {8, 8}}}, Command: []byte("second")},
		{Origin: Origin{Session: 1 << 63}, Command: []byte("third")},
	}
	entry := AppendEntryHeader(nil, at)
	for _, op := range want {
		entry = AppendOperation(entry, op.Origin, op.Command)
	}
	now, got, err := DecodeEntry(entry)
	if err != nil {
		t.Fatal(err)
	}
	if now != at || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d %v, want %d %v", now, got, at, want)
	}
}

// TestEntryCutOff: an entry that ends anywhere but between two operations is
// refused.
func TestEntryCutOff(t *testing.T) {
	entry := AppendEntryHeader(nil, 5)
	whole := map[int]bool{len(entry): true}
	for _, o := range []Origin{{}, {Session: 300, Number: 2, Acks: []NumberRange{{1, 1}}}} {
		entry = AppendOperation(entry, o, []byte("command"))
		whole[len(entry)] = true
	}
	for n := range len(entry) + 1 {
		if _, _, err := DecodeEntry(entry[:n]); (err == nil) != whole[n] {
			t.Errorf("%d of %d bytes: got error %v, want one: %v", n, len(entry), err, !whole[n])
		}
	}
}

func TestEntryOfUnknownFormat(t *testing.T) {
	entry := AppendOperation(AppendEntryHeader(nil, 5), Origin{}, []byte("command"))
	entry[0] = 2
	if _, _, err := DecodeEntry(entry); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want %v", err, ErrFormat)
	}
	entry[0] = entryFormat
	entry[entryHeaderSize] = 2
	if _, _, err := DecodeEntry(entry); !errors.Is(err, errOrigin) {
		t.Errorf("got %v, want %v", err, errOrigin)
	}
}
