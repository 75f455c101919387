package wal

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
)

// Records take the place of zeros in a file that is being read: what a scan beside a
// node finds is a part of the log, and no damage.
func TestScanBesideAWriter(t *testing.T) {
	const size = 3 << 20
	dir := t.TempDir()
	if err := markFormat(osFiles{}, dir); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	var written atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		at, body := 0, bytes.Repeat([]byte{7}, 300)
		for index := uint64(1); ; index++ {
			record := segmentOf([]*raft.Log{{Index: index, Data: body}})
			if at+len(record) > size {
				break
			}
			if _, err := f.WriteAt(record, int64(at)); err != nil {
				t.Error(err)
				return
			}
			at += len(record)
			written.Store(index)
		}
	}()
	for running := true; running && !t.Failed(); {
		select {
		case <-done:
			running = false
		default:
		}
		least, last := written.Load(), uint64(0)
		err := Scan(dir, 1, 0, func(e *raft.Log) error {
			if e.Index != last+1 {
				t.Errorf("entry %d is visited after entry %d", e.Index, last)
			}
			last = e.Index
			return nil
		})
		if err != nil || last < least {
			t.Errorf("the scan ends at entry %d, %d were written before it began: %v", last, least, err)
		}
	}
	<-done
}

// The zeros go when a node stops.
func TestReadFileThatShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, make([]byte, 8<<20))
	done := make(chan error)
	go func() { done <- os.Truncate(path, 5000) }()
	b, err := readFile(path, nil)
	if err != nil || len(b) < 5000 {
		t.Errorf("got %d bytes and %v, want 5,000 at least", len(b), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
