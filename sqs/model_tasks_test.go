package sqs_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"holdfast.internal/sqs"
)

// modelTask is the only move task that runs. The model does not keep its pace: it
// follows what a pulse has moved, message by message.
type modelTask struct {
	sqs.MoveTask
	source string
	limit  uint64
}

// taskCommand carries out a command about move tasks.
func (m *model) taskCommand(at sqs.Moment, q *modelQueue, c sqs.Command) (sqs.Result, string) {
	const gone = "ResourceNotFoundException: The resource that you specified for the SourceArn parameter doesn't exist."
	if q == nil {
		return nil, gone
	}
	switch c := c.(type) {
	case sqs.StartMessageMoveTask:
		if problem := m.startProblem(q, c.Destination); problem != "" {
			return nil, problem
		}
		m.task = &modelTask{source: q.name, limit: c.Limit, MoveTask: sqs.MoveTask{
			ID: c.Task, Status: sqs.TaskRunning, Destination: c.Destination, MaxPerSecond: c.MaxPerSecond,
			ToMove: uint64(m.census(q, at.Now).Visible), StartedAt: at.Now,
		}}
		if c.Limit > 0 {
			m.task.ToMove = min(m.task.ToMove, c.Limit)
		}
		return sqs.Done{}, ""
	case sqs.RedriveMessage:
		return m.redriveMessage(at, q, c)
	case sqs.CancelMessageMoveTask:
		if m.task == nil || m.task.source != q.name || m.task.ID != c.Task {
			return nil, "ResourceNotFoundException: Task does not exist."
		}
		if m.task.Status != sqs.TaskRunning {
			return nil, "InvalidParameterValueException: Only active tasks can be cancelled."
		}
		m.task.Status = sqs.TaskCancelling
		return sqs.CancelMessageMoveTaskResult{Moved: m.task.Moved}, ""
	}
	var r sqs.ListMessageMoveTasksResult
	if m.task != nil && m.task.source == q.name {
		r.Tasks = []sqs.MoveTask{m.task.MoveTask}
	}
	return r, ""
}

// redriveMessage moves one message; the model has nothing that keeps it from any.
func (m *model) redriveMessage(at sqs.Moment, q *modelQueue, c sqs.RedriveMessage) (sqs.Result, string) {
	if problem := m.startProblem(q, c.Destination); problem != "" {
		return nil, problem
	}
	x := q.message(sqs.Receipt{Sequence: c.Sequence})
	if x == nil || x.body != c.Body {
		return nil, "ResourceNotFoundException: The message is not in the queue any more."
	}
	if q.availableAt(x) > at.Now {
		state := "delayed"
		if x.everReceived {
			state = "in flight"
		}
		return nil, "InvalidParameterValueException: The message is " + state + ": only a visible one can be moved."
	}
	source := &modelTask{MoveTask: sqs.MoveTask{Destination: c.Destination}}
	target := m.destination(source, q, x)
	if target == nil && (!x.moved || x.from == q.name) {
		return nil, "InvalidParameterValueException: The message did not come here as a dead letter of another queue: name a destination."
	}
	if target == nil {
		return nil, "InvalidParameterValueException: The queue that the message came from does not exist any more: name a destination."
	}
	q.redriveTo(at.Now, target, x, c.Task)
	q.calmDrained()
	made := target.messages[len(target.messages)-1]
	return sqs.RedriveMessageResult{To: key(target.name), Sequence: made.sequence, MessageID: made.redriven()}, ""
}

func (m *model) startProblem(q *modelQueue, destination *sqs.QueueKey) string {
	const invalid = "InvalidParameterValueException: "
	switch isTarget := func(other *modelQueue) bool { return other.target == q.name }; {
	case !slices.ContainsFunc(m.queues, isTarget):
		return invalid + "Source queue must be configured as a Dead Letter Queue."
	case destination == nil:
	case m.queue(destination.Name) == nil:
		return "ResourceNotFoundException: The resource that you specified for the DestinationArn parameter doesn't exist."
	case destination.Name == q.name:
		return invalid + "Source queue arn and destination queue arn cannot be the same."
	case sqs.IsFIFO(destination.Name) != q.fifo:
		return invalid + "The source and destination queue must be of the same queue type."
	}
	return ""
}

