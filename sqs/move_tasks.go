package sqs

import (
	"cmp"
	"math"
	"slices"
)

// moveTask moves the messages of a queue to others, a turn at each pulse.
type moveTask struct {
	id           TaskID
	status       MoveTaskStatus
	directed     bool     // it has a destination
	destination  QueueKey // of all messages, if directed
	toMove       uint64
	moved        uint64
	limit        uint64 // of moved; 0: none
	failure      Code
	startedAt    Time
	maxPerSecond int  // 0: no limit
	pace         pace // while active; of a task without limit only the time counts
}

// due is when a pulse is to give the task a turn. Only active tasks have one.
func (t *moveTask) due() Time {
	if t.maxPerSecond == 0 || t.status == TaskCancelling {
		return t.pace.at
	}
	return t.pace.due()
}

// allowance is how many messages the task may move now.
func (t *moveTask) allowance(now Time) int {
	if t.maxPerSecond == 0 {
		t.pace.at = now
		return t.remaining()
	}
	return min(t.pace.advance(now), t.remaining())
}

// remaining is how many messages the task may move until its end.
func (t *moveTask) remaining() int {
	if t.limit == 0 {
		return math.MaxInt
	}
	return int(min(t.limit-t.moved, math.MaxInt))
}

func (t *moveTask) spend(count int) {
	t.moved += uint64(count)
	if t.maxPerSecond != 0 {
		t.pace.spend(count)
	}
}

// moveTasks are the latest move tasks of a queue, the newest last. A queue has only
// a pointer to them, since most never have any.
type moveTasks []moveTask

// moveTasks returns the tasks of the queue.
func (q *queue) moveTasks() moveTasks {
	if q.tasks == nil {
		return nil
	}
	return *q.tasks
}

