package wal

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// entry makes the entry that every test expects at index.
func entry(index, term uint64, size int) *raft.Log {
	data := bytes.Repeat([]byte{byte(index), byte(index >> 8), 0xA5}, size/3+1)[:size]
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: data}
}

func entries(from, to, term uint64, size int) []*raft.Log {
	var batch []*raft.Log
	for i := from; i <= to; i++ {
		batch = append(batch, entry(i, term, size))
	}
	return batch
}

func openLog(t *testing.T, dir string, o LogOptions) *Log {
	t.Helper()
	l, err := OpenLog(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func store(t *testing.T, l *Log, batch []*raft.Log) {
	t.Helper()
	if err := l.StoreLogs(batch); err != nil {
		t.Fatal(err)
	}
}

func checkBounds(t *testing.T, l *Log, first, last uint64) {
	t.Helper()
	gotFirst, _ := l.FirstIndex()
	gotLast, _ := l.LastIndex()
	if gotFirst != first || gotLast != last {
		t.Errorf("got entries %d to %d, want %d to %d", gotFirst, gotLast, first, last)
	}
}

func checkEntry(t *testing.T, l *Log, want *raft.Log) {
	t.Helper()
	var got raft.Log
	if err := l.GetLog(want.Index, &got); err != nil {
		t.Errorf("get entry %d: %v", want.Index, err)
		return
	}
	if err := sameEntry(&got, want); err != nil {
		t.Error(err)
	}
}

func sameEntry(got, want *raft.Log) error {
	if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type ||
		!bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Extensions, want.Extensions) ||
		!got.AppendedAt.Equal(want.AppendedAt) {
		return fmt.Errorf("entry %d: got term %d, type %v, %d bytes; want term %d, type %v, %d bytes",
			want.Index, got.Term, got.Type, len(got.Data), want.Term, want.Type, len(want.Data))
	}
	return nil
}

func TestLogKeepsEntriesOverReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	o := LogOptions{SegmentSize: 4096}
	l := openLog(t, dir, o)
	checkBounds(t, l, 0, 0)
	if err := l.GetLog(1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v of an empty log, want ErrLogNotFound", err)
	}
	for i := uint64(1); i <= 200; i += 10 {
		store(t, l, entries(i, i+9, 1, 300))
	}
	l.Close()
	l = openLog(t, dir, o)
	checkBounds(t, l, 1, 200)
	for i := uint64(1); i <= 200; i++ {
		checkEntry(t, l, entry(i, 1, 300))
	}
	store(t, l, entries(201, 201, 2, 10))
	checkEntry(t, l, entry(201, 2, 10))
}
