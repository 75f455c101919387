package fault_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

func newDisk(t *testing.T) *fault.Disk {
	t.Helper()
	d, err := fault.NewDisk(t.TempDir(), 16<<20)
	if errors.Is(err, fault.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// appendTo writes bytes and syncs them if asked.
func appendTo(f *os.File, size int, sync bool) error {
	if _, err := f.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		return err
	}
	if sync {
		return f.Sync()
	}
	return nil
}

func TestBrokenDiskLosesWhatWasNotSynced(t *testing.T) {
	d := newDisk(t)
	path := filepath.Join(d.Path(), "log")
	for breakAfterAppend(t, d, path) > time.Second {
		t.Log("the kernel had the time to write by itself what was not synced")
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 5000 {
		t.Errorf("got %v %v, want the 5000 bytes that were synced", info, err)
	}
}

// breakAfterAppend writes 5000 bytes to a new file and syncs them, writes as many
// more, and breaks and remounts the disk. It returns the time from the second write
// until the disk was broken.
func breakAfterAppend(t *testing.T, d *fault.Disk, path string) time.Duration {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := appendTo(f, 5000, true); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := errors.Join(appendTo(f, 5000, false), d.Break()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if err := appendTo(f, 1, true); !errors.Is(err, syscall.EIO) {
		t.Errorf("write to a broken disk: %v, want EIO", err)
	}
	_ = f.Close()
	if err := d.Remount(); err != nil {
		t.Fatal(err)
	}
	return took
}

// A mount namespace that somebody makes keeps a disk that was broken, whatever is
// unmounted here.
func TestRemountBesideAnotherNamespace(t *testing.T) {
	d := newDisk(t)
	keeper := exec.Command("unshare", "--mount", "cat") // until its input ends
	stdin, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(stdin.Close(), keeper.Wait()); err != nil && !t.Skipped() {
			t.Error(err)
		}
	})
	if _, err := stdin.Write([]byte("there")); err != nil {
		t.Skip(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("there"))); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(d.Break(), d.Remount()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path(), "log"), nil, 0o600); err != nil {
		t.Errorf("after the power is back: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	d := newDisk(t)
	f, err := os.Create(filepath.Join(d.Path(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := d.Fill(64 << 10); err != nil {
		t.Fatal(err)
	}
	if err := appendTo(f, 1<<20, true); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: %v, want ENOSPC", err)
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if err := appendTo(f, 1<<20, true); err != nil {
		t.Errorf("write after space was given back: %v", err)
	}
}

func TestFrozenDiskHoldsWritesUntilThawed(t *testing.T) {
	d := newDisk(t)
	f, err := os.Create(filepath.Join(d.Path(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := d.Freeze(); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- appendTo(f, 1, true) }()
	select {
	case err := <-written:
		t.Errorf("written to a frozen disk: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := d.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Errorf("write after the thaw: %v", err)
	}
}
