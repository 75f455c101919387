package sqs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"holdfast.internal/sqs"
)

// modelFIFO is what a FIFO queue has beside its messages.
type modelFIFO struct {
	fifo, contentBased, byGroup bool

	ids      []modelID // all that ever were
	attempts []*modelAttempt
	dups     uint64
}

type modelID struct {
	key      string
	at       sqs.Time
	id       sqs.MessageID
	sequence uint64
}

type modelAttempt struct {
	id        string
	at        sqs.Time
	most      int
	timeout   time.Duration
	visibleAt sqs.Time
	messages  []*modelMessage
	received  []sqs.Received
}

// availableAt is when a message is or was available, apart from those before it
// in its group.
func (q *modelQueue) availableAt(x *modelMessage) sqs.Time {
	switch {
	case !q.fifo || x.hidden:
		return x.visibleAt
	case x.everReceived:
		return x.arrivedAt
	}
	return windowEnd(x.sentAt, seconds(q.delay))
}

// heads are the first messages of all groups, and none of a standard queue.
func (q *modelQueue) heads() (heads []*modelMessage) {
	if !q.fifo {
		return nil
	}
	var seen [256]bool // by the only character of a group
	for _, x := range q.messages {
		if i := x.group[0]; !seen[i] {
			seen[i] = true
			heads = append(heads, x)
		}
	}
	return heads
}

func (q *modelQueue) availableGroups(now sqs.Time) (n int) {
	for _, x := range q.heads() {
		if q.availableAt(x) <= now {
			n++
		}
	}
	return n
}

func (q *modelQueue) censusFIFO(c *sqs.QueueCensus, now sqs.Time) {
	c.Deduplicated = q.dups
	var seen [256]bool
	for _, x := range q.messages {
		if q.fifo && !seen[x.group[0]] && x.everReceived && q.availableAt(x) > now {
			seen[x.group[0]] = true
			c.GroupsInFlight++
		}
	}
}

func (q *modelQueue) sendFIFO(at sqs.Moment, c sqs.SendMessageBatch) (sqs.Result, string) {
	for _, e := range c.Entries {
		if e.DeduplicationID == "" && !q.contentBased {
			return nil, "InvalidParameterValueException: The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
		}
	}
	var r sqs.SendMessageBatchResult
	for _, e := range c.Entries {
		if e.Size > q.maxSize {
			r.Entries = append(r.Entries, sqs.SendResult{Err: &sqs.Error{Code: sqs.InvalidParameterValue, Message: fmt.Sprintf(
				"One or more parameters cannot be validated. Reason: Message must be shorter than %d bytes.", q.maxSize)}})
			continue
		}
		known := modelID{key: e.DeduplicationID, at: at.Now, id: e.MessageID}
		if known.key == "" {
			known.key = hex.EncodeToString(e.BodySHA256[:])
		}
		if q.byGroup {
			known.key = e.GroupID + " " + known.key
		}
		i := slices.IndexFunc(q.ids, func(o modelID) bool { return o.key == known.key && at.Now < windowEnd(o.at, at.Rules.DedupWindow) })
		if i >= 0 {
			q.dups++
			r.Entries = append(r.Entries, sqs.SendResult{MessageID: q.ids[i].id, SequenceNumber: q.ids[i].sequence})
			continue
		}
		q.sequence++
		q.sent++
		q.sentBytes += uint64(e.Size)
		known.sequence = q.sequence
		q.ids = append(q.ids, known)
		q.messages = append(q.messages, &modelMessage{
			sequence: q.sequence, body: at.NextBody, sentAt: at.Now, arrivedAt: at.Now, id: e.MessageID, group: e.GroupID,
		})
		r.Entries = append(r.Entries, sqs.SendResult{Body: at.NextBody, MessageID: e.MessageID, SequenceNumber: q.sequence})
		at.NextBody++
	}
	return r, ""
}

// receiveFIFO takes messages by the plain rule of FIFO queues: group by group, in
// the order in which their heads became available.
func (m *model) receiveFIFO(at sqs.Moment, q *modelQueue, c sqs.ReceiveMessage) sqs.Result {
	timeout := c.VisibilityTimeout
	if timeout == sqs.QueueDefault {
		timeout = seconds(q.visibility)
	}
	if a := q.repeated(at.Now, c); a != nil {
		a.visibleAt = windowEnd(at.Now, timeout)
		for _, x := range a.messages {
			x.visibleAt = a.visibleAt
		}
		if a.visibleAt <= at.Now {
			q.breakAttempts(a.messages[0])
		}
		return sqs.ReceiveMessageResult{Messages: a.received}
	}
	most := min(c.MaxMessages, at.Rules.InFlightLimit-q.hiddenAt(at.Now))
	target := m.queue(q.target)
	var taken, moved []*modelMessage
	full := false
	for seen := map[string]bool{}; len(taken) < most && !full; {
		var head *modelMessage
		for _, x := range q.heads() {
			if q.availableAt(x) <= at.Now && !seen[x.group] && (head == nil || q.availableAt(x) < q.availableAt(head)) {
				head = x
			}
		}
		if head == nil {
			break
		}
		seen[head.group] = true
		for _, x := range slices.Clone(q.messages) {
			if x.group != head.group || len(taken) >= most {
				continue
			}
			if q.availableAt(x) > at.Now {
				break
			}
			if target == nil || x.received < q.maxReceives {
				taken = append(taken, x)
				if q.target != "" && x.received >= q.maxReceives {
					q.stranded++
				}
				continue
			}
			if full = len(moved) == 100; full {
				break
			}
			moved = append(moved, x)
			q.messages = slices.DeleteFunc(q.messages, func(other *modelMessage) bool { return other == x })
		}
	}
	r := q.deliver(at.Now, timeout, c, taken)
	for _, x := range moved {
		q.moveTo(at.Now, target, x) // now, so that it was not looked at again in this receive
	}
	return r
}

