package checker

import (
	"cmp"
	"slices"
	"time"

	"holdfast.internal/jepsen/history"
)

// dedupKey is what a deduplication id is known by; group is "" where the scope
// is the queue.
type dedupKey struct{ queue, group, id string }

func (r *run) dedupKey(o *history.Operation) dedupKey {
	k := dedupKey{queue: o.Queue, id: o.DedupID}
	if r.options.Queues[o.Queue].DedupByGroup {
		k.group = o.Group
	}
	return k
}

// origin is the send that stored the message, nil if nobody saw its body.
func (m *message) origin(r *run) *history.Operation {
	if len(m.handouts) == 0 {
		return nil
	}
	return r.sends[m.handouts[0].delivery.Body]
}

// stored returns the interval in which the message was stored. Without a
// hand-out, which tells the body, any unanswered send of its deduplication id
// may have stored it.
func (m *message) stored(r *run) (from, until time.Duration) {
	from, until = history.Never, history.Never
	for _, o := range m.accepts {
		from, until = min(from, o.Call), min(until, o.Return)
	}
	if origin := m.origin(r); origin != nil {
		return origin.Call, min(until, origin.Return, m.handouts[0].Return)
	}
	if len(m.accepts) == 0 {
		return 0, history.Never
	}
	for _, o := range r.repeats[r.dedupKey(m.accepts[0])] {
		if o.Outcome == history.Info {
			from = min(from, o.Call)
		}
	}
	return from, until
}

// sequence is the message's SequenceNumber, "" if nobody was told.
func (m *message) sequence() history.Sequence {
	if len(m.handouts) > 0 {
		return m.handouts[0].delivery.Sequence
	}
	if len(m.accepts) > 0 {
		return m.accepts[0].Sequence
	}
	return ""
}

// fifoMessages returns the messages of FIFO queues by queue.
func (r *run) fifoMessages() map[string][]*message {
	queues := map[string][]*message{}
	for _, m := range r.messages {
		if r.options.Queues[m.queue].FIFO {
			queues[m.queue] = append(queues[m.queue], m)
		}
	}
	return queues
}

// checkSequence compares sequence numbers with each other, and with the times of
// the sends.
func checkSequence(r *run, v *verdict) {
	queues := r.fifoMessages()
	for _, queue := range sortedKeys(queues) {
		messages := queues[queue]
		bySequence := map[history.Sequence]*message{}
		for _, m := range messages {
			m.checkOneSequence(v)
			if other := bySequence[m.sequence()]; other != nil {
				v.add("%s and %s both have sequence number %s", m, other, m.sequence())
			}
			bySequence[m.sequence()] = m
		}
		checkRising(r, v, messages)
	}
}

// checkOneSequence checks that all answers tell the same number of the message.
func (m *message) checkOneSequence(v *verdict) {
	want := m.sequence()
	for _, o := range m.accepts {
		if o.Sequence != want {
			v.add("%s: sequence number %s, but %s in the answer to the send at %s", m, want, o.Sequence, span(o))
		}
	}
	for _, h := range m.handouts {
		if h.delivery.Sequence != want {
			v.add("%s: sequence number %s, but %s in count %d", m, want, h.delivery.Sequence, h.delivery.Count)
		}
	}
}

// checkRising looks for a message that was certainly stored before another and
// has a higher number.
func checkRising(r *run, v *verdict, messages []*message) {
	type life struct {
		*message
		from, until time.Duration
	}
	lives := make([]life, len(messages))
	for i, m := range messages {
		from, until := m.stored(r)
		lives[i] = life{m, from, until}
	}
	byEnd := slices.Clone(lives)
	slices.SortFunc(byEnd, func(a, b life) int { return cmp.Compare(a.until, b.until) })
	slices.SortFunc(lives, func(a, b life) int { return cmp.Compare(a.from, b.from) })
	var highest *message
	for _, l := range lives {
		for ; len(byEnd) > 0 && byEnd[0].until < l.from; byEnd = byEnd[1:] {
			if highest == nil || byEnd[0].sequence().Compare(highest.sequence()) > 0 {
				highest = byEnd[0].message
			}
		}
		if highest != nil && highest.sequence().Compare(l.sequence()) > 0 {
			v.add("%s has sequence number %s, %s, which was stored before it, has %s", l, l.sequence(), highest, highest.sequence())
		}
	}
}

// checkDedup looks for two messages of one deduplication id that were stored
// within one window, and for sends that got the id of a message that has another
// deduplication id, or whose window had ended.
func checkDedup(r *run, v *verdict) {
	for _, messages := range r.byDedup() {
		for i, m := range messages {
			from, until := m.stored(r)
			window := r.options.Queues[m.queue].DedupWindow
			for _, other := range messages[:i] {
				otherFrom, otherUntil := other.stored(r)
				if apart := max(until-otherFrom, otherUntil-from); until != history.Never && otherUntil != history.Never && apart < window {
					v.add("%s and %s have the deduplication id %q and were stored within %s", other, m, m.dedupID(), apart)
				}
			}
			m.checkDuplicates(r, v, until)
		}
	}
}

