package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

var _ raft.StableStore = (*Stable)(nil)

// lockTimeout is how long OpenStable waits for another process to go.
const lockTimeout = time.Second

// raft's keys: its term, and the two under which it keeps one fact, its last
// vote; and the key of the record that holds both.
var (
	keyTerm          = []byte("CurrentTerm")
	keyVoteTerm      = []byte("LastVoteTerm")
	keyVoteCandidate = []byte("LastVoteCand")
	keyVote          = []byte("vote")
)

// keyFormat is the key of the store's format, and stableFormat the number there that
// this program writes, and the only one it reads.
var keyFormat = []byte("format")

const stableFormat = 1

// errNotFound is what raft expects for a key that was never set: it compares
// the text.
var errNotFound = errors.New("not found")

// Stable keeps raft's term and vote. It is safe for concurrent use. Each value
// has a checksum; after an error of a write it refuses all others.
//
// raft writes a vote as its term, then its candidate. A crash between the two
// would leave the new term with the old candidate, and that candidate could
// then be voted for in a term in which it never won the vote. So the term is
// only staged in memory, and the candidate writes both as one record.
type Stable struct {
	bolt *raftboltdb.BoltStore
	path string

	mu     sync.Mutex
	staged []byte // 8 bytes of LastVoteTerm, until LastVoteCand comes
	failed error
}

// OpenStable opens or creates the store at path, whose directory must exist,
// and holds a file lock on it until Close: one process has a data directory.
// It returns ErrLocked if the lock is not free within a second, ErrFormat for the
// store of another version, and ErrCorrupt if term and vote cannot be read or do not
// fit together; the lock may then be held until the process ends.
func OpenStable(path string) (*Stable, error) {
	isNew := !exists(path)
	s, err := openBolt(path, &bbolt.Options{Timeout: lockTimeout})
	if errors.Is(err, bbolt.ErrTimeout) {
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open stable store: %w", err)
	}
	if isNew {
		if err := (osFiles{}).syncDir(filepath.Dir(path)); err != nil {
			return nil, errors.Join(fmt.Errorf("sync data directory: %w", err), s.Close())
		}
	}
	if err := s.markFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("open stable store: %w", err), s.Close())
	}
	return s, nil
}

// checkFormat looks at the format before anything else is read. One without a number
// is new, if it holds nothing, and ErrFormat otherwise.
func (s *Stable) checkFormat() error {
	format, err := s.GetUint64(keyFormat)
	if err == nil {
		return CheckFormat(s.path, int(format), stableFormat, stableFormat)
	}
	if !errors.Is(err, errNotFound) {
		return err
	}
	for _, key := range [][]byte{keyTerm, keyVote} {
		err := guarded(s.path, func() error {
			_, err := s.bolt.Get(key)
			return err
		})
		switch {
		case err == nil:
			return unmarked(s.path)
		case !errors.Is(err, raftboltdb.ErrKeyNotFound):
			return fmt.Errorf("get %s from stable store: %w", key, err)
		}
	}
	return nil
}

// markFormat writes the format into a new store.
func (s *Stable) markFormat() error {
	if _, err := s.GetUint64(keyFormat); !errors.Is(err, errNotFound) {
		return err
	}
	return s.SetUint64(keyFormat, stableFormat)
}

// guarded calls bbolt. bbolt panics over many kinds of damage, and follows
// damaged offsets to memory that is not there; both become ErrCorrupt. A wild
// offset may as well hit memory that is there, so every call is guarded, and
// checksums tell what it read.
func guarded(path string, call func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = corrupt(path, 0, "%v", p)
		}
	}()
	return call()
}

