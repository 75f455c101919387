package sqs_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast.internal/sqs"
)

// modelQueue is a queue as a slice of messages, in the order of their sequence
// numbers.
type modelQueue struct {
	name                                string
	incarnation, sequence               uint64
	delay, retention, visibility        int // seconds
	maxSize, maxReceives                int
	target                              string
	purgedAt                            sqs.Time
	sent, sentBytes, received, deletion uint64
	moved, stranded                     uint64
	messages                            []*modelMessage
	fair                                modelFairness
	expiresAt                           sqs.Time // nothing expires before

	modelFIFO
}

type modelMessage struct {
	sequence, body      uint64
	sentAt, arrivedAt   sqs.Time
	visibleAt           sqs.Time
	firstReceivedAt     sqs.Time
	everReceived, moved bool
	received, carried   int
	from                string
	leased              bool // as the last receive, or change of visibility, left it
	group               string

	id     sqs.MessageID // FIFO only, as is the next one
	hidden bool          // visibleAt is the end of a lease

	task    sqs.TaskID // that has made it
	passage uint32     // how often; 0: it was sent

	copied sqs.Copy
}

// model keeps all queues by two loops and no cleverness.
type model struct {
	queues      []*modelQueue // by name
	reserved    map[string]sqs.Time
	incarnation uint64
	task        *modelTask
}

func (m *model) queue(name string) *modelQueue {
	for _, q := range m.queues {
		if q.name == name {
			return q
		}
	}
	return nil
}

// expire drops what has expired everywhere.
func (m *model) expire(now sqs.Time) {
	for _, q := range m.queues {
		if now >= q.expiresAt {
			q.expire(now)
		}
	}
}

func (q *modelQueue) expire(now sqs.Time) {
	q.expiresAt = now + 60_000 // what is sent from now on stays for a minute at least
	q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool {
		at := x.sentAt.Add(seconds(q.retention))
		if at <= now {
			q.fair.ghosts = append(q.fair.ghosts, x)
			return true
		}
		q.expiresAt = min(q.expiresAt, at)
		return false
	})
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// windowEnd is written out here so that the model does not trust Time.WindowEnd.
func windowEnd(now sqs.Time, d time.Duration) sqs.Time {
	ms := sqs.Time(d / time.Millisecond)
	if ms <= 0 {
		return now
	}
	return now + ms + ms/1000 + 1
}

// hiddenAt counts the messages in flight.
func (q *modelQueue) hiddenAt(now sqs.Time) (n int) {
	for _, x := range q.messages {
		n += btoi(x.everReceived && q.availableAt(x) > now)
	}
	return n
}

func (m *model) census(q *modelQueue, now sqs.Time) sqs.QueueCensus {
	c := sqs.QueueCensus{
		Queue: key(q.name), Incarnation: q.incarnation,
		Counters: sqs.Counters{
			Sent: q.sent, SentBytes: q.sentBytes, Received: q.received, Deleted: q.deletion, Moved: q.moved, Stranded: q.stranded,
		},
	}
	if q.target != "" {
		c.DeadLetterTarget, c.Dangling = key(q.target), m.queue(q.target) == nil
	}
	for _, x := range q.messages {
		switch {
		case q.availableAt(x) <= now:
			c.Visible++
		case x.everReceived:
			c.InFlight++
		default:
			c.Delayed++
		}
		if (x.received < 3 || q.fifo) && (c.OldestSentAt == 0 || x.arrivedAt < c.OldestSentAt) {
			c.OldestSentAt = x.arrivedAt
		}
	}
	q.censusFIFO(&c, now)
	q.quietCensus(now, &c)
	return c
}

func (q *modelQueue) peeked(x *modelMessage, now sqs.Time) sqs.Peeked {
	p := sqs.Peeked{
		Sequence: x.sequence, Body: x.body, State: sqs.Visible, GroupID: x.group, SentAt: x.sentAt, ArrivedAt: x.arrivedAt,
		FirstReceivedAt: x.firstReceivedAt, ReceiveCount: x.carried + x.received, Redriven: x.redriven(), Copy: x.copied,
	}
	if at := q.availableAt(x); at > now {
		p.State, p.AvailableAt = sqs.Delayed, at
		if x.everReceived {
			p.State = sqs.InFlight
		}
	}
	if x.moved {
		p.DeadLetterSource = key(x.from)
	}
	return p
}

