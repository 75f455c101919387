package cluster

import (
	"context"
	"time"

	"holdfast.internal/sqs"
)

const (
	// lineTick is how late the end of a wait, or a message that becomes
	// available by the clock, may be noticed.
	lineTick = 25 * time.Millisecond

	// lookEvery is how often a parked receiver is signalled, so that it looks
	// whether its client is still there.
	lookEvery = time.Second
)

// wheel signals parked waiters: each at its end, or after lookEvery if that is
// sooner. Then it must be armed again.
type wheel struct {
	slots [lookEvery/lineTick + 2][]*waiter // by tick
	tick  int64                             // the last one that was turned to
}

// arm has w signalled when its end comes, but at the latest lookEvery from now.
func (h *wheel) arm(w *waiter, now time.Duration) {
	at := min(w.end, now+lookEvery)
	w.due = max(int64((at+lineTick-1)/lineTick), h.tick+1)
	slot := &h.slots[w.due%int64(len(h.slots))]
	*slot = append(*slot, w)
}

// disarm takes back arm. The slot forgets w when it is its turn.
func (h *wheel) disarm(w *waiter) { w.due = 0 }

// turn signals all whose time has come.
func (h *wheel) turn(now time.Duration) {
	to, slots := int64(now/lineTick), int64(len(h.slots))
	for tick := max(h.tick+1, to-slots+1); tick <= to; tick++ {
		slot := &h.slots[tick%slots]
		kept := (*slot)[:0]
		for _, w := range *slot {
			switch {
			case w.due == 0: // disarmed
			case w.due <= to:
				w.wake()
			case w.due%slots == tick%slots: // the wheel was late: a turn ahead
				kept = append(kept, w)
			}
		}
		clear((*slot)[len(kept):])
		*slot = kept
	}
	h.tick = max(h.tick, to)
}

// run is the ticker of the line. It sleeps while nobody is parked.
func (l *line) run(ctx context.Context) {
	ticker := time.NewTicker(lineTick)
	defer ticker.Stop()
	for {
		if l.parked.Load() == 0 {
			ticker.Stop()
			select {
			case <-l.started:
			case <-ctx.Done():
				return
			}
			ticker.Reset(lineTick)
		}
		select {
		case <-ticker.C:
			l.onTick()
		case <-ctx.Done():
			return
		}
	}
}

func (l *line) onTick() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wheel.turn(l.elapsed())
	if l.alarm == 0 || l.alarm > now {
		return
	}
	l.alarm = 0
	for _, q := range l.queues {
		l.ring(q, now)
	}
}

// ring looks at a queue whose alarm is due, and counts the alarms of the others
// into the line's. The caller holds mu.
func (l *line) ring(q *queueLine, now sqs.Time) {
	switch {
	case q.alarm == 0:
	case q.alarm <= now:
		l.dispatch(q)
	case l.alarm == 0 || q.alarm < l.alarm:
		l.alarm = q.alarm
	}
}

// waiterList is a list of waiters in the order of their tickets.
type waiterList struct {
	first, last *waiter
	len         int
}

// insert puts w before the first waiter with a greater ticket. Most come last;
// those that come back have been among the first.
func (l *waiterList) insert(w *waiter) {
	l.len++
	after := l.last
	if after != nil && after.ticket > w.ticket {
		after = nil
		for next := l.first; next.ticket < w.ticket; next = next.next {
			after = next
		}
	}
	w.prev = after
	if after == nil {
		w.next, l.first = l.first, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		l.last = w
	} else {
		w.next.prev = w
	}
}

func (l *waiterList) remove(w *waiter) {
	l.len--
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
