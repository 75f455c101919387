package raftfsm

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"holdfast.internal/sqs"
)

// IndexedDigest is the running digest after all entries up to an index.
type IndexedDigest struct {
	Index uint64
	Sum   uint64 // xxhash64
}

const (
	digestInterval = 4_096 // entries between two digests that are kept
	digestsKept    = 16
)

// runningDigest is a chain of hashes over index, time and outcomes of every
// command entry: sum = xxhash64(sum before · index · t · outcomes).
type runningDigest struct {
	sum  uint64
	kept []IndexedDigest // at multiples of digestInterval, oldest first
}

// begin writes what an entry's digest begins with into buf's room.
func (d *runningDigest) begin(buf []byte, index uint64, t sqs.Time) fields {
	out := fields{data: binary.BigEndian.AppendUint64(buf, d.sum)}
	out.u64(index)
	out.time(t)
	return out
}

// finish takes in what was written since begin.
func (d *runningDigest) finish(out *fields) { d.sum = xxhash.Sum64(out.data) }

// pass keeps the digest for the multiples between the entry before and the
// next one, if raft used those indexes for itself.
func (d *runningDigest) pass(before, next uint64) {
	first := (before/digestInterval + 1) * digestInterval
	if next > digestInterval*digestsKept {
		first = max(first, (next/digestInterval-digestsKept)*digestInterval)
	}
	for i := first; i < next; i += digestInterval {
		d.keep(i)
	}
}

// reach keeps the digest if the entry just applied is at a multiple.
func (d *runningDigest) reach(index uint64) {
	if index%digestInterval == 0 {
		d.keep(index)
	}
}

func (d *runningDigest) keep(index uint64) {
	if len(d.kept) == digestsKept {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	d.kept = append(d.kept, IndexedDigest{index, d.sum})
}

func (d *runningDigest) list() []IndexedDigest { return slices.Clone(d.kept) }

func runningDigestFields(f *fields, d runningDigest) runningDigest {
	d.sum = f.u64(d.sum)
	d.kept = list(f, d.kept, digestsKept, func(f *fields, k IndexedDigest) IndexedDigest {
		k.Index = f.u64(k.Index)
		k.Sum = f.u64(k.Sum)
		return k
	})
	return d
}
