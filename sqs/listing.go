package sqs

import (
	"slices"
	"strings"
)

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
	// NoisyGroups counts the groups of a standard queue that take more than their
	// share; Quiet is the same as above without their messages.
	NoisyGroups int
	Quiet       QuietCensus
	// DeadLetterTarget is the queue that the RedrivePolicy names; zero without
	// one. Dangling says that there is no such queue.
	DeadLetterTarget QueueKey
	Dangling         bool
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
	Damaged                            int    // queues
	Lost                               uint64 // messages of these queues
}

// Census describes all queues, in the order of their keys. It only reads.
func (s *State) Census(now Time) []QueueCensus {
	census := make([]QueueCensus, 0, len(s.directory))
	for _, q := range s.directory {
		census = append(census, s.census(q, now))
	}
	return census
}

func (s *State) census(q *queue, now Time) QueueCensus {
	n := q.counts(now)
	c := QueueCensus{
		Queue:            q.key,
		Incarnation:      q.incarnation,
		Damaged:          q.damaged,
		Visible:          n.visible,
		InFlight:         n.inFlight,
		Delayed:          n.delayed,
		OldestSentAt:     q.oldestArrival(now),
		DeadLetterTarget: q.settings.redrive.Target,
		Dangling:         s.dangling(q),
		Counters:         q.counters,
	}
	if q.fifo != nil {
		c.GroupsInFlight = q.fifo.groups.inFlight(now)
		return c
	}
	c.NoisyGroups = q.messages.noisyGroups()
	c.Quiet = q.messages.quietCensus(n, c.OldestSentAt, now, q.cutoff(now))
	return c
}

// QueueDescription is all that there is to know about one queue.
type QueueDescription struct {
	QueueCensus
	Attributes []Attribute // the settable ones that have a value, sorted by name
	Tags       []Tag       // sorted by key
	CreatedAt  Time
	ModifiedAt Time
	PurgedAt   Time       // 0: never
	Sources    []QueueKey // whose RedrivePolicy names this queue, in order
}

// Describe tells everything about one queue; false when there is no such queue.
// It only reads.
func (s *State) Describe(key QueueKey, now Time) (QueueDescription, bool) {
	q := s.queues[key]
	if q == nil {
		return QueueDescription{}, false
	}
	d := QueueDescription{
		QueueCensus: s.census(q, now),
		Attributes:  q.settings.list(),
		Tags:        q.tags,
		CreatedAt:   q.createdAt,
		ModifiedAt:  q.modifiedAt,
		PurgedAt:    q.purgedAt,
	}
	i, _ := slices.BinarySearchFunc(s.links, link{target: key}, link.compare)
	for ; i < len(s.links) && s.links[i].target == key; i++ {
		d.Sources = append(d.Sources, s.links[i].source)
	}
	return d, true
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
		t.Lost += q.counters.Lost
	}
	return t
}

// Messages counts the messages of all queues whose bodies are kept: also those that
// have expired and wait for a pulse. It only reads, in a few nanoseconds for each
// queue, however many messages that has.
func (s *State) Messages() uint64 {
	n := 0
	for _, q := range s.directory {
		n += q.held()
	}
	return uint64(n)
}

// held counts the messages of a queue, as Messages does.
func (q *queue) held() int {
	if q.fifo != nil {
		return int(q.fifo.records.used)
	}
	return q.messages.ready + q.messages.delayed + int(q.messages.records.used)
}

func (q *queue) oldestArrival(now Time) Time {
	if q.fifo != nil {
		return q.fifo.oldestArrival(q.cutoff(now))
	}
	return q.messages.oldestArrival(q.cutoff(now))
}
