package sqs

import "time"

// fifo holds the messages of a FIFO queue. Every message is a record from its
// send on. A record is fresh until it is received; one that was moved here never
// is.
//
// Enqueue times never fall from one sequence number to the next, since a moved
// message is enqueued anew: so the order of sequence numbers is also the order in
// which messages expire. Time alone changes nothing but what counts as available:
// record.visibleAt stays as it is when the lease has ended, and says since when
// the message has been visible again.
type fifo struct {
	records records
	chains  chains // of the records
	fresh   order  // fresh records, by sequence number
	held    order  // all others, by sequence number
	leases  order  // records with a visibleAt, by it
	groups  groups // of the records
	origins names[origin]
	sooner  bool // a group has become available, or will at an earlier time than before

	dedup    dedup
	attempts attempts
}

// isFresh reports whether a record was neither received here nor moved here.
func (r *record) isFresh() bool { return r.received == 0 && r.movedAt == 0 }

func (f *fifo) bySequence(slot uint32) rank { return rank{sequence: f.records.at(slot).sequence} }

func (f *fifo) byLease(slot uint32) rank {
	r := f.records.at(slot)
	return rank{at: r.visibleAt, sequence: r.sequence}
}

// bySend is the order by sequence number that a record is in.
func (f *fifo) bySend(r *record) *order {
	if r.isFresh() {
		return &f.fresh
	}
	return &f.held
}

// rankOf is what a group with this head is ordered by: when the head became or
// becomes available, without the delay of a fresh one, and its sequence number.
func rankOf(head *record) rank {
	switch {
	case head.visibleAt != 0:
		return rank{at: head.visibleAt, sequence: head.sequence}
	case head.movedAt != 0:
		return rank{at: head.movedAt, sequence: head.sequence}
	}
	return rank{at: head.sentAt, sequence: head.sequence}
}

// add puts a message at the end of its group.
func (f *fifo) add(r record, name string) {
	id := f.groups.use(name)
	r.group = id
	alone := f.groups.at(id).head == 0
	f.enter(r)
	if alone {
		f.file(id)
	}
}

// enter adds a record at the end of its group, whose name is in use already. The
// caller files the group if it was without messages.
func (f *fifo) enter(r record) {
	slot := f.records.add(r)
	f.bySend(&r).add(slot, f.bySequence)
	if r.visibleAt != 0 {
		f.leases.add(slot, f.byLease)
	}
	g := f.groups.at(r.group)
	f.chains.set(slot, neighbours{prev: g.tail})
	if g.tail == 0 {
		g.head = slot + 1
	} else {
		f.chains.at(g.tail - 1).next = slot + 1
	}
	g.tail = slot + 1
}

// file puts a group into the orders again after groups.unfile, if it has
// messages.
func (f *fifo) file(id uint32) {
	g := f.groups.at(id)
	if g.head == 0 {
		return
	}
	head := f.records.at(g.head - 1)
	before := g.first
	g.first, g.fresh, g.latest = rankOf(head), head.isFresh(), 0
	if before == (rank{}) || g.first.at < before.at {
		f.sooner = true
	}
	for at := g.head; at != 0; at = f.chains.at(at - 1).next {
		r := f.records.at(at - 1)
		if r.visibleAt == 0 {
			break // none behind it was ever hidden
		}
		g.latest = max(g.latest, r.visibleAt)
	}
	f.groups.heads(g.fresh).add(id, f.groups.byFirst)
	if g.latest != 0 {
		f.groups.busy.add(id, f.groups.byLatest)
	}
}

// remove forgets a record. Its group must not be filed, and be filed afterwards.
func (f *fifo) remove(slot uint32) {
	r := f.records.at(slot)
	f.bySend(r).remove(slot, f.bySequence)
	if r.visibleAt != 0 {
		f.leases.remove(slot, f.byLease)
	}
	f.attempts.drop(r.sequence)
	g, l := f.groups.at(r.group), *f.chains.at(slot)
	if l.prev == 0 {
		g.head = l.next
	} else {
		f.chains.at(l.prev - 1).next = l.next
	}
	if l.next == 0 {
		g.tail = l.prev
	} else {
		f.chains.at(l.next - 1).prev = l.prev
	}
	if g.head == 0 {
		*g = group{}
	}
	f.groups.names.release(r.group)
	f.origins.release(r.origin)
	f.records.remove(slot)
}

// tidy gives the room of many messages back when none is left.
func (f *fifo) tidy() {
	if f.records.used > 0 {
		return
	}
	if len(f.chains.pages) > 1 {
		f.chains = chains{}
	}
	if len(f.groups.all) > keptCapacity {
		f.groups.all = nil
	}
}

// hide gives a record a new end of its lease, which may be over at once. Its
// group must not be filed.
func (f *fifo) hide(slot uint32, visibleAt Time) {
	if r := f.records.at(slot); r.visibleAt != 0 {
		f.leases.remove(slot, f.byLease)
	}
	f.records.edit(slot).visibleAt = visibleAt
	if visibleAt != 0 {
		f.leases.add(slot, f.byLease)
	}
}

