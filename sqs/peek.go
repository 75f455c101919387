package sqs

import (
	"cmp"
	"slices"
	"sort"
)

// MessageState is what a message waits for. The zero value stands for any.
type MessageState uint8

// The states of a message, as the counts of a queue tell them apart.
const (
	AnyState MessageState = iota
	Visible               // for a receive
	InFlight              // for the end of its lease, after a receive
	Delayed               // for the end of its delay
)

// maxPeekSteps is how many records one Peek looks at in an index: a few
// milliseconds.
const maxPeekSteps = 10_000

// Peeked is what there is to know about a message, but for its content.
type Peeked struct {
	Sequence         uint64 // of the message in its queue
	Body             uint64 // number of its content
	State            MessageState
	GroupID          string
	SentAt           Time
	ArrivedAt        Time // when it came into this queue, by a send or a move
	AvailableAt      Time // end of the lease or the delay; 0 when it is visible
	FirstReceivedAt  Time // 0: never received
	ReceiveCount     int  // ApproximateReceiveCount
	DeadLetterSource QueueKey
	Redriven         MessageID // as in Received
	Copy             Copy      // as in Received
}

// PeekResult is one page of messages, in the order in which they came into the
// queue.
type PeekResult struct {
	Messages []Peeked
	Next     uint64 // where the next page goes on
	More     bool   // there may be a next page; this one may be empty all the same
}

// Peek returns up to limit messages of a state whose sequence numbers are above
// after, without receiving or counting them; false when there is no such queue.
// It only reads, and looks at maxPeekSteps received messages of either kind (those
// that come after all others, and the rest) at most: then the page is short. A
// queue with many message groups costs a binary search in each whose oldest message
// is on the page or before it.
func (s *State) Peek(key QueueKey, now Time, state MessageState, after uint64, limit int) (PeekResult, bool) {
	q := s.queues[key]
	if q == nil {
		return PeekResult{}, false
	}
	now = max(now, s.now)
	p := peek{now: now, cutoff: q.cutoff(now), state: state, after: after, bound: q.lastSequence, limit: limit}
	if f := q.fifo; f != nil {
		p.records, p.groups, p.origins, p.window = &f.records, &f.groups.names, &f.origins, q.delayWindow()
		p.index(&f.held, f.bySequence, 0)
		p.index(&f.fresh, f.bySequence, 0)
	} else {
		m := &q.messages
		p.records, p.groups, p.origins = &m.records, &m.groups, &m.origins
		for _, tired := range [...]bool{false, true} {
			p.index(&m.sequences, m.bySequence, sequenceRank(tired, 0).class)
		}
		if state != InFlight {
			p.lists(m)
		}
	}
	return PeekResult{Messages: p.found, Next: p.bound, More: p.bound < q.lastSequence}, true
}

// LastSequence is the sequence number of the message that came last into a
// queue; 0 when there was none. It only reads.
func (s *State) LastSequence(key QueueKey) uint64 {
	if q := s.queues[key]; q != nil {
		return q.lastSequence
	}
	return 0
}

// peek is one call of Peek. It finds all messages with sequence numbers above
// after and up to bound.
type peek struct {
	now, cutoff  Time
	state        MessageState
	after, bound uint64
	limit        int
	found        []Peeked // by sequence number

	records *records
	groups  *names[string]
	origins *names[origin]
	window  Time // from the send of a fresh record of a FIFO queue until it is visible
}

// add takes in a message; when there are enough, those behind the last are of
// no interest any more.
func (p *peek) add(m Peeked) {
	i, _ := slices.BinarySearchFunc(p.found, m.Sequence, func(f Peeked, sequence uint64) int {
		return cmp.Compare(f.Sequence, sequence)
	})
	p.found = slices.Insert(p.found, i, m)
	if len(p.found) > p.limit {
		p.found = p.found[:p.limit]
	}
	if len(p.found) == p.limit {
		p.bound = p.found[p.limit-1].Sequence
	}
}

// index finds messages that are records, in one class of an order by sequence
// number.
func (p *peek) index(o *order, by ranking, class uint64) {
	at := rank{class: class, sequence: p.after}
	for range maxPeekSteps {
		slot, ok := o.after(at, by)
		if !ok || by(slot).class != class || by(slot).sequence > p.bound {
			return
		}
		at = by(slot)
		r := p.records.at(slot)
		found := p.describe(r)
		if r.sentAt > p.cutoff && (p.state == AnyState || p.state == found.State) {
			p.add(found)
		}
	}
	p.bound = min(p.bound, at.sequence)
}

func (p *peek) describe(r *record) Peeked {
	from := p.origins.name(r.origin)
	found := Peeked{
		Sequence: r.sequence, Body: r.body, State: Visible, GroupID: p.groups.name(r.group),
		SentAt: r.sentAt, ArrivedAt: r.arrivedAt(), FirstReceivedAt: r.firstReceivedAt,
		ReceiveCount: int(r.carried) + int(r.received), DeadLetterSource: from.source, Redriven: from.messageID(r.body), Copy: from.copy,
	}
	switch {
	case r.visibleAt > p.now:
		found.State, found.AvailableAt = InFlight, r.visibleAt
	case r.isFresh() && r.sentAt+p.window > p.now:
		found.State, found.AvailableAt = Delayed, r.sentAt+p.window
	}
	return found
}

// lists finds messages that were never received.
func (p *peek) lists(m *messages) {
	for _, o := range m.listsByAge() {
		for id := range o.all {
			if m.byHead(id).sequence > p.bound {
				break // lists are in the order of their heads
			}
			l := m.lists.at(id)
			p.list(l, m.groups.name(l.group), m.origins.name(l.origin).copy)
		}
	}
}

func (p *peek) list(l *list, group string, copied Copy) {
	from := p.cutoff
	if p.state == Delayed {
		from = max(from, p.now-l.window)
	}
	c := l.behind(from, p.after)
	for r, ok := c.next(); ok && r.sequence <= p.bound; r, ok = c.next() {
		found := Peeked{State: Visible, GroupID: group, SentAt: r.sentAt, ArrivedAt: r.sentAt, Copy: copied}
		if due := r.sentAt + l.window; due > p.now {
			found.State, found.AvailableAt = Delayed, due
		}
		if p.state == Visible && found.State == Delayed {
			return
		}
		for skipped := max(r.sequence, p.after+1) - r.sequence; skipped < uint64(r.count); skipped++ {
			found.Sequence, found.Body = r.sequence+skipped, r.body+skipped
			if found.Sequence > p.bound {
				return
			}
			p.add(found)
		}
	}
}

// behind returns a cursor at the first run with a message that was sent after t
// and has a sequence number above sequence.
func (l *list) behind(t Time, sequence uint64) cursor {
	c := cursor{list: l, started: true}
	ends := func(r *run) bool { return r.sentAt > t && r.sequence+uint64(r.count) > sequence+1 }
	c.chunk = sort.Search(len(l.chunks), func(i int) bool {
		runs := l.chunks[i].runs
		return ends(&runs[len(runs)-1])
	})
	if c.chunk == 0 {
		c.run = int(l.head)
	}
	for c.chunk < len(l.chunks) && !ends(&l.chunks[c.chunk].runs[c.run]) {
		c.run++
	}
	return c
}
