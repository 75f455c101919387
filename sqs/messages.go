package sqs

import "math"

// tiredAfter is how many receives put a message of a standard queue behind all
// others while it is still here (SQS developer guide, dead-letter queues;
// metrics page on ApproximateAgeOfOldestMessage).
const tiredAfter = 3

// steps is what one command may still do; see maxSteps.
type steps int

func (s *steps) take() bool {
	*s--
	return *s >= 0
}

// messages holds the messages of one queue. A message is in a list until it is
// received for the first time, and a record from then on.
//
// What time alone changes is done late, when a receive or a pulse comes by
// (advance): until then a due message may still count as delayed, and one whose
// lease has ended as hidden. Whoever counts or looks must therefore compare
// times, as counts does.
type messages struct {
	lists   lists
	kinds   order // all lists, by window and group
	due     order // lists whose head may be received, by head
	undue   order // other lists with messages, by head
	waiting order // lists with messages that are not passed, by list.next, padded
	ready   int   // messages in lists that are passed
	delayed int   // and that are not

	records   records
	sequences order // all records, first the ones that are not tired, by sequence number
	leases    order // hidden records, by end of the lease
	leased    order // hidden records, by age
	back      order // other records, by age
	tired     order // other records that were received tiredAfter times, by age

	fair *fairness // what the messages of groups are in besides; nil without any

	groups  names[string]
	origins names[origin]
}

// The rankings of lists and records.

func (m *messages) byKind(id uint32) rank {
	l := m.lists.at(id)
	return kindRank(l.window, l.group, l.origin)
}

func kindRank(window Time, group, origin uint32) rank {
	return rank{class: uint64(origin), at: window, sequence: uint64(group)}
}

func (m *messages) byHead(id uint32) rank { return m.lists.at(id).headRank() }

func (m *messages) byNext(id uint32) rank {
	l := m.lists.at(id)
	return rank{at: l.next.at + l.window, sequence: l.next.sequence}
}

func (m *messages) bySequence(slot uint32) rank {
	r := m.records.at(slot)
	return sequenceRank(r.tired(), r.sequence)
}

func sequenceRank(tired bool, sequence uint64) rank {
	if tired {
		return rank{class: 1, sequence: sequence}
	}
	return rank{sequence: sequence}
}

func (m *messages) byAge(slot uint32) rank {
	r := m.records.at(slot)
	return rank{at: r.sentAt, sequence: r.sequence}
}

func (m *messages) byLease(slot uint32) rank {
	r := m.records.at(slot)
	return rank{at: r.visibleAt, sequence: r.sequence}
}

// send adds messages that were never received. They become due a window after
// their enqueue.
func (m *messages) send(r run, window Time, group string, from origin) {
	name, source := m.groups.use(group), m.origins.use(from)
	id, ok := m.kinds.find(kindRank(window, name, source), m.byKind)
	if ok { // the list has uses of its own
		m.releaseGroup(name)
		m.origins.release(source)
	} else {
		id = m.addList(list{window: window, group: name, origin: source})
	}
	m.pushTo(id, r)
	if name != 0 {
		m.noteSend(name, r.sentAt)
	}
}

func (m *messages) pushTo(id uint32, r run) {
	l := m.lists.at(id)
	if l.window == 0 && !l.empty() {
		l.push(r) // neither its head nor its kind of messages changes
		m.ready += int(r.count)
		return
	}
	m.unfile(id)
	l.push(r)
	m.file(id)
}

func (m *messages) addList(l list) uint32 {
	id := m.lists.add(l)
	m.kinds.add(id, m.byKind)
	return id
}

// file puts a list into the orders where its messages are looked for.
func (m *messages) file(id uint32) {
	l := m.lists.at(id)
	if !l.empty() {
		if l.passed > l.taken {
			m.dueOrder(l).add(id, m.byHead)
		} else {
			m.undue.add(id, m.byHead)
		}
		if l.sent > l.passed {
			m.waiting.add(id, m.byNext)
		}
		m.ready += int(l.passed - l.taken)
		m.delayed += int(l.sent - l.passed)
	}
	if l.group != 0 {
		m.fileTenant(id)
	}
}

// unfile takes a list out of them. It must be called before the list changes,
// and file afterwards.
func (m *messages) unfile(id uint32) {
	l := m.lists.at(id)
	if l.empty() {
		return
	}
	if l.group != 0 {
		m.unfileTenant(id)
	}
	if l.passed > l.taken {
		m.dueOrder(l).remove(id, m.byHead)
	} else {
		m.undue.remove(id, m.byHead)
	}
	if l.sent > l.passed {
		m.waiting.remove(id, m.byNext)
	}
	m.ready -= int(l.passed - l.taken)
	m.delayed -= int(l.sent - l.passed)
}

