package sqs

// redriveMessage moves one message, in one step as a move task does. Whether it
// is visible is decided here, by the time of the command.
func (s *State) redriveMessage(at Moment, c RedriveMessage) (Result, []Event, *Error) {
	if c.Task == (TaskID{}) {
		return nil, nil, noTaskID()
	}
	q, err := s.redriveSource(c.Source, c.Destination)
	if err != nil {
		return nil, nil, err
	}
	wake := q.wake(at.Now, at.Rules.InFlightLimit)
	slot, o, err := q.look(at.Now, c.Sequence, c.Body)
	if err != nil {
		return nil, nil, err
	}
	t := moveTask{id: c.Task, directed: c.Destination != nil}
	if t.directed {
		t.destination = *c.Destination
	}
	target, reason := s.destination(q, &t, o)
	if target == nil {
		q.leave(at.Now, slot)
		return nil, nil, noWayBack(reason)
	}
	move := s.redrive(at.Now, q, slot, target, t.id)
	r := RedriveMessageResult{To: move.To, Sequence: move.ToSequence, MessageID: o.redrivenBy(t.id).messageID(c.Body)}
	events := append(q.roomEvent(q.wake(at.Now, at.Rules.InFlightLimit) < wake), Event{Kind: MessagesAvailable, Queue: move.To})
	return r, append(events, Event{Kind: MessageMoved, Queue: q.key, Move: move}), nil
}

// look finds a visible message by its sequence number. It must be left or packed
// afterwards.
func (q *queue) look(now Time, sequence, body uint64) (slot uint32, o origin, err *Error) {
	if q.fifo != nil {
		return q.lookFIFO(now, sequence, body)
	}
	m := &q.messages
	slot, ok := m.record(sequence)
	if !ok {
		if slot, err = m.reach(now, q.cutoff(now), sequence, body); err == nil {
			o = m.origins.name(m.records.at(slot).origin)
		}
		return slot, o, err
	}
	switch r := m.records.at(slot); {
	case r.sentAt <= q.cutoff(now), r.body != body:
		return 0, o, notThere()
	case r.visibleAt > now:
		return 0, o, notVisible("in flight")
	default:
		o = m.origins.name(r.origin)
	}
	m.lift(slot)
	return slot, o, nil
}

// lookFIFO is look in a FIFO queue. A message may be taken from behind others of
// its group, whose order stays.
func (q *queue) lookFIFO(now Time, sequence, body uint64) (slot uint32, o origin, err *Error) {
	f := q.fifo
	slot, ok := f.held.find(rank{sequence: sequence}, f.bySequence)
	if !ok {
		slot, ok = f.fresh.find(rank{sequence: sequence}, f.bySequence)
	}
	if !ok {
		return 0, o, notThere()
	}
	switch r := f.records.at(slot); {
	case r.sentAt <= q.cutoff(now), r.body != body:
		return 0, o, notThere()
	case r.visibleAt > now:
		return 0, o, notVisible("in flight")
	case r.isFresh() && r.sentAt+q.delayWindow() > now:
		return 0, o, notVisible("delayed")
	default:
		return slot, f.origins.name(r.origin), nil
	}
}

// reach finds a visible message that was never received, and makes it a record,
// lifted. A list gives only its head; so those before it become records as well,
// which no receive can tell. Lists looked at and records made are bounded by
// maxSteps: then the rest is left to the next try.
func (m *messages) reach(now, cutoff Time, sequence, body uint64) (slot uint32, err *Error) {
	left := steps(maxSteps)
	id, at, err := m.holder(cutoff, sequence, &left)
	switch {
	case err != nil:
		return 0, err
	case at.body+(sequence-at.sequence) != body:
		return 0, notThere()
	}
	l := m.lists.at(id)
	if at.sentAt+l.window > now {
		return 0, notVisible("delayed")
	}
	m.unfile(id)
	l.pass(l.after(now - l.window))
	m.file(id)
	for left.take() {
		slot = m.pick(id)
		if m.records.at(slot).sequence == sequence {
			return slot, nil
		}
		m.settle(slot, now, 0)
	}
	return 0, farBehind()
}

// holder finds the list that has the message of a sequence number, and the run
// of it.
func (m *messages) holder(cutoff Time, sequence uint64, left *steps) (id uint32, at run, err *Error) {
	for _, o := range m.listsByAge() {
		for id := range o.all {
			if m.byHead(id).sequence > sequence {
				break // lists are in the order of their heads
			}
			if !left.take() {
				return 0, at, farBehind()
			}
			c := m.lists.at(id).behind(cutoff, sequence-1)
			if r, ok := c.next(); ok && r.sequence <= sequence && sequence < r.sequence+uint64(r.count) {
				return id, r, nil
			}
		}
	}
	return 0, at, notThere()
}
