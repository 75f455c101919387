package sns

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSorted plays random changes to a list and to a slice, and checks that what
// was frozen stays as it was.
func TestSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := sorted[int]{compare: cmp.Compare[int]}
	var model, then []int
	var frozen sorted[int]
	for step := range 60_000 {
		limit := 3000
		if step%20_000 > 10_000 {
			limit = 40 // shrinks
		}
		v := r.IntN(3000)
		i, found := slices.BinarySearch(model, v)
		switch {
		case len(model) < limit && r.IntN(3) > 0:
			if list.set(v); !found {
				model = slices.Insert(model, i, v)
			}
		default:
			if list.remove(v); found {
				model = slices.Delete(model, i, i+1)
			}
		}
		if got, ok := list.find(v); ok != slices.Contains(model, v) || ok && got != v {
			t.Fatalf("step %d: find %d: got %d, %v", step, v, got, ok)
		}
		if step%500 != 0 {
			continue
		}
		if got := slices.Collect(list.all); !slices.Equal(got, model) || list.count != len(model) {
			t.Fatalf("step %d: got %v, want %v", step, got, model)
		}
		j, _ := slices.BinarySearch(model, v)
		if got := slices.Collect(list.from(v)); !slices.Equal(got, model[j:]) {
			t.Fatalf("step %d: from %d: got %v, want %v", step, v, got, model[j:])
		}
		if got := slices.Collect(frozen.all); !slices.Equal(got, then) {
			t.Fatalf("step %d: what was frozen has changed", step)
		}
		frozen, then = list.freeze(), slices.Clone(model)
	}
}