func (q *modelQueue) deliver(now sqs.Time, timeout time.Duration, c sqs.ReceiveMessage, taken []*modelMessage) sqs.Result {
	var r sqs.ReceiveMessageResult
	for _, x := range taken {
		q.breakAttempts(x)
		x.received++
		x.everReceived, x.hidden = true, true
		if x.firstReceivedAt == 0 {
			x.firstReceivedAt = now
		}
		x.visibleAt = windowEnd(now, timeout)
		q.received++
		got := sqs.Received{
			Receipt: sqs.Receipt{Incarnation: q.incarnation, Sequence: x.sequence, ReceiveNumber: uint32(x.received), ReceivedAt: now},
			Body:    x.body, SentAt: x.sentAt, FirstReceivedAt: x.firstReceivedAt, ReceiveCount: x.carried + x.received, SequenceNumber: x.sequence,
			Redriven: x.redriven(), Copy: x.copied,
		}
		if x.moved {
			got.DeadLetterSource = key(x.from)
		}
		r.Messages = append(r.Messages, got)
	}
	if c.AttemptID != "" && len(taken) > 0 && taken[0].visibleAt > now {
		q.attempts = slices.DeleteFunc(q.attempts, func(a *modelAttempt) bool { return a.id == c.AttemptID })
		q.attempts = append(q.attempts, &modelAttempt{
			id: c.AttemptID, at: now, most: c.MaxMessages, timeout: c.VisibilityTimeout,
			visibleAt: taken[0].visibleAt, messages: taken, received: r.Messages,
		})
	}
	return r
}

func (q *modelQueue) repeated(now sqs.Time, c sqs.ReceiveMessage) *modelAttempt {
	for _, a := range q.attempts {
		gone := slices.ContainsFunc(a.messages, func(x *modelMessage) bool { return !slices.Contains(q.messages, x) })
		if a.id == c.AttemptID && a.most == c.MaxMessages && a.timeout == c.VisibilityTimeout &&
			now < a.visibleAt && now < windowEnd(a.at, 5*time.Minute) && !gone {
			return a
		}
	}
	return nil
}

// breakAttempts forgets the attempts that returned x.
func (q *modelQueue) breakAttempts(x *modelMessage) {
	q.attempts = slices.DeleteFunc(q.attempts, func(a *modelAttempt) bool { return slices.Contains(a.messages, x) })
}

// dead reports whether a handle of a FIFO message that is there does not hold any
// more.
func (q *modelQueue) dead(now sqs.Time, r sqs.Receipt) bool {
	x := q.message(r)
	return q.fifo && x != nil && (uint32(x.received) != r.ReceiveNumber || x.visibleAt <= now)
}

func modelExpired() *sqs.Error {
	return &sqs.Error{Code: sqs.InvalidParameterValue, Message: "Value \x00handle\x00 for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."}
}

func (g *generator) sendFIFO(q sqs.QueueKey) sqs.Command {
	c := sqs.SendMessageBatch{Queue: q}
	contentBased := g.model.queue(q.Name).contentBased
	for range 1 + g.IntN(10) {
		e := sqs.SendEntry{
			MessageID: sqs.MessageID{byte(g.IntN(256)), byte(g.IntN(256))}, Size: 1 + g.IntN(1100), Delay: sqs.QueueDefault,
			GroupID: string(rune('a' + g.IntN(1+g.IntN(12)))), DeduplicationID: fmt.Sprint(g.IntN(1000)),
		}
		if contentBased && g.IntN(3) > 0 || g.IntN(500) == 0 {
			e.DeduplicationID, e.BodySHA256 = "", sha256.Sum256([]byte{byte(g.IntN(20))})
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

// attempt gives a receive an id, sometimes that of the last one.
func (g *generator) attempt(c *sqs.ReceiveMessage) {
	if g.IntN(3) > 0 {
		return
	}
	c.AttemptID = fmt.Sprint(g.IntN(3))
	if g.IntN(2) == 0 {
		c.MaxMessages, c.VisibilityTimeout = 3, sqs.QueueDefault
	}
}

func (g *generator) attributesFIFO() []sqs.Attribute {
	if g.IntN(2) == 0 {
		return []sqs.Attribute{{Name: sqs.ContentBasedDeduplication, Value: fmt.Sprint(g.IntN(2) == 0)}}
	}
	return []sqs.Attribute{{Name: sqs.DeduplicationScope, Value: []string{"queue", "messageGroup"}[g.IntN(2)]}}
}
