package sqs

import "time"

// The rules of fair queues (SQS developer guide, "Amazon SQS fair queues").
const (
	// noisyInFlight is how many messages in flight a tenant must have to be noisy by
	// them, and noisyShare which part of the queue's (one in so many) they must exceed.
	noisyInFlight = 30
	noisyShare    = 10
	// quietAfter is how long a noisy tenant must send nothing to be quiet again.
	quietAfter = Time(5 * 60 * 1000)
	// workPeriod is the time in which recent processing time loses half its
	// weight.
	workPeriod = Time(60 * 1000)
	// longestWork is the most that a message can be in flight for.
	longestWork = Time(MaxVisibilityTimeout / time.Millisecond)
)

// fairness is what a standard queue knows of its tenants, the groups of its
// messages. Messages without a group are not in here: each is a tenant of its
// own, and quiet.
//
// A tenant lives as long as its name is in use: as there are messages of it. Its
// id is that of the name.
type fairness struct {
	tenants [][]tenant // in pages, by id

	// Lists and records of tenants are in these in place of the orders of
	// messages that have the same names.
	due, back, tired order

	heads    order // lists that are due, by tenant and head, of tenants that have several
	returned order // records that are not hidden, by tenant, weariness and age
	quiet    order // quiet tenants that have something fresh, by its age
	weary    order // quiet tenants that have something tired, by its age
	noisy    order // noisy tenants that have anything, by messages in flight
	senders  order // all noisy tenants, by their latest sends

	spent  uint64 // processing time, messages without a group included; see tenant
	period uint32
}

// tenant is what decides when messages of a group are received.
type tenant struct {
	fresh, tired place // of the first available messages of each kind
	sentAt       Time  // the latest send
	// spent is recent processing time in milliseconds: from receives until the
	// deletes or returns that ended them. It is halved with every workPeriod that
	// has begun since period. Halving is by shifts, which add up: so it may be done
	// late, and is the same for a tenant and for its queue.
	spent    uint64
	period   uint32
	inFlight uint32 // hidden records, and those that a receive holds
	rankedBy uint32 // inFlight, when the tenant was put into fairness.noisy
	returned uint32 // records in fairness.returned
	list     uint32 // the only list that is due, while lists is 1
	lists    uint32 // lists that are due: one for each delay and origin at most
	noisy    bool
}

// place is a message's place in the order of sends; zero for none.
type place struct {
	at       Time
	sequence uint64
}

func (p place) none() bool { return p.sequence == 0 }
func (p place) rank() rank { return rank{at: p.at, sequence: p.sequence} }

func periodOf(now Time) uint32 { return uint32(now / workPeriod) }

// decayed is what processing time of one period counts in a later one.
func decayed(spent uint64, from, to uint32) uint64 { return spent >> min(63, to-from) }

const (
	tenantPageBits = 6
	tenantPageSize = 1 << tenantPageBits
)

// at returns a tenant that was seen before.
func (f *fairness) at(id uint32) *tenant {
	return &f.tenants[id>>tenantPageBits][id&(tenantPageSize-1)]
}

// tenant returns the tenant of a group, which is new when its name is.
func (m *messages) tenant(group uint32) *tenant {
	if m.fair == nil {
		m.fair = &fairness{}
	}
	f := m.fair
	for int(group>>tenantPageBits) >= len(f.tenants) {
		capacity := tenantPageSize
		if len(f.tenants) == 0 {
			capacity = 4 // most queues have few groups, if any
		}
		f.tenants = append(f.tenants, make([]tenant, 0, capacity))
	}
	p := &f.tenants[group>>tenantPageBits]
	for int(group&(tenantPageSize-1)) >= len(*p) {
		*p = append(*p, tenant{})
	}
	return f.at(group)
}

// The rankings of lists, records and tenants.

func (m *messages) byTenant(id uint32) rank {
	l := m.lists.at(id)
	return rank{class: uint64(l.group), sequence: l.headRank().sequence}
}

