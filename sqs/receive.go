package sqs

func (s *State) receiveMessage(at Moment, c ReceiveMessage) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	if q.fifo != nil {
		return s.receiveFIFO(at, q, c)
	}
	left := s.steps
	q.messages.advance(at.Now, q.cutoff(at.Now), &left)
	q.messages.calmIdle(at.Now, &left)
	most := c.MaxMessages
	if limit := at.Rules.InFlightLimit; limit > 0 {
		room := limit - q.messages.inFlight(at.Now)
		if room <= 0 { // but some may have expired that were not dropped yet
			room = limit - q.counts(at.Now).inFlight
		}
		if room <= 0 && c.Short {
			return nil, nil, windowFull(limit)
		}
		most = min(most, room)
	}
	wake := q.messages.wake(at.Now)
	target, tooOften := s.deadLetters(q)
	taken, moved, stranded := q.take(at.Now, most, target != nil, tooOften)
	result := ReceiveMessageResult{Messages: q.deliver(at.Now, taken, c)}
	var events []Event
	if q.messages.wake(at.Now) < wake || q.visibleAgain(taken) {
		events = append(events, Event{Kind: MessagesAvailable, Queue: q.key})
	}
	return result, s.afterDeadLetters(at.Now, q, target, moved, stranded, events), nil
}

// afterDeadLetters brings the messages that a receive moved to the dead-letter
// queue, counts, and completes the receive's events.
func (s *State) afterDeadLetters(now Time, q, target *queue, moved []parcel, stranded int, events []Event) []Event {
	if stranded > 0 {
		q.counters.Stranded += uint64(stranded)
		events = append(events, Event{Kind: DeadLetterTargetMissing, Queue: q.key})
	}
	if len(moved) == 0 {
		return events
	}
	if target != q || len(events) == 0 {
		events = append(events, Event{Kind: MessagesAvailable, Queue: target.key})
	}
	return s.deliverDead(now, q, target, moved, events)
}

// take takes the next messages for a receive out of the orders by age, at most
// most of them. What was received tooOften, if there is somewhere to move it, is
// packed instead, and so is not looked at again in this receive; if there is
// nowhere, it is taken and counted as stranded.
func (q *queue) take(now Time, most int, movable bool, tooOften uint32) (taken []uint32, moved []parcel, stranded int) {
	m, cutoff := &q.messages, q.cutoff(now)
	for len(taken) < most {
		slot, ok := m.takeNext(cutoff)
		if !ok {
			break
		}
		often := m.records.at(slot).received >= tooOften
		if !movable || !often {
			taken = append(taken, slot)
			m.hold(slot)
			if often {
				stranded++
			}
			continue
		}
		if len(moved) == maxMoves {
			m.settle(slot, now, 0)
			break
		}
		moved = append(moved, q.pack(slot))
	}
	return taken, moved, stranded
}

// takeNext takes the message of the lowest send order among those that are
// visible, and one that was received tiredAfter times only when there is no
// other. It leaves alone what has expired and was not dropped yet.
func (m *messages) takeNext(cutoff Time) (slot uint32, ok bool) {
	if len(m.groups.ids) > 0 {
		return m.takeFair(cutoff)
	}
	var best rank
	id, sent := m.due.first()
	if sent {
		best = m.byHead(id)
		sent = best.at > cutoff
	}
	if slot, ok := m.back.first(); ok {
		if r := m.byAge(slot); r.at > cutoff && (!sent || r.compare(best) < 0) {
			m.lift(slot)
			return slot, true
		}
	}
	if sent {
		return m.pick(id), true
	}
	if slot, ok := m.tired.first(); ok && m.byAge(slot).at > cutoff {
		m.lift(slot)
		return slot, true
	}
	return 0, false
}

// deliver counts the receives of the taken messages and hides them.
func (q *queue) deliver(now Time, taken []uint32, c ReceiveMessage) []Received {
	if len(taken) == 0 {
		return nil
	}
	m := &q.messages
	visibleAt := now.WindowEnd(timeout(c.VisibilityTimeout, q.settings.visibility))
	received := make([]Received, len(taken))
	for i, slot := range taken {
		m.noteReceive(slot)
		r := m.records.edit(slot)
		if r.firstReceivedAt == 0 {
			r.firstReceivedAt = now
		}
		received[i] = Received{
			Receipt: Receipt{
				Incarnation:   q.incarnation,
				Sequence:      r.sequence,
				ReceiveNumber: r.received,
				ReceivedAt:    now,
			},
			Body:             r.body,
			SentAt:           r.sentAt,
			FirstReceivedAt:  r.firstReceivedAt,
			ReceiveCount:     int(r.carried) + int(r.received),
			DeadLetterSource: m.origins.name(r.origin).source,
			Redriven:         m.origins.name(r.origin).messageID(r.body),
			Copy:             m.origins.name(r.origin).copy,
		}
		m.unhold(slot)
		m.settle(slot, now, visibleAt)
	}
	m.judge(now, taken)
	q.counters.Received += uint64(len(taken))
	return received
}

// visibleAgain reports whether messages that were just delivered are visible
// already, after a VisibilityTimeout of 0.
func (q *queue) visibleAgain(delivered []uint32) bool {
	return len(delivered) > 0 && !q.messages.records.at(delivered[0]).hidden()
}

// deliverDead puts moved messages into the dead-letter queue of q, and appends
// the events of that.
func (s *State) deliverDead(now Time, q, target *queue, moved []parcel, events []Event) []Event {
	q.counters.Moved += uint64(len(moved))
	for _, p := range moved {
		sequence := target.accept(now, p, q.key)
		s.expect(target, p.sentAt)
		events = append(events, Event{
			Kind: MessageMoved, Queue: q.key,
			Move: &Move{Sequence: p.sequence, Body: p.body, Copy: p.origin.copy, To: target.key, ToSequence: sequence},
		})
	}
	return events
}
