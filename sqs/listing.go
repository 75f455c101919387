package sqs

import "strings"

func (s *State) listQueues(c ListQueues) (Result, []Event, *Error) {
	from := s.place(QueueKey{Account: c.Account, Name: max(c.Prefix, c.After)})
	var r ListQueuesResult
	for _, q := range s.directory[from:] {
		if q.key.Account != c.Account || !strings.HasPrefix(q.key.Name, c.Prefix) {
			break
		}
		if c.After != "" && q.key.Name == c.After {
			continue
		}
		if len(r.Names) >= c.Limit {
			r.More = true
			break
		}
		r.Names = append(r.Names, q.key.Name)
	}
	return r, nil, nil
}

// QueueCensus is what there is to know about one queue at a glance.
type QueueCensus struct {
	Queue       QueueKey
	Incarnation uint64
	Damaged     bool
	// Visible, InFlight and Delayed leave out what has expired.
	Visible, InFlight, Delayed int
	// GroupsInFlight counts the groups of a FIFO queue of which a message is in
	// flight.
	GroupsInFlight int
	// OldestSentAt is when the oldest message came into the queue, by a send or
	// a move; 0 when there is none. A message that was received three times
	// does not count in a standard queue (SQS developer guide,
	// ApproximateAgeOfOldestMessage).
	OldestSentAt Time
	Counters
}

// Totals are the sums over all queues.
type Totals struct {
	Queues, Visible, InFlight, Delayed int
	Damaged                            int // queues
}

// Census describes all queues, in the order of their keys. It only reads.
func (s *State) Census(now Time) []QueueCensus {
	census := make([]QueueCensus, 0, len(s.directory))
	for _, q := range s.directory {
		n := q.counts(now)
		c := QueueCensus{
			Queue:        q.key,
			Incarnation:  q.incarnation,
			Damaged:      q.damaged,
			Visible:      n.visible,
			InFlight:     n.inFlight,
			Delayed:      n.delayed,
			OldestSentAt: q.oldestArrival(now),
			Counters:     q.counters,
		}
		if q.fifo != nil {
			c.GroupsInFlight = q.fifo.groups.inFlight(now)
		}
		census = append(census, c)
	}
	return census
}

// Totals sums up all queues. It only reads.
func (s *State) Totals(now Time) Totals {
	t := Totals{Queues: len(s.directory)}
	for _, q := range s.directory {
		n := q.counts(now)
		t.Visible += n.visible
		t.InFlight += n.inFlight
		t.Delayed += n.delayed
		if q.damaged {
			t.Damaged++
		}
	}
	return t
}

func (q *queue) oldestArrival(now Time) Time {
	if q.fifo != nil {
		return q.fifo.oldestArrival(q.cutoff(now))
	}
	return q.messages.oldestArrival(q.cutoff(now))
}
