package sqs

const (
	listPageBits = 6
	listPageSize = 1 << listPageBits // lists of a page: 7 KiB
)

// lists holds lists in pages, so that a new one never moves the others. Each
// keeps its id until it is removed.
type lists struct {
	pages [][]list // all of listPageSize, but a single one may be smaller
	free  []uint32 // ids that were removed
}

func (s *lists) at(id uint32) *list {
	return &s.pages[id>>listPageBits][id&(listPageSize-1)]
}

// add stores a list and returns its id.
func (s *lists) add(l list) uint32 {
	if last := len(s.free) - 1; last >= 0 {
		id := s.free[last]
		s.free = s.free[:last]
		*s.at(id) = l
		return id
	}
	last := len(s.pages) - 1
	if last < 0 || len(s.pages[last]) == listPageSize {
		capacity := listPageSize
		if last < 0 {
			capacity = 1 // most queues have a single list
		}
		s.pages = append(s.pages, make([]list, 0, capacity))
		last++
	}
	s.pages[last] = append(s.pages[last], l)
	return uint32(last<<listPageBits + len(s.pages[last]) - 1)
}

// remove frees an id. An empty list stays in its place.
func (s *lists) remove(id uint32) {
	*s.at(id) = list{}
	s.free = append(s.free, id)
}

// all yields all lists, and empty ones in place of those that were removed.
func (s *lists) all(yield func(l *list) bool) {
	for _, p := range s.pages {
		for i := range p {
			if !yield(&p[i]) {
				return
			}
		}
	}
}
