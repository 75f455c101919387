package sqs

import "time"

// cutoff is the latest enqueue time whose messages have expired: a message goes
// at its enqueue time plus the MessageRetentionPeriod, wherever it is, and to no
// dead-letter queue (AWS recordings test_message_retention,
// test_message_retention_with_inflight). Retention is not padded.
func (q *queue) cutoff(now Time) Time {
	return now.Add(-time.Duration(q.settings.retention) * time.Second)
}

// dropExpired drops what has expired, as far as the steps go. It reports whether
// this, or a change of DelaySeconds before, may have made something available in
// a FIFO queue: all groups are looked at by their delay as it is now.
func (q *queue) dropExpired(now Time, left *steps) (freed bool) {
	if q.fifo == nil {
		q.messages.dropExpired(q.cutoff(now), left)
		return false
	}
	q.fifo.dropExpired(q.cutoff(now), left)
	return q.fifo.groups.fresh.count+q.fifo.groups.back.count > 0
}

// oldest is the enqueue time of the message that expires first, or never.
func (q *queue) oldest() Time {
	if q.fifo == nil {
		return q.messages.oldest()
	}
	if slot, ok := q.fifo.oldest(); ok {
		return q.fifo.records.at(slot).sentAt
	}
	return never
}

// advance does what time alone has brought about until now, as far as the steps
// go. It reports whether this may have made something available in a FIFO queue.
func (q *queue) advance(now Time, left *steps) (freed bool) {
	if q.fifo != nil {
		before := q.fifo.records.used
		q.fifo.dropExpired(q.cutoff(now), left)
		return q.fifo.records.used < before
	}
	q.messages.advance(now, q.cutoff(now), left)
	return false
}

// advance does what time alone has brought about until now, as far as the steps
// go: the expired go, leases end, delays end.
func (m *messages) advance(now, cutoff Time, left *steps) {
	m.dropExpired(cutoff, left)
	m.endLeases(now, left)
	m.endDelays(now, left)
}

// dropExpired drops the messages that were sent at the cutoff or before.
func (m *messages) dropExpired(cutoff Time, left *steps) {
	for _, o := range m.listsByAge() {
		m.dropLists(o, cutoff, left)
	}
	for _, o := range m.recordsByAge() {
		m.dropRecords(o, cutoff, left)
	}
}

// dropLists drops what has expired from lists. One step takes any number of
// messages of a list, whole chunks at a time.
func (m *messages) dropLists(o *order, cutoff Time, left *steps) {
	for {
		id, ok := o.first()
		if !ok || m.byHead(id).at > cutoff || !left.take() {
			return
		}
		m.unfile(id)
		l := m.lists.at(id)
		l.dropTo(l.after(cutoff))
		m.file(id)
		m.dropList(id)
	}
}

func (m *messages) dropRecords(o *order, cutoff Time, left *steps) {
	for {
		slot, ok := o.first()
		if !ok || m.byAge(slot).at > cutoff || !left.take() {
			return
		}
		m.lift(slot)
		m.forget(slot)
	}
}

func (m *messages) endLeases(now Time, left *steps) {
	for {
		slot, ok := m.leases.first()
		if !ok || m.byLease(slot).at > now || !left.take() {
			return
		}
		m.lift(slot)
		m.settle(slot, now, 0)
	}
}

// lateDelays is how many lists with delayed messages a queue may have before pulses
// end their delays, too: whoever counts looks at each list that has come due since.
const lateDelays = maxSteps

// delaysDue is when a pulse is to end delays: some time after they are over, so that
// there is one for many, and never while there are few.
func (m *messages) delaysDue() Time {
	if m.waiting.count <= lateDelays {
		return never
	}
	id, _ := m.waiting.first()
	return m.byNext(id).at.Add(time.Second)
}

func (m *messages) endDelays(now Time, left *steps) {
	for {
		id, ok := m.waiting.first()
		if !ok || m.byNext(id).at > now || !left.take() {
			return
		}
		m.unfile(id)
		l := m.lists.at(id)
		l.pass(l.after(now - l.window))
		m.file(id)
	}
}
