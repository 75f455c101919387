package bench

import (
	"math/bits"
	"time"
)

const (
	// subBuckets is into how many equal parts each power of two is split: a
	// value is known to 1.6 %.
	subBuckets = 64
	// powers covers nanoseconds up to 9 years.
	powers = 52
)

// histogram counts latencies. The zero value is empty.
type histogram struct {
	count   uint64
	max     time.Duration
	buckets [powers * subBuckets]uint64
}

// record counts one latency; a negative one counts as zero.
func (h *histogram) record(d time.Duration) {
	d = max(d, 0)
	h.count++
	h.max = max(h.max, d)
	h.buckets[bucketOf(uint64(d))]++
}

// bucketOf returns the bucket of a value: values below subBuckets have one of
// their own, above that each power of two has subBuckets.
func bucketOf(v uint64) int {
	shift := bits.Len64(v / subBuckets)
	if shift == 0 {
		return int(v)
	}
	// v >> (shift-1) lies in subBuckets … 2*subBuckets-1.
	return min(shift*subBuckets+int(v>>(shift-1))-subBuckets, powers*subBuckets-1)
}

// upperBound returns the largest value of a bucket.
func upperBound(bucket int) time.Duration {
	shift := bucket / subBuckets
	if shift == 0 {
		return time.Duration(bucket)
	}
	return time.Duration((bucket%subBuckets+subBuckets+1)<<(shift-1) - 1)
}

// quantile returns a value that the fraction q (0 to 1) of the latencies does
// not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	var seen uint64
	for i, n := range h.buckets {
		seen += n
		if n > 0 && seen > rank {
			return min(upperBound(i), h.max)
		}
	}
	return h.max
}

func (h *histogram) add(other *histogram) {
	h.count += other.count
	h.max = max(h.max, other.max)
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
}