// task is the latest move task of the queue, nil if there is none. No other one
// can be active.
func (q *queue) task() *moveTask {
	all := q.moveTasks()
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

func (q *queue) isMoving() bool {
	t := q.task()
	return t != nil && t.status.active()
}

// startMessageMoveTask makes the checks in the order of AWS.
func (s *State) startMessageMoveTask(at Moment, c StartMessageMoveTask) (Result, []Event, *Error) {
	if c.Task == (TaskID{}) {
		return nil, nil, noTaskID()
	}
	q, err := s.redriveSource(c.Source, c.Destination)
	if err != nil {
		return nil, nil, err
	}
	if q.isMoving() {
		return nil, nil, Invalidf("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	if s.activeTasks(c.Source.Account) >= MaxActiveTasks {
		return nil, nil, Invalidf("There are already %d active tasks. No more are allowed for an account at a given time.", MaxActiveTasks)
	}
	t := moveTask{
		id:           c.Task,
		status:       TaskRunning,
		directed:     c.Destination != nil,
		toMove:       uint64(q.counts(at.Now).visible),
		startedAt:    at.Now,
		limit:        c.Limit,
		maxPerSecond: c.MaxPerSecond,
		pace:         newPace(at.Now, c.MaxPerSecond),
	}
	if t.limit > 0 {
		t.toMove = min(t.toMove, t.limit)
	}
	if t.directed {
		t.destination = *c.Destination
	}
	s.addTask(q, t)
	return Done{}, nil, nil
}

// redriveSource returns the queue from which messages may be moved to the
// destination.
func (s *State) redriveSource(source QueueKey, destination *QueueKey) (*queue, *Error) {
	q := s.queues[source]
	switch {
	case q == nil:
		return nil, NoTaskSource()
	case q.damaged:
		return nil, damagedQueue()
	case !s.isDeadLetterQueue(source):
		return nil, Invalidf("Source queue must be configured as a Dead Letter Queue.")
	}
	return q, s.checkDestination(source, destination)
}

func (s *State) checkDestination(source QueueKey, destination *QueueKey) *Error {
	switch {
	case destination == nil:
		return nil
	case s.queues[*destination] == nil:
		return noResource("DestinationArn")
	case *destination == source:
		return Invalidf("Source queue arn and destination queue arn cannot be the same.")
	case IsFIFO(destination.Name) != IsFIFO(source.Name):
		return Invalidf("The source and destination queue must be of the same queue type.")
	}
	return nil
}

// isDeadLetterQueue reports whether a RedrivePolicy names the queue.
func (s *State) isDeadLetterQueue(key QueueKey) bool {
	i, _ := slices.BinarySearchFunc(s.links, link{target: key}, link.compare)
	return i < len(s.links) && s.links[i].target == key
}

// activeTasks counts the active tasks of an account.
func (s *State) activeTasks(account string) (n int) {
	i, _ := s.findMoving(QueueKey{Account: account})
	for _, q := range s.moving[i:] {
		if q.key.Account != account {
			break
		}
		n++
	}
	return n
}

func (s *State) findMoving(key QueueKey) (int, bool) {
	return slices.BinarySearchFunc(s.moving, key, func(q *queue, k QueueKey) int { return q.key.compare(k) })
}

// addTask makes t the latest task of the queue.
func (s *State) addTask(q *queue, t moveTask) {
	all := q.moveTasks()
	if len(all) == MaxListedTasks {
		all = slices.Delete(all, 0, 1)
	}
	all = append(all, t)
	q.tasks = &all
	if t.status.active() {
		i, _ := s.findMoving(q.key)
		s.moving = slices.Insert(s.moving, i, q)
	}
}

// stopMoving takes the queue off those with an active task.
func (s *State) stopMoving(q *queue) {
	if i, ok := s.findMoving(q.key); ok {
		s.moving = slices.Delete(s.moving, i, i+1)
	}
}

// endTask ends the active task of a queue; reason is that of a failure.
func (s *State) endTask(q *queue, status MoveTaskStatus, reason Code) {
	t := q.task()
	t.status, t.failure, t.pace = status, reason, pace{}
	s.stopMoving(q)
}

// cancelMessageMoveTask leaves the end to the next pulse, as AWS takes a moment
// for it (AWS recording test_move_task_cancel).
func (s *State) cancelMessageMoveTask(c CancelMessageMoveTask) (Result, []Event, *Error) {
	q := s.queues[c.Source]
	if q == nil {
		return nil, nil, NoTaskSource()
	}
	if q.damaged {
		return nil, nil, damagedQueue()
	}
	all := q.moveTasks()
	i := slices.IndexFunc(all, func(t moveTask) bool { return t.id == c.Task })
	if i < 0 {
		return nil, nil, NoSuchTask()
	}
	t := &all[i]
	if t.status != TaskRunning {
		return nil, nil, Invalidf("Only active tasks can be cancelled.")
	}
	t.status = TaskCancelling
	return CancelMessageMoveTaskResult{Moved: t.moved}, nil, nil
}

func (s *State) listMessageMoveTasks(c ListMessageMoveTasks) (Result, []Event, *Error) {
	q := s.queues[c.Source]
	if q == nil {
		return nil, nil, NoTaskSource()
	}
	var r ListMessageMoveTasksResult
	all := q.moveTasks()
	for i := len(all) - 1; i >= 0 && len(r.Tasks) < c.Limit; i-- {
		t := &all[i]
		listed := MoveTask{
			ID: t.id, Status: t.status, MaxPerSecond: t.maxPerSecond, ToMove: t.toMove, Moved: t.moved,
			FailureReason: t.failure, StartedAt: t.startedAt,
		}
		if t.directed {
			destination := t.destination
			listed.Destination = &destination
		}
		r.Tasks = append(r.Tasks, listed)
	}
	return r, nil, nil
}

// runTasks gives a turn to every task that is due, those first that wait longest.
// Together they take at most half of the steps.
func (s *State) runTasks(at Moment, left *steps) (events []Event) {
	due := slices.DeleteFunc(slices.Clone(s.moving), func(q *queue) bool { return q.task().due() > at.Now })
	if len(due) == 0 {
		return nil
	}
	slices.SortStableFunc(due, func(a, b *queue) int { return cmp.Compare(a.task().due(), b.task().due()) })
	share := *left / 2
	*left -= share
	each := max(int(share)/len(due), 1)
	for _, q := range due {
		if share <= 0 {
			break
		}
		s.working = q.key
		events = append(events, s.runTask(at, q, each, &share)...)
	}
	*left += max(share, 0)
	return events
}

// runTask moves at most most messages by the active task of a queue. A message
// leaves one queue and enters the other in the same step; so there is exactly one
// of it at any time.
func (s *State) runTask(at Moment, q *queue, most int, left *steps) []Event {
	t := q.task()
	switch {
	case t.status == TaskCancelling:
		s.endTask(q, TaskCancelled, "")
		return nil
	case q.damaged:
		s.endTask(q, TaskFailed, InternalFailure)
		return nil
	case at.Now >= t.startedAt.Add(MaxMoveTaskTime):
		s.endTask(q, TaskFailed, MoveTaskTimedOut)
		return nil
	}
	full, wake := q.full(at), q.wake(at.Now, at.Rules.InFlightLimit)
	freed := q.advance(at.Now, left)
	var events, moves []Event
	var failure Code
	for most = min(most, t.allowance(at.Now)); len(moves) < most && left.take(); {
		move, reason := s.moveNext(at.Now, q, t)
		if move == nil {
			failure = reason
			break
		}
		moves = append(moves, Event{Kind: MessageMoved, Queue: q.key, Move: move})
		if e := (Event{Kind: MessagesAvailable, Queue: move.To}); !slices.Contains(events, e) {
			events = append(events, e)
		}
	}
	t.spend(len(moves))
	// Behind what was moved from a group there may be a message that is hidden.
	freed = freed || q.wake(at.Now, at.Rules.InFlightLimit) < wake
	events = append(q.roomEvent(freed || full && !q.full(at)), events...)
	switch {
	case failure != "":
		s.endTask(q, TaskFailed, failure)
	case t.remaining() == 0, q.available(at.Now, 1, 0) == 0:
		s.endTask(q, TaskCompleted, "")
	}
	return append(events, moves...)
}

// moveNext moves the message that a receive would find first. It returns nil when
// there is no message, or, for a reason, no place for it.
func (s *State) moveNext(now Time, q *queue, t *moveTask) (move *Move, reason Code) {
	slot, o, ok := q.lookNext(now)
	if !ok {
		return nil, ""
	}
	target, reason := s.destination(q, t, o)
	if target == nil {
		q.leave(now, slot)
		return nil, reason
	}
	return s.redrive(now, q, slot, target, t.id), ""
}

// redrive moves a message that was looked for. task names the move task, or
// stands for one.
func (s *State) redrive(now Time, q *queue, slot uint32, target *queue, task TaskID) *Move {
	p := q.packNext(slot)
	move := &Move{Sequence: p.sequence, Body: p.body, Copy: p.origin.copy, To: target.key}
	target.acceptRedriven(now, p, task)
	move.ToSequence = target.lastSequence
	s.expect(target, now)
	return move
}

// lookNext finds the message that a receive would find first. It must be left or
// packed afterwards.
func (q *queue) lookNext(now Time) (slot uint32, o origin, ok bool) {
	if q.fifo == nil {
		if slot, ok = q.messages.takeNext(q.cutoff(now)); ok {
			o = q.messages.origins.name(q.messages.records.at(slot).origin)
		}
		return slot, o, ok
	}
	f := q.fifo
	id, ok := f.groups.next(now, q.delayWindow())
	if !ok {
		return 0, o, false
	}
	slot = f.groups.at(id).head - 1
	r := f.records.at(slot)
	return slot, f.origins.name(r.origin), r.sentAt > q.cutoff(now)
}

// leave puts a message back that was looked for.
func (q *queue) leave(now Time, slot uint32) {
	if q.fifo == nil {
		q.messages.settle(slot, now, 0)
	}
}

// packNext takes a message away that was looked for. The next one of its group is
// the head then; so the order of a FIFO group is kept.
func (q *queue) packNext(slot uint32) parcel {
	if q.fifo == nil {
		return q.pack(slot)
	}
	f := q.fifo
	id := f.records.at(slot).group
	f.groups.unfile(id)
	p := q.packFIFO(slot)
	f.file(id)
	f.tidy()
	return p
}

// destination is the queue that a message of q is moved to, or why there is none.
// A queue that is its own dead-letter queue is none to return to: the task would
// never end.
func (s *State) destination(q *queue, t *moveTask, o origin) (*queue, Code) {
	key := t.destination
	if !t.directed {
		key = o.source
	}
	switch target := s.queues[key]; {
	case key == (QueueKey{}), key == q.key:
		return nil, CouldNotDetermineMessageSource
	case target == nil:
		return nil, QueueDoesNotExist
	case target.damaged:
		return nil, InternalFailure
	default:
		return target, ""
	}
}

// acceptRedriven adds a new message with the content of p: nothing of its former
// life stays but its group. The queue's DelaySeconds does not apply, nor do its
// deduplication ids.
func (q *queue) acceptRedriven(now Time, p parcel, task TaskID) {
	q.lastSequence++
	r := record{sequence: q.lastSequence, body: p.body, sentAt: now, movedAt: now}
	o := p.origin.redrivenBy(task)
	if q.fifo != nil {
		r.origin = q.fifo.origins.use(o)
		q.fifo.add(r, p.group)
		return
	}
	r.group, r.origin = q.messages.groups.use(p.group), q.messages.origins.use(o)
	q.messages.settle(q.messages.enter(r), now, 0)
	if r.group != 0 {
		q.messages.noteSend(r.group, now)
	}
}
