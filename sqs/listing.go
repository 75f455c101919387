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
	// OldestSentAt is when the oldest message came into the queue, by a send or
	// a move; 0 when there is none. A message that was received three times
	// does not count (SQS developer guide, ApproximateAgeOfOldestMessage).
	OldestSentAt Time
	// NoisyGroups counts the groups of a standard queue that take more than their
	// share; Quiet is the same as above without their messages.
	NoisyGroups int
	Quiet       QuietCensus
	Counters
}

// QuietCensus is what there is to know about the messages of quiet groups, and
// of none.
type QuietCensus struct {
	Visible, InFlight, Delayed int
	OldestSentAt               Time
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
		oldest := q.messages.oldestArrival(q.cutoff(now))
		census = append(census, QueueCensus{
			Queue:        q.key,
			Incarnation:  q.incarnation,
			Damaged:      q.damaged,
			Visible:      n.visible,
			InFlight:     n.inFlight,
			Delayed:      n.delayed,
			OldestSentAt: oldest,
			NoisyGroups:  q.messages.noisyGroups(),
			Quiet:        q.messages.quietCensus(n, oldest, now, q.cutoff(now)),
			Counters:     q.counters,
		})
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

func (q *queue) counts(now Time) counts {
	return q.messages.counts(now, q.cutoff(now))
}
