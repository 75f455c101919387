package sqs

import (
	"container/heap"
	"fmt"
	"time"
)

// maxSteps is how much work one command may do: a step is the change of one
// message, or of a list of them at its head. What is left over waits for the
// next receive or pulse.
const maxSteps = 1000

// State holds all queues of one raft group. It is not safe for concurrent use;
// but what its methods say to be reading may go on at the same time.
type State struct {
	now             Time  // of the latest command
	rules           Rules // of the latest command; zero before the first
	lastIncarnation uint64
	queues          map[QueueKey]*queue
	directory       []*queue          // the same, by key
	links           []link            // whose dead-letter queue is what, by target and source
	reserved        []reservation     // names of deleted queues, by the time when they are free
	reservedUntil   map[QueueKey]Time // the same
	schedule        schedule
	moving          []*queue // those with an active move task, by key
	working         QueueKey // which Pulse is at
	steps           steps    // what one command may do: maxSteps, but in tests
}

// New returns a State without queues.
func New() *State {
	return &State{queues: make(map[QueueKey]*queue), reservedUntil: make(map[QueueKey]Time), steps: maxSteps}
}

// Apply executes one command. Its refusal is as much a part of the replicated
// outcome as its result; a command that is refused has changed nothing that a
// client could see.
func (s *State) Apply(at Moment, c Command) (Result, []Event, *Error) {
	s.tick(&at)
	switch c := c.(type) {
	case CreateQueue:
		return s.createQueue(at, c)
	case DeleteQueue:
		return s.deleteQueue(at, c)
	case GetQueueUrl:
		return s.getQueueURL(c)
	case ListQueues:
		return s.listQueues(c)
	case GetQueueAttributes:
		return s.getQueueAttributes(at, c)
	case SetQueueAttributes:
		return s.setQueueAttributes(at, c)
	case TagQueue:
		return s.tagQueue(c)
	case UntagQueue:
		return s.untagQueue(c)
	case ListQueueTags:
		return s.listQueueTags(c)
	case ListDeadLetterSourceQueues:
		return s.listDeadLetterSourceQueues(c)
	case PurgeQueue:
		return s.purgeQueue(at, c)
	case SendMessageBatch:
		return s.sendMessageBatch(at, c)
	case ReceiveMessage:
		return s.receiveMessage(at, c)
	case DeleteMessageBatch:
		return s.deleteMessageBatch(at, c)
	case ChangeMessageVisibilityBatch:
		return s.changeMessageVisibilityBatch(at, c)
	case StartMessageMoveTask:
		return s.startMessageMoveTask(at, c)
	case RedriveMessage:
		return s.redriveMessage(at, c)
	case MarkMessageDamaged:
		return s.markMessageDamaged(at, c)
	case CancelMessageMoveTask:
		return s.cancelMessageMoveTask(c)
	case ListMessageMoveTasks:
		return s.listMessageMoveTasks(c)
	case ReplacePolicy:
		return s.replacePolicy(at, c)
	}
	panic(fmt.Sprintf("sqs: unknown command %T", c))
}

// tick keeps time from going back, on which the order of every list depends.
func (s *State) tick(at *Moment) {
	s.now = max(s.now, at.Now)
	at.Now = s.now
	s.rules = at.Rules
}

// Pulse does what time alone asks for: it frees the names of deleted queues, goes
// on with move tasks, drops expired messages, and ends delays when many do. It takes
// at most maxSteps steps; NextPulse tells whether more is due.
func (s *State) Pulse(at Moment) []Event {
	s.tick(&at)
	s.working = QueueKey{}
	left := s.steps
	s.freeNames(at.Now, &left)
	events := s.runTasks(at, &left)
	for len(s.schedule) > 0 && s.schedule[0].pulseAt <= at.Now && left.take() {
		q := s.schedule[0]
		s.working = q.key
		full := q.full(at)
		freed := q.dropExpired(at.Now, &left)
		if q.fifo != nil {
			q.fifo.dedup.forget(at.Now, at.Rules.DedupWindow, forgottenByPulse)
			q.fifo.attempts.forget(at.Now)
		} else if q.messages.delaysDue() <= at.Now {
			q.messages.endDelays(at.Now, &left)
		}
		s.reschedule(q)
		if freed || full && !q.full(at) {
			events = append(events, Event{Kind: MessagesAvailable, Queue: q.key})
		}
	}
	s.working = QueueKey{}
	return events
}

