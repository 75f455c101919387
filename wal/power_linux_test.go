package wal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/jepsen/fault"
)

// mountDisk is an ext4 with a journal, of its own.
func mountDisk(t *testing.T, size int64) *fault.Disk {
	t.Helper()
	disk, err := fault.NewDisk(t.TempDir(), size)
	if errors.Is(err, fault.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// A record that a killed process has written and not synced is there when the next
// one starts. raft takes it for durable, so that it is there after a power cut.
func TestWhatAStartFindsIsDurable(t *testing.T) {
	const variable = "WAL_TEST_START"
	if dir := os.Getenv(variable); dir != "" {
		l, err := OpenLog(dir, LogOptions{})
		if err != nil {
			panic(err)
		}
		last, _ := l.LastIndex()
		fmt.Printf("\nresult %d\n", last)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	disk := mountDisk(t, 32<<20)
	dir := filepath.Join(disk.Path(), "wal")
	if err := errors.Join(os.Mkdir(dir, dirPermissions), markFormat(osFiles{}, dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, segmentName(1))
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(segmentOf(entries(1, 1, 1, 100)))
	if err := errors.Join(err, f.Sync(), osFiles{}.syncDir(dir), osFiles{}.syncDir(disk.Path())); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(segmentOf(entries(2, 2, 1, 100)))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestWhatAStartFindsIsDurable$")
	child.Env = append(os.Environ(), variable+"="+dir)
	out, _ := child.CombinedOutput() // it was killed
	var found uint64
	if _, err := fmt.Sscanf(lineOf(string(out), "result "), "result %d", &found); err != nil || found != 2 {
		t.Fatalf("%d entries were found, want 2: %v in %q", found, err, out)
	}
	if err := errors.Join(disk.Break(), disk.Remount()); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, dir, LogOptions{})
	checkBounds(t, l, 1, 2)
	checkEntry(t, l, entry(2, 1, 100))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// entryOf is an entry whose size depends on its index.
func entryOf(index uint64) *raft.Log { return entry(index, 1, int(index*3571%40_000)) }

// A disk fills up, and zeros with it: the process stops, and the next one, on a disk
// that is still full, finds what was acknowledged. What it lets go makes room.
func TestStartOnAFullDisk(t *testing.T) {
	const variable = "WAL_TEST_FULL"
	options := LogOptions{SegmentSize: 1 << 20, RetainBytes: 1}
	if dir := os.Getenv(variable); dir != "" {
		l, err := OpenLog(dir, options)
		if err != nil {
			panic(err)
		}
		last, _ := l.LastIndex()
		for l.StoreLogs([]*raft.Log{entryOf(last + 1), entryOf(last + 2), entryOf(last + 3)}) == nil {
			last += 3
		}
		fmt.Printf("\nresult %d\n", last)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	disk := mountDisk(t, 10<<20)
	dir := filepath.Join(disk.Path(), "wal")
	var before uint64 // where the log ended
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestStartOnAFullDisk$")
		child.Env = append(os.Environ(), variable+"="+dir)
		out, _ := child.CombinedOutput() // it was killed
		var acked uint64
		if _, err := fmt.Sscanf(lineOf(string(out), "result "), "result %d", &acked); err != nil || round != 1 && acked <= before {
			t.Fatalf("round %d: entries to %d, before it %d: %v in %q", round, acked, before, err, out)
		}
		l := openLog(t, dir, options)
		last, _ := l.LastIndex()
		first, _ := l.FirstIndex()
		if last < acked || last > acked+3 {
			t.Errorf("round %d: the log ends at entry %d, %d were acknowledged", round, last, acked)
		}
		for i := first; i <= last; i++ {
			checkEntry(t, l, entryOf(i))
		}
		if round == 1 { // the disk is full again after a start and a stop
			if err := l.DeleteRange(first, last-3); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		before = last
	}
}
