package sqs

// receiveFIFO receives from a FIFO queue. Too many in flight are no error there
// (SQS developer guide, "Amazon SQS message quotas").
func (s *State) receiveFIFO(at Moment, q *queue, c ReceiveMessage) (Result, []Event, *Error) {
	f, left := q.fifo, s.steps
	f.sooner = false
	window := q.delayWindow()
	wake, open := q.wake(at.Now, at.Rules.InFlightLimit), f.groups.available(at.Now, window)
	f.dropExpired(q.cutoff(at.Now), &left)
	f.attempts.forget(at.Now)
	result := ReceiveMessageResult{Messages: q.repeat(at.Now, c)}
	var moved []parcel
	stranded := 0
	target, tooOften := s.deadLetters(q)
	if result.Messages == nil {
		most := min(c.MaxMessages, MaxReceivedMessages)
		if limit := at.Rules.InFlightLimit; limit > 0 {
			most = min(most, limit-f.inFlight(at.Now))
		}
		p := picking{queue: q, now: at.Now, most: most, movable: target != nil, tooOften: tooOften}
		p.pick()
		result.Messages, moved = q.deliverFIFO(at.Now, p.taken, c), p.moved
		stranded = p.stranded
		p.fileAll()
		if f.attempts.remember(at.Now, c, result.Messages, f) {
			s.due(q, at.Now.WindowEnd(attemptWindow))
		}
	}
	var events []Event
	// An expired head may have kept back a group; that does not show in the times.
	if f.sooner || q.wake(at.Now, at.Rules.InFlightLimit) < wake || f.groups.available(at.Now, window) > open {
		events = append(events, Event{Kind: MessagesAvailable, Queue: q.key})
	}
	return result, s.afterDeadLetters(at.Now, q, target, moved, stranded, events), nil
}

// picking takes messages for one receive out of the groups of a FIFO queue.
type picking struct {
	queue    *queue
	now      Time
	most     int
	movable  bool   // there is somewhere to move what was received tooOften
	tooOften uint32 // receives
	taken    []uint32
	moved    []parcel
	stranded int      // taken, although received tooOften
	unfiled  []uint32 // groups
}

// pick takes messages of the first group that is available, in order, until one
// is not visible; then of the next group.
func (p *picking) pick() {
	groups, window := &p.queue.fifo.groups, p.queue.delayWindow()
	for more := true; more && len(p.taken) < p.most; {
		id, ok := groups.next(p.now, window)
		if !ok {
			return
		}
		groups.unfile(id)
		p.unfiled = append(p.unfiled, id)
		more = p.pickOf(id, window)
	}
}

// pickOf takes messages of one group, and reports whether another may be tried.
// What was received too often is packed instead, and the next one of the group
// is free. What has expired and was not dropped yet is left alone.
func (p *picking) pickOf(id uint32, window Time) (more bool) {
	f, cutoff := p.queue.fifo, p.queue.cutoff(p.now)
	for at := f.groups.at(id).head; at != 0 && len(p.taken) < p.most; {
		slot := at - 1
		r := f.records.at(slot)
		at = f.chains.at(slot).next
		switch {
		case r.sentAt <= cutoff:
			return false
		case r.visibleAt > p.now, r.isFresh() && r.sentAt+window > p.now:
			return true
		case !p.movable || r.received < p.tooOften:
			p.taken = append(p.taken, slot)
			if r.received >= p.tooOften {
				p.stranded++
			}
		case len(p.moved) == maxMoves:
			return false
		default:
			p.moved = append(p.moved, p.queue.packFIFO(slot))
		}
	}
	return true
}

// fileAll files the groups again that were looked at.
func (p *picking) fileAll() {
	f := p.queue.fifo
	for _, id := range p.unfiled {
		f.file(id)
	}
	f.tidy()
}

// deliverFIFO counts the receives of the taken messages and hides them.
func (q *queue) deliverFIFO(now Time, taken []uint32, c ReceiveMessage) []Received {
	if len(taken) == 0 {
		return nil
	}
	f := q.fifo
	visibleAt := now.WindowEnd(timeout(c.VisibilityTimeout, q.settings.visibility))
	received := make([]Received, len(taken))
	for i, slot := range taken {
		if r := f.records.at(slot); r.isFresh() {
			f.fresh.remove(slot, f.bySequence)
			f.held.add(slot, f.bySequence)
		} else {
			f.attempts.drop(r.sequence)
		}
		f.hide(slot, visibleAt)
		r := f.records.edit(slot)
		r.received++
		if r.firstReceivedAt == 0 {
			r.firstReceivedAt = now
		}
		received[i] = q.received(r, now)
	}
	q.counters.Received += uint64(len(taken))
	return received
}

// received is the delivery of a record that began at a time.
func (q *queue) received(r *record, at Time) Received {
	return Received{
		Receipt: Receipt{
			Incarnation:   q.incarnation,
			Sequence:      r.sequence,
			ReceiveNumber: r.received,
			ReceivedAt:    at,
		},
		Body:             r.body,
		SentAt:           r.sentAt,
		FirstReceivedAt:  r.firstReceivedAt,
		ReceiveCount:     int(r.carried) + int(r.received),
		SequenceNumber:   r.sequence,
		DeadLetterSource: q.fifo.origins.name(r.origin).source,
		Redriven:         q.fifo.origins.name(r.origin).messageID(r.body),
		Copy:             q.fifo.origins.name(r.origin).copy,
	}
}

// packFIFO removes a message of a group that is not filed.
func (q *queue) packFIFO(slot uint32) parcel {
	f := q.fifo
	p := parcel{record: *f.records.at(slot)}
	p.group = f.groups.names.name(p.record.group)
	p.origin = f.origins.name(p.record.origin)
	f.remove(slot)
	return p
}
