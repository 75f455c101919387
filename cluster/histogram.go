package cluster

import (
	"sync"
	"time"
)

// histogramBounds are the upper bounds of the buckets; one more bucket holds
// what is above the last.
var histogramBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 350 * time.Microsecond, 500 * time.Microsecond,
	750 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

type buckets [len(histogramBounds) + 1]uint64

// recentWindow is what the quantiles are about: the last window that is full
// and the one that is being filled.
const recentWindow = time.Minute

// histogram counts durations, all of them and the recent ones. It is safe for
// concurrent use.
type histogram struct {
	elapsed func() time.Duration

	mu       sync.Mutex
	counts   buckets
	sum      time.Duration
	previous buckets // what counts was when the window before the current one began
	current  buckets // what counts was when the current window began
	began    time.Duration
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(histogramBounds) && d > histogramBounds[i] {
		i++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.elapsed(); now-h.began >= recentWindow {
		h.previous, h.current, h.began = h.current, h.counts, now
	}
	h.counts[i]++
	h.sum += d
}

// quantile is an upper bound of the q-quantile (0–1) of the recent durations; 0
// if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	var recent buckets
	total := uint64(0)
	for i := range recent {
		recent[i] = h.counts[i] - h.previous[i]
		total += recent[i]
	}
	rank := uint64(q * float64(total))
	for i, n := range recent {
		if n > 0 && rank < n {
			return histogramBounds[min(i, len(histogramBounds)-1)]
		}
		rank -= n
	}
	return 0
}

// Histogram is a histogram of durations since the process began.
type Histogram struct {
	Bounds []time.Duration // upper bounds of the buckets, ascending
	Counts []uint64        // per bucket, not cumulative; the last is above all bounds
	Sum    time.Duration
}

func (h *histogram) snapshot() Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := h.counts
	return Histogram{Bounds: histogramBounds[:], Counts: counts[:], Sum: h.sum}
}
