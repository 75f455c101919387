package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

var _ raft.StableStore = (*Stable)(nil)

// lockTimeout is how long OpenStable waits for another process to go.
const lockTimeout = time.Second

// The two keys under which raft keeps one fact, its last vote, and the key of
// the record that holds both.
var (
	keyVoteTerm      = []byte("LastVoteTerm")
	keyVoteCandidate = []byte("LastVoteCand")
	keyVote          = []byte("vote")
)

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

	mu     sync.Mutex
	staged []byte // 8 bytes of LastVoteTerm, until LastVoteCand comes
	failed error
}

// OpenStable opens or creates the store at path, whose directory must exist,
// and holds a file lock on it until Close: one process has a data directory.
// It returns ErrLocked if the lock is not free within a second.
func OpenStable(path string) (*Stable, error) {
	isNew := !exists(path)
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path:        path,
		BoltOptions: &bbolt.Options{Timeout: lockTimeout},
	})
	switch {
	case errors.Is(err, bbolt.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	case isBoltDamage(err):
		return nil, fmt.Errorf("open stable store: %w", corrupt(path, 0, "%v", err))
	case err != nil:
		return nil, fmt.Errorf("open stable store: %w", err)
	}
	if isNew {
		if err := (osFiles{}).syncDir(filepath.Dir(path)); err != nil {
			return nil, errors.Join(fmt.Errorf("sync data directory: %w", err), bolt.Close())
		}
	}
	return &Stable{bolt: bolt}, nil
}

func isBoltDamage(err error) bool {
	return errors.Is(err, bbolt.ErrInvalid) || errors.Is(err, bbolt.ErrChecksum) || errors.Is(err, bbolt.ErrVersionMismatch)
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
	if err := s.bolt.Set(key, append(sealed, value...)); err != nil {
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
	sealed, err := s.bolt.Get(key)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s from stable store: %w", key, err)
	}
	if len(sealed) < 8 || binary.BigEndian.Uint64(sealed) != valueChecksum(key, sealed[8:]) {
		return nil, fmt.Errorf("get %s from stable store: %w: %w; %s", key, ErrCorrupt, errChecksum, rejoin)
	}
	value := sealed[8:]
	if bytes.Equal(key, keyVote) && len(value) < 8 {
		return nil, fmt.Errorf("get %s from stable store: %w: too short; %s", key, ErrCorrupt, rejoin)
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
