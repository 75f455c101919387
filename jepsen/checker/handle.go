package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

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

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// Coverage counts what a history contains; a run that covers too little proves
// nothing.
type Coverage struct {
	Operations    int // all but faults
	Unknown       int // of them without a known outcome
	Faults        int
	Sent          int // acknowledged sends
	Handouts      int
	Redeliveries  int // hand-outs with a count above 1
	Deletes       int // acknowledged
	Changes       int // acknowledged changes of visibility
	Superseded    int // acknowledged deletes by a handle older than a later hand-out of the message
	AcrossFaults  int // acknowledged deletes and changes by a handle issued before a fault and used after it
	LeasesAcross  int // hand-outs whose predecessor's lease began before a fault and ended after it
	DelaysAcross  int // first hand-outs of delayed messages sent before a fault and due after it
	EmptyReceives int

	// Of FIFO queues.
	InOrder      int // hand-outs of messages of which an earlier one of the group was handed out before
	Repeats      int // acknowledged sends that got the id of an earlier message
	RepeatAcross int // of them, those with a fault since the message was stored
	Renewals     int // messages with a deduplication id that another message had before
	Retried      int // acknowledged sends with the deduplication id of an earlier one without an answer
}

func (c Coverage) String() string {
	text := fmt.Sprintf("%d operations (%.1f %% unknown), %d faults, %d sent, %d handed out (%d again), %d deleted (%d by old handles), %d changed; "+
		"across faults: %d handles used, %d leases, %d delays; %d empty receives",
		c.Operations, 100*float64(c.Unknown)/float64(max(c.Operations, 1)), c.Faults, c.Sent, c.Handouts, c.Redeliveries,
		c.Deletes, c.Superseded, c.Changes, c.AcrossFaults, c.LeasesAcross, c.DelaysAcross, c.EmptyReceives)
	if c.InOrder+c.Repeats > 0 {
		text += fmt.Sprintf("; FIFO: %d in order, %d repeated sends (%d across faults, %d after none was answered), %d ids used anew",
			c.InOrder, c.Repeats, c.RepeatAcross, c.Retried, c.Renewals)
	}
	return text
}

func cover(r *run) Coverage {
	var c Coverage
	var faults []history.Operation
	for _, o := range r.all {
		switch {
		case o.Kind == history.Fault:
			faults = append(faults, o)
			continue
		case o.Outcome == history.Info:
			c.Unknown++
		case o.Kind == history.Send && o.Outcome == history.OK:
			c.Sent++
		case o.Kind == history.Receive && o.Outcome == history.OK && len(o.Messages) == 0:
			c.EmptyReceives++
		}
		c.Operations++
	}
	c.Faults = len(faults)
	for _, m := range r.messages {
		c.coverMessage(r, m, faults)
	}
	c.coverFIFO(r, faults)
	return c
}

// between reports whether a fault came after the one operation and before the other.
func between(faults []history.Operation, from, to *history.Operation) bool {
	return slices.ContainsFunc(faults, func(f history.Operation) bool { return f.Call > from.Return && f.Return < to.Call })
}

func (c *Coverage) coverMessage(r *run, m *message, faults []history.Operation) {
	between := func(from, to *history.Operation) bool { return between(faults, from, to) }
	issued := map[string]*history.Operation{}
	for i, h := range m.handouts {
		c.Handouts++
		issued[h.delivery.Handle] = h.Operation
		if h.delivery.Count > 1 {
			c.Redeliveries++
		}
		if i > 0 && m.handouts[i-1].delivery.Count+1 == h.delivery.Count && between(m.handouts[i-1].Operation, h.Operation) {
			c.LeasesAcross++
		}
	}
	for _, o := range slices.Concat(m.deletes, m.changes) {
		if o.Outcome != history.OK {
			continue
		}
		from := issued[o.Handle]
		if from != nil && between(from, o) {
			c.AcrossFaults++
		}
		if o.Kind == history.Change {
			c.Changes++
			continue
		}
		c.Deletes++
		if last := m.handouts[len(m.handouts)-1].Operation; last != from && last.Return < o.Call {
			c.Superseded++
		}
	}
	if len(m.handouts) == 0 {
		return
	}
	first := m.handouts[0]
	if s := r.sends[first.delivery.Body]; s != nil && s.Delay > 0 && first.delivery.Count == 1 && s.Outcome == history.OK && between(s, first.Operation) {
		c.DelaysAcross++
	}
}