// dropList forgets a list that has become empty. The only list of a queue
// without groups stays: most queues live from it.
func (m *messages) dropList(id uint32) {
	l := m.lists.at(id)
	if !l.empty() || l.group == 0 && m.kinds.count == 1 {
		return
	}
	m.kinds.remove(id, m.byKind)
	m.releaseGroup(l.group)
	m.origins.release(l.origin)
	m.lists.remove(id)
	if m.kinds.count <= 1 && len(m.lists.pages) > 1 {
		m.gatherLists()
	}
}

// gatherLists gives the room of many lists back when no more than one is left.
func (m *messages) gatherLists() {
	last, ok := m.kinds.first()
	if !ok {
		m.lists, m.kinds = lists{}, order{}
		return
	}
	m.unfile(last)
	l := *m.lists.at(last)
	m.lists, m.kinds = lists{}, order{}
	m.file(m.addList(l))
}

// pick takes the first message of a list and makes it a record, which is in no
// order but that of sequence numbers.
func (m *messages) pick(id uint32) (slot uint32) {
	m.unfile(id)
	l := m.lists.at(id)
	r, body := l.pop()
	m.file(id)
	group, from := m.groups.retain(l.group), m.origins.retain(l.origin)
	m.dropList(id)
	return m.enter(record{sequence: r.sequence, body: body, sentAt: r.at, group: group, origin: from})
}

// enter adds a record. Its names are in use already. The caller settles it.
func (m *messages) enter(r record) (slot uint32) {
	slot = m.records.add(r)
	m.sequences.add(slot, m.bySequence)
	return slot
}

// settle puts a record that is in no order by age into the right ones.
func (m *messages) settle(slot uint32, now, visibleAt Time) {
	r := m.records.edit(slot)
	if visibleAt > now {
		r.visibleAt = visibleAt
		m.leases.add(slot, m.byLease)
		m.leased.add(slot, m.byAge)
		if r.group != 0 {
			m.noteFlight(r.group, 1)
		}
		return
	}
	r.visibleAt = 0
	m.found(r).add(slot, m.byAge)
	if r.group != 0 {
		m.noteReturn(slot)
	}
}

// lift takes a record out of the orders that settle puts it into. It must be
// called before anything of the record changes.
func (m *messages) lift(slot uint32) {
	r := m.records.at(slot)
	if r.hidden() {
		m.leases.remove(slot, m.byLease)
		m.leased.remove(slot, m.byAge)
		if r.group != 0 {
			m.noteFlight(r.group, -1)
		}
		return
	}
	m.found(r).remove(slot, m.byAge)
	if r.group != 0 {
		m.noteTaken(slot)
	}
}

// found is the order in which receives find a record that is not hidden.
func (m *messages) found(r *record) *order {
	if r.group != 0 {
		return m.foundOf(r)
	}
	if r.tired() {
		return &m.tired
	}
	return &m.back
}

// noteReceive counts one more receive of a record that was lifted.
func (m *messages) noteReceive(slot uint32) {
	again := *m.records.at(slot)
	again.received++
	moves := again.tired() != m.records.at(slot).tired()
	if moves {
		m.sequences.remove(slot, m.bySequence)
	}
	*m.records.edit(slot) = again
	if moves {
		m.sequences.add(slot, m.bySequence)
	}
}

// forget removes a record that was lifted.
func (m *messages) forget(slot uint32) {
	r := m.records.at(slot)
	m.sequences.remove(slot, m.bySequence)
	m.releaseGroup(r.group)
	m.origins.release(r.origin)
	m.records.remove(slot)
}

// record finds a message that was received, by its sequence number.
func (m *messages) record(sequence uint64) (slot uint32, ok bool) {
	if slot, ok = m.sequences.find(sequenceRank(false, sequence), m.bySequence); ok {
		return slot, true
	}
	return m.sequences.find(sequenceRank(true, sequence), m.bySequence)
}

// never is later than every time.
const never Time = math.MaxInt64

// oldest is the enqueue time of the message that expires first, or never.
func (m *messages) oldest() Time {
	t := never
	for _, o := range m.listsByAge() {
		if id, ok := o.first(); ok {
			t = min(t, m.byHead(id).at)
		}
	}
	for _, o := range m.recordsByAge() {
		if slot, ok := o.first(); ok {
			t = min(t, m.byAge(slot).at)
		}
	}
	return t
}