// checkDuplicates holds the sends that got the id of m, which was stored by until,
// against the one that stored it.
func (m *message) checkDuplicates(r *run, v *verdict, until time.Duration) {
	origin, window := m.origin(r), r.options.Queues[m.queue].DedupWindow
	for _, o := range m.accepts {
		if origin != nil && r.dedupKey(o) != r.dedupKey(origin) {
			v.add("%s was sent at %s to group %q with deduplication id %q, and a send at %s to group %q with %q got its id",
				m, span(origin), origin.Group, origin.DedupID, span(o), o.Group, o.DedupID)
		}
		if until != history.Never && o.Call > deadline(until, window)+r.options.Slack {
			v.add("%s was stored by %s, and a send at %s still got its id", m, seconds(until), span(o))
		}
	}
}

func (m *message) dedupID() string {
	if len(m.handouts) > 0 {
		return m.handouts[0].delivery.DedupID
	}
	return m.accepts[0].DedupID
}

// byDedup returns the messages of FIFO queues that share a deduplication id, in
// the order of keys and then of the messages.
func (r *run) byDedup() [][]*message {
	var keys []dedupKey
	byKey := map[dedupKey][]*message{}
	for _, m := range r.messages {
		sent := m.origin(r)
		if sent == nil && len(m.accepts) > 0 {
			sent = m.accepts[0]
		}
		if sent == nil || sent.DedupID == "" {
			continue // checkPhantom's
		}
		k := r.dedupKey(sent)
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], m)
	}
	all := make([][]*message, len(keys))
	for i, k := range keys {
		all[i] = byKey[k]
	}
	return all
}

// groupMember is a message of a FIFO group at its place.
type groupMember struct {
	*message
	gone  time.Duration // a delete may have taken effect from then on
	after time.Duration // all before it may be gone from then on
}

// group is a FIFO group in the order of sequence numbers.
type group []groupMember

// groups returns the messages that were handed out, by queue and group, and the place
// of each. Which group another one is in is not known for certain: it may have been
// sent to several. That nobody sees it is checkLoss's.
func (r *run) groups() (groups []group, place map[*message]int, of map[*message]int) {
	type name struct{ queue, group string }
	numbers := map[name]int{}
	of, place = map[*message]int{}, map[*message]int{}
	for _, m := range r.messages {
		if !r.options.Queues[m.queue].FIFO || len(m.handouts) == 0 {
			continue
		}
		n := name{m.queue, m.handouts[0].delivery.Group}
		i, known := numbers[n]
		if !known {
			i = len(groups)
			numbers[n] = i
			groups = append(groups, nil)
		}
		of[m] = i
		groups[i] = append(groups[i], groupMember{message: m, gone: m.deletable()})
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b groupMember) int { return a.sequence().Compare(b.sequence()) })
		after := time.Duration(0)
		for i := range g {
			place[g[i].message], g[i].after = i, after
			after = max(after, g[i].gone)
		}
	}
	return groups, place, of
}

// checkOrder holds every hand-out of a FIFO queue against the messages that come
// before it in its group: each of them is in the same answer, before it, or may
// have been deleted by then. That is the lock, too: a message in flight is
// neither, unless its own lease has ended, which is checkLease's.
func checkOrder(r *run, v *verdict) {
	groups, place, of := r.groups()
	for i := range r.all {
		o := &r.all[i]
		if o.Kind != history.Receive || !r.options.Queues[o.Queue].FIFO {
			continue
		}
		taken := map[*message]bool{}
		last := map[int]*message{}
		for _, d := range o.Messages {
			m := r.byKey[key{o.Queue, d.MessageID}]
			g := of[m]
			if p := last[g]; p != nil && place[p] > place[m] {
				v.add("%s before %s in the answer at %s, though it has the higher sequence number", p, m, span(o))
			}
			last[g], taken[m] = m, true
			if groups[g][place[m]].after < o.Return {
				continue
			}
			if e := groups[g][:place[m]].holding(o.Return, taken); e != nil {
				v.add("%s was handed out at %s, but %s is before it in group %q and was not deleted", m, span(o), e, d.Group)
			}
		}
	}
}

// holding returns a member that was not deleted before t and is not in the same
// answer.
func (g group) holding(t time.Duration, taken map[*message]bool) *message {
	for i := range g {
		if g[i].gone >= t && !taken[g[i].message] {
			return g[i].message
		}
	}
	return nil
}
