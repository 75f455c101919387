package wal

import "github.com/hashicorp/raft"

// ringEntryCost is what an entry costs besides its data: the raft.Log itself.
const ringEntryCost = 128

// ring holds the newest entries of the log, consecutive and bounded by bytes,
// so that replication and apply do not read the disk. It keeps the slices of
// the entries it is given: raft never changes an entry. Not safe for
// concurrent use.
type ring struct {
	limit int        // bytes
	bytes int        // of the entries held, with their cost
	slots []raft.Log // a power of two
	first uint64     // index of the oldest entry held
	count int
}

func newRing(limit int) *ring { return &ring{limit: limit, slots: make([]raft.Log, 64)} }

func (r *ring) slot(index uint64) *raft.Log { return &r.slots[index&uint64(len(r.slots)-1)] }

func entryCost(e *raft.Log) int { return ringEntryCost + len(e.Data) + len(e.Extensions) }

// push adds the entry after the newest one and drops the oldest ones that no
// longer fit, e itself if it is larger than the ring.
func (r *ring) push(e *raft.Log) {
	if r.count > 0 && e.Index != r.first+uint64(r.count) {
		r.clear()
	}
	if r.count == 0 {
		r.first = e.Index
	}
	if r.count == len(r.slots) {
		r.grow()
	}
	*r.slot(e.Index) = *e
	r.count++
	r.bytes += entryCost(e)
	for r.bytes > r.limit && r.count > 0 {
		r.drop(r.first)
		r.first++
	}
}

func (r *ring) grow() {
	old := *r
	r.slots = make([]raft.Log, 2*len(old.slots))
	for i := range uint64(old.count) {
		*r.slot(old.first + i) = *old.slot(old.first + i)
	}
}

// drop frees the slot of an entry at either end.
func (r *ring) drop(index uint64) {
	s := r.slot(index)
	r.bytes -= entryCost(s)
	r.count--
	*s = raft.Log{}
}

// get copies the entry at index to e, if the ring holds it.
func (r *ring) get(index uint64, e *raft.Log) bool {
	if index < r.first || index-r.first >= uint64(r.count) {
		return false
	}
	*e = *r.slot(index)
	return true
}

// truncate drops the entries after last.
func (r *ring) truncate(last uint64) {
	for r.count > 0 && r.first+uint64(r.count)-1 > last {
		r.drop(r.first + uint64(r.count) - 1)
	}
}

func (r *ring) clear() {
	clear(r.slots)
	r.bytes, r.count, r.first = 0, 0, 0
}
