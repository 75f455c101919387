package wal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

func TestCheckFormat(t *testing.T) {
	for format, want := range map[int]string{
		1: "format 1, written by an older Holdfast; this one reads formats 2 to 3",
		2: "", 3: "",
		4: "format 4, written by a newer Holdfast; this one reads formats 2 to 3",
	} {
		err := CheckFormat("x", format, 2, 3)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want)) {
			t.Errorf("format %d: got %v, want %q", format, err, want)
		}
	}
}

// otherFormats are what other versions leave in a data directory (see dataDir).
var otherFormats = []struct {
	name  string
	apply func(dir string) error
	want  string // in the error
}{
	{"a newer log", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, LogDir, formatFile), fmt.Appendf(nil, formatText, logFormat+1), 0o600)
	}, "wal: another version's format: format 2, written by a newer Holdfast; this one reads formats 1 to 1"},
	{"a log of before the first release", func(dir string) error {
		return os.Remove(filepath.Join(dir, LogDir, formatFile))
	}, "from before the first release"},
	{"a newer stable store", func(dir string) error {
		return setStable(dir, func(s *Stable) error { return s.SetUint64(keyFormat, stableFormat+1) })
	}, "stable.db: another version's format: format 2, written by a newer"},
	{"a stable store of before the first release", func(dir string) error {
		path := filepath.Join(dir, StableFile)
		if err := os.Remove(path); err != nil {
			return err
		}
		s, err := openBolt(path, nil) // which marks nothing
		if err != nil {
			return err
		}
		return errors.Join(s.bolt.SetUint64(keyTerm, 7), s.Close()) // without a checksum
	}, "stable.db: another version's format: it has no number, so it is from before the first release"},
	{"a newer snapshot", func(dir string) error {
		return patchMeta(dir, func(meta map[string]any) {
			meta["format"], meta["meta_checksum"] = metaFormat+1, formatChecksum(7) // over fields that nobody knows here
		})
	}, "meta.json: another version's format: format 2"},
}

// setStable changes the store of a node that does not run.
func setStable(dir string, change func(*Stable) error) error {
	s, err := OpenStable(filepath.Join(dir, StableFile))
	if err != nil {
		return err
	}
	return errors.Join(change(s), s.Close())
}

// patchMeta changes the meta file of the newest snapshot.
func patchMeta(dir string, change func(map[string]any)) error {
	paths, err := filepath.Glob(filepath.Join(dir, SnapshotDir, "*-40-*", metaFile))
	if err != nil || len(paths) != 1 {
		return fmt.Errorf("got %d snapshots, %w, want 1", len(paths), err)
	}
	return patch(paths[0], func(data []byte) []byte {
		var meta map[string]any
		if err := json.Unmarshal(data, &meta); err != nil {
			panic(err)
		}
		change(meta)
		changed, err := json.Marshal(meta)
		if err != nil {
			panic(err)
		}
		return changed
	})
}

// TestOtherFormatsAreNoDamage: data of another version is refused as such, by what
// opens it and by what only looks.
func TestOtherFormatsAreNoDamage(t *testing.T) {
	for _, test := range otherFormats {
		t.Run(test.name, func(t *testing.T) {
			dir := dataDir(t)
			if err := test.apply(dir); err != nil {
				t.Fatal(err)
			}
			before := snapshotFiles(t, filepath.Join(dir, LogDir)) // bbolt writes whenever it is opened
			_, logErr := OpenLog(filepath.Join(dir, LogDir), LogOptions{})
			stable, stableErr := OpenStable(filepath.Join(dir, StableFile))
			if stableErr == nil {
				_ = stable.Close()
			}
			_, snapshotsErr := OpenSnapshots(filepath.Join(dir, SnapshotDir), SnapshotOptions{})
			_, verifyErr := Verify(dir, nil)
			for _, err := range []error{errors.Join(logErr, stableErr, snapshotsErr), verifyErr} {
				if !errors.Is(err, ErrFormat) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %v with %q", err, ErrFormat, test.want)
				}
			}
			if strings.Contains(test.name, "log") {
				if err := Scan(filepath.Join(dir, LogDir), 1, 0, func(*raft.Log) error { return nil }); !errors.Is(err, ErrFormat) {
					t.Errorf("scan: got %v, want %v", err, ErrFormat)
				}
			}
			if !slices.Equal(snapshotFiles(t, filepath.Join(dir, LogDir)), before) {
				t.Error("the log was changed")
			}
		})
	}
}

// TestDamagedFormatIsDamage: a number that no version wrote there.
func TestDamagedFormatIsDamage(t *testing.T) {
	dir := dataDir(t)
	if err := os.WriteFile(filepath.Join(dir, LogDir, formatFile), []byte("holdfast r"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(filepath.Join(dir, LogDir), LogOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("log: got %v, want %v", err, ErrCorrupt)
	}
	if err := patchMeta(dir, func(meta map[string]any) { meta["format"] = metaFormat + 1 }); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSnapshots(filepath.Join(dir, SnapshotDir), SnapshotOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("snapshot whose format alone differs: got %v, want %v", err, ErrCorrupt)
	}
}

// TestPowerCutInANewLog at every call: what it leaves can be opened, and has what was
// acknowledged.
func TestPowerCutInANewLog(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for calls, whole := 0, false; !whole; calls++ {
			dir := filepath.Join(t.TempDir(), LogDir)
			f := newFaultyFiles(calls)
			f.keep = keep
			l, err := OpenLog(dir, LogOptions{files: f})
			stored := err == nil && l.StoreLogs(entries(1, 3, 1, 100)) == nil
			whole = stored && l.DeleteRange(1, 3) == nil && l.StoreLogs(entries(9, 9, 1, 100)) == nil
			if err == nil {
				_ = l.Close()
			}
			if err := f.cut(); err != nil {
				t.Fatal(err)
			}
			l, err = OpenLog(dir, LogOptions{})
			if err != nil {
				t.Fatalf("after %d calls: %v", calls, err)
			}
			last, _ := l.LastIndex()
			if whole && last != 9 || stored && !whole && last != 3 && last != 0 && last != 9 {
				t.Errorf("after %d calls: got entries up to %d", calls, last)
			}
			_ = l.Close()
			if !exists(filepath.Join(dir, formatFile)) {
				t.Errorf("after %d calls: got a log without a format", calls)
			}
		}
	}
}
