package checker

import (
	"time"

	"holdfast.internal/jepsen/history"
)

// checkCount looks for receive counts that repeat, go back, or jump further than
// receives can explain that handed out unseen.
func checkCount(r *run, v *verdict) {
	missing := map[string]int{}
	hiding := map[*history.Operation]int{} // how often receives may have been executed unseen
	for _, m := range r.messages {
		count := 0
		var before, latest *handout
		for _, h := range m.handouts {
			n := h.delivery.Count
			gap := n - count - 1
			if n <= count {
				v.add("%s: count %d twice, the second at %s", m, n, span(h.Operation))
			}
			if gap > 0 && gap > r.queue(m.queue).unknownBefore(h.Return)+r.executedUnseen(m, before, h, hiding) {
				v.add("%s: count %d follows %d at %s, without receives that may have taken it", m, n, count, span(h.Operation))
			}
			if latest != nil && h.Return < latest.Call {
				v.add("%s: count %d at %s, before count %d at %s", m, n, span(h.Operation), latest.delivery.Count, span(latest.Operation))
			}
			missing[m.queue] += max(gap, 0)
			count, before = n, h
			if latest == nil || h.Call > latest.Call {
				latest = h
			}
		}
	}
	for _, queue := range sortedKeys(missing) {
		slots := 0
		for _, u := range r.receives[queue].unknown {
			slots += u.Max
		}
		for _, o := range r.receives[queue].anew {
			slots += hiding[o] * o.Max
		}
		if missing[queue] > slots {
			v.add("%s: %d hand-outs that nobody saw, receives that may have handed out unseen had room for %d", queue, missing[queue], slots)
		}
	}
}

// executedUnseen returns how often receives that were answered with success may
// have handed m out between p and h and been started anew, and notes in hiding
// which. p is nil if h is the first hand-out that was seen.
func (r *run) executedUnseen(m *message, p, h *handout, hiding map[*history.Operation]int) int {
	sum := 0
	for _, o := range r.queue(m.queue).anew {
		if o.Call >= h.Return || p != nil && o.Return <= p.Call {
			continue
		}
		n := r.timesAnew(m, o)
		hiding[o] = max(hiding[o], n)
		sum += n
	}
	return sum
}

// timesAnew returns how often o may have handed m out and been started anew. The
// lease has to end each time, by itself or by what an older handle made of it.
func (r *run) timesAnew(m *message, o *history.Operation) int {
	lease := r.visibility(o)
	times := int((o.Return - o.Call) / max(lease, time.Second))
	if times > 0 || lease <= o.Return-o.Call {
		return max(1, times)
	}
	for _, c := range m.changes {
		if c.Outcome != history.Fail && c.Return > o.Call && max(c.Call, o.Call)+c.Visibility <= o.Return {
			return 1
		}
	}
	return 0
}
