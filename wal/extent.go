package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Extent is how far log, newest snapshot and stable store of a data directory reach.
// 0 stands for what is not there.
type Extent struct {
	First, LastTerm        uint64 // of the log
	Snapshot, SnapshotTerm uint64 // index and term of the newest snapshot
	Term                   uint64 // of the stable store
}

// IsBlank reports whether there is neither log nor snapshot.
func (e Extent) IsBlank() bool { return e.First == 0 && e.Snapshot == 0 }

// Check finds what raft would start on and should not, and returns ErrCorrupt for it:
// a term without any entry, for a node that has one was bootstrapped, in term 1, and
// lost its data; a term that is behind that of an entry, so that the node could vote
// twice in it; and entries that are neither in the log nor in a snapshot.
func (e Extent) Check() error {
	reached := max(e.LastTerm, e.SnapshotTerm)
	switch {
	case e.IsBlank() && e.Term > 1:
		return fmt.Errorf("%w: in term %d, but without log and snapshots; %s", ErrCorrupt, e.Term, advice)
	case e.Term < reached:
		return fmt.Errorf("%w: log or snapshot have entries of term %d, but %s has term %d; %s", ErrCorrupt, reached, StableFile, e.Term, advice)
	case e.First > e.Snapshot+1:
		return fmt.Errorf("%w: the log begins with entry %d, but the newest snapshot reaches only to entry %d; %s",
			ErrCorrupt, e.First, e.Snapshot, advice)
	}
	return nil
}

// CheckLogThere returns ErrCorrupt if a data directory has snapshots but no log, or
// one without a file of entries, which every log has that was opened once: OpenLog
// would begin an empty one, without the entries behind the snapshot.
func CheckLogThere(dataDir string) error {
	dir := filepath.Join(dataDir, LogDir)
	if exists(dir+newSuffix) || exists(dir+oldSuffix) { // a replacement was interrupted
		return nil
	}
	log, err := readLayout(dir)
	if err == nil && len(log.segments) > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names, err := snapshotNames(filepath.Join(dataDir, SnapshotDir))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(sortedSnapshots(names)) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return corrupt(dir, 0, "there are snapshots, but no log")
}
