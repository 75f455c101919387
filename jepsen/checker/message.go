package checker

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"holdfast.internal/jepsen/history"
)

// checkPhantom compares each hand-out with the send that its body names.
func checkPhantom(r *run, v *verdict) {
	for i := range r.all {
		o := &r.all[i]
		if o.Kind == history.Send && o.Outcome == history.OK && o.MD5 != digest(o.Body) {
			v.add("%s: the answer to the send at %s has MD5 %s, the body %s", o.Queue, span(o), o.MD5, digest(o.Body))
		}
	}
	for _, m := range r.messages {
		for _, h := range m.handouts {
			if fault := r.phantom(m, h); fault != "" {
				v.add("%s, count %d at %s: %s", m, h.delivery.Count, span(h.Operation), fault)
			}
			if first := m.handouts[0].delivery; first.Body != h.delivery.Body {
				v.add("%s: the body of count %d is not that of count %d", m, h.delivery.Count, first.Count)
			}
		}
	}
}

// phantom returns what is wrong with one hand-out, or "".
func (r *run) phantom(m *message, h *handout) string {
	d := h.delivery
	if _, err := history.ParseBody(d.Body); err != nil {
		return err.Error()
	}
	if d.MD5 != digest(d.Body) {
		return fmt.Sprintf("MD5OfBody %s, the body has %s", d.MD5, digest(d.Body))
	}
	send := r.sends[d.Body]
	switch {
	case send == nil:
		return "its body was never sent"
	case send.Outcome == history.Fail:
		return "its send was refused"
	case send.Queue != m.queue:
		return "it was sent to " + send.Queue
	case send.Call > h.Return:
		return fmt.Sprintf("it was sent at %s", span(send))
	case send.Outcome == history.OK && send.MessageID != m.id:
		return "its send was acknowledged as " + send.MessageID
	case send.Group != d.Group || send.DedupID != d.DedupID:
		return fmt.Sprintf("it has group %q and deduplication id %q, its send had %q and %q", d.Group, d.DedupID, send.Group, send.DedupID)
	}
	return ""
}

