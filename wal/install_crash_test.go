package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// sentSnapshot is the newest snapshot of a node as it travels to another one.
type sentSnapshot struct {
	meta    *raft.SnapshotMeta
	stream  []byte
	machine bodyMachine
}

func sendSnapshot(t *testing.T) sentSnapshot {
	t.Helper()
	from := mustOpenNode(t, t.TempDir())
	from.append(300, 60)
	from.kill(every(3, 1))
	from.index = 40
	mustSnapshot(t, from)
	list, err := from.snapshots.List()
	if err != nil {
		t.Fatal(err)
	}
	meta, r, err := from.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stream, err := io.ReadAll(r)
	if err != nil || int64(len(stream)) != meta.Size {
		t.Fatalf("got a stream of %d bytes, %v, want %d", len(stream), err, meta.Size)
	}
	return sentSnapshot{meta, stream, from.machine}
}

// installCut has a node with a snapshot and a log of its own install another one,
// of which so many calls to the file system succeed, and cuts the power.
func installCut(dir string, sent sentSnapshot, calls int, lateRemovals, keep bool) (made int, installed bool, err error) {
	f := newFaultyFiles(-1)
	f.keep = keep
	if lateRemovals {
		f.attic = dir + ".attic"
		if err := os.Mkdir(f.attic, dirPermissions); err != nil {
			return 0, false, err
		}
	}
	n, err := openNode(dir, f, smallLimits)
	if err != nil {
		return 0, false, err
	}
	n.append(100, 40)
	n.kill(every(4, 2))
	log, logErr := OpenLog(filepath.Join(dir, LogDir), LogOptions{files: f, SegmentSize: 1000})
	if err := errors.Join(n.snapshot(), logErr, log.StoreLogs(entries(2, 30, 1, 100))); err != nil {
		return 0, false, err
	}
	old := n.machine.Next
	f.count, f.calls = 0, calls
	promised := install(n, log, sent) == nil
	if err := n.check(); err != nil { // the process lives on
		return 0, false, fmt.Errorf("before the restart: %w", err)
	}
	made = f.count
	if err := errors.Join(n.Close(), f.cut()); err != nil {
		return 0, false, err
	}
	_ = log.Close()

	n, err = openNode(dir, quickFiles{}, smallLimits)
	if err != nil {
		return 0, false, err
	}
	defer n.Close()
	log, err = OpenLog(filepath.Join(dir, LogDir), LogOptions{SegmentSize: 1000})
	if err != nil {
		return 0, false, err
	}
	defer log.Close()
	installed = n.index == sent.meta.Index
	last, _ := log.LastIndex()
	switch {
	case installed && n.machine.Next != sent.machine.Next, !installed && n.machine.Next != old:
		return 0, false, fmt.Errorf("snapshot %d has the state of another", n.index)
	case promised && !installed:
		return 0, false, errors.New("the snapshot was installed, and is gone")
	case !installed && last != 30:
		return 0, false, fmt.Errorf("the log goes to %d, but the snapshot behind it is not there", last)
	}
	return made, installed, errors.Join(n.check(), n.checkFiles())
}

// install is what raft does: staging, restoring, dropping the log.
func install(n *bodyNode, log *Log, sent sentSnapshot) error {
	sink, err := n.snapshots.Create(1, sent.meta.Index, sent.meta.Term, sent.meta.Configuration, sent.meta.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{sink}, bytes.NewReader(sent.stream), make([]byte, 4000)); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	if err := n.restore(); err != nil {
		return err
	}
	return log.DeleteRange(2, 30)
}

// TestPowerCutDuringInstall cuts the power after each call of an installation: the
// next start finds the node as it was, with its log, or with the whole snapshot.
func TestPowerCutDuringInstall(t *testing.T) {
	sent := sendSnapshot(t)
	step := 1
	if underRace { // it is slow, and finds no more
		step = 4
	}
	for _, variant := range []struct{ lateRemovals, keep bool }{{}, {true, false}, {true, true}} {
		var before, after int
		for calls := 0; ; calls += step {
			made, installed, err := installCut(t.TempDir(), sent, calls, variant.lateRemovals, variant.keep)
			if err != nil {
				t.Fatalf("power cut after %d calls, variant %v: %v", calls, variant, err)
			}
			if installed {
				after++
			} else {
				before++
			}
			if made < calls {
				break
			}
		}
		if before*step < 20 || after*step < 4 {
			t.Errorf("power cuts left the old state %d times, the new one %d times; want both", before, after)
		}
	}
}