// active reports whether the task of the model is not over.
func (t *modelTask) active() bool {
	return t != nil && (t.Status == sqs.TaskRunning || t.Status == sqs.TaskCancelling)
}

// reached reports whether the task has moved as many messages as it may.
func (t *modelTask) reached() bool { return t.limit > 0 && t.Moved >= t.limit }

// pulse gives both states a pulse, and has the model follow: the moves come first,
// and what has expired elsewhere than in their source is dropped after them.
func (g *generator) pulse() string {
	events := g.state.Pulse(g.at)
	g.twin.Pulse(g.at)
	g.model.expire(g.at.Now)
	problem := g.followTask(events)
	g.model.pulse(g.at.Now)
	return problem
}

func (g *generator) followTask(events []sqs.Event) string {
	if !g.model.task.active() {
		return ""
	}
	t := g.model.task
	g.model.queue(t.source).drop()
	r, _, err := g.state.Apply(g.at, sqs.ListMessageMoveTasks{Source: key(t.source), Limit: 1})
	if err != nil {
		return "the task is lost: " + err.Error()
	}
	return g.model.follow(g.at, r.(sqs.ListMessageMoveTasksResult).Tasks[0], events)
}

// follow makes the moves of a pulse after which the task stands as given, and
// checks that they may be.
func (m *model) follow(at sqs.Moment, now sqs.MoveTask, events []sqs.Event) string {
	t, q := m.task, m.queue(m.task.source)
	before := t.Status
	for _, x := range q.messages {
		x.leased = x.leased && (x.visibleAt > at.Now || now.Moved == t.Moved && now.Status == before)
	}
	for _, e := range events {
		if e.Kind != sqs.MessageMoved {
			continue
		}
		x := q.message(sqs.Receipt{Sequence: e.Move.Sequence})
		if x == nil || q.availableAt(x) > at.Now || q.fifo && x != q.front(at.Now) || before == sqs.TaskCancelling {
			return fmt.Sprintf("%+v: %+v was moved", now, e.Move)
		}
		target := m.destination(t, q, x)
		if target == nil || key(target.name) != e.Move.To || target.sequence+1 != e.Move.ToSequence || x.body != e.Move.Body {
			return fmt.Sprintf("%+v: %+v was moved there", now, e.Move)
		}
		q.redriveTo(at.Now, target, x, t.ID)
		t.Moved++
	}
	q.calmDrained()
	x := q.front(at.Now)
	t.Status, t.FailureReason = now.Status, now.FailureReason
	ok := t.Moved == now.Moved
	switch now.Status {
	case sqs.TaskRunning:
		ok = ok && before == sqs.TaskRunning && x != nil && !t.reached()
	case sqs.TaskCompleted:
		ok = ok && before == sqs.TaskRunning && (x == nil || t.reached())
	case sqs.TaskCancelled:
		ok = ok && before == sqs.TaskCancelling
	case sqs.TaskFailed:
		ok = ok && (at.Now.Sub(t.StartedAt) >= sqs.MaxMoveTaskTime || m.stuck(t, q, at.Now))
	case sqs.TaskCancelling:
		ok = false
	}
	if !ok {
		return fmt.Sprintf("%+v after status %d and %d moves, with %+v in front", now, before, t.Moved, x)
	}
	return ""
}

// stuck reports whether a message that is visible has nowhere to go.
func (m *model) stuck(t *modelTask, q *modelQueue, now sqs.Time) bool {
	return slices.ContainsFunc(q.messages, func(x *modelMessage) bool { return q.availableAt(x) <= now && m.destination(t, q, x) == nil })
}

func (m *model) destination(t *modelTask, q *modelQueue, x *modelMessage) *modelQueue {
	switch {
	case t.Destination != nil:
		return m.queue(t.Destination.Name)
	case !x.moved || x.from == q.name:
		return nil
	}
	return m.queue(x.from)
}

