package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// A node without a disk, and every simulation, runs on twins in memory: raft's own
// log and stable store, and Bodies. These tests hold each pair to one contract:
// whatever is done to both, both answer alike.

func TestLogTwins(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		disk, memory := openLog(t, filepath.Join(t.TempDir(), LogDir), LogOptions{SegmentSize: 2000, RingBytes: 1000}), raft.NewInmemStore()
		term := uint64(1)
		for step := range 150 {
			what, err := logStep(random, disk, memory, &term)
			if err == nil {
				err = sameLogs(random, disk, memory)
			}
			if err != nil {
				t.Fatalf("seed %d, step %d, %s: %v", seed, step, what, err)
			}
		}
	}
}

// logStep does one thing that raft does to a log, to both.
func logStep(random *rand.Rand, disk, memory raft.LogStore, term *uint64) (what string, err error) {
	first, _ := memory.FirstIndex()
	last, _ := memory.LastIndex()
	do := func(f func(raft.LogStore) error) error {
		if got, want := f(disk), f(memory); (got == nil) != (want == nil) {
			return fmt.Errorf("error %w on disk, %w in memory", got, want)
		}
		return nil
	}
	remove := func(from, to uint64) (string, error) {
		return fmt.Sprintf("delete %d to %d", from, to), do(func(s raft.LogStore) error { return s.DeleteRange(from, to) })
	}
	switch n := random.Uint64N(12); {
	case n == 0 && last > first: // a snapshot covers the front
		return remove(first, first+random.Uint64N(last-first))
	case n == 1 && last > first: // entries of a leader that is none any more
		*term++
		return remove(first+1+random.Uint64N(last-first), last)
	case n == 2 && first > 0 && random.IntN(3) == 0: // a snapshot from the leader
		return remove(first, last)
	default:
		batch := entries(last+1, last+1+random.Uint64N(9), *term, random.IntN(300))
		return fmt.Sprintf("store %d to %d", last+1, batch[len(batch)-1].Index), do(func(s raft.LogStore) error { return s.StoreLogs(batch) })
	}
}

func sameLogs(random *rand.Rand, disk, memory raft.LogStore) error {
	var bounds [4]uint64
	for i, f := range []func() (uint64, error){disk.FirstIndex, memory.FirstIndex, disk.LastIndex, memory.LastIndex} {
		var err error
		if bounds[i], err = f(); err != nil {
			return err
		}
	}
	if bounds[0] != bounds[1] || bounds[2] != bounds[3] {
		return fmt.Errorf("entries %d to %d on disk, %d to %d in memory", bounds[0], bounds[2], bounds[1], bounds[3])
	}
	for range 5 {
		index := bounds[0] + random.Uint64N(bounds[2]-bounds[0]+3) // two behind the end as well
		var got, want raft.Log
		gotErr, wantErr := disk.GetLog(index, &got), memory.GetLog(index, &want)
		if gotErr != wantErr { //nolint:errorlint // raft compares ErrLogNotFound itself
			return fmt.Errorf("entry %d: error %w on disk, %w in memory", index, gotErr, wantErr)
		}
		if wantErr == nil {
			if err := sameEntry(&got, &want); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestStableTwins(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	path := filepath.Join(t.TempDir(), StableFile)
	disk, memory := openStable(t, path), raft.StableStore(raft.NewInmemStore())
	for step := range 100 {
		value, term := random.Uint64(), uint64(step/3+1)
		for _, s := range []raft.StableStore{disk, memory} {
			var err error
			switch step % 3 {
			case 0:
				err = s.SetUint64(keyTerm, term)
			case 1: // raft writes a vote in two steps
				if err = s.SetUint64(keyVoteTerm, term); err == nil {
					err = s.Set(keyVoteCandidate, fmt.Append(nil, "n", value))
				}
			case 2:
				err = s.Set(fmt.Append(nil, "key", value%5), fmt.Append(nil, value))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if step%10 == 9 {
			disk.Close()
			disk = openStable(t, path)
		}
		for _, key := range []string{"key0", "key1", "key2", "key3", "key4", string(keyVoteCandidate)} {
			got, gotErr := disk.Get([]byte(key))
			want, wantErr := memory.Get([]byte(key))
			if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) { // raft compares the text
				t.Errorf("step %d: %s is %q, %v on disk, %q, %v in memory", step, key, got, gotErr, want, wantErr)
			}
		}
		for _, key := range [][]byte{keyTerm, keyVoteTerm} {
			got, _ := disk.GetUint64(key) // of a key that was not set: 0, with an error or without
			if want, _ := memory.GetUint64(key); got != want {
				t.Errorf("step %d: %s is %d on disk, %d in memory", step, key, got, want)
			}
		}
	}
}

func TestBodyTwins(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		disk, memory := mustOpenNode(t, t.TempDir()), NewBodies()
		live := disk.machine.Live
		for range 15 {
			for range random.IntN(60) {
				number, size := disk.machine.Next, random.IntN(200)
				disk.append(1, size)
				memory.Append(number, bodyOf(number, size))
			}
			disk.kill(func(uint64) bool { return random.IntN(3) == 0 })
			mustSnapshot(t, disk)
			memory.CloseChunk()
			var fromMemory, fromDisk bytes.Buffer
			if err := memory.WriteLive(&fromMemory, liveOf(live)); err != nil {
				t.Fatal(err)
			}
			if err := disk.WriteLive(&fromDisk, liveOf(live)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(fromMemory.Bytes(), fromDisk.Bytes()) {
				t.Fatalf("seed %d: the streams for another node differ", seed)
			}
			if random.IntN(4) == 0 { // a snapshot from the leader
				openBoth(t, disk, memory, fromMemory.Bytes())
			}
			for number, size := range live {
				checkBody(t, memory, number, size)
			}
			if err := disk.check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got, want := disk.Pending(), memory.Pending(); got != want {
				t.Fatalf("seed %d: %d bytes in no snapshot on disk, %d in memory", seed, got, want)
			}
		}
	}
}

// openBoth replaces the bodies of both by those of a stream.
func openBoth(t *testing.T, disk *bodyNode, memory *Bodies, stream []byte) {
	t.Helper()
	for _, open := range []func() (func(), error){
		func() (func(), error) { return disk.OpenGeneration(bytes.NewReader(stream), disk.machine.Next) },
		func() (func(), error) { return memory.OpenGeneration(bytes.NewReader(stream), disk.machine.Next) },
	} {
		commit, err := open()
		if err != nil {
			t.Fatal(err)
		}
		commit()
	}
}
