package sqs

// markMessageDamaged takes a message out of its queue that was received at least
// once, in flight or not. One that is gone, or has another body, is left alone: the
// command may come twice, or late.
func (s *State) markMessageDamaged(at Moment, c MarkMessageDamaged) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	full, wake, freed := q.full(at), q.wake(at.Now, at.Rules.InFlightLimit), false
	if q.fifo != nil {
		q.fifo.sooner = false
		freed = q.loseFIFO(c) && q.fifo.sooner
	} else if slot, ok := q.messages.record(c.Sequence); ok && q.messages.records.at(slot).body == c.Body {
		q.messages.lift(slot)
		q.messages.forget(slot)
		q.counters.Lost++
	}
	return Done{}, q.roomEvent(freed || full && !q.full(at) || q.wake(at.Now, at.Rules.InFlightLimit) < wake), nil
}

// loseFIFO is markMessageDamaged of a FIFO queue; false if nothing was lost.
func (q *queue) loseFIFO(c MarkMessageDamaged) bool {
	f := q.fifo
	slot, ok := f.held.find(rank{sequence: c.Sequence}, f.bySequence)
	if !ok || f.records.at(slot).body != c.Body {
		return false
	}
	f.removeFiled(slot)
	f.tidy()
	q.counters.Lost++
	return true
}
