package sqs

// counts are the numbers of a queue's messages by what they wait for, without
// those that have expired.
type counts struct{ visible, inFlight, delayed int }

// counts counts exactly, whatever advance has left undone, and changes nothing:
// it may run beside other readers. It looks one by one only at lists and hidden
// records that have expired or come due since the last advance.
func (m *messages) counts(now, cutoff Time) counts {
	c := counts{visible: m.ready, delayed: m.delayed}
	for _, o := range m.listsByAge() {
		for id := range o.all {
			if m.byHead(id).at > cutoff {
				break
			}
			c.recount(m.lists.at(id), now, cutoff)
		}
	}
	for id := range m.waiting.all {
		if m.byNext(id).at > now {
			break
		}
		if m.byHead(id).at > cutoff {
			c.recount(m.lists.at(id), now, cutoff)
		}
	}
	ended := m.leases.below(upTo(now), m.byLease)
	c.inFlight += m.leases.count - ended
	c.visible += ended
	for _, o := range m.recordsByAge() {
		if o != &m.leased {
			c.visible += o.count - o.below(upTo(cutoff), m.byAge)
		}
	}
	for slot := range m.leased.all {
		r := m.records.at(slot)
		switch {
		case r.sentAt > cutoff:
			return c
		case r.visibleAt > now:
			c.inFlight--
		default:
			c.visible--
		}
	}
	return c
}

// recount replaces what m.ready and m.delayed say of a list.
func (c *counts) recount(l *list, now, cutoff Time) {
	due := max(l.passed, l.after(now-l.window).ordinal)
	alive := l.after(cutoff).ordinal
	due = max(due, alive)
	c.visible += int(due-alive) - int(l.passed-l.taken)
	c.delayed += int(l.sent-due) - int(l.sent-l.passed)
}

// inFlight counts the hidden messages, with those that have expired and were not
// dropped yet.
func (m *messages) inFlight(now Time) int {
	return m.leases.count - m.leases.below(upTo(now), m.byLease)
}

// oldestArrival is when the oldest message came into the queue that was received
// less than tiredAfter times and has not expired, hidden or not; 0 if there is
// none. (SQS developer guide, ApproximateAgeOfOldestMessage: in a dead-letter
// queue the age counts from the move.)
func (m *messages) oldestArrival(cutoff Time) Time {
	return m.oldestOf(cutoff, func(uint32) bool { return true })
}

// oldestOf is oldestArrival among the messages of some groups. It looks at maxSteps
// received messages of other groups, and expired ones that were not dropped yet, at
// most: then it leaves out the received messages behind them.
func (m *messages) oldestOf(cutoff Time, counts func(group uint32) bool) Time {
	oldest := never
	for _, o := range m.listsByAge() {
		for id := range o.all {
			l := m.lists.at(id)
			if !counts(l.group) {
				continue
			}
			if p := l.after(cutoff); p.ordinal < l.sent {
				oldest = min(oldest, p.rank.at)
			}
			if l.headRank().at > cutoff {
				break
			}
		}
	}
	left := steps(maxSteps)
	for slot := range m.sequences.all { // in the order of their arrival, the tired ones last
		r := m.records.at(slot)
		if r.tired() || !left.take() {
			break
		}
		if r.sentAt > cutoff && counts(r.group) {
			oldest = min(oldest, r.arrivedAt())
			break
		}
	}
	if oldest == never {
		return 0
	}
	return oldest
}

// available counts the messages that a receive would find, at most limit; none
// when a full window of messages is in flight.
func (q *queue) available(now Time, limit, window int) int {
	c := q.counts(now)
	if window > 0 && c.inFlight >= window {
		return 0
	}
	if q.fifo != nil {
		return min(limit, q.fifo.groups.available(now, q.delayWindow()))
	}
	return min(limit, c.visible)
}

// counts counts the messages of a queue of either type.
func (q *queue) counts(now Time) counts {
	if q.fifo != nil {
		return q.fifo.counts(now, q.cutoff(now), q.delayWindow())
	}
	return q.messages.counts(now, q.cutoff(now))
}

// wake is the earliest time after now at which something in the queue becomes
// available, or never. While a FIFO queue has limit messages in flight that is when
// a lease ends, of any message: whatever its groups wait for, nothing is received
// before.
func (q *queue) wake(now Time, limit int) Time {
	if q.fifo == nil {
		return q.messages.wake(now)
	}
	if q.holds(now, limit) {
		return q.fifo.nextLease(now)
	}
	return q.fifo.groups.wake(now, q.delayWindow())
}

// known tells a time from never.
func known(t Time) (Time, bool) {
	if t == never {
		return 0, false
	}
	return t, true
}

// wake is the earliest time after now at which a message that is hidden or
// delayed becomes available, or never.
func (m *messages) wake(now Time) Time {
	t := never
	if slot, ok := m.leases.after(upTo(now), m.byLease); ok {
		t = m.byLease(slot).at
	}
	for id := range m.waiting.all {
		l := m.lists.at(id)
		if at := m.byNext(id).at; at > now {
			return min(t, at)
		}
		if p := l.after(now - l.window); p.ordinal < l.sent {
			t = min(t, p.rank.at+l.window)
		}
	}
	return t
}