// inFlight counts the hidden messages, with those that have expired and were not
// dropped yet.
func (f *fifo) inFlight(now Time) int { return f.leases.count - f.leases.below(upTo(now), f.byLease) }

// nextLease is the earliest end of a lease after now, or never.
func (f *fifo) nextLease(now Time) Time {
	if slot, ok := f.leases.after(upTo(now), f.byLease); ok {
		return f.byLease(slot).at
	}
	return never
}

// sentUpTo counts the messages of an order by sequence number that were sent at
// t or before.
func (f *fifo) sentUpTo(o *order, t Time) int {
	return o.until(func(slot uint32) bool { return f.records.at(slot).sentAt > t })
}

// counts is as messages.counts. A message behind a hidden one of its group
// counts as visible (AWS recording
// test_fifo_approximate_number_of_messages_not_visible).
func (f *fifo) counts(now, cutoff, window Time) counts {
	c := counts{inFlight: f.inFlight(now)}
	if window > 0 {
		c.delayed = f.fresh.count - f.sentUpTo(&f.fresh, max(now-window, cutoff))
	}
	c.visible = f.fresh.count - f.sentUpTo(&f.fresh, cutoff)
	for slot := range f.held.all {
		r := f.records.at(slot)
		if r.sentAt > cutoff {
			break
		}
		c.visible--
		if r.visibleAt > now {
			c.inFlight--
		}
	}
	c.visible += f.held.count - c.inFlight - c.delayed
	return c
}

// oldest is the slot of the message that was sent first.
func (f *fifo) oldest() (slot uint32, ok bool) {
	slot, ok = f.fresh.first()
	if other, held := f.held.first(); held && (!ok || f.bySequence(other).compare(f.bySequence(slot)) < 0) {
		return other, true
	}
	return slot, ok
}

// oldestArrival is when the oldest message was enqueued that has not expired; 0
// if there is none.
func (f *fifo) oldestArrival(cutoff Time) Time {
	oldest := never
	for _, o := range []*order{&f.fresh, &f.held} {
		if slot, ok := o.nth(f.sentUpTo(o, cutoff)); ok {
			oldest = min(oldest, f.records.at(slot).sentAt)
		}
	}
	if oldest == never {
		return 0
	}
	return oldest
}

// dropExpired drops the messages that were sent at the cutoff or before. Their
// groups are free then, in flight or not.
func (f *fifo) dropExpired(cutoff Time, left *steps) {
	for {
		slot, ok := f.oldest()
		if !ok || f.records.at(slot).sentAt > cutoff || !left.take() {
			break
		}
		f.removeFiled(slot)
	}
	f.tidy()
}

// removeFiled removes a record whose group is filed.
func (f *fifo) removeFiled(slot uint32) {
	id := f.records.at(slot).group
	f.groups.unfile(id)
	f.remove(slot)
	f.file(id)
}

// live finds the message of a receipt that still holds: neither has the lease
// ended, nor was the message received again. Without an error there may be no
// message any more.
func (q *queue) live(now Time, receipt Receipt) (slot uint32, ok bool, err *Error) {
	f := q.fifo
	slot, ok = f.held.find(rank{sequence: receipt.Sequence}, f.bySequence)
	if !ok || f.records.at(slot).sentAt <= q.cutoff(now) {
		return 0, false, nil
	}
	if r := f.records.at(slot); r.received != receipt.ReceiveNumber || r.visibleAt <= now {
		return 0, false, expiredHandle()
	}
	return slot, true, nil
}

// deleteLive removes a message by its live handle, or one that has expired. One that
// is gone already counts as deleted once more.
func (q *queue) deleteLive(now Time, receipt Receipt) *Error {
	_, live, err := q.live(now, receipt)
	if err != nil {
		return err
	}
	q.counters.Deleted++
	f := q.fifo
	if slot, ok := f.held.find(rank{sequence: receipt.Sequence}, f.bySequence); ok {
		f.removeFiled(slot)
		f.tidy()
		f.sooner = f.sooner || !live // its group counted as available, and is to be waited for now
	}
	return nil
}

// changeLive sets a new end for the lease of a live handle.
func (q *queue) changeLive(now Time, e *VisibilityEntry) *Error {
	slot, ok, err := q.live(now, e.Receipt)
	switch {
	case err != nil:
		return err
	case !ok:
		return messageGone()
	case e.beyondLimit(now):
		return hiddenTooLong(e.Timeout)
	}
	f := q.fifo
	r := f.records.at(slot)
	id := r.group
	f.attempts.drop(r.sequence)
	f.groups.unfile(id)
	f.hide(slot, now.WindowEnd(e.Timeout))
	f.file(id)
	return nil
}

// delayWindow is how long after its enqueue a fresh message of a FIFO queue is
// due: always by what DelaySeconds is now (SQS API reference,
// SetQueueAttributes).
func (q *queue) delayWindow() Time {
	return Time(0).WindowEnd(time.Duration(q.settings.delay) * time.Second)
}
