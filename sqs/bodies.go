package sqs

import (
	"cmp"
	"iter"
	"slices"
)

// numbers is a range of sequence numbers or of body numbers.
type numbers struct{ first, count uint64 }

// Bodies yields the ranges (first number, count) of the bodies that messages
// refer to, ascending and apart from one another.
func (f *Frozen) Bodies() iter.Seq2[uint64, uint64] {
	return func(yield func(first, count uint64) bool) {
		var live numbers
		for n := range merge(f.bodies()) {
			end := live.first + live.count
			switch {
			case live.count == 0:
				live = n
			case n.first <= end:
				live.count = max(end, n.first+n.count) - live.first
			default:
				if !yield(live.first, live.count) {
					return
				}
				live = n
			}
		}
		if live.count > 0 {
			yield(live.first, live.count)
		}
	}
}

// bodies returns the series of all lists, and one of all records.
func (f *Frozen) bodies() []series {
	var all []series
	var single []uint64
	for i := range f.queues {
		q := &f.queues[i]
		q.ordered = nil // most often the encoding is done, and a snapshot now waits for the disk
		for j := range q.lists {
			all = appendBodies(all, &q.lists[j])
		}
		for _, p := range q.pages {
			for k := range p {
				if p[k].sequence != 0 {
					single = append(single, p[k].body)
				}
			}
		}
	}
	slices.Sort(single)
	return append(all, singles(single))
}

// appendBodies appends the series of a list: one, as long as the numbers of
// bodies rise with those of messages, and a new one where they fall.
func appendBodies(all []series, l *list) []series {
	c := cursor{list: l}
	from, runs, last := c, 0, uint64(0)
	for {
		before := c
		r, ok := c.next()
		if runs > 0 && (!ok || r.body < last) {
			all = append(all, bodySeries(from, runs))
			from, runs = before, 0
		}
		if !ok {
			return all
		}
		runs++
		last = r.body
	}
}

// bodySeries is the series of a number of runs.
func bodySeries(c cursor, runs int) series {
	return series{next: func() (numbers, bool) {
		if runs == 0 {
			return numbers{}, false
		}
		runs--
		r, ok := c.next()
		return numbers{first: r.body, count: uint64(r.count)}, ok
	}}
}

// singles is the series of the numbers in an ascending list.
func singles(sorted []uint64) series {
	return series{next: func() (numbers, bool) {
		if len(sorted) == 0 {
			return numbers{}, false
		}
		n := numbers{first: sorted[0], count: 1}
		sorted = sorted[1:]
		return n, true
	}}
}

// series are ranges whose first numbers do not fall.
type series struct {
	next func() (numbers, bool)
	head numbers
}

// merge yields the ranges of all series in the order of their first numbers.
func merge(all []series) iter.Seq[numbers] {
	return func(yield func(numbers) bool) {
		h := make(seriesHeap, 0, len(all))
		for _, s := range all {
			if n, ok := s.next(); ok {
				s.head = n
				h = append(h, s)
			}
		}
		slices.SortFunc(h, func(a, b series) int { return cmp.Compare(a.head.first, b.head.first) })
		for len(h) > 0 {
			if !yield(h[0].head) {
				return
			}
			h.advance()
		}
	}
}

// seriesHeap is a heap of series by their heads.
type seriesHeap []series

// advance goes on to the next range of the first series.
func (h *seriesHeap) advance() {
	s := *h
	var ok bool
	if s[0].head, ok = s[0].next(); !ok {
		last := len(s) - 1
		s[0] = s[last]
		s[last] = series{}
		s = s[:last]
		*h = s
	}
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s); child++ {
			if s[child].head.first < s[least].head.first {
				least = child
			}
		}
		if least == i {
			return
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// cursor goes through what is left of the runs of a list.
type cursor struct {
	list       *list
	chunk, run int
	started    bool
}

func (c *cursor) next() (run, bool) {
	l := c.list
	if !c.started {
		c.started = true
		c.run = int(l.head)
	}
	if c.chunk < len(l.chunks) && c.run == len(l.chunks[c.chunk].runs) {
		c.chunk++
		c.run = 0
	}
	if c.chunk == len(l.chunks) {
		return run{}, false
	}
	r := l.chunks[c.chunk].runs[c.run]
	if c.chunk == 0 && c.run == int(l.head) {
		r.sequence += uint64(l.skipped)
		r.body += uint64(l.skipped)
		r.count -= l.skipped
	}
	c.run++
	return r, true
}
