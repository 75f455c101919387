package wal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"holdfast.internal/jepsen/fault"
)

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
	disk, err := fault.NewDisk(t.TempDir(), 32<<20)
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
	dir := filepath.Join(disk.Path(), "wal")
	if err := os.Mkdir(dir, dirPermissions); err != nil {
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
