package sqs

// deleteMessageBatch removes messages by any handle of theirs, also by one that a
// later receive has replaced (AWS recordings test_delete_after_visibility_timeout,
// test_remove_message_with_old_receipt_handle); in a FIFO queue by a live handle
// only (AWS recording test_fifo_delete_after_visibility_timeout). What is gone
// already counts as deleted once more (SQS developer guide,
// NumberOfMessagesDeleted).
func (s *State) deleteMessageBatch(at Moment, c DeleteMessageBatch) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	full := q.full(at)
	if q.fifo != nil {
		q.fifo.sooner = false
	}
	r := BatchResult{Errors: make([]*Error, len(c.Receipts))}
	for i, receipt := range c.Receipts {
		if receipt.Incarnation != q.incarnation {
			r.Errors[i] = foreignHandle()
			continue
		}
		if q.fifo != nil {
			r.Errors[i] = q.deleteLive(at.Now, receipt)
			continue
		}
		q.counters.Deleted++
		if slot, ok := q.messages.record(receipt.Sequence); ok {
			q.messages.finish(slot, receipt, at.Now)
			q.messages.lift(slot)
			q.messages.forget(slot)
		}
	}
	freed := q.fifo != nil && q.fifo.sooner
	return r, q.roomEvent(freed || full && !q.full(at)), nil
}
