package sqs

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDedupIndex sets and removes keys, at random and in bursts, beside a map,
// and looks at the form of the index. Its keys are even, or share their first
// bits as an attacker would have them.
func TestDedupIndex(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(r *rand.Rand) dedupKey
	}{
		{"even", func(r *rand.Rand) (k dedupKey) {
			binary.BigEndian.PutUint64(k[:], r.Uint64N(1<<15)<<40*0x9e3779b97f4a7c15)
			binary.BigEndian.PutUint64(k[8:], r.Uint64())
			return k
		}},
		{"one high half", func(r *rand.Rand) (k dedupKey) {
			binary.BigEndian.PutUint64(k[8:], r.Uint64N(3000)*0x9e3779b97f4a7c15)
			return k
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var x dedupIndex
			var keys []dedupKey // by reference
			of := func(ref uint32) *dedupKey { return &keys[ref] }
			want := map[dedupKey]uint32{}
			var live []uint32
			for round := range 40 {
				for range r.IntN(4000) {
					k := test.make(r)
					keys = append(keys, k)
					ref := uint32(len(keys) - 1)
					x.set(k, ref, of)
					want[k] = ref
					live = append(live, ref)
				}
				gone := r.IntN(len(live) + 1)
				if round%10 == 9 {
					gone = len(live)
				}
				for _, ref := range live[:gone] {
					x.remove(keys[ref], ref, of)
					if want[keys[ref]] == ref {
						delete(want, keys[ref])
					}
				}
				live = live[gone:]
				checkIndex(t, &x, want, keys)
			}
			if len(x.buckets) != 1 || len(x.buckets[0].slots) > largeBucket {
				t.Errorf("an empty index has %d buckets, the first of %d slots", len(x.buckets), len(x.buckets[0].slots))
			}
		})
	}
}

// TestDedupBucketsOfTwoDepths lets one half of the directory be a single bucket and
// the other be two. When the single one is nearly empty there is none to join it
// with, on whichever side it is.
func TestDedupBucketsOfTwoDepths(t *testing.T) {
	for _, wide := range []uint64{0, 1} {
		var x dedupIndex
		var keys []dedupKey // by reference
		of := func(ref uint32) *dedupKey { return &keys[ref] }
		want := map[dedupKey]uint32{}
		r := rand.New(rand.NewPCG(wide, 0))
		add := func(half uint64, n int) {
			for range n {
				var k dedupKey
				binary.BigEndian.PutUint64(k[:], half<<63|r.Uint64()>>1)
				binary.BigEndian.PutUint64(k[8:], r.Uint64())
				want[k] = uint32(len(keys))
				keys = append(keys, k)
				x.set(k, want[k], of)
			}
		}
		add(wide, 500)
		add(1-wide, 800)
		if x.depth != 2 {
			t.Fatalf("got a directory of depth %d, want 2", x.depth)
		}
		for ref := range uint32(450) {
			x.remove(keys[ref], ref, of)
			delete(want, keys[ref])
		}
		checkIndex(t, &x, want, keys)
	}
}

func checkIndex(t *testing.T, x *dedupIndex, want map[dedupKey]uint32, keys []dedupKey) {
	t.Helper()
	of := func(ref uint32) *dedupKey { return &keys[ref] }
	for i := range keys {
		got, ok := x.find(keys[i], of)
		if ref, known := want[keys[i]]; ok != known || ok && got != ref {
			t.Fatalf("key %d: got %d %t, want %d %t", i, got, ok, ref, known)
		}
	}
	used := 0
	var last *dedupBucket
	for _, b := range x.buckets {
		if b == last {
			continue
		}
		last = b
		n := 0
		for _, s := range b.slots {
			if s != 0 {
				n++
			}
		}
		if n != b.used || n > len(b.slots)*3/4 || b.depth > x.depth {
			t.Fatalf("bucket of depth %d in depth %d counts %d, has %d of %d", b.depth, x.depth, b.used, n, len(b.slots))
		}
		used += n
	}
	if used != len(want) {
		t.Fatalf("got %d keys, want %d", used, len(want))
	}
}

// TestDedupPageNumbers lets the numbers of pages begin anew.
func TestDedupPageNumbers(t *testing.T) {
	var d dedup
	now, sequence := Time(1), uint64(1)
	add := func(n int) {
		for range n {
			d.add(dedupKey{byte(sequence), byte(sequence >> 8), byte(sequence >> 16), 15: byte(sequence)}, original{at: now, sequence: sequence})
			now++
			sequence++
		}
	}
	d.number = dedupNumbers - 1
	add(3 * dedupPageSize)
	for s := range sequence {
		if s == 0 {
			continue
		}
		o, ok := d.find(dedupKey{byte(s), byte(s >> 8), byte(s >> 16), 15: byte(s)}, now, time.Hour)
		if !ok || o.sequence != s || o.at != Time(s) {
			t.Fatalf("%d: got %+v %t", s, o, ok)
		}
	}
	d.forget(now.Add(time.Minute), time.Second, 2*dedupPageSize+5)
	if d.number != 1 || d.skipped != 5 || d.count != dedupPageSize-5 {
		t.Errorf("got page %d, %d skipped, %d left", d.number, d.skipped, d.count)
	}
	if o, ok := d.find(dedupKey{byte(sequence - 1), byte((sequence - 1) >> 8), byte((sequence - 1) >> 16), 15: byte(sequence - 1)}, now, time.Hour); !ok || o.sequence != sequence-1 {
		t.Errorf("the last one: got %+v %t", o, ok)
	}
	// What is far from the first entry of a page begins another.
	pages := len(d.pages)
	sequence += 1 << 33
	add(1)
	now += 1 << 33
	add(1)
	if len(d.pages) != pages+2 {
		t.Errorf("got %d pages, want %d", len(d.pages), pages+2)
	}
}
