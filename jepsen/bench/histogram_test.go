package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreCloseToTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h, half histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(random.ExpFloat64() * float64(3*time.Millisecond))
		all = append(all, d)
		if i%2 == 0 {
			h.record(d)
		} else {
			half.record(d)
		}
	}
	h.add(&half)
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999} {
		want := all[int(q*float64(len(all)))]
		got := h.quantile(q)
		if got < want || float64(got) > float64(want)*1.02+1 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if h.max != all[len(all)-1] || h.quantile(1) != h.max {
		t.Errorf("got max %v, quantile 1 %v, want %v", h.max, h.quantile(1), all[len(all)-1])
	}
}

func TestEveryLatencyHasABucket(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 63, 64, 65, 127, 128, 129, time.Second, time.Hour, 1<<63 - 1} {
		b := bucketOf(uint64(d))
		if b < 0 || b >= powers*subBuckets {
			t.Fatalf("%d: bucket %d", d, b)
		}
		if d <= time.Hour && (upperBound(b) < d || b > 0 && upperBound(b-1) >= d) {
			t.Errorf("%d is in bucket %d, which ends at %d and begins after %d", d, b, upperBound(b), upperBound(b-1))
		}
	}
	var h histogram
	h.record(-time.Second)
	if h.quantile(0.5) != 0 || h.count != 1 {
		t.Errorf("a negative latency counts as %v", h.quantile(0.5))
	}
}
