package sqs

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// queue is a queue and all that is in it.
type queue struct {
	header
	messages messages
	fifo     *fifo      // in place of messages; nil in a standard queue
	tasks    *moveTasks // that move messages from here; nil if there were none
}

// empty puts an index without messages into a queue, that of its type. A FIFO
// queue forgets deduplication and attempt ids, too.
func (q *queue) empty() {
	q.messages, q.fifo = messages{}, nil
	if q.settings.fifo {
		q.fifo = &fifo{}
	}
}

// header is what a queue is without its messages. A copy of it stays good: what
// it refers to is replaced, never changed.
type header struct {
	key          QueueKey
	incarnation  uint64
	createdAt    Time
	modifiedAt   Time
	purgedAt     Time // 0: never
	pulseAt      Time // noted time of the first expiry; 0: none
	lastSequence uint64
	counters     Counters
	settings     settings
	tags         []Tag // sorted by key
	damaged      bool
	place        int32 // in State.schedule, while pulseAt is not 0; it is here for its size
}

// Counters count what has happened to a queue since it was made.
type Counters struct {
	Sent      uint64 // messages added by SendMessage and SendMessageBatch; dead-letter moves are not sends
	SentBytes uint64 // what those messages counted against MaximumMessageSize
	Received  uint64 // deliveries
	Deleted   uint64 // successful deletes, also repeated ones; neither expiry nor purge
	Moved     uint64 // messages that went from here to the dead-letter queue
	Stranded  uint64 // deliveries instead of such a move, for want of a dead-letter queue
	// Deduplicated counts the sends to a FIFO queue that were duplicates; Sent
	// does not count them.
	Deduplicated uint64
	// Lost counts the messages that were given up because their content is damaged
	// on every node.
	Lost uint64
}

// all are the counters in the order of their encoding.
func (c *Counters) all() [8]*uint64 {
	return [...]*uint64{
		&c.Sent, &c.SentBytes, &c.Received, &c.Deleted, &c.Moved, &c.Stranded, &c.Deduplicated, &c.Lost,
	}
}

// compare orders keys by account, then by name.
func (k QueueKey) compare(l QueueKey) int {
	return cmp.Or(strings.Compare(k.Account, l.Account), strings.Compare(k.Name, l.Name))
}

// reservation keeps the name of a deleted queue from being used anew.
type reservation struct {
	until Time
	key   QueueKey
}

func (r reservation) compare(s reservation) int {
	return cmp.Or(cmp.Compare(r.until, s.until), r.key.compare(s.key))
}

// found returns a queue that may be damaged.
func (s *State) found(key QueueKey) (*queue, *Error) {
	q := s.queues[key]
	if q == nil {
		return nil, NoSuchQueue()
	}
	return q, nil
}

// sound returns a queue that is not damaged.
func (s *State) sound(key QueueKey) (*queue, *Error) {
	q, err := s.found(key)
	if err == nil && q.damaged {
		return nil, damagedQueue()
	}
	return q, err
}

// place returns where in the directory the queue is or would be.
func (s *State) place(key QueueKey) int {
	i, _ := slices.BinarySearchFunc(s.directory, key, func(q *queue, k QueueKey) int { return q.key.compare(k) })
	return i
}

func (s *State) createQueue(at Moment, c CreateQueue) (Result, []Event, *Error) {
	if s.queues[c.Queue] != nil {
		return s.createAgain(c)
	}
	if s.isReserved(c.Queue, at) {
		return nil, nil, deletedRecently(at.Rules.DeleteWait)
	}
	fifo := slices.ContainsFunc(c.Attributes, func(a Attribute) bool { return a.Name == FifoQueue && a.Value == "true" })
	if fifo != IsFIFO(c.Queue.Name) {
		return nil, nil, ValidateQueueName(c.Queue.Name, fifo)
	}
	if len(c.Tags) > MaxTags {
		return nil, nil, tooManyTags(c.Queue.Name)
	}
	settings := defaultSettings()
	settings.fifo = fifo
	if err := s.changed(c.Queue, &settings, c.Attributes); err != nil {
		return nil, nil, err
	}
	s.lastIncarnation++
	q := &queue{header: header{
		key:         c.Queue,
		incarnation: s.lastIncarnation,
		createdAt:   at.Now,
		modifiedAt:  at.Now,
		settings:    settings,
		tags:        slices.Clone(c.Tags),
	}}
	q.empty()
	s.insert(q)
	return Done{}, nil, nil
}

// createAgain compares only what the command says, with what holds now (AWS
// recordings test_create_queue_with_different_attributes_raises_exception,
// test_create_queue_after_modified_attributes). Tags are neither compared nor
// changed.
func (s *State) createAgain(c CreateQueue) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	if name, ok := q.settings.differing(c.Attributes); ok {
		return nil, nil, queueExists(name)
	}
	return Done{}, nil, nil
}

// insert adds a queue to all that lists queues.
func (s *State) insert(q *queue) {
	s.queues[q.key] = q
	s.directory = slices.Insert(s.directory, s.place(q.key), q)
	s.link(q)
}

