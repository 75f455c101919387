package sns

import (
	"iter"
	"slices"
	"sort"
)

// sortedPage is the most items of one page of a sorted list: so a change inside a
// page moves 2 KiB at most.
const sortedPage = 256

// sorted is a list in the order of compare: a B-tree of two levels. Freezing it
// copies the directory of its pages; a page that a frozen copy refers to is copied
// before it changes.
type sorted[T any] struct {
	compare func(a, b T) int
	pages   [][]T  // none is empty
	frozen  []bool // of each page: a frozen copy refers to it
	count   int
}

// seek returns the place of the first item that is not less than v, and whether it
// is equal. The index may be the length of the last page.
func (s *sorted[T]) seek(v T) (p, i int, found bool) {
	if len(s.pages) == 0 {
		return 0, 0, false
	}
	p = sort.Search(len(s.pages)-1, func(p int) bool {
		page := s.pages[p]
		return s.compare(page[len(page)-1], v) >= 0
	})
	i, found = slices.BinarySearchFunc(s.pages[p], v, s.compare)
	return p, i, found
}

// find returns the item that is equal to v.
func (s *sorted[T]) find(v T) (item T, ok bool) {
	p, i, ok := s.seek(v)
	if !ok {
		return item, false
	}
	return s.pages[p][i], true
}

// set puts v in, in place of the item that is equal to it if there is one.
func (s *sorted[T]) set(v T) {
	if len(s.pages) == 0 {
		s.pages, s.frozen = [][]T{{v}}, []bool{false}
		s.count = 1
		return
	}
	p, i, found := s.seek(v)
	s.own(p)
	if found {
		s.pages[p][i] = v
		return
	}
	s.count++
	if len(s.pages[p]) < sortedPage {
		s.pages[p] = slices.Insert(s.pages[p], i, v)
		return
	}
	if i == sortedPage && p == len(s.pages)-1 { // what only grows fills its pages
		s.pages, s.frozen = append(s.pages, []T{v}), append(s.frozen, false)
		return
	}
	left := s.pages[p]
	right := append(make([]T, 0, sortedPage), left[sortedPage/2:]...)
	clear(left[sortedPage/2:])
	s.pages[p] = left[:sortedPage/2]
	s.pages, s.frozen = slices.Insert(s.pages, p+1, right), slices.Insert(s.frozen, p+1, false)
	if i > sortedPage/2 {
		p, i = p+1, i-sortedPage/2
	}
	s.pages[p] = slices.Insert(s.pages[p], i, v)
}

// remove takes out the item that is equal to v, if there is one.
func (s *sorted[T]) remove(v T) {
	p, i, found := s.seek(v)
	if !found {
		return
	}
	s.own(p)
	s.count--
	s.pages[p] = slices.Delete(s.pages[p], i, i+1)
	if len(s.pages[p]) == 0 {
		s.pages, s.frozen = slices.Delete(s.pages, p, p+1), slices.Delete(s.frozen, p, p+1)
		return
	}
	s.merge(p)
}

// merge joins page p with the next when both are small.
func (s *sorted[T]) merge(p int) {
	p = min(p, len(s.pages)-2)
	if p < 0 || len(s.pages[p])+len(s.pages[p+1]) > sortedPage/2 {
		return
	}
	s.own(p)
	s.pages[p] = append(s.pages[p], s.pages[p+1]...)
	s.pages, s.frozen = slices.Delete(s.pages, p+1, p+2), slices.Delete(s.frozen, p+1, p+2)
}

// own makes sure that no frozen copy refers to a page that is about to change.
func (s *sorted[T]) own(p int) {
	if s.frozen[p] {
		s.pages[p] = append(make([]T, 0, cap(s.pages[p])), s.pages[p]...)
		s.frozen[p] = false
	}
}

// from yields the items that are not less than v, in order. The list must not
// change meanwhile.
func (s *sorted[T]) from(v T) iter.Seq[T] {
	return func(yield func(T) bool) {
		p, i, _ := s.seek(v)
		for ; p < len(s.pages); p, i = p+1, 0 {
			for _, item := range s.pages[p][i:] {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// all yields all items in order.
func (s *sorted[T]) all(yield func(T) bool) {
	for _, page := range s.pages {
		for _, item := range page {
			if !yield(item) {
				return
			}
		}
	}
}

// freeze returns a copy that does not change any more.
func (s *sorted[T]) freeze() sorted[T] {
	for p := range s.frozen {
		s.frozen[p] = true
	}
	return sorted[T]{compare: s.compare, pages: slices.Clone(s.pages), count: s.count}
}
