package sqs

import "slices"

const (
	recordPageBits = 8
	recordPageSize = 1 << recordPageBits // records of a page: 16 KiB
)

// record is a message that was received, moved or redriven at least once. It
// has 64 bytes and no pointer: pages of it are copied as they are, and the
// garbage collector never looks into them.
type record struct {
	sequence        uint64 // of the message in its queue; 0 marks a free slot
	body            uint64 // number of the content; in a free slot, the next free one plus one
	sentAt          Time   // enqueue time: what order and retention go by
	movedAt         Time   // when it came here from another queue; 0 when it was sent here
	visibleAt       Time   // end of the lease; 0 when it is no longer waited for
	firstReceivedAt Time   // 0 before the first receive in any queue
	received        uint32 // times received from this queue
	carried         uint32 // times received before it was moved here
	group           uint32 // name id of its MessageGroupId
	origin          uint32 // name id of how it came here from other queues
}

// hidden reports whether the record is kept among those that wait for the end
// of their lease.
func (r *record) hidden() bool { return r.visibleAt != 0 }

// tired reports whether the message of a standard queue comes after all others
// while it is still here.
func (r *record) tired() bool { return r.received >= tiredAfter }

// arrivedAt is when the message came into this queue.
func (r *record) arrivedAt() Time {
	if r.movedAt != 0 {
		return r.movedAt
	}
	return r.sentAt
}

// records holds records in pages, each in a slot that stays its own until it is
// freed. A page that a Frozen refers to is copied before the first change, so
// a snapshot of a million records costs no pause.
type records struct {
	pages  [][]record // all of recordPageSize, but a single one may be smaller
	frozen []bool     // of each page: a Frozen refers to it
	used   uint32
	free   uint32 // first free slot plus one
}

// at is for reading; the pointer is good until the next edit.
func (r *records) at(slot uint32) *record {
	return &r.pages[slot>>recordPageBits][slot&(recordPageSize-1)]
}

// edit is for writing; pointers from before it may point to a copy that is no
// longer in use.
func (r *records) edit(slot uint32) *record {
	p := slot >> recordPageBits
	if r.frozen[p] {
		r.pages[p] = append(make([]record, 0, cap(r.pages[p])), r.pages[p]...)
		r.frozen[p] = false
	}
	return &r.pages[p][slot&(recordPageSize-1)]
}

// add stores a record and returns its slot.
func (r *records) add(m record) uint32 {
	r.used++
	if r.free == 0 {
		return r.grow(m)
	}
	slot := r.free - 1
	rec := r.edit(slot)
	r.free = uint32(rec.body)
	*rec = m
	return slot
}

// grow stores a record behind all slots there are.
func (r *records) grow(m record) uint32 {
	last := len(r.pages) - 1
	if last < 0 || len(r.pages[last]) == recordPageSize {
		capacity := recordPageSize
		if last < 0 {
			capacity = 2 // most queues are small
		}
		r.pages = append(r.pages, make([]record, 0, capacity))
		r.frozen = append(r.frozen, false)
		last++
	}
	// A Frozen does not see what is behind the length of its page.
	r.pages[last] = append(r.pages[last], m)
	return uint32(last<<recordPageBits + len(r.pages[last]) - 1)
}

// remove frees a slot.
func (r *records) remove(slot uint32) {
	r.used--
	if r.used == 0 {
		r.reset()
		return
	}
	*r.edit(slot) = record{body: uint64(r.free)}
	r.free = slot + 1
}

// reset gives all slots back at once when the last record is gone.
func (r *records) reset() {
	r.free = 0
	if len(r.pages) == 1 && !r.frozen[0] && cap(r.pages[0]) <= keptCapacity {
		r.pages[0] = r.pages[0][:0]
		return
	}
	r.pages, r.frozen = nil, nil
}

// freeze returns the pages as they are now.
func (r *records) freeze() [][]record {
	for i := range r.frozen {
		r.frozen[i] = true
	}
	return slices.Clone(r.pages)
}
