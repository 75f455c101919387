package sqs

import "time"

// attemptWindow is how long a ReceiveRequestAttemptId may be used again (SQS API
// reference, ReceiveMessage).
const attemptWindow = 5 * time.Minute

// forgottenAttempts is the most attempts that one command forgets.
const forgottenAttempts = 20

// attempt is a receive with a ReceiveRequestAttemptId and what it returned, as
// long as none of its messages was deleted, changed, received again or dropped.
// It never changes but for its place in the chain.
type attempt struct {
	id        string
	at        Time
	most      int           // as asked for
	timeout   time.Duration // as asked for
	visibleAt Time          // end of the leases of all the messages
	sequences []uint64      // of the messages

	older, newer *attempt
}

// attempts holds the attempts of a FIFO queue.
type attempts struct {
	byID      map[string]*attempt
	byMessage map[uint64]*attempt // by sequence number
	first     *attempt            // the oldest
	last      *attempt
}

// drop forgets the attempt that returned a message.
func (a *attempts) drop(sequence uint64) {
	if t := a.byMessage[sequence]; t != nil {
		a.remove(t)
	}
}

func (a *attempts) remove(t *attempt) {
	delete(a.byID, t.id)
	for _, sequence := range t.sequences {
		delete(a.byMessage, sequence)
	}
	if t.older == nil {
		a.first = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		a.last = t.older
	} else {
		t.newer.older = t.older
	}
	if a.first == nil {
		*a = attempts{} // a map never shrinks by itself
	}
}

// add makes t the newest attempt of its id and of its messages.
func (a *attempts) add(t *attempt) {
	if old := a.byID[t.id]; old != nil {
		a.remove(old)
	}
	if a.byID == nil {
		a.byID, a.byMessage = make(map[string]*attempt), make(map[uint64]*attempt)
	}
	a.byID[t.id] = t
	for _, sequence := range t.sequences {
		a.byMessage[sequence] = t
	}
	a.link(t)
}

// link puts t at the end of those that are not younger: a repeated attempt keeps
// its age.
func (a *attempts) link(t *attempt) {
	t.older = a.last
	for t.older != nil && t.older.at > t.at {
		t.older = t.older.older
	}
	if t.older == nil {
		t.newer, a.first = a.first, t
	} else {
		t.newer, t.older.newer = t.older.newer, t
	}
	if t.newer == nil {
		a.last = t
	} else {
		t.newer.older = t
	}
}

// forget forgets attempts whose window is over. When it does so decides nothing.
func (a *attempts) forget(now Time) {
	for n := 0; n < forgottenAttempts && a.first != nil && a.first.at.WindowEnd(attemptWindow) <= now; n++ {
		a.remove(a.first)
	}
}

// due is when attempts are to be forgotten next: at once if some are left over
// from before, else when all that are known now can go.
func (a *attempts) due(now Time) Time {
	switch {
	case a.first == nil:
		return never
	case a.first.at.WindowEnd(attemptWindow) <= now:
		return now
	}
	return a.last.at.WindowEnd(attemptWindow)
}

// remember takes note of a receive that returned messages and hid them.
func (a *attempts) remember(now Time, c ReceiveMessage, received []Received, f *fifo) bool {
	if c.AttemptID == "" || len(received) == 0 {
		return false
	}
	t := &attempt{id: c.AttemptID, at: now, most: c.MaxMessages, timeout: c.VisibilityTimeout}
	for i := range received {
		t.sequences = append(t.sequences, received[i].Receipt.Sequence)
	}
	slot, _ := f.held.find(rank{sequence: t.sequences[0]}, f.bySequence)
	t.visibleAt = f.records.at(slot).visibleAt
	if t.visibleAt <= now {
		return false
	}
	a.add(t)
	return true
}

// repeated returns the attempt of which a receive is a repetition. None of its
// messages has expired.
func (q *queue) repeated(now Time, c ReceiveMessage) *attempt {
	f := q.fifo
	t := f.attempts.byID[c.AttemptID]
	if t == nil || t.most != c.MaxMessages || t.timeout != c.VisibilityTimeout ||
		now >= t.visibleAt || now >= t.at.WindowEnd(attemptWindow) {
		return nil
	}
	for _, sequence := range t.sequences {
		if slot, _ := f.held.find(rank{sequence: sequence}, f.bySequence); f.records.at(slot).sentAt <= q.cutoff(now) {
			return nil // and was not dropped yet
		}
	}
	return t
}

// repeat answers a receive whose attempt id was used before: with the same
// messages and the same handles, hidden anew. Nothing counts as a receive. It
// returns nil when the receive is no repetition.
func (q *queue) repeat(now Time, c ReceiveMessage) []Received {
	f := q.fifo
	t := q.repeated(now, c)
	if t == nil {
		return nil
	}
	again := &attempt{id: t.id, at: t.at, most: t.most, timeout: t.timeout, sequences: t.sequences}
	again.visibleAt = now.WindowEnd(timeout(c.VisibilityTimeout, q.settings.visibility))
	received := make([]Received, 0, len(t.sequences))
	for _, sequence := range t.sequences {
		slot, _ := f.held.find(rank{sequence: sequence}, f.bySequence)
		id := f.records.at(slot).group
		f.groups.unfile(id)
		f.hide(slot, again.visibleAt)
		f.file(id)
		received = append(received, q.received(f.records.at(slot), t.at))
	}
	if f.attempts.remove(t); again.visibleAt > now {
		f.attempts.add(again)
	}
	return received
}

// Repeats reports whether a receive would repeat an earlier one, by its
// ReceiveRequestAttemptId, and so return messages whatever is available. It only
// reads.
func (s *State) Repeats(c ReceiveMessage, now Time) bool {
	q := s.queues[c.Queue]
	return c.AttemptID != "" && q != nil && q.fifo != nil && !q.damaged && q.repeated(now, c) != nil
}
