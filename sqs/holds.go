package sqs

// Holds reports whether the receive that gave a receipt still hides its message:
// the lease lasts, and the message was neither deleted nor moved nor received
// again. It only reads.
func (s *State) Holds(key QueueKey, receipt Receipt, now Time) bool {
	q := s.queues[key]
	if q == nil || q.damaged || q.incarnation != receipt.Incarnation {
		return false
	}
	if q.fifo != nil {
		_, ok, _ := q.live(now, receipt)
		return ok
	}
	slot, ok := q.messages.record(receipt.Sequence)
	if !ok {
		return false
	}
	r := q.messages.records.at(slot)
	return r.received == receipt.ReceiveNumber && r.visibleAt > now && r.sentAt > q.cutoff(now)
}