// ChangeRules makes the rules of at those in force, instead of before, and returns
// an event for every queue that no longer has the maximum in flight.
func (s *State) ChangeRules(at Moment, before Rules) []Event {
	s.tick(&at)
	old := at
	old.Rules = before
	var events []Event
	for _, q := range s.directory {
		if !q.damaged && q.full(old) && !q.full(at) {
			events = append(events, Event{Kind: MessagesAvailable, Queue: q.key})
		}
	}
	return events
}

// HasQueues reports whether there is any queue. It only reads.
func (s *State) HasQueues() bool { return len(s.directory) > 0 }

// Has reports whether there is a queue of that key. It only reads.
func (s *State) Has(key QueueKey) bool { return s.queues[key] != nil }

// NextPulse returns when Pulse next has something to do; false when it has
// nothing to wait for. It only reads.
func (s *State) NextPulse() (Time, bool) {
	t := never
	if len(s.reserved) > 0 {
		t = s.reserved[0].until
	}
	if len(s.schedule) > 0 {
		t = min(t, s.schedule[0].pulseAt)
	}
	for _, q := range s.moving {
		t = min(t, q.task().due())
	}
	return known(t)
}

// Available counts the messages that a receive at now would find, at most limit,
// and of a FIFO queue the groups in place of the messages; 0 when there is no such
// queue, or when it has the maximum in flight. A receive finds fewer when there is
// not room for all of them in flight, or when it moves some to a dead-letter queue.
// It only reads.
func (s *State) Available(key QueueKey, now Time, limit int) int {
	q := s.queues[key]
	if q == nil || q.damaged {
		return 0
	}
	return q.available(now, limit, s.rules.InFlightLimit)
}

// NextAvailable returns the earliest time after now at which a message that is
// hidden or delayed becomes available; of a queue that has the maximum in flight,
// when there is room for one. It only reads.
func (s *State) NextAvailable(key QueueKey, now Time) (Time, bool) {
	q := s.queues[key]
	if q == nil || q.damaged {
		return 0, false
	}
	return known(q.wake(now, s.rules.InFlightLimit))
}

// WaitTime returns the queue's ReceiveMessageWaitTimeSeconds; false when there
// is nothing to wait for, because there is no such queue or it is damaged: a
// receive answers with the error then. It only reads.
func (s *State) WaitTime(key QueueKey) (time.Duration, bool) {
	q := s.queues[key]
	if q == nil || q.damaged {
		return 0, false
	}
	return time.Duration(q.settings.wait) * time.Second, true
}

// schedule is a heap of the queues in which something expires, by the time noted
// for that. The note may be too early, never too late: most messages are deleted
// long before they expire, and nothing is to be done for the schedule then.
type schedule []*queue

// Len implements heap.Interface.
func (h schedule) Len() int { return len(h) }

// Less implements heap.Interface.
func (h schedule) Less(i, j int) bool {
	if h[i].pulseAt != h[j].pulseAt {
		return h[i].pulseAt < h[j].pulseAt
	}
	return h[i].key.compare(h[j].key) < 0
}

// Swap implements heap.Interface.
func (h schedule) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *schedule) Push(x any) {
	q := x.(*queue)
	q.place = int32(len(*h))
	*h = append(*h, q)
}

// Pop implements heap.Interface.
func (h *schedule) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return q
}

// expect notes that a message of q, sent at the given time, is to expire.
func (s *State) expect(q *queue, sentAt Time) {
	s.due(q, sentAt.Add(time.Duration(q.settings.retention)*time.Second))
}

// due notes that a pulse has something to do in q at a time.
func (s *State) due(q *queue, at Time) {
	switch {
	case q.pulseAt == 0:
		q.pulseAt = at
		heap.Push(&s.schedule, q)
	case at < q.pulseAt:
		q.pulseAt = at
		heap.Fix(&s.schedule, int(q.place))
	}
}

// reschedule notes exactly when a pulse has something to do in q.
func (s *State) reschedule(q *queue) {
	s.unschedule(q)
	if oldest := q.oldest(); oldest != never {
		s.expect(q, oldest)
	}
	if q.fifo == nil {
		s.expectDelays(q)
		return
	}
	if at := min(q.fifo.dedup.due(s.now, s.rules.DedupWindow), q.fifo.attempts.due(s.now)); at != never {
		s.due(q, at)
	}
}

// expectDelays notes that delays are to end in a standard queue.
func (s *State) expectDelays(q *queue) {
	if at := q.messages.delaysDue(); at != never {
		s.due(q, at)
	}
}

func (s *State) unschedule(q *queue) {
	if q.pulseAt != 0 {
		heap.Remove(&s.schedule, int(q.place))
		q.pulseAt = 0
	}
}