// returnClass holds the records of one tenant that are not hidden, in
// fairness.returned.
func returnClass(group uint32, tired bool) uint64 {
	if tired {
		return uint64(group)<<1 | 1
	}
	return uint64(group) << 1
}

func (m *messages) byReturn(slot uint32) rank {
	r := m.records.at(slot)
	return rank{class: returnClass(r.group, r.tired()), at: r.sentAt, sequence: r.sequence}
}

func (f *fairness) byFresh(id uint32) rank { return f.at(id).fresh.rank() }
func (f *fairness) byTired(id uint32) rank { return f.at(id).tired.rank() }

func (f *fairness) byCrowd(id uint32) rank {
	t := f.at(id)
	r := t.fresh.rank()
	if t.fresh.none() {
		r = t.tired.rank()
	}
	r.class = uint64(t.rankedBy)
	return r
}

func (f *fairness) bySend(id uint32) rank {
	return rank{at: f.at(id).sentAt, sequence: uint64(id)}
}

// listsByAge are the orders by head of all lists that have messages.
func (m *messages) listsByAge() []*order {
	if m.fair == nil {
		return []*order{&m.due, &m.undue}
	}
	return []*order{&m.due, &m.undue, &m.fair.due}
}

// recordsByAge are the orders by age of all records; leased comes first.
func (m *messages) recordsByAge() []*order {
	if m.fair == nil {
		return []*order{&m.leased, &m.back, &m.tired}
	}
	return []*order{&m.leased, &m.back, &m.tired, &m.fair.back, &m.fair.tired}
}

// dueOrder is the order in which a list is when its head may be received.
func (m *messages) dueOrder(l *list) *order {
	if l.group == 0 {
		return &m.due
	}
	m.tenant(l.group)
	return &m.fair.due
}

// foundOf is found for a record with a group.
func (m *messages) foundOf(r *record) *order {
	m.tenant(r.group)
	if r.tired() {
		return &m.fair.tired
	}
	return &m.fair.back
}

// fileTenant does for the list's tenant what file does for the list.
func (m *messages) fileTenant(id uint32) {
	l := m.lists.at(id)
	if l.passed > l.taken {
		t := m.tenant(l.group)
		switch t.lists {
		case 0:
			t.list = id
		case 1:
			m.fair.heads.add(t.list, m.byTenant)
			m.fair.heads.add(id, m.byTenant)
		default:
			m.fair.heads.add(id, m.byTenant)
		}
		t.lists++
	}
	m.reorder(l.group)
}

// unfileTenant undoes fileTenant. The tenant keeps its place until fileTenant.
func (m *messages) unfileTenant(id uint32) {
	l := m.lists.at(id)
	if l.passed == l.taken {
		return
	}
	t := m.fair.at(l.group)
	t.lists--
	if t.lists == 0 {
		return
	}
	m.fair.heads.remove(id, m.byTenant)
	if t.lists == 1 {
		t.list, _ = m.fair.heads.after(rank{class: uint64(l.group)}, m.byTenant)
		m.fair.heads.remove(t.list, m.byTenant)
	}
}

// noteReturn takes note that a record of a group can be received.
func (m *messages) noteReturn(slot uint32) {
	group := m.records.at(slot).group
	m.fair.returned.add(slot, m.byReturn)
	m.fair.at(group).returned++
	m.reorder(group)
}

// noteTaken takes note that a record of a group can no longer be received.
func (m *messages) noteTaken(slot uint32) {
	group := m.records.at(slot).group
	m.fair.returned.remove(slot, m.byReturn)
	m.fair.at(group).returned--
	m.reorder(group)
}

// noteFlight takes note that a tenant has more or less messages in flight.
func (m *messages) noteFlight(group uint32, change int) {
	m.tenant(group).inFlight += uint32(change)
	m.recount(group)
}

// reorder puts a tenant to its place after a change of what is available.
func (m *messages) reorder(group uint32) {
	t := m.tenant(group)
	var fresh, tired place
	if c, ok := m.nextOf(group, false); ok {
		fresh = place{at: c.rank.at, sequence: c.rank.sequence}
	}
	if c, ok := m.nextOf(group, true); ok {
		tired = place{at: c.rank.at, sequence: c.rank.sequence}
	}
	if t.fresh != fresh || t.tired != tired {
		m.fair.unrank(group)
		t.fresh, t.tired = fresh, tired
		m.fair.rank(group)
	}
	m.recount(group)
}

