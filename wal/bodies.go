package wal

import (
	"fmt"
	"slices"
	"sort"
	"sync"
)

// Bodies is a body store in memory: the contents of messages by their numbers,
// which rise by one for the life of a cluster and are never used again. A
// snapshot carries every live body. A node with a disk has Segments instead.
//
// Bodies lie in chunks of consecutive numbers. The open chunk takes what is
// appended and only refers to it, so a short body keeps the whole log entry
// that it came with in memory. CloseChunk ends it; WriteLive then copies what
// is live in closed chunks into packed ones, and lets go of the rest.
//
// Safe for concurrent use; one WriteLive runs at a time.
type Bodies struct {
	writing sync.Mutex // serialises WriteLive; taken before mu

	mu         sync.RWMutex
	closed     []chunk // ascending, without overlap
	open       *openChunk
	generation uint64 // rises when OpenGeneration's commit replaces everything
	unsaved    int64  // bytes in closed chunks that no WriteLive has written
}

// chunk is an immutable set of bodies with numbers of one interval.
type chunk interface {
	// span is the interval of numbers, limit excluded.
	span() (first, limit uint64)
	// find returns the body of a number within the span, false if it is gone.
	find(number uint64) ([]byte, bool)
	// size is the sum of the sizes of its bodies.
	size() int64
}

// NewBodies returns an empty store. The first number appended may be any.
func NewBodies() *Bodies { return &Bodies{open: &openChunk{}} }

// openChunk holds bodies with consecutive numbers as they came. Append is the
// only change, and a chunk that was closed sees none.
type openChunk struct {
	first   uint64
	records [][]byte
	bytes   int64
	fixed   bool // first is decided, though there may be no record
}

func (c *openChunk) span() (first, limit uint64) { return c.first, c.first + uint64(len(c.records)) }

func (c *openChunk) size() int64 { return c.bytes }

func (c *openChunk) find(number uint64) ([]byte, bool) {
	return c.records[number-c.first], true
}

// add takes the next body.
func (c *openChunk) add(number uint64, record []byte) {
	if !c.fixed {
		c.first, c.fixed = number, true
	}
	if _, limit := c.span(); number != limit {
		panic(fmt.Sprintf("wal: body %d is appended, number %d is next", number, limit))
	}
	c.records = append(c.records, record)
	c.bytes += int64(len(record))
}

// packedChunk holds the live bodies of an interval in one piece of memory.
type packedChunk struct {
	first, limit uint64
	offsets      []uint32 // of the numbers, from first; ascending
	ends         []uint32 // where each body ends in slab
	slab         []byte
}

func (c *packedChunk) span() (first, limit uint64) { return c.first, c.limit }

func (c *packedChunk) size() int64 { return int64(len(c.slab)) }

func (c *packedChunk) find(number uint64) ([]byte, bool) {
	i, found := slices.BinarySearch(c.offsets, uint32(number-c.first))
	if !found {
		return nil, false
	}
	return c.at(i), true
}

// at returns the i-th body, capped so that nobody can append into the next.
func (c *packedChunk) at(i int) []byte {
	var start uint32
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.slab[start:c.ends[i]:c.ends[i]]
}

// Append keeps record, which must never change, under number, which must be
// one more than that of the call before.
func (b *Bodies) Append(number uint64, record []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open.add(number, record)
}

// Pin returns a function that gives the body of that number, at any time and
// from any goroutine, whatever happens to the body meanwhile; its error is nil
// as long as bodies are in memory. False: there is no such body.
func (b *Bodies) Pin(number uint64) (func() ([]byte, error), bool) {
	b.mu.RLock()
	record, found := b.find(number)
	b.mu.RUnlock()
	if !found {
		return nil, false
	}
	return func() ([]byte, error) { return record, nil }, true
}

// find looks a body up. The caller holds mu.
func (b *Bodies) find(number uint64) ([]byte, bool) {
	if first, limit := b.open.span(); number >= first && number < limit {
		return b.open.find(number)
	}
	return findIn(b.closed, number)
}

func findIn(chunks []chunk, number uint64) ([]byte, bool) {
	i := sort.Search(len(chunks), func(i int) bool {
		_, limit := chunks[i].span()
		return limit > number
	})
	if i == len(chunks) {
		return nil, false
	}
	if first, _ := chunks[i].span(); number < first {
		return nil, false
	}
	return chunks[i].find(number)
}

// CloseChunk marks the moment of a snapshot: the next WriteLive must be given
// all numbers below the next one that are live now. At most one snapshot may
// be between its CloseChunk and its WriteLive, as it is with raft; one that is
// given up needs no WriteLive.
func (b *Bodies) CloseChunk() {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open
	if len(c.records) == 0 {
		return
	}
	_, limit := c.span()
	b.closed = append(b.closed, c)
	b.unsaved += c.bytes
	b.open = &openChunk{first: limit, fixed: true}
}

// Pending is the size of the bodies appended since the last CloseChunk, and of
// those in closed chunks that no WriteLive has written yet, whether they are
// still live or not.
func (b *Bodies) Pending() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.open.bytes + b.unsaved
}
