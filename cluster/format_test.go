package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// TestFolderOfAnotherVersion: a node that finds it says so, and ends with the code for
// a folder that is not its own rather than with that for damage.
func TestFolderOfAnotherVersion(t *testing.T) {
	c := diskConfig(t)
	if err := start(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.DataDir, logDir, "FORMAT")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(written), "1", "2", 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), c)
	const want = "format 2, written by a newer Holdfast; this one reads formats 1 to 1"
	if !errors.Is(err, wal.ErrFormat) || ExitCode(err) != ExitIdentity || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v with exit code %d, want %q with %d", err, ExitCode(err), want, ExitIdentity)
	}
}

// TestSnapshotOfAnotherVersion: the state in a snapshot has versions of its own, which
// the machine finds. raft does not return its error.
func TestSnapshotOfAnotherVersion(t *testing.T) {
	c := diskConfig(t)
	if err := start(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	snapshots, err := wal.OpenSnapshots(filepath.Join(c.DataDir, snapshotDir), wal.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, 2, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sink.Write([]byte("HFSTATE\x02 and what nobody knows here"))
	if err := errors.Join(err, sink.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), c)
	if !errors.Is(err, raftfsm.ErrFormat) || ExitCode(err) != ExitIdentity {
		t.Errorf("got %v with exit code %d, want %v with %d", err, ExitCode(err), raftfsm.ErrFormat, ExitIdentity)
	}
}