// recount puts a tenant to its place after a change of how many messages it has
// or has in flight. A noisy one whose backlog is drained becomes quiet.
func (m *messages) recount(group uint32) {
	f := m.fair
	t := f.at(group)
	switch {
	case !t.noisy:
	case !m.waits(group):
		f.calm(group)
	case t.rankedBy != t.inFlight:
		f.unrank(group)
		f.rank(group)
	}
}

// waits reports whether a tenant has messages that are not in flight.
func (m *messages) waits(group uint32) bool {
	return m.groups.entries[group-1].uses > m.fair.at(group).inFlight // lists and records
}

// rank puts a tenant into the orders where receives find it.
func (f *fairness) rank(id uint32) {
	t := f.at(id)
	t.rankedBy = t.inFlight
	if t.noisy {
		if !t.fresh.none() || !t.tired.none() {
			f.noisy.add(id, f.byCrowd)
		}
		return
	}
	if !t.fresh.none() {
		f.quiet.add(id, f.byFresh)
	}
	if !t.tired.none() {
		f.weary.add(id, f.byTired)
	}
}

// unrank takes a tenant out of them. It must be called before the tenant
// changes, and rank afterwards.
func (f *fairness) unrank(id uint32) {
	t := f.at(id)
	if t.noisy {
		if !t.fresh.none() || !t.tired.none() {
			f.noisy.remove(id, f.byCrowd)
		}
		return
	}
	if !t.fresh.none() {
		f.quiet.remove(id, f.byFresh)
	}
	if !t.tired.none() {
		f.weary.remove(id, f.byTired)
	}
}

// disturb makes a tenant noisy.
func (f *fairness) disturb(id uint32) {
	f.unrank(id)
	f.at(id).noisy = true
	f.rank(id)
	f.senders.add(id, f.bySend)
}

// calm makes a tenant quiet.
func (f *fairness) calm(id uint32) {
	f.unrank(id)
	f.senders.remove(id, f.bySend)
	f.at(id).noisy = false
	f.rank(id)
}

// calmIdle makes those tenants quiet that have sent nothing for quietAfter. One
// step takes all that sent last at one time.
func (m *messages) calmIdle(now Time, left *steps) {
	f := m.fair
	if f == nil {
		return
	}
	last := Time(-1)
	for {
		id, ok := f.senders.first()
		if !ok {
			return
		}
		sentAt := f.at(id).sentAt
		if sentAt+quietAfter > now || sentAt != last && !left.take() {
			return
		}
		f.calm(id)
		last = sentAt
	}
}

// noteSend takes note that a message of a group has arrived.
func (m *messages) noteSend(group uint32, now Time) {
	t := m.tenant(group)
	if !t.noisy {
		t.sentAt = now
		return
	}
	m.fair.senders.remove(group, m.fair.bySend)
	t.sentAt = now
	m.fair.senders.add(group, m.fair.bySend)
}

// releaseGroup takes back one use of a group's name. A tenant without messages
// is forgotten, and with the last one all that was known of any.
func (m *messages) releaseGroup(group uint32) {
	if group == 0 {
		return
	}
	if m.groups.entries[group-1].uses > 1 {
		m.groups.release(group)
		if m.fair != nil {
			m.recount(group)
		}
		return
	}
	if t := m.tenant(group); t.noisy {
		m.fair.calm(group)
	}
	*m.fair.at(group) = tenant{}
	m.groups.release(group)
	if len(m.groups.ids) == 0 {
		m.fair.reset()
	}
}

// reset forgets what was known of tenants when there are none.
func (f *fairness) reset() {
	f.spent, f.period = 0, 0
	if len(f.tenants) > 1 || cap(f.tenants[0]) > keptCapacity {
		f.tenants = nil
	}
}
