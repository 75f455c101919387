package checker

import (
	"slices"

	"holdfast.internal/jepsen/history"
)

// checkHandle looks for refusals of handles of messages that certainly exist. A
// standard queue honours any handle of a message; deleting one that is gone
// succeeds as well.
func checkHandle(r *run, v *verdict) {
	for _, m := range r.messages {
		if r.options.Queues[m.queue].FIFO {
			m.checkLiveHandles(r, v)
			continue
		}
		for _, d := range m.deletes {
			if refused(d) {
				v.add("%s: delete at %s refused: %s", m, span(d), d.Error)
			}
		}
		gone := m.deletable()
		for _, c := range m.changes {
			if refused(c) && gone > c.Return {
				v.add("%s: change of visibility at %s refused: %s", m, span(c), c.Error)
			}
		}
	}
}

// refused reports whether the broker answered that the request is wrong, not
// that it cannot serve it now.
func refused(o *history.Operation) bool {
	return o.Outcome == history.Fail && o.Status >= 400 && o.Status < 500 && o.Error != "RequestThrottled"
}

// checkLiveHandles looks for handles that were refused while their leases
// certainly lasted, and for handles that acted after that.
func (m *message) checkLiveHandles(r *run, v *verdict) {
	byHandle := map[string]*handout{}
	for _, h := range m.handouts {
		byHandle[h.delivery.Handle] = h
	}
	gone := m.deletable()
	for _, o := range slices.Concat(m.deletes, m.changes) {
		h := byHandle[o.Handle]
		if refused(o) && o.Return < h.end && (o.Kind == history.Delete || gone > o.Return) {
			v.add("%s: %s at %s refused (%s), but the lease of its handle, of count %d, was not over before %s",
				m, o.Kind, span(o), o.Error, h.delivery.Count, seconds(h.end))
		}
		if o.Outcome != history.OK || m.deletedBefore(o) {
			continue
		}
		if h.latest != history.Never && o.Call > h.latest+r.options.Slack {
			v.add("%s: %s at %s by the handle of count %d, whose lease was over at %s",
				m, o.Kind, span(o), h.delivery.Count, seconds(h.latest))
		}
		if last := m.handouts[len(m.handouts)-1]; last.delivery.Count > h.delivery.Count && last.Return < o.Call {
			v.add("%s: %s at %s by the handle of count %d, after count %d", m, o.Kind, span(o), h.delivery.Count, last.delivery.Count)
		}
	}
}

// deletedBefore reports whether a delete other than o may have taken effect
// before o returned: then o found nothing, and its answer says nothing.
func (m *message) deletedBefore(o *history.Operation) bool {
	return slices.ContainsFunc(m.deletes, func(d *history.Operation) bool {
		return d != o && d.Outcome != history.Fail && d.Call < o.Return
	})
}
