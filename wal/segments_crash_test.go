package wal

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// crashNode is a node on faulty files with segments that the next snapshots
// drop, merge and keep.
func crashNode(dir string, f files) (*bodyNode, error) {
	n, err := openNode(dir, f, smallLimits)
	if err != nil {
		return nil, err
	}
	for range 3 {
		n.append(40, 50)
		err = errors.Join(err, n.snapshot())
	}
	n.append(120, 60)
	err = errors.Join(err, n.snapshot())
	n.kill(between(1, 60))     // some segments have none left
	n.kill(every(5, 0, 1, 2))  // some become small
	n.kill(between(170, 240))  // in the middle as well
	n.append(30, 70)           // and there are new ones
	n.kill(every(9, 0))        // not all of which live
	return n, errors.Join(err) // nothing of it is in a snapshot yet
}

// TestPowerCutAfterEveryCall cuts the power after each call to the file system
// of two snapshots, which write, merge and unlink: the next start finds the
// bodies of the last one that was finished, or of the one after it.
func TestPowerCutAfterEveryCall(t *testing.T) {
	step := 1
	if underRace { // it is slow, and finds no more
		step = 4
	}
	for _, variant := range []struct{ lateRemovals, keep bool }{{}, {true, false}, {true, true}} {
		var before, first, second int
		for calls := 0; ; calls += step {
			made, reached, err := cutAfter(t.TempDir(), calls, variant.lateRemovals, variant.keep)
			if err != nil {
				t.Fatalf("power cut after %d calls, variant %v: %v", calls, variant, err)
			}
			switch reached {
			case 4:
				before++
			case 5:
				first++
			case 6:
				second++
			}
			if made < calls {
				break
			}
		}
		if before*step < 10 || first*step < 10 || second == 0 {
			t.Errorf("power cuts left the snapshots %d, %d, %d times; want each of them", before, first, second)
		}
	}
}

// cutAfter takes two snapshots, of which so many calls succeed. It returns the
// number of calls made and the index of the snapshot that the next start found.
func cutAfter(dir string, calls int, lateRemovals, keep bool) (made int, reached uint64, err error) {
	f := newFaultyFiles(-1)
	if lateRemovals {
		f.attic = dir + ".attic"
		if err := os.Mkdir(f.attic, dirPermissions); err != nil {
			return 0, 0, err
		}
	}
	f.keep = keep
	n, err := crashNode(dir, f)
	if err != nil {
		return 0, 0, err
	}
	f.count, f.calls = 0, calls
	promised := n.index
	for range 2 {
		if n.snapshot() == nil {
			promised = n.index
		}
		if err := n.check(); err != nil { // the process lives on
			return 0, 0, fmt.Errorf("before the restart: %w", err)
		}
		n.append(5, 90)
		n.kill(between(200, 263))
	}
	made = f.count
	if err := errors.Join(n.Close(), f.cut()); err != nil {
		return 0, 0, err
	}
	n, err = openNode(dir, quickFiles{}, smallLimits)
	if err != nil {
		return 0, 0, err
	}
	defer n.Close()
	if n.index < promised {
		return 0, 0, fmt.Errorf("snapshot %d was finished, %d is there", promised, n.index)
	}
	reached = n.index
	if err := errors.Join(n.check(), n.checkFiles()); err != nil {
		return 0, 0, fmt.Errorf("snapshot %d: %w", reached, err)
	}
	n.append(20, 30)
	n.kill(every(3, 0))
	return made, reached, errors.Join(n.snapshot(), n.check(), n.checkFiles())
}

// brokenFiles fail one call, and work again after it.
type brokenFiles struct {
	*faultyFiles
	fail int // the number of the call that fails
}

func (f *brokenFiles) next() error {
	if f.count++; f.count == f.fail {
		return errDisk
	}
	return nil
}

func (f *brokenFiles) create(path string) (file, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	inner, err := osFiles{}.create(path)
	return &brokenFile{file: inner, files: f}, err
}

func (f *brokenFiles) mkdir(path string) error { return errors.Join(f.next(), osFiles{}.mkdir(path)) }

func (f *brokenFiles) rename(from, to string) error {
	if err := f.next(); err != nil {
		return err
	}
	return osFiles{}.rename(from, to)
}

func (f *brokenFiles) removeAll(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	return osFiles{}.removeAll(path)
}

func (f *brokenFiles) syncDir(string) error { return f.next() }

type brokenFile struct {
	file
	files *brokenFiles
}

func (f *brokenFile) Write(p []byte) (int, error) {
	if err := f.files.next(); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

func (f *brokenFile) Sync() error { return f.files.next() }

// TestOneFailedCall has each call of a snapshot fail once: the snapshot may
// fail, the bodies stay, the next snapshot succeeds, and so does a restart from
// either.
func TestOneFailedCall(t *testing.T) {
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		f := &brokenFiles{faultyFiles: newFaultyFiles(-1), fail: -1}
		n, err := crashNode(dir, f)
		if err != nil {
			t.Fatal(err)
		}
		f.count, f.fail = 0, fail
		failed := n.snapshot()
		made := f.count
		f.fail = -1
		if err := n.check(); err != nil {
			t.Fatalf("call %d failed: %v", fail, err)
		}
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		mustCheck(t, mustOpenNode(t, copied))
		n.append(5, 5)
		if err := errors.Join(n.snapshot(), n.check()); err != nil {
			t.Fatalf("call %d failed, error %v; the next snapshot: %v", fail, failed, err)
		}
		n.Close()
		n = mustOpenNode(t, dir)
		if mustCheck(t, n); n.index != 6 {
			t.Fatalf("call %d failed: snapshot %d is there, want 6", fail, n.index)
		}
		if made < fail {
			return
		}
	}
}