func digest(body string) string {
	sum := md5.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// checkCopies looks for a body under two message ids.
func checkCopies(r *run, v *verdict) {
	owner := map[string]*message{}
	for _, m := range r.messages {
		for _, h := range m.handouts {
			o := owner[h.delivery.Body]
			if o != nil && o != m {
				v.add("%s has the body of %s", m, o)
				break
			}
			owner[h.delivery.Body] = m
		}
	}
}

// checkTime holds the two timestamps of a message against those of its other
// hand-outs.
func checkTime(r *run, v *verdict) {
	for _, m := range r.messages {
		for i := 1; i < len(m.handouts); i++ {
			p, h := m.handouts[i-1].delivery, m.handouts[i].delivery
			if p.SentAt != h.SentAt {
				v.add("%s: SentTimestamp %d in count %d, %d in count %d", m, p.SentAt, p.Count, h.SentAt, h.Count)
			}
			if p.FirstAt != h.FirstAt {
				v.add("%s: ApproximateFirstReceiveTimestamp %d in count %d, %d in count %d", m, p.FirstAt, p.Count, h.FirstAt, h.Count)
			}
		}
	}
}

// checkLoss looks for acknowledged messages that are gone although nobody can
// have deleted them. It needs the drain.
func checkLoss(r *run, v *verdict) {
	if !r.options.Drained {
		return
	}
	byProcess := map[int]*losses{}
	for _, m := range r.messages {
		if m.send == nil {
			continue
		}
		lost := m.lost()
		if lost != "" {
			v.add("%s, sent at %s: %s", m, span(m.send), lost)
		}
		l := byProcess[m.send.Process]
		if l == nil {
			l = newLosses(m.send.Process)
			byProcess[m.send.Process] = l
		}
		l.add(m.send, lost != "")
	}
	for _, process := range sortedKeys(byProcess) {
		if text := byProcess[process].summary(); text != "" {
			v.add("%s", text)
		}
	}
}

// lost says how an acknowledged message was lost, or "".
func (m *message) lost() string {
	if len(m.handouts) == 0 {
		return "acknowledged, never handed out"
	}
	if m.deletable() != history.Never {
		return ""
	}
	for _, h := range m.handouts {
		if h.Phase == history.Drain {
			return ""
		}
	}
	last := m.handouts[len(m.handouts)-1]
	return fmt.Sprintf("last seen as count %d at %s, never deleted, not in the drain", last.delivery.Count, span(last.Operation))
}

// losses are the acknowledged sends of one process, and which are lost. Where
// they lie tells much about the cause: the last ones before a fault, or a hole.
type losses struct {
	process int
	sends   []*history.Operation
	lost    map[*history.Operation]bool
}

func newLosses(process int) *losses {
	return &losses{process: process, lost: map[*history.Operation]bool{}}
}

func (l *losses) add(send *history.Operation, lost bool) {
	l.sends = append(l.sends, send)
	if lost {
		l.lost[send] = true
	}
}

func (l *losses) summary() string {
	if len(l.lost) == 0 {
		return ""
	}
	slices.SortFunc(l.sends, func(a, b *history.Operation) int { return int(a.ID - b.ID) })
	var strip strings.Builder
	last := byte(0)
	for _, s := range l.sends {
		c := byte('.')
		if l.lost[s] {
			c = 'X'
		}
		if c != last {
			strip.WriteByte(c)
		}
		last = c
	}
	return fmt.Sprintf("process %d lost %d of %d acknowledged sends, in order: %s", l.process, len(l.lost), len(l.sends), strip.String())
}

// checkDelete looks for a hand-out that began after a delete was acknowledged.
func checkDelete(r *run, v *verdict) {
	for _, m := range r.messages {
		for _, d := range m.deletes {
			if d.Outcome != history.OK {
				continue
			}
			for _, h := range m.handouts {
				if h.Call > d.Return {
					v.add("%s: deleted at %s, handed out as count %d at %s", m, span(d), h.delivery.Count, span(h.Operation))
				}
			}
		}
	}
}

// checkDelay looks for delayed messages that appeared too early or too late.
func checkDelay(r *run, v *verdict) {
	for _, m := range r.messages {
		if len(m.handouts) == 0 {
			continue
		}
		first := m.handouts[0]
		send := r.sends[first.delivery.Body]
		if send == nil || send.Call > first.Return {
			continue // checkPhantom's
		}
		delay := send.Delay
		if delay == history.QueueDefault {
			delay = r.options.Queues[m.queue].Delay
		}
		if first.Return < send.Call+delay {
			v.add("%s: sent at %s with a delay of %s, handed out at %s", m, span(send), delay, span(first.Operation))
		}
		if send.Outcome != history.OK || first.delivery.Count != 1 {
			continue
		}
		if e := r.nothingThere(m.queue, deadline(send.Return, delay)+r.options.Slack, first.Call); e != nil {
			v.add("%s: sent at %s with a delay of %s, handed out at %s, but the receive at %s found nothing",
				m, span(send), delay, span(first.Operation), span(e))
		}
	}
}

// checkResidue looks at the counters of each queue after the drain.
func checkResidue(r *run, v *verdict) {
	if !r.options.Drained {
		return
	}
	last := map[string]*history.Operation{}
	for _, c := range r.counts {
		if c.Phase == history.Drain && c.Outcome == history.OK {
			last[c.Queue] = c
		}
	}
	for _, queue := range sortedKeys(r.receives) {
		c := last[queue]
		switch {
		case c == nil:
			v.add("%s: not counted after the drain", queue)
		case c.Visible != 0 || c.InFlight != 0 || c.Delayed != 0:
			v.add("%s: %d visible, %d in flight, %d delayed after the drain", queue, c.Visible, c.InFlight, c.Delayed)
		}
	}
}
