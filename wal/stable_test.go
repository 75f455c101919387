package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func openStable(t *testing.T, path string) *Stable {
	t.Helper()
	s, err := OpenStable(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func checkVote(t *testing.T, s *Stable, term uint64, candidate string) {
	t.Helper()
	gotTerm, err := s.GetUint64(keyVoteTerm)
	if err != nil {
		t.Fatal(err)
	}
	gotCandidate, err := s.Get(keyVoteCandidate)
	if err != nil {
		t.Fatal(err)
	}
	if gotTerm != term || string(gotCandidate) != candidate {
		t.Errorf("got vote (%d, %s), want (%d, %s)", gotTerm, gotCandidate, term, candidate)
	}
}

func vote(t *testing.T, s *Stable, term uint64, candidate string) {
	t.Helper()
	if err := s.SetUint64(keyVoteTerm, term); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(keyVoteCandidate, []byte(candidate)); err != nil {
		t.Fatal(err)
	}
}

func TestStableKeepsVoteWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable.db")
	s := openStable(t, path)
	if err := s.SetUint64(keyTerm, 9); err != nil {
		t.Fatal(err)
	}
	vote(t, s, 7, "node-a")
	checkVote(t, s, 7, "node-a")

	// The process ends between raft's two writes.
	if err := s.SetUint64(keyVoteTerm, 8); err != nil {
		t.Fatal(err)
	}
	checkVote(t, s, 7, "node-a")
	s.Close()
	s = openStable(t, path)
	checkVote(t, s, 7, "node-a")

	vote(t, s, 8, "node-b")
	s.Close()
	s = openStable(t, path)
	checkVote(t, s, 8, "node-b")
}

func TestStableRefusesCandidateWithoutTerm(t *testing.T) {
	s := openStable(t, filepath.Join(t.TempDir(), "stable.db"))
	if err := s.Set(keyVoteCandidate, []byte("node-a")); err == nil {
		t.Error("a candidate without a term was accepted")
	}
}

func TestStableAbsentKey(t *testing.T) {
	s := openStable(t, filepath.Join(t.TempDir(), "stable.db"))
	for _, key := range []string{"LastVoteTerm", "LastVoteCand", "CurrentTerm"} {
		if _, err := s.Get([]byte(key)); err == nil || err.Error() != "not found" {
			t.Errorf("%s: got error %v, want the text raft compares: not found", key, err)
		}
	}
}

func TestStableDetectsDamagedValue(t *testing.T) {
	s := openStable(t, filepath.Join(t.TempDir(), "stable.db"))
	if err := s.SetUint64(keyTerm, 3); err != nil {
		t.Fatal(err)
	}
	sealed, _ := s.bolt.Get(keyTerm)
	sealed[len(sealed)-1] ^= 1
	if err := s.bolt.Set(keyTerm, sealed); err != nil {
		t.Fatal(err)
	}
	if v, err := s.GetUint64(keyTerm); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %d, %v; want ErrCorrupt", v, err)
	}
}

func TestStableIsTheNodeLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable.db")
	openStable(t, path)
	if _, err := OpenStable(path); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: got %v, want ErrLocked", err)
	}
}

// A damaged file is refused without a panic, or read as it was written; what
// bbolt does not look at does not matter.
func TestDamagedStableStore(t *testing.T) {
	if underRace {
		t.Skip("bbolt reads beyond the end of its map, and the race detector dies of that")
	}
	path := filepath.Join(t.TempDir(), "stable.db")
	s := openStable(t, path)
	for term := uint64(1); term < 9; term++ {
		if err := s.SetUint64(keyTerm, term); err != nil {
			t.Fatal(err)
		}
		vote(t, s, term, "node-a")
	}
	s.Close()
	whole := read(t, path)
	check := func(what string, damaged []byte) {
		t.Helper()
		fresh := filepath.Join(t.TempDir(), "stable.db") // a lock may stay after damage
		write(t, fresh, damaged)
		s, err := OpenStable(fresh)
		if errors.Is(err, ErrCorrupt) {
			return
		}
		if err != nil {
			t.Errorf("%s: got %v, want ErrCorrupt", what, err)
			return
		}
		defer s.Close()
		// A damaged offset leads to other memory at each read.
		f, err := s.facts()
		if errors.Is(err, ErrCorrupt) {
			return
		}
		if err != nil || f.voteTerm > 8 || f.term > 8 {
			t.Errorf("%s: got %+v, error %v", what, f, err)
		}
	}
	for size := 512; size < len(whole); size += 2048 {
		check(fmt.Sprintf("%d of %d bytes", size, len(whole)), whole[:size])
	}
	for at := 3; at < len(whole); at += 61 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x55
		check(fmt.Sprintf("byte %d", at), damaged)
	}
}

func TestVoteAheadOfTheTermIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable.db")
	s := openStable(t, path)
	vote(t, s, 3, "node-a")
	s.Close()
	if _, err := OpenStable(path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	openStable(t, path)
}