func (m *model) apply(at sqs.Moment, c sqs.Command) (sqs.Result, string) {
	m.expire(at.Now)
	q := m.queue(c.Target().Name)
	if create, ok := c.(sqs.CreateQueue); ok {
		return m.create(at, q, create)
	}
	switch c.(type) {
	case sqs.StartMessageMoveTask, sqs.RedriveMessage, sqs.CancelMessageMoveTask, sqs.ListMessageMoveTasks:
		return m.taskCommand(at, q, c)
	}
	if q == nil {
		return nil, "QueueDoesNotExist: The specified queue does not exist."
	}
	switch c := c.(type) {
	case sqs.DeleteQueue:
		m.queues = slices.DeleteFunc(m.queues, func(other *modelQueue) bool { return other == q })
		if m.task != nil && m.task.source == q.name {
			m.task = nil
		}
		if at.Rules.DeleteWait > 0 {
			m.reserved[q.name] = at.Now.Add(at.Rules.DeleteWait)
		}
	case sqs.SetQueueAttributes:
		if problem := m.redriveProblem(q, c.Attributes); problem != "" {
			return nil, problem
		}
		q.drop()
		q.set(c.Attributes)
		m.expire(at.Now)
		q.drop()
	case sqs.PurgeQueue:
		if q.purgedAt != 0 && at.Now.Sub(q.purgedAt) < at.Rules.PurgeWait {
			return nil, fmt.Sprintf("PurgeQueueInProgress: Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
		}
		q.purgedAt, q.messages, q.ids, q.attempts, q.fair = at.Now, nil, nil, nil, modelFairness{}
	case sqs.SendMessageBatch:
		if q.fifo {
			return q.sendFIFO(at, c)
		}
		return q.send(at, c), ""
	case sqs.ReceiveMessage:
		if q.fifo {
			return m.receiveFIFO(at, q, c), ""
		}
		return m.receive(at, q, c)
	case sqs.DeleteMessageBatch:
		return q.remove(at.Now, c), ""
	case sqs.ChangeMessageVisibilityBatch:
		return q.change(at.Now, c), ""
	case sqs.ListDeadLetterSourceQueues:
		var r sqs.ListDeadLetterSourceQueuesResult
		for _, other := range m.queues {
			if other.target == q.name {
				r.Queues = append(r.Queues, key(other.name))
			}
		}
		return r, ""
	case sqs.CreateQueue, sqs.GetQueueUrl, sqs.ListQueues, sqs.GetQueueAttributes, sqs.TagQueue, sqs.UntagQueue, sqs.ListQueueTags:
		panic(fmt.Sprintf("%T is not played", c))
	}
	return sqs.Done{}, ""
}

func (m *model) create(at sqs.Moment, q *modelQueue, c sqs.CreateQueue) (sqs.Result, string) {
	if q != nil {
		return sqs.Done{}, "" // the generator creates without attributes
	}
	if m.reserved[c.Queue.Name] > at.Now && at.Rules.DeleteWait > 0 {
		return nil, fmt.Sprintf("QueueDeletedRecently: You must wait %d seconds after deleting a queue before you can create another with the same name.", int(at.Rules.DeleteWait.Seconds()))
	}
	m.incarnation++
	m.queues = append(m.queues, &modelQueue{
		name: c.Queue.Name, incarnation: m.incarnation, retention: 345600, visibility: 30, maxSize: 1 << 20,
		modelFIFO: modelFIFO{fifo: sqs.IsFIFO(c.Queue.Name)},
	})
	slices.SortFunc(m.queues, func(a, b *modelQueue) int { return cmp.Compare(a.name, b.name) })
	return sqs.Done{}, ""
}

func (m *model) redriveProblem(q *modelQueue, attributes []sqs.Attribute) string {
	for _, a := range attributes {
		if a.Redrive == nil {
			continue
		}
		problem := "InvalidParameterValueException: Value " + a.Value + " for parameter RedrivePolicy is invalid. Reason: "
		target := m.queue(a.Redrive.Target.Name)
		if target == nil {
			return problem + "Dead letter target does not exist."
		}
		if target.fifo != q.fifo {
			return problem + "Dead-letter queue must be same type of queue as the source.."
		}
	}
	return ""
}

func (q *modelQueue) set(attributes []sqs.Attribute) {
	for _, a := range attributes {
		var n int
		fmt.Sscan(a.Value, &n)
		switch a.Name {
		case sqs.DelaySeconds:
			q.delay = n
		case sqs.VisibilityTimeout:
			q.visibility = n
		case sqs.MessageRetentionPeriod:
			q.retention, q.expiresAt = n, 0
		case sqs.MaximumMessageSize:
			q.maxSize = n
		case sqs.RedrivePolicyAttribute:
			q.target, q.maxReceives = "", 0
			if a.Redrive != nil {
				q.target, q.maxReceives = a.Redrive.Target.Name, a.Redrive.MaxReceiveCount
			}
		case sqs.ContentBasedDeduplication:
			q.contentBased = a.Value == "true"
		case sqs.DeduplicationScope:
			q.byGroup = a.Value == "messageGroup"
		}
	}
}

func (q *modelQueue) send(at sqs.Moment, c sqs.SendMessageBatch) sqs.Result {
	var r sqs.SendMessageBatchResult
	body := at.NextBody
	for _, e := range c.Entries {
		if e.Size > q.maxSize {
			r.Entries = append(r.Entries, sqs.SendResult{Err: &sqs.Error{Code: sqs.InvalidParameterValue, Message: fmt.Sprintf(
				"One or more parameters cannot be validated. Reason: Message must be shorter than %d bytes.", q.maxSize)}})
			continue
		}
		delay := e.Delay
		if delay == sqs.QueueDefault {
			delay = seconds(q.delay)
		}
		q.sequence++
		q.sent++
		q.sentBytes += uint64(e.Size)
		q.messages = append(q.messages, &modelMessage{
			sequence: q.sequence, body: body, sentAt: at.Now, arrivedAt: at.Now, visibleAt: windowEnd(at.Now, delay), group: e.GroupID,
		})
		q.noteSend(e.GroupID, at.Now)
		r.Entries = append(r.Entries, sqs.SendResult{Body: body, MessageID: e.MessageID})
		body++
	}
	return r
}

func (m *model) receive(at sqs.Moment, q *modelQueue, c sqs.ReceiveMessage) (sqs.Result, string) {
	q.beforeReceive(at.Now)
	most := min(c.MaxMessages, at.Rules.InFlightLimit-q.hiddenAt(at.Now))
	if most <= 0 && c.Short {
		return nil, fmt.Sprintf("OverLimit: The queue has the maximum number of messages in flight, %d.", at.Rules.InFlightLimit)
	}
	var visible []*modelMessage
	for _, x := range q.messages {
		if x.visibleAt <= at.Now {
			visible = append(visible, x)
		}
	}
	timeout := c.VisibilityTimeout
	if timeout == sqs.QueueDefault {
		timeout = seconds(q.visibility)
	}
	var r sqs.ReceiveMessageResult
	target := m.queue(q.target)
	var moved, delivered []*modelMessage
	for len(visible) > 0 && len(r.Messages) < most {
		x := q.next(visible)
		visible = slices.DeleteFunc(visible, func(other *modelMessage) bool { return other == x })
		if target != nil && x.received >= q.maxReceives {
			if len(moved) == 100 {
				break
			}
			q.messages = slices.DeleteFunc(q.messages, func(other *modelMessage) bool { return other == x })
			q.calmDrained()
			moved = append(moved, x)
			continue
		}
		if q.target != "" && target == nil && x.received >= q.maxReceives {
			q.stranded++
		}
		x.leased = true
		q.calmDrained()
		delivered = append(delivered, x)
		x.received++
		x.everReceived = true
		if x.firstReceivedAt == 0 {
			x.firstReceivedAt = at.Now
		}
		x.visibleAt = windowEnd(at.Now, timeout)
		q.received++
		got := sqs.Received{
			Receipt: sqs.Receipt{Incarnation: q.incarnation, Sequence: x.sequence, ReceiveNumber: uint32(x.received), ReceivedAt: at.Now},
			Body:    x.body, SentAt: x.sentAt, FirstReceivedAt: x.firstReceivedAt, ReceiveCount: x.carried + x.received,
			Redriven: x.redriven(), Copy: x.copied,
		}
		if x.moved {
			got.DeadLetterSource = key(x.from)
		}
		r.Messages = append(r.Messages, got)
	}
	q.judge(at.Now, delivered)
	for _, x := range moved {
		q.moveTo(at.Now, target, x)
	}
	return r, ""
}

func (q *modelQueue) moveTo(now sqs.Time, target *modelQueue, x *modelMessage) {
	q.moved++
	q.messages = slices.DeleteFunc(q.messages, func(other *modelMessage) bool { return other == x })
	target.sequence++
	moved := &modelMessage{
		sequence: target.sequence, body: x.body, sentAt: x.sentAt, arrivedAt: now, visibleAt: now, id: x.id, group: x.group,
		firstReceivedAt: x.firstReceivedAt, carried: x.carried + x.received, moved: true, from: q.name, everReceived: true,
		task: x.task, passage: x.passage, copied: x.copied,
	}
	if q.breakAttempts(x); q.fifo {
		moved.sentAt = now
	}
	target.messages, target.expiresAt = append(target.messages, moved), 0
	target.noteSend(x.group, now)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (q *modelQueue) message(r sqs.Receipt) *modelMessage {
	for _, x := range q.messages {
		if x.sequence == r.Sequence {
			return x
		}
	}
	return nil
}

func (q *modelQueue) remove(now sqs.Time, c sqs.DeleteMessageBatch) sqs.Result {
	r := sqs.BatchResult{Errors: make([]*sqs.Error, len(c.Receipts))}
	for i, receipt := range c.Receipts {
		if receipt.Incarnation != q.incarnation {
			r.Errors[i] = &sqs.Error{Code: sqs.ReceiptHandleIsInvalid, Message: "The input receipt handle \"\x00handle\x00\" is not a valid receipt handle."}
			continue
		}
		gone := q.message(receipt)
		if q.dead(now, receipt) {
			r.Errors[i] = modelExpired()
			continue
		}
		q.deletion++
		q.breakAttempts(gone)
		q.finish(now, receipt)
		isGone := func(x *modelMessage) bool { return x.sequence == receipt.Sequence }
		q.messages = slices.DeleteFunc(q.messages, isGone)
		q.fair.ghosts = slices.DeleteFunc(q.fair.ghosts, isGone)
		q.calmDrained()
	}
	return r
}

func (q *modelQueue) change(now sqs.Time, c sqs.ChangeMessageVisibilityBatch) sqs.Result {
	r := sqs.BatchResult{Errors: make([]*sqs.Error, len(c.Entries))}
	for i, e := range c.Entries {
		x := q.message(e.Receipt)
		switch {
		case e.Receipt.Incarnation != q.incarnation:
			r.Errors[i] = &sqs.Error{Code: sqs.ReceiptHandleIsInvalid, Message: "The input receipt handle \"\x00handle\x00\" is not a valid receipt handle."}
		case x == nil:
			r.Errors[i] = &sqs.Error{Code: sqs.InvalidParameterValue, Message: "Value \x00handle\x00 for parameter ReceiptHandle is invalid. " +
				"Reason: Message does not exist or is not available for visibility timeout change."}
		case q.dead(now, e.Receipt):
			r.Errors[i] = modelExpired()
		case int64(now-e.Receipt.ReceivedAt)/1000+int64(e.Timeout/time.Second) > 43200:
			r.Errors[i] = &sqs.Error{Code: sqs.InvalidParameterValue, Message: fmt.Sprintf("Value %d for parameter VisibilityTimeout is invalid. "+
				"Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", int(e.Timeout/time.Second))}
		default:
			if e.Timeout == 0 {
				q.finish(now, e.Receipt)
			}
			x.visibleAt = windowEnd(now, e.Timeout)
			x.leased = x.visibleAt > now
			q.calmDrained()
			q.breakAttempts(x)
		}
	}
	return r
}
