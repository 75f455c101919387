package sqs_test

import (
	"cmp"
	"slices"
	"time"

	"holdfast.internal/sqs"
)

// modelFairness is what a queue of the model knows of its tenants.
type modelFairness struct {
	tenants map[string]*modelTenant
	work    modelWork
	ghosts  []*modelMessage // expired, but not dropped by a receive or pulse yet
}

type modelTenant struct {
	sentAt sqs.Time
	work   modelWork
	noisy  bool
}

// modelWork is halved at every full minute.
type modelWork struct{ spent, minute int64 }

func (w *modelWork) at(now sqs.Time) int64 {
	for ; w.minute < int64(now)/60_000 && w.spent > 0; w.minute++ {
		w.spent /= 2
	}
	w.minute = int64(now) / 60_000
	return w.spent
}

func (q *modelQueue) tenant(group string) *modelTenant {
	if q.fair.tenants == nil {
		q.fair.tenants = map[string]*modelTenant{}
	}
	t := q.fair.tenants[group]
	if t == nil {
		t = &modelTenant{}
		q.fair.tenants[group] = t
	}
	return t
}

func (q *modelQueue) noteSend(group string, now sqs.Time) {
	if group != "" && !q.fifo {
		q.tenant(group).sentAt = now
	}
}

// population counts the messages of a group, and those not in flight.
func (q *modelQueue) population(group string) (all, waiting int) {
	for _, messages := range [][]*modelMessage{q.messages, q.fair.ghosts} {
		for _, x := range messages {
			if x.group == group {
				all++
				waiting += btoi(!x.leased)
			}
		}
	}
	return all, waiting
}

// calmDrained makes tenants quiet whose backlog is drained, and forgets those
// that have no message.
func (q *modelQueue) calmDrained() {
	for group, t := range q.fair.tenants {
		all, waiting := q.population(group)
		if waiting == 0 {
			t.noisy = false
		}
		if all == 0 {
			delete(q.fair.tenants, group)
		}
	}
	if len(q.fair.tenants) == 0 {
		q.fair.work = modelWork{}
	}
}

// drop is when a queue drops what has expired.
func (q *modelQueue) drop() {
	q.fair.ghosts = nil
	q.calmDrained()
}

// pulse drops what has expired everywhere.
func (m *model) pulse(now sqs.Time) {
	m.expire(now)
	for _, q := range m.queues {
		q.drop()
	}
}

func (q *modelQueue) beforeReceive(now sqs.Time) {
	q.drop()
	for _, x := range q.messages {
		x.leased = x.leased && x.visibleAt > now
	}
	for _, t := range q.fair.tenants {
		if t.sentAt.Add(5*time.Minute) <= now {
			t.noisy = false
		}
	}
}

func (q *modelQueue) isNoisy(x *modelMessage) bool { return x.group != "" && q.tenant(x.group).noisy }

// next chooses what to receive.
func (q *modelQueue) next(visible []*modelMessage) *modelMessage {
	usual := func(a, b *modelMessage) int {
		return cmp.Or(cmp.Compare(btoi(a.received >= 3), btoi(b.received >= 3)), cmp.Compare(a.sentAt, b.sentAt), cmp.Compare(a.sequence, b.sequence))
	}
	var first *modelMessage
	firsts := map[string]*modelMessage{} // of the noisy
	for _, x := range visible {
		if q.isNoisy(x) {
			if y := firsts[x.group]; y == nil || usual(x, y) < 0 {
				firsts[x.group] = x
			}
		} else if first == nil || usual(x, first) < 0 {
			first = x
		}
	}
	if first != nil {
		return first
	}
	for _, x := range firsts {
		if first == nil || cmp.Or(cmp.Compare(q.inFlight(x.group), q.inFlight(first.group)),
			cmp.Compare(x.sentAt, first.sentAt), cmp.Compare(x.sequence, first.sequence)) < 0 {
			first = x
		}
	}
	return first
}

func (q *modelQueue) inFlight(group string) int {
	all, waiting := q.population(group)
	return all - waiting
}

func (q *modelQueue) judge(now sqs.Time, delivered []*modelMessage) {
	total := 0
	for _, x := range delivered {
		x.leased = x.visibleAt > now
	}
	for _, x := range q.messages {
		total += btoi(x.leased)
	}
	for _, x := range delivered {
		if x.group == "" {
			continue
		}
		t, n := q.tenant(x.group), q.inFlight(x.group)
		_, waiting := q.population(x.group)
		tooMuch := n >= 30 && n*10 > total || t.work.at(now)*10 > q.fair.work.at(now)
		if waiting > 0 && t.sentAt.Add(5*time.Minute) > now && tooMuch {
			t.noisy = true
		}
	}
}

// finish counts the processing time of a message, if the handle is that of the
// receive which hides it still.
func (q *modelQueue) finish(now sqs.Time, r sqs.Receipt) {
	if len(q.fair.tenants) == 0 {
		return
	}
	for _, x := range slices.Concat(q.messages, q.fair.ghosts) {
		if x.sequence != r.Sequence || x.visibleAt <= now || x.received != int(r.ReceiveNumber) || r.ReceivedAt > now {
			continue
		}
		spent := min(int64(now-r.ReceivedAt), 12*3600*1000)
		q.fair.work.spent = q.fair.work.at(now) + spent
		if x.group != "" {
			t := q.tenant(x.group)
			t.work.spent = t.work.at(now) + spent
		}
	}
}

func (q *modelQueue) quietCensus(now sqs.Time, c *sqs.QueueCensus) {
	if q.fifo {
		return
	}
	for _, t := range q.fair.tenants {
		c.NoisyGroups += btoi(t.noisy)
	}
	if c.NoisyGroups == 0 {
		c.Quiet = sqs.QuietCensus{Visible: c.Visible, InFlight: c.InFlight, Delayed: c.Delayed, OldestSentAt: c.OldestSentAt}
		return
	}
	for _, x := range q.messages {
		if q.isNoisy(x) {
			continue
		}
		switch {
		case x.visibleAt <= now:
			c.Quiet.Visible++
		case x.everReceived:
			c.Quiet.InFlight++
		default:
			c.Quiet.Delayed++
		}
		if x.received < 3 && (c.Quiet.OldestSentAt == 0 || x.arrivedAt < c.Quiet.OldestSentAt) {
			c.Quiet.OldestSentAt = x.arrivedAt
		}
	}
}
