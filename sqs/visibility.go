package sqs

import "time"

func (s *State) changeMessageVisibilityBatch(at Moment, c ChangeMessageVisibilityBatch) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	r := BatchResult{Errors: make([]*Error, len(c.Entries))}
	wake, released := q.wake(at.Now, at.Rules.InFlightLimit), false
	for i := range c.Entries {
		visible, err := q.changeVisibility(at.Now, &c.Entries[i])
		r.Errors[i] = err
		released = released || visible
	}
	if !released && q.wake(at.Now, at.Rules.InFlightLimit) >= wake {
		return r, nil, nil
	}
	return r, []Event{{Kind: MessagesAvailable, Queue: q.key}}, nil
}

// changeVisibility hides a message until the timeout has passed from now,
// whether it is hidden or visible, and reports whether it is visible then. Any
// handle of the message will do, also one that a later receive has replaced (AWS
// recordings test_change_message_visibility_after_visibility_timeout_expiration,
// test_terminate_visibility_timeout_after_receive).
func (q *queue) changeVisibility(now Time, e *VisibilityEntry) (visible bool, err *Error) {
	if e.Receipt.Incarnation != q.incarnation {
		return false, foreignHandle()
	}
	if q.fifo != nil {
		err = q.changeLive(now, e)
		return err == nil && e.Timeout == 0, err
	}
	m := &q.messages
	slot, ok := m.record(e.Receipt.Sequence)
	if !ok || m.records.at(slot).sentAt <= q.cutoff(now) {
		return false, messageGone()
	}
	if e.beyondLimit(now) {
		return false, hiddenTooLong(e.Timeout)
	}
	visibleAt := now.WindowEnd(e.Timeout)
	if visibleAt <= now {
		m.finish(slot, e.Receipt, now)
	}
	m.lift(slot)
	m.settle(slot, now, visibleAt)
	return visibleAt <= now, nil
}

// beyondLimit reports whether the entry hides the message for too long in all.
// AWS counts from the receive of this very handle, in whole seconds.
func (e *VisibilityEntry) beyondLimit(now Time) bool {
	elapsed := now.Sub(e.Receipt.ReceivedAt).Truncate(time.Second)
	return elapsed+e.Timeout > MaxVisibilityTimeout
}
