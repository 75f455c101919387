package sqs

// takeFair is takeNext of a queue with tenants. What belongs to quiet ones, or
// to none, comes in the usual order; then comes the noisy tenant that has the
// fewest messages in flight, and its messages in the usual order.
func (m *messages) takeFair(cutoff Time) (slot uint32, ok bool) {
	f := m.fair
	for _, tired := range [...]bool{false, true} {
		next, ok := m.nextOf(0, tired)
		tenants := &f.quiet
		if tired {
			tenants = &f.weary
		}
		if id, some := tenants.first(); some {
			if c, _ := m.nextOf(id, tired); !ok || c.rank.compare(next.rank) < 0 {
				next, ok = c, true
			}
		}
		if ok && next.rank.at > cutoff {
			return m.takeCandidate(next), true
		}
	}
	id, ok := f.noisy.first()
	if !ok {
		return 0, false
	}
	next, ok := m.nextOf(id, false)
	if !ok {
		next, ok = m.nextOf(id, true)
	}
	if !ok || next.rank.at <= cutoff {
		return 0, false
	}
	return m.takeCandidate(next), true
}

func (m *messages) takeCandidate(c candidate) (slot uint32) {
	if c.list {
		return m.pick(c.id)
	}
	m.lift(c.id)
	return c.id
}

// candidate is the list or the record whose message would be received next.
type candidate struct {
	rank rank
	id   uint32
	list bool
}

// nextOf returns the next message of a tenant, or of all messages without a
// group: the first of the fresh or of the tired ones.
func (m *messages) nextOf(group uint32, tired bool) (c candidate, ok bool) {
	if c.id, ok = m.firstReturned(group, tired); ok {
		c.rank = m.byAge(c.id)
	}
	if tired {
		return c, ok
	}
	if id, due := m.firstList(group); due {
		if r := m.byHead(id); !ok || r.compare(c.rank) < 0 {
			return candidate{rank: r, id: id, list: true}, true
		}
	}
	return c, ok
}

func (m *messages) firstList(group uint32) (id uint32, ok bool) {
	if group == 0 {
		return m.due.first()
	}
	switch t := m.fair.at(group); t.lists {
	case 0:
		return 0, false
	case 1:
		return t.list, true
	}
	return m.fair.heads.after(rank{class: uint64(group)}, m.byTenant)
}

func (m *messages) firstReturned(group uint32, tired bool) (slot uint32, ok bool) {
	switch {
	case group == 0 && tired:
		return m.tired.first()
	case group == 0:
		return m.back.first()
	case m.fair.at(group).returned == 0:
		return 0, false
	}
	class := returnClass(group, tired)
	slot, ok = m.fair.returned.after(rank{class: class}, m.byReturn)
	return slot, ok && m.byReturn(slot).class == class
}

// hold counts a message in flight that a receive has taken and not delivered
// yet, so that the next one of the same receive may be another tenant's.
func (m *messages) hold(slot uint32) {
	if m.fair == nil {
		return
	}
	if group := m.records.at(slot).group; group != 0 {
		m.fair.at(group).inFlight++
		m.recount(group)
	}
}

// unhold is called when settle is to count the message.
func (m *messages) unhold(slot uint32) {
	if m.fair == nil {
		return
	}
	if group := m.records.at(slot).group; group != 0 {
		m.fair.at(group).inFlight--
	}
}

// judge makes the tenants noisy that have just received too much. A tenant is
// judged in no other moment.
func (m *messages) judge(now Time, delivered []uint32) {
	f := m.fair
	if f == nil {
		return
	}
	for _, slot := range delivered {
		group := m.records.at(slot).group
		if group == 0 {
			continue
		}
		t := f.at(group)
		if !t.noisy && t.sentAt+quietAfter > now && m.waits(group) && m.takesTooMuch(t, now) {
			f.disturb(group)
		}
	}
}

func (m *messages) takesTooMuch(t *tenant, now Time) bool {
	if n := uint64(t.inFlight); n >= noisyInFlight && n*noisyShare > uint64(m.leases.count) {
		return true
	}
	period := periodOf(now)
	return decayed(t.spent, t.period, period) > decayed(m.fair.spent, m.fair.period, period)/noisyShare
}

// finish counts the processing time of a message that is deleted or returned
// with the handle of the receive that still hides it. How long somebody worked
// on one whose lease has run out is not known; it counts nothing.
func (m *messages) finish(slot uint32, r Receipt, now Time) {
	f := m.fair
	if f == nil || len(m.groups.ids) == 0 {
		return
	}
	rec := m.records.at(slot)
	if rec.visibleAt <= now || rec.received != r.ReceiveNumber || r.ReceivedAt > now {
		return
	}
	spent, period := uint64(min(now-r.ReceivedAt, longestWork)), periodOf(now)
	f.spent, f.period = decayed(f.spent, f.period, period)+spent, period
	if rec.group != 0 {
		t := f.at(rec.group)
		t.spent, t.period = decayed(t.spent, t.period, period)+spent, period
	}
}