func (s *State) deleteQueue(at Moment, c DeleteQueue) (Result, []Event, *Error) {
	q, err := s.found(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	s.unlink(q)
	s.unschedule(q)
	s.stopMoving(q)
	delete(s.queues, q.key)
	i := s.place(q.key)
	s.directory = slices.Delete(s.directory, i, i+1)
	if at.Rules.DeleteWait > 0 {
		s.reserve(reservation{until: at.Now.Add(at.Rules.DeleteWait), key: q.key})
	}
	return Done{}, []Event{{Kind: QueueDeleted, Queue: q.key}}, nil
}

// reserve takes the place of an earlier reservation of the name, which there is when
// DeleteWait was 0 meanwhile.
func (s *State) reserve(r reservation) {
	if before, ok := s.reservedUntil[r.key]; ok {
		i, _ := slices.BinarySearchFunc(s.reserved, reservation{before, r.key}, reservation.compare)
		s.reserved = slices.Delete(s.reserved, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(s.reserved, r, reservation.compare)
	s.reserved = slices.Insert(s.reserved, i, r)
	s.reservedUntil[r.key] = r.until
}

// isReserved reports whether the name of a deleted queue must not be used yet.
// It does not wait for the pulse that forgets the reservation.
func (s *State) isReserved(key QueueKey, at Moment) bool {
	return at.Rules.DeleteWait > 0 && s.reservedUntil[key] > at.Now
}

func (s *State) freeNames(now Time, left *steps) {
	n := 0
	for n < len(s.reserved) && s.reserved[n].until <= now && left.take() {
		delete(s.reservedUntil, s.reserved[n].key)
		n++
	}
	s.reserved = slices.Delete(s.reserved, 0, n)
}

func (s *State) purgeQueue(at Moment, c PurgeQueue) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	if wait := at.Rules.PurgeWait; q.purgedAt != 0 && at.Now < q.purgedAt.Add(wait) {
		return nil, nil, purgeInProgress(q.key.Name, wait)
	}
	full := q.full(at)
	q.purgedAt = at.Now
	q.empty()
	s.unschedule(q)
	return Done{}, q.roomEvent(full), nil
}

// full reports whether the queue has the maximum of messages in flight.
func (q *queue) full(at Moment) bool { return q.holds(at.Now, at.Rules.InFlightLimit) }

// holds reports whether limit messages are in flight; 0 is no limit.
func (q *queue) holds(now Time, limit int) bool {
	leases := q.messages.leases.count
	if q.fifo != nil {
		leases = q.fifo.leases.count
	}
	return limit > 0 && leases >= limit && q.counts(now).inFlight >= limit
}

func (s *State) getQueueURL(c GetQueueUrl) (Result, []Event, *Error) {
	if _, err := s.found(c.Queue); err != nil {
		return nil, nil, err
	}
	return Done{}, nil, nil
}

func (s *State) getQueueAttributes(at Moment, c GetQueueAttributes) (Result, []Event, *Error) {
	q, err := s.found(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	n := q.counts(at.Now)
	return GetQueueAttributesResult{
		Attributes: q.settings.list(),
		CreatedAt:  q.createdAt,
		ModifiedAt: q.modifiedAt,
		Visible:    n.visible,
		InFlight:   n.inFlight,
		Delayed:    n.delayed,
	}, nil, nil
}

func (s *State) setQueueAttributes(at Moment, c SetQueueAttributes) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil || len(c.Attributes) == 0 {
		return Done{}, nil, err
	}
	settings := q.settings
	if err := s.changed(q.key, &settings, c.Attributes); err != nil {
		return nil, nil, err
	}
	// What has expired must not come back when the retention grows.
	full, left := q.full(at), s.steps
	q.dropExpired(at.Now, &left)
	s.unlink(q)
	q.settings, q.modifiedAt = settings, at.Now
	s.link(q)
	freed := q.dropExpired(at.Now, &left)
	s.reschedule(q)
	return Done{}, q.roomEvent(freed || full && !q.full(at)), nil
}

// changed sets attributes in a copy of the settings of queue key, and checks
// what they say about other queues.
func (s *State) changed(key QueueKey, settings *settings, attributes []Attribute) *Error {
	if err := settings.change(attributes); err != nil {
		return err
	}
	for i := range attributes {
		if attributes[i].Name == RedrivePolicyAttribute && attributes[i].Value != "" {
			return s.checkRedrive(key, settings)
		}
	}
	return nil
}

// roomEvent is the event of a queue that had the maximum in flight before
// something left it, or in which a group has become free.
func (q *queue) roomEvent(full bool) []Event {
	if !full {
		return nil
	}
	return []Event{{Kind: MessagesAvailable, Queue: q.key}}
}

// timeout resolves QueueDefault.
func timeout(d time.Duration, seconds int32) time.Duration {
	if d == QueueDefault {
		return time.Duration(seconds) * time.Second
	}
	return d
}
