package raftfsm

import "slices"

// NumberRange is all numbers from First to Last.
type NumberRange struct{ First, Last uint64 }

// NumberRanges is a set of numbers: ascending ranges with a gap between each two.
type NumberRanges []NumberRange

// Add adds the numbers of r, in place if there is room.
func (s NumberRanges) Add(r NumberRange) NumberRanges {
	if r.First > r.Last {
		return s
	}
	from, to := s.touching(r)
	if from < to {
		r.First = min(r.First, s[from].First)
		r.Last = max(r.Last, s[to-1].Last)
	}
	return slices.Replace(s, from, to, r)
}

// Has reports whether a number is in the set.
func (s NumberRanges) Has(number uint64) bool {
	// Most questions are about numbers above all of the set.
	if last := len(s) - 1; last < 0 || number > s[last].Last {
		return false
	}
	from, to := s.touching(NumberRange{number, number})
	return slices.ContainsFunc(s[from:to], func(r NumberRange) bool { return r.First <= number && number <= r.Last })
}

// touching returns which ranges r overlaps or is next to.
func (s NumberRanges) touching(r NumberRange) (from, to int) {
	from, _ = slices.BinarySearchFunc(s, r.First, func(one NumberRange, first uint64) int {
		if one.Last < first && one.Last+1 < first {
			return -1
		}
		return 1
	})
	to = from
	for to < len(s) && (s[to].First <= r.Last || s[to].First-1 == r.Last) {
		to++
	}
	return from, to
}

// isValid reports whether the ranges are as the other methods need them.
func (s NumberRanges) isValid() bool {
	for i, r := range s {
		if r.First > r.Last || i > 0 && (s[i-1].Last >= r.First || s[i-1].Last+1 == r.First) {
			return false
		}
	}
	return true
}
