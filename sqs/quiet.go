package sqs

func (m *messages) isNoisy(group uint32) bool { return group != 0 && m.fair.at(group).noisy }

// noisyGroups counts the groups that are noisy.
func (m *messages) noisyGroups() int {
	if m.fair == nil {
		return 0
	}
	return m.fair.senders.count
}

// quietCensus describes the messages that are not of noisy groups, given what
// there is to know of all. While there are noisy groups it looks at every list.
func (m *messages) quietCensus(all counts, oldest, now, cutoff Time) QuietCensus {
	if m.noisyGroups() > 0 {
		noisy := m.noisyCounts(now, cutoff)
		all.visible -= noisy.visible
		all.inFlight -= noisy.inFlight
		all.delayed -= noisy.delayed
		oldest = m.oldestOf(cutoff, func(group uint32) bool { return !m.isNoisy(group) })
	}
	return QuietCensus{Visible: all.visible, InFlight: all.inFlight, Delayed: all.delayed, OldestSentAt: oldest}
}

// noisyCounts is counts of the noisy groups only. Of records it looks at those
// that have expired or come due since the last advance.
func (m *messages) noisyCounts(now, cutoff Time) (c counts) {
	f := m.fair
	for l := range m.lists.all {
		if !l.empty() && m.isNoisy(l.group) {
			c.visible += int(l.passed - l.taken)
			c.delayed += int(l.sent - l.passed)
			c.recount(l, now, cutoff)
		}
	}
	for id := range f.senders.all {
		first, end := rank{class: returnClass(id, false)}, rank{class: returnClass(id+1, false)}
		c.visible += f.returned.below(end, m.byReturn) - f.returned.below(first, m.byReturn)
		c.inFlight += int(f.at(id).inFlight)
	}
	for _, o := range [...]*order{&f.back, &f.tired} {
		for slot := range o.all {
			r := m.records.at(slot)
			if r.sentAt > cutoff {
				break
			}
			if m.isNoisy(r.group) {
				c.visible--
			}
		}
	}
	m.recountNoisyFlights(&c, now, cutoff)
	return c
}

// recountNoisyFlights corrects what the tenants say of messages in flight.
func (m *messages) recountNoisyFlights(c *counts, now, cutoff Time) {
	for slot := range m.leases.all {
		r := m.records.at(slot)
		if r.visibleAt > now {
			break
		}
		if m.isNoisy(r.group) {
			c.inFlight--
			c.visible++
		}
	}
	for slot := range m.leased.all {
		r := m.records.at(slot)
		switch {
		case r.sentAt > cutoff:
			return
		case !m.isNoisy(r.group):
		case r.visibleAt > now:
			c.inFlight--
		default:
			c.visible--
		}
	}
}
