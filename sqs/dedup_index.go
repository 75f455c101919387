package sqs

import (
	"encoding/binary"
	"slices"
)

const (
	// smallBucket and largeBucket are the least and most slots of a bucket, as
	// long as it can be split.
	smallBucket, largeBucket = 8, 1024
	// maxBucketDepth bounds the directory, whatever ids a client makes up.
	maxBucketDepth = 18
)

// dedupIndex finds entries of a ring by their key: an extendible hash table. It
// grows and shrinks by the bucket, so that no command pays for more than
// a thousand entries, and takes some 7 bytes for each.
type dedupIndex struct {
	depth   uint8          // bits of a key that choose the bucket
	buckets []*dedupBucket // 1 << depth; several in a row may be the same one
}

// dedupBucket is an open hash table with linear probing, at most three quarters
// full.
type dedupBucket struct {
	depth uint8 // bits that all its keys have in common
	used  int
	slots []uint32 // references plus one; 0 is empty
}

// high are the bits of a key that choose the bucket, the first one first.
func (k *dedupKey) high() uint64 { return binary.BigEndian.Uint64(k[:8]) }

// low are the bits that choose the slot.
func (k *dedupKey) low() uint64 { return binary.BigEndian.Uint64(k[8:]) }

// keyOf tells the key of a reference.
type keyOf func(ref uint32) *dedupKey

func (x *dedupIndex) bucket(k *dedupKey) *dedupBucket { return x.buckets[k.high()>>(64-x.depth)] }

// find returns the reference that was last set for the key.
func (x *dedupIndex) find(k dedupKey, of keyOf) (ref uint32, ok bool) {
	if x.buckets == nil {
		return 0, false
	}
	b := x.bucket(&k)
	if slot := b.find(&k, of); b.slots[slot] != 0 {
		return b.slots[slot] - 1, true
	}
	return 0, false
}

// find returns the slot where the key is, or would be.
func (b *dedupBucket) find(k *dedupKey, of keyOf) int {
	mask := len(b.slots) - 1
	for i := int(k.low()) & mask; ; i = (i + 1) & mask {
		if b.slots[i] == 0 || *of(b.slots[i] - 1) == *k {
			return i
		}
	}
}

// set refers the key to ref, and to nothing else any more.
func (x *dedupIndex) set(k dedupKey, ref uint32, of keyOf) {
	if x.buckets == nil {
		x.buckets = []*dedupBucket{newDedupBucket(0, smallBucket)}
	}
	for {
		b := x.bucket(&k)
		slot := b.find(&k, of)
		if b.slots[slot] != 0 {
			b.slots[slot] = ref + 1
			return
		}
		if b.used < len(b.slots)*3/4 {
			b.slots[slot] = ref + 1
			b.used++
			return
		}
		x.enlarge(b, &k, of)
	}
}

// enlarge makes room in the full bucket of k.
func (x *dedupIndex) enlarge(b *dedupBucket, k *dedupKey, of keyOf) {
	if len(b.slots) < largeBucket || b.depth == maxBucketDepth {
		x.replace(k, newDedupBucket(b.depth, 2*len(b.slots)), of, b)
		return
	}
	if b.depth == x.depth {
		doubled := make([]*dedupBucket, 0, 2*len(x.buckets))
		for _, b := range x.buckets {
			doubled = append(doubled, b, b)
		}
		x.buckets, x.depth = doubled, x.depth+1
	}
	halves := [2]*dedupBucket{newDedupBucket(b.depth+1, largeBucket), newDedupBucket(b.depth+1, largeBucket)}
	for _, s := range b.slots {
		if s != 0 {
			half := halves[of(s-1).high()>>(63-b.depth)&1]
			half.put(s, of)
		}
	}
	from, to := x.span(b.depth, k)
	middle := (from + to) / 2
	for i := from; i < to; i++ {
		if i < middle {
			x.buckets[i] = halves[0]
		} else {
			x.buckets[i] = halves[1]
		}
	}
}

// span is the part of the directory that has the first depth bits of k.
func (x *dedupIndex) span(depth uint8, k *dedupKey) (from, to int) {
	prefix := k.high() >> (64 - depth)
	return int(prefix << (x.depth - depth)), int((prefix + 1) << (x.depth - depth))
}

// replace puts a bucket, filled from others, in the place of all buckets that
// have its bits of k.
func (x *dedupIndex) replace(k *dedupKey, b *dedupBucket, of keyOf, others ...*dedupBucket) {
	for _, other := range others {
		for _, s := range other.slots {
			if s != 0 {
				b.put(s, of)
			}
		}
	}
	from, to := x.span(b.depth, k)
	for i := range x.buckets[from:to] {
		x.buckets[from+i] = b
	}
}

// remove forgets the key if it refers to ref.
func (x *dedupIndex) remove(k dedupKey, ref uint32, of keyOf) {
	if x.buckets == nil {
		return
	}
	b := x.bucket(&k)
	slot := b.find(&k, of)
	if b.slots[slot] != ref+1 {
		return
	}
	b.clear(slot, of)
	if b.used < len(b.slots)/8 && len(b.slots) > smallBucket {
		x.shrink(b, &k, of)
	}
}

// shrink gives room back: a bucket that is nearly empty joins its other half, if
// that is as empty, or gets half of its slots.
func (x *dedupIndex) shrink(b *dedupBucket, k *dedupKey, of keyOf) {
	if b.depth == 0 {
		x.replace(k, newDedupBucket(0, len(b.slots)/2), of, b)
		return
	}
	from, to := x.span(b.depth, k)
	width := to - from
	buddy := x.buckets[(from/width^1)*width]
	if buddy.depth != b.depth || buddy.used+b.used >= largeBucket/2 {
		return
	}
	x.replace(k, newDedupBucket(b.depth-1, largeBucket), of, b, buddy)
	if b.depth < x.depth {
		return
	}
	for x.depth > 0 && !slices.ContainsFunc(x.buckets, func(b *dedupBucket) bool { return b.depth == x.depth }) {
		x.halve()
	}
}

// halve makes the directory smaller, as no bucket needs all its bits.
func (x *dedupIndex) halve() {
	halved := make([]*dedupBucket, 0, len(x.buckets)/2)
	for i := 0; i < len(x.buckets); i += 2 {
		halved = append(halved, x.buckets[i])
	}
	x.buckets, x.depth = halved, x.depth-1
}

func newDedupBucket(depth uint8, slots int) *dedupBucket {
	return &dedupBucket{depth: depth, slots: make([]uint32, slots)}
}

// put adds a slot's content that is not there.
func (b *dedupBucket) put(s uint32, of keyOf) {
	mask := len(b.slots) - 1
	i := int(of(s-1).low()) & mask
	for b.slots[i] != 0 {
		i = (i + 1) & mask
	}
	b.slots[i] = s
	b.used++
}

// clear empties a slot, and moves those behind it that could not be found any
// more.
func (b *dedupBucket) clear(slot int, of keyOf) {
	mask := len(b.slots) - 1
	b.used--
	b.slots[slot] = 0
	for i := (slot + 1) & mask; b.slots[i] != 0; i = (i + 1) & mask {
		home := int(of(b.slots[i]-1).low()) & mask
		if (i-home)&mask >= (i-slot)&mask {
			b.slots[slot], b.slots[i] = b.slots[i], 0
			slot = i
		}
	}
}