// openBolt opens the file and reads what raft keeps in it.
func openBolt(path string, o *bbolt.Options) (*Stable, error) {
	var bolt *raftboltdb.BoltStore
	err := guarded(path, func() (err error) {
		bolt, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: o})
		return err
	})
	var system syscall.Errno
	switch {
	case errors.Is(err, bbolt.ErrTimeout) || errors.As(err, &system) || errors.Is(err, ErrCorrupt):
		return nil, err
	case err != nil:
		return nil, corrupt(path, 0, "%v", err)
	}
	s := &Stable{bolt: bolt, path: path}
	err = s.checkFormat()
	if err == nil {
		_, err = s.facts()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// facts is what raft keeps; 0 and "" stand for what was never set.
type facts struct {
	term, voteTerm uint64
	candidate      string
}

// facts reads term and vote. raft raises its term before it votes in it.
func (s *Stable) facts() (facts, error) {
	var f facts
	var err error
	if f.term, err = s.GetUint64(keyTerm); err != nil && !errors.Is(err, errNotFound) {
		return f, err
	}
	vote, err := s.get(keyVote)
	if errors.Is(err, errNotFound) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.voteTerm, f.candidate = binary.BigEndian.Uint64(vote), string(vote[8:])
	if f.voteTerm > f.term {
		return f, fmt.Errorf("read stable store: %w: a vote in term %d, but the term is %d; %s", ErrCorrupt, f.voteTerm, f.term, advice)
	}
	return f, nil
}

// Close releases the file and its lock.
func (s *Stable) Close() error { return s.bolt.Close() }

// Set stores value under key, durably; but LastVoteTerm is durable only when
// LastVoteCand is set.
func (s *Stable) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case bytes.Equal(key, keyVoteTerm):
		if len(value) != 8 {
			return fmt.Errorf("set %s: %d bytes are no term", key, len(value))
		}
		s.staged = bytes.Clone(value)
		return nil
	case bytes.Equal(key, keyVoteCandidate):
		return s.setVote(value)
	}
	return s.put(key, value)
}

// setVote writes the staged term and the candidate as one record.
func (s *Stable) setVote(candidate []byte) error {
	if s.staged == nil {
		return fmt.Errorf("set %s: no %s was set before", keyVoteCandidate, keyVoteTerm)
	}
	record := append(bytes.Clone(s.staged), candidate...)
	if err := s.put(keyVote, record); err != nil {
		return err
	}
	s.staged = nil
	return nil
}

// put writes value with its checksum. The caller holds mu.
func (s *Stable) put(key, value []byte) error {
	if s.failed != nil {
		return s.failed
	}
	sealed := binary.BigEndian.AppendUint64(nil, valueChecksum(key, value))
	if err := guarded(s.path, func() error { return s.bolt.Set(key, append(sealed, value...)) }); err != nil {
		s.failed = fmt.Errorf("set %s in stable store: %w", key, err)
		return s.failed
	}
	return nil
}

func valueChecksum(key, value []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(key)
	_, _ = d.Write(value)
	return d.Sum64()
}

// Get returns the durable value of key. The error of a key that was never set
// has the text "not found", which raft looks for.
func (s *Stable) Get(key []byte) ([]byte, error) {
	switch {
	case bytes.Equal(key, keyVoteTerm):
		vote, err := s.get(keyVote)
		if err != nil {
			return nil, err
		}
		return vote[:8], nil
	case bytes.Equal(key, keyVoteCandidate):
		vote, err := s.get(keyVote)
		if err != nil {
			return nil, err
		}
		return vote[8:], nil
	}
	return s.get(key)
}

func (s *Stable) get(key []byte) ([]byte, error) {
	var sealed []byte
	err := guarded(s.path, func() (err error) {
		sealed, err = s.bolt.Get(key)
		return err
	})
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s from stable store: %w", key, err)
	}
	if len(sealed) < 8 || binary.BigEndian.Uint64(sealed) != valueChecksum(key, sealed[8:]) {
		return nil, fmt.Errorf("get %s from stable store: %w: %w; %s", key, ErrCorrupt, errChecksum, advice)
	}
	value := sealed[8:]
	if bytes.Equal(key, keyVote) && len(value) < 8 {
		return nil, fmt.Errorf("get %s from stable store: %w: too short; %s", key, ErrCorrupt, advice)
	}
	return value, nil
}

// SetUint64 is Set of a number.
func (s *Stable) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 is Get of a number.
func (s *Stable) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("get %s from stable store: %d bytes are no number", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
