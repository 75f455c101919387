package sqs

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder compares an order with a sorted slice, through growth, decay and
// regrowth over many pages.
func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const ids = 4000
	var ranks [ids]rank
	of := func(id uint32) rank { return ranks[id] }
	var o order
	var want []rank
	for step := range 40_000 {
		id := uint32(r.IntN(ids))
		growing := step%20_000 < 10_000
		if i, found := slices.BinarySearchFunc(want, ranks[id], rank.compare); found && r.IntN(4) > 0 != growing {
			o.remove(id, of)
			want = slices.Delete(want, i, i+1)
			ranks[id] = rank{}
		} else if !found && (growing || r.IntN(8) == 0) {
			ranks[id] = rank{at: Time(r.IntN(50)), sequence: uint64(id) + 1}
			if r.IntN(2) == 0 {
				ranks[id].at = Time(step) // mostly at the end, as in a queue
			}
			o.add(id, of)
			i, _ := slices.BinarySearchFunc(want, ranks[id], rank.compare)
			want = slices.Insert(want, i, ranks[id])
		}
		if step%500 == 0 {
			checkOrder(t, &o, want, of)
		}
		probe := rank{at: Time(r.IntN(step + 60)), sequence: uint64(r.IntN(ids))}
		checkProbe(t, &o, want, probe, of)
		if t.Failed() {
			t.Fatalf("step %d of seed %d", step, seed)
		}
	}
	for id := range uint32(ids) {
		if _, ok := o.find(ranks[id], of); ok {
			o.remove(id, of)
		}
	}
	if o.count != 0 || len(o.pages) > 1 {
		t.Errorf("an empty order has %d ids in %d pages", o.count, len(o.pages))
	}
}

func checkOrder(t *testing.T, o *order, want []rank, of ranking) {
	t.Helper()
	var got []rank
	for id := range o.all {
		got = append(got, of(id))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for i, p := range o.pages {
		if len(p.ids) > orderPage || len(p.ids) == 0 && o.count > 0 || len(p.ids) > 0 && p.first != of(p.ids[0]) {
			t.Errorf("page %d of %d ids begins with %v", i, len(p.ids), p.first)
		}
	}
}

func checkProbe(t *testing.T, o *order, want []rank, probe rank, of ranking) {
	t.Helper()
	i, found := slices.BinarySearchFunc(want, probe, rank.compare)
	if got := o.below(probe, of); got != i {
		t.Errorf("below %v: got %d, want %d", probe, got, i)
	}
	if _, ok := o.find(probe, of); ok != found {
		t.Errorf("find %v: got %t, want %t", probe, ok, found)
	}
	if found {
		i++
	}
	id, ok := o.after(probe, of)
	if ok != (i < len(want)) || ok && of(id) != want[i] {
		t.Errorf("after %v: got %d %t", probe, id, ok)
	}
	first, ok := o.first()
	if ok != (len(want) > 0) || ok && of(first) != want[0] {
		t.Errorf("first: got %d %t", first, ok)
	}
}

// To take out what is not there is a mistake of the caller, wherever it would lie.
func TestOrderRefusesStrangers(t *testing.T) {
	var o order
	of := func(id uint32) rank { return rank{sequence: uint64(id)} }
	for _, id := range []uint32{2, 4, 6} {
		o.add(id, of)
	}
	for _, id := range []uint32{1, 3, 7} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d was taken out, and was not there", id)
				}
			}()
			o.remove(id, of)
		}()
	}
}
