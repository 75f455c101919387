package checker

import (
	"fmt"
	"slices"

	"holdfast.internal/jepsen/history"
)

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

// retried counts the acknowledged ones of some sends with a deduplication id that come
// after one without an answer.
func retried(sends []*history.Operation) (count int) {
	first := slices.IndexFunc(sends, func(o *history.Operation) bool { return o.Outcome == history.Info })
	if first < 0 {
		return 0
	}
	for _, o := range sends[first:] {
		if o.Outcome == history.OK {
			count++
		}
	}
	return count
}

func (c *Coverage) coverFIFO(r *run, faults []history.Operation) {
	groups, _, _ := r.groups()
	for _, g := range groups {
		for _, m := range g[1:] {
			c.InOrder += len(m.handouts)
		}
	}
	for _, sends := range r.repeats {
		c.Retried += retried(sends)
	}
	for _, messages := range r.byDedup() {
		c.Renewals += len(messages) - 1
		for _, m := range messages {
			for _, o := range m.accepts {
				if origin := m.origin(r); origin != nil && origin != o {
					c.Repeats++
					if between(faults, origin, o) {
						c.RepeatAcross++
					}
				}
			}
		}
	}
}
