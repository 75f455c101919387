package sqs

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

const (
	// orderPage is the most ids of one page: 1 KiB, so that a move inside a
	// page costs tens of nanoseconds.
	orderPage = 256
	// keptCapacity is the most entries that an empty structure keeps room for.
	// It lets a quiet queue go on without allocation, and ten thousand queues
	// forget their bursts.
	keptCapacity = 16
)

// rank is what ids are ordered by: a class, if there are any, then a time (or
// another number), then a sequence number. The ranks in one order are all
// different.
type rank struct {
	class    uint64
	at       Time
	sequence uint64
}

func (r rank) compare(s rank) int {
	if r.class != s.class {
		return cmp.Compare(r.class, s.class)
	}
	if r.at != s.at {
		return cmp.Compare(r.at, s.at)
	}
	return cmp.Compare(r.sequence, s.sequence)
}

// upTo is the rank behind all that have a time of at most t.
func upTo(t Time) rank { return rank{at: t, sequence: math.MaxUint64} }

// ranking tells an id's rank. It must not change while the id is in the order.
type ranking func(id uint32) rank

// order is a sorted sequence of ids: a B-tree of two levels. Next to what a heap
// does it counts exactly how many ids are below a rank, finds an id by its
// rank, and needs no field in what it orders. All is O(log n + page), the
// directory of the pages taken as one more page.
type order struct {
	pages []page // none is empty; but the only one may be
	count int
}

// page is a part of an order. Its first rank is kept beside it, so that the
// search for a page does not touch what is ordered.
type page struct {
	first rank
	ids   []uint32
}

// add puts in an id that is not there.
func (o *order) add(id uint32, of ranking) {
	r := of(id)
	o.count++
	if len(o.pages) == 0 {
		o.pages = append(o.pages, page{})
	}
	p, i := o.seek(r, of)
	if len(o.pages[p].ids) == orderPage {
		p, i = o.split(p, i, of)
	}
	pg := &o.pages[p]
	pg.ids = slices.Insert(pg.ids, i, id)
	if i == 0 {
		pg.first = r
	}
}

// remove takes out an id that is there, by the rank it was put in with.
func (o *order) remove(id uint32, of ranking) {
	p, i := o.seek(of(id), of)
	pg := &o.pages[p]
	if i == len(pg.ids) || pg.ids[i] != id {
		panic("sqs: an id is not in its order")
	}
	o.count--
	pg.ids = slices.Delete(pg.ids, i, i+1)
	switch {
	case o.count == 0:
		o.reset()
	case len(pg.ids) == 0:
		o.pages = slices.Delete(o.pages, p, p+1)
	default:
		if i == 0 {
			pg.first = of(pg.ids[0])
		}
		o.merge(p)
	}
}

// first returns the id of the lowest rank.
func (o *order) first() (id uint32, ok bool) {
	if o.count == 0 {
		return 0, false
	}
	return o.pages[0].ids[0], true
}

// find returns the id of exactly this rank.
func (o *order) find(r rank, of ranking) (id uint32, ok bool) {
	if o.count == 0 {
		return 0, false
	}
	p, i := o.seek(r, of)
	if ids := o.pages[p].ids; i < len(ids) && of(ids[i]) == r {
		return ids[i], true
	}
	return 0, false
}

// after returns the id of the lowest rank above r.
func (o *order) after(r rank, of ranking) (id uint32, ok bool) {
	if o.count == 0 {
		return 0, false
	}
	p, i := o.seek(r, of)
	if i < len(o.pages[p].ids) && of(o.pages[p].ids[i]) == r {
		i++
	}
	if i < len(o.pages[p].ids) {
		return o.pages[p].ids[i], true
	}
	if p+1 < len(o.pages) {
		return o.pages[p+1].ids[0], true
	}
	return 0, false
}

// below counts the ids whose rank is less than r.
func (o *order) below(r rank, of ranking) int {
	if o.count == 0 || r.compare(o.pages[0].first) <= 0 {
		return 0
	}
	p, i := o.seek(r, of)
	return o.before(p) + i
}

// before counts the ids of the pages before page p, from the nearer end.
func (o *order) before(p int) (n int) {
	if p > len(o.pages)/2 {
		for _, pg := range o.pages[p:] {
			n += len(pg.ids)
		}
		return o.count - n
	}
	for _, pg := range o.pages[:p] {
		n += len(pg.ids)
	}
	return n
}

// until counts the ids before the first for which past is true; from there on it
// must be true for all.
func (o *order) until(past func(id uint32) bool) int {
	if o.count == 0 || past(o.pages[0].ids[0]) {
		return 0
	}
	p := sort.Search(len(o.pages), func(i int) bool { return past(o.pages[i].ids[0]) }) - 1
	ids := o.pages[p].ids
	return o.before(p) + sort.Search(len(ids), func(i int) bool { return past(ids[i]) })
}

// nth returns the id that n others are before.
func (o *order) nth(n int) (id uint32, ok bool) {
	for _, pg := range o.pages {
		if n < len(pg.ids) {
			return pg.ids[n], true
		}
		n -= len(pg.ids)
	}
	return 0, false
}

// all yields the ids in order, until yield says no. Nothing may be added or
// removed meanwhile.
func (o *order) all(yield func(id uint32) bool) {
	for _, pg := range o.pages {
		for _, id := range pg.ids {
			if !yield(id) {
				return
			}
		}
	}
}

// seek returns the place of the first id whose rank is not less than r, in the
// page where r belongs; the index may be the page's length.
func (o *order) seek(r rank, of ranking) (p, i int) {
	if last := len(o.pages) - 1; r.compare(o.pages[last].first) >= 0 {
		p = last
	} else {
		p = max(0, sort.Search(last, func(i int) bool { return o.pages[i].first.compare(r) > 0 })-1)
	}
	ids := o.pages[p].ids
	if n := len(ids); n > 0 && of(ids[n-1]).compare(r) < 0 {
		return p, n // what is new mostly comes last
	}
	return p, sort.Search(len(ids), func(i int) bool { return of(ids[i]).compare(r) >= 0 })
}

// split makes room for one more id at (p, i) of a full page and returns its new
// place. Behind the end of everything it begins a page, so that a sequence that
// only grows fills its pages.
func (o *order) split(p, i int, of ranking) (int, int) {
	if i == orderPage && p == len(o.pages)-1 {
		o.pages = append(o.pages, page{ids: make([]uint32, 0, orderPage)})
		return p + 1, 0
	}
	left := o.pages[p].ids
	right := append(make([]uint32, 0, orderPage), left[orderPage/2:]...)
	o.pages[p].ids = left[:orderPage/2]
	o.pages = slices.Insert(o.pages, p+1, page{first: of(right[0]), ids: right})
	if i > orderPage/2 {
		return p + 1, i - orderPage/2
	}
	return p, i
}

// merge joins page p with a neighbour when both are small.
func (o *order) merge(p int) {
	if len(o.pages[p].ids) > orderPage/4 {
		return
	}
	for left := max(p-1, 0); left <= p && left+1 < len(o.pages); left++ {
		a, b := &o.pages[left], o.pages[left+1]
		if len(a.ids)+len(b.ids) <= orderPage*3/4 {
			a.ids = append(a.ids, b.ids...)
			o.pages = slices.Delete(o.pages, left+1, left+2)
			return
		}
	}
}

// reset empties an order in which nothing is left.
func (o *order) reset() {
	if len(o.pages) == 1 && cap(o.pages[0].ids) <= keptCapacity {
		o.pages[0].ids = o.pages[0].ids[:0]
		return
	}
	o.pages = nil
}
