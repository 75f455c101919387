package checker

import (
	"time"

	"holdfast.internal/jepsen/history"
)

// bound computes, for each hand-out in the order of counts, the interval in
// which its visibility deadline lies. Hand-outs that nobody saw (gaps in the
// counts) can only make a later hand-out later, so they are left out.
func (m *message) bound() {
	for i, h := range m.handouts {
		h.earliest = h.Call
		if i > 0 {
			h.earliest = max(h.Call, m.handouts[i-1].end)
		}
		nextCall, nextReturn := history.Never, history.Never
		if i+1 < len(m.handouts) {
			nextCall, nextReturn = m.handouts[i+1].Call, m.handouts[i+1].Return
		}
		base := true
		h.end, h.latest = history.Never, 0
		for _, c := range m.changes {
			if c.Outcome == history.Fail || c.Call > nextReturn || c.Return < h.Call {
				continue
			}
			if c.Outcome == history.OK && c.Call > h.Return && c.Return < nextCall {
				base = false
			}
			if m.followed(c, nextCall) {
				continue
			}
			h.end = min(h.end, max(c.Call, h.earliest)+c.Visibility)
			h.latest = max(h.latest, deadline(c.Return, c.Visibility))
		}
		if base {
			h.end = min(h.end, h.earliest+h.visibility)
			h.latest = max(h.latest, deadline(h.Return, h.visibility))
		}
		if h.renewable {
			h.latest = history.Never
		}
	}
}

// followed reports whether another change certainly came after c and before the
// next hand-out.
func (m *message) followed(c *history.Operation, nextCall time.Duration) bool {
	for _, d := range m.changes {
		if d.Outcome == history.OK && d.Call > c.Return && d.Return < nextCall {
			return true
		}
	}
	return false
}

// deadline returns the latest end of a window that began at t at the latest. A
// broker lengthens windows by a thousandth and a millisecond against clocks
// that run at different rates.
func deadline(t, window time.Duration) time.Duration {
	if t == history.Never {
		return history.Never
	}
	return t + window + window/1000 + time.Millisecond
}

func checkLease(r *run, v *verdict) {
	for _, m := range r.messages {
		for i := 1; i < len(m.handouts); i++ {
			p, h := m.handouts[i-1], m.handouts[i]
			disordered := h.delivery.Count == p.delivery.Count || h.Return < p.Call // checkCount's
			if !disordered && h.Return < p.end {
				v.add("%s: count %d at %s, then count %d at %s, but its deadline was not before %s",
					m, p.delivery.Count, span(p.Operation), h.delivery.Count, span(h.Operation), seconds(p.end))
			}
		}
	}
}

// checkStuck looks for a receive that was told "nothing there" after a deadline
// had passed and before the message was handed out again. Only neighbouring
// counts are compared: a gap is a hand-out that nobody saw, and it hid the
// message anew. A message that never appears again is checkLoss's.
func checkStuck(r *run, v *verdict) {
	for _, m := range r.messages {
		for i := 1; i < len(m.handouts); i++ {
			p, h := m.handouts[i-1], m.handouts[i]
			if p.latest == history.Never || h.delivery.Count != p.delivery.Count+1 {
				continue
			}
			if e := r.nothingThere(m.queue, p.latest+r.options.Slack, h.Call); e != nil {
				v.add("%s: count %d at %s, deadline not after %s, next at %s, but the receive at %s found nothing",
					m, p.delivery.Count, span(p.Operation), seconds(p.latest), span(h.Operation), span(e))
			}
		}
	}
}

// nothingThere returns a receive of the queue that was answered without messages
// although one was available from from until until, both at the outside. A long
// poll has to return what appears while it waits, so it may begin earlier; its
// answer may be on the way for any time, so it looked no later than its wait is
// long. In a FIFO queue what is before a message may keep it back: there it is nil.
func (r *run) nothingThere(queue string, from, until time.Duration) *history.Operation {
	if r.options.Queues[queue].FIFO {
		return nil
	}
	for _, e := range r.queue(queue).empty {
		if e.Call >= until {
			return nil
		}
		looked := min(e.Call+e.Wait, e.Return)
		if looked > from && e.Return < until {
			return e
		}
	}
	return nil
}
