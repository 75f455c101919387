package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
