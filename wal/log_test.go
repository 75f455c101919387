package wal

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
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

func TestRingHoldsTheNewestEntries(t *testing.T) {
	r := newRing(100 * (ringEntryCost + 50))
	check := func(first, last uint64) {
		t.Helper()
		var e raft.Log
		for i := max(first, 1) - 1; i <= last+1; i++ {
			if got, want := r.get(i, &e), i >= first && i <= last; got != want || got && sameEntry(&e, entry(i, 1, 50)) != nil {
				t.Fatalf("entry %d of %d to %d: got %v, want %v", i, first, last, got, want)
			}
		}
	}
	push := func(from, to uint64) {
		for i := from; i <= to; i++ {
			r.push(entry(i, 1, 50))
		}
	}
	push(5, 80)
	check(5, 80)
	push(81, 300)
	check(201, 300)
	r.truncate(250)
	check(201, 250)
	push(251, 260)
	check(201, 260)
	push(400, 410) // a gap
	check(400, 410)
	r.push(entry(411, 1, 1<<20)) // larger than the ring
	check(412, 411)
	push(412, 413)
	check(412, 413)
	r.truncate(10)
	check(412, 411)
	if r.bytes != 0 || r.count != 0 {
		t.Errorf("an empty ring counts %d bytes, %d entries", r.bytes, r.count)
	}
}

// TestLogConcurrently is for the race detector: a leader's writer, its
// replicators at several distances, the compaction and the watchdog.
func TestLogConcurrently(t *testing.T) {
	const (
		total  = 300
		retain = 64 << 10
		kept   = retain / 500 // entries of 400 bytes that are surely still there
	)
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{SegmentSize: 8 << 10, RingBytes: 16 << 10, RetainBytes: retain})
	var stored atomic.Uint64
	var group sync.WaitGroup
	group.Go(func() {
		for next := uint64(1); next <= total; next += 3 {
			if err := l.StoreLogs(entries(next, next+2, 1, 400)); err != nil {
				t.Error(err)
			}
			stored.Store(next + 2)
			if next%99 == 1 { // a conflict: the last entry goes and comes again
				if err := errors.Join(l.DeleteRange(next+2, next+2), l.StoreLogs(entries(next+2, next+2, 1, 400))); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for distance := uint64(1); distance < 200; distance *= 5 {
		group.Go(func() {
			var e raft.Log
			for last := uint64(0); last < total; last = stored.Load() {
				runtime.Gosched()
				if last <= distance {
					continue
				}
				err := l.GetLog(last-distance, &e)
				if errors.Is(err, raft.ErrLogNotFound) && stored.Load() > last-distance+kept {
					continue // the log went on between the look and the read
				}
				if err != nil {
					t.Errorf("get entry %d behind %d: %v", last-distance, last, err)
				} else if err := sameEntry(&e, entry(last-distance, 1, 400)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() {
		for last := uint64(0); last < total; last = stored.Load() {
			runtime.Gosched()
			first, _ := l.FirstIndex()
			if first > 0 && last > first+20 {
				if err := l.DeleteRange(first, last-20); err != nil {
					t.Error(err)
				}
			}
			if l.Bytes() < 0 || l.Busy() < 0 {
				t.Error("negative")
			}
		}
	})
	group.Wait()
	checkEntry(t, l, entry(total, 1, 400))
}

// BenchmarkStoreLogs stores one coalesced entry of 40 KiB, as a leader under
// load does, and one of 1 KiB.
func BenchmarkStoreLogs(b *testing.B) {
	for _, size := range []int{1 << 10, 40 << 10} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			l, err := OpenLog(filepath.Join(b.TempDir(), "wal"), LogOptions{RetainBytes: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			data := bytes.Repeat([]byte("message "), size/8)
			batch := []*raft.Log{{Data: data}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for index := uint64(1); b.Loop(); index++ {
				*batch[0] = raft.Log{Index: index, Term: 1, Data: data}
				if err := l.StoreLogs(batch); err != nil {
					b.Fatal(err)
				}
				if index%2000 == 0 {
					if err := l.DeleteRange(1, index-10); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
