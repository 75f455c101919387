package wal

import (
	"fmt"
	"iter"
	"slices"
)

// The limits of a packed chunk as WriteLive makes it. A larger body has a chunk
// to itself.
const (
	packBytes   = 4 << 20
	packRecords = 64 << 10
)

// packer copies bodies, in ascending order of their numbers, into packed
// chunks.
type packer struct {
	done  []chunk
	open  *packedChunk
	spare []byte // empty, for the next chunk: a chunk that was full is seldom the last
}

// add copies a body.
func (p *packer) add(number uint64, record []byte) { copy(p.reserve(number, len(record)), record) }

// reserve makes room for a body and returns it for the caller to fill.
func (p *packer) reserve(number uint64, size int) []byte {
	if p.open != nil && !p.fits(number, size) {
		p.seal()
	}
	if p.open == nil {
		p.open = &packedChunk{first: number, slab: p.spare}
		p.spare = nil
	}
	c := p.open
	start := len(c.slab)
	c.slab = slices.Grow(c.slab, size)[:start+size]
	c.offsets = append(c.offsets, uint32(number-c.first))
	c.ends = append(c.ends, uint32(len(c.slab)))
	c.limit = number + 1
	return c.slab[start:]
}

func (p *packer) fits(number uint64, size int) bool {
	c := p.open
	return len(c.slab)+size <= packBytes && len(c.offsets) < packRecords && number-c.first < 1<<32
}

// size is how much was added since take.
func (p *packer) size() int64 {
	sum := sumSizes(p.done)
	if p.open != nil {
		sum += p.open.size()
	}
	return sum
}

// seal completes the chunk being filled, in memory of about the right size.
func (p *packer) seal() {
	c := p.open
	if len(c.slab) > packBytes/2 && p.spare == nil {
		p.spare = make([]byte, 0, packBytes)
	}
	if waste := cap(c.slab) - len(c.slab); waste > packBytes/16 || waste > len(c.slab)/4 {
		c.slab = slices.Clone(c.slab)
	}
	c.offsets, c.ends = slices.Clone(c.offsets), slices.Clone(c.ends)
	p.done, p.open = append(p.done, c), nil
}

// take returns the chunks made since the last take.
func (p *packer) take() []chunk {
	if p.open != nil {
		p.seal()
	}
	done := p.done
	p.done = nil
	return done
}

func sumSizes(chunks []chunk) int64 {
	var sum int64
	for _, c := range chunks {
		sum += c.size()
	}
	return sum
}

// liveCursor walks numbers that are given as ranges (first, count), ascending.
type liveCursor struct {
	pull  func() (first, count uint64, ok bool)
	next  uint64
	limit uint64 // of the range in which next is; next == limit: it is used up
	ended bool
	err   error // the ranges do not ascend; the cursor is at its end then
}

func newLiveCursor(live iter.Seq2[uint64, uint64]) (c *liveCursor, stop func()) {
	pull, stop := iter.Pull2(live)
	return &liveCursor{pull: pull}, stop
}

// peek returns the next number; false at the end, or if there is an err.
func (c *liveCursor) peek() (number uint64, ok bool) {
	for c.next == c.limit && !c.ended {
		first, count, ok := c.pull()
		if ok && first < c.next {
			c.err = fmt.Errorf("write body %d: %w", first, errBodyNumber)
		}
		c.ended = !ok || c.err != nil
		c.next, c.limit = first, first+count
	}
	return c.next, !c.ended
}

func (c *liveCursor) advance() { c.next++ }

// below takes the next numbers that are in one piece and below limit; false if
// the next number is not below it.
func (c *liveCursor) below(limit uint64) (first, count uint64, ok bool) {
	first, more := c.peek()
	if !more || first >= limit {
		return 0, 0, false
	}
	count = min(c.limit, limit) - first
	c.next += count
	return first, count, true
}

// end is the error of a cursor that should have nothing left.
func (c *liveCursor) end() error {
	if number, more := c.peek(); more {
		return fmt.Errorf("write body %d: it is not in a closed chunk", number)
	}
	return c.err
}