// front is the message that a receive would return first.
func (q *modelQueue) front(now sqs.Time) *modelMessage {
	candidates := q.heads()
	if !q.fifo {
		candidates = slices.Clone(q.messages)
	}
	candidates = slices.DeleteFunc(candidates, func(x *modelMessage) bool { return q.availableAt(x) > now })
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *modelMessage) int {
		if q.fifo {
			return cmp.Or(cmp.Compare(q.availableAt(a), q.availableAt(b)), cmp.Compare(a.sequence, b.sequence))
		}
		return cmp.Or(cmp.Compare(btoi(a.received >= 3), btoi(b.received >= 3)), cmp.Compare(a.sentAt, b.sentAt), cmp.Compare(a.sequence, b.sequence))
	})
}

// redriveTo makes a new message of x.
func (q *modelQueue) redriveTo(now sqs.Time, target *modelQueue, x *modelMessage, task sqs.TaskID) {
	q.messages = slices.DeleteFunc(q.messages, func(other *modelMessage) bool { return other == x })
	q.breakAttempts(x)
	target.sequence++
	made := &modelMessage{
		sequence: target.sequence, body: x.body, sentAt: now, arrivedAt: now, visibleAt: now, everReceived: true,
		id: x.id, group: x.group, task: task, passage: 1, copied: x.copied,
	}
	if x.task == task {
		made.passage = x.passage + 1
	}
	target.messages = append(target.messages, made)
	target.noteSend(x.group, now)
}

// redriven is the id that a task has given to a message.
func (x *modelMessage) redriven() (id sqs.MessageID) {
	if x.passage == 0 {
		return id
	}
	seed := binary.BigEndian.AppendUint32(x.task[:], x.passage)
	seed = binary.BigEndian.AppendUint64(seed, x.body)
	if x.copied != (sqs.Copy{}) {
		seed = binary.BigEndian.AppendUint32(append(seed, x.copied.Receiver[:]...), x.copied.Generation)
	}
	sum := sha256.Sum256(seed)
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&15|8<<4, id[8]&63|2<<6
	return id
}

// taskOf makes up a command about move tasks. A new task starts only when none
// runs; so the model knows which moves come first.
func (g *generator) taskOf(q sqs.QueueKey) sqs.Command {
	if g.IntN(3) == 0 {
		return g.redriveOf(q)
	}
	if g.model.task.active() {
		q = key(g.model.task.source)
		if g.IntN(3) == 0 {
			return sqs.CancelMessageMoveTask{Source: q, Task: g.model.task.ID}
		}
		return sqs.ListMessageMoveTasks{Source: q, Limit: 1}
	}
	c := sqs.StartMessageMoveTask{Source: q, Task: taskID(fmt.Sprint(g.steps))}
	c.Destination = g.destinationOf(q)
	if g.IntN(2) == 0 {
		c.MaxPerSecond = 1 + g.IntN(500)
	}
	if g.IntN(3) == 0 {
		c.Limit = uint64(1 + g.IntN(5))
	}
	return c
}

// destinationOf makes up a destination, or none.
func (g *generator) destinationOf(q sqs.QueueKey) *sqs.QueueKey {
	if g.IntN(3) > 0 {
		return nil
	}
	destination := key(modelQueues[g.IntN(len(modelQueues))])
	if g.IntN(5) > 0 && sqs.IsFIFO(destination.Name) != sqs.IsFIFO(q.Name) {
		destination = key(modelQueues[btoi(sqs.IsFIFO(q.Name))*4])
	}
	return &destination
}

// redriveOf makes up a move of one message, mostly of one that is there and of
// dead letters.
func (g *generator) redriveOf(q sqs.QueueKey) sqs.Command {
	for _, other := range g.model.queues {
		if other.target == "" || g.IntN(2) == 0 {
			continue
		}
		if q = key(other.target); g.IntN(2) == 0 {
			break
		}
	}
	c := sqs.RedriveMessage{Source: q, Task: taskID(fmt.Sprint("r", g.steps)), Sequence: 1, Body: 1, Destination: g.destinationOf(q)}
	if m := g.model.queue(q.Name); m != nil && len(m.messages) > 0 && g.IntN(10) > 0 {
		x := m.messages[g.IntN(len(m.messages))]
		c.Sequence, c.Body = x.sequence, x.body
	}
	return c
}
