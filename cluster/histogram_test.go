package cluster

import (
	"testing"
	"time"
)

func TestHistogramQuantiles(t *testing.T) {
	now := time.Duration(0)
	h := &histogram{elapsed: func() time.Duration { return now }}
	if got := h.quantile(0.99); got != 0 {
		t.Errorf("empty: got %v, want 0", got)
	}
	for range 98 {
		h.observe(300 * time.Microsecond)
	}
	h.observe(40 * time.Millisecond)
	h.observe(time.Minute)
	for _, test := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 350 * time.Microsecond}, {0.98, 50 * time.Millisecond}, {0.99, 5 * time.Second}} {
		if got := h.quantile(test.q); got != test.want {
			t.Errorf("quantile %v: got %v, want %v", test.q, got, test.want)
		}
	}
	for range 3 { // the slow ones are forgotten, but counted
		now += recentWindow
		h.observe(time.Millisecond)
	}
	if got := h.quantile(0.99); got != time.Millisecond {
		t.Errorf("two minutes later: got %v, want 1ms", got)
	}
	total := uint64(0)
	for _, n := range h.snapshot().Counts {
		total += n
	}
	if total != 103 {
		t.Errorf("got %d observations, want 103", total)
	}
}
