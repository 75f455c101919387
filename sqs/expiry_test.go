package sqs

import (
	"strconv"
	"testing"
	"time"
)

// TestDelaysEndInPulses lets the delays of thousands of groups end at once, of which
// nothing is received. Pulses take note of it, a thousand at a time, so that few are
// left to be looked at one by one by whoever counts.
func TestDelaysEndInPulses(t *testing.T) {
	s, at, q := New(), Moment{Now: 1000, NextBody: 1}, QueueKey{Name: "q"}
	do := func(c Command) Result {
		r, _, err := s.Apply(at, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	do(CreateQueue{Queue: q})
	const groups = 4 * maxSteps
	for i := range groups {
		do(SendMessageBatch{Queue: q, Entries: []SendEntry{{GroupID: strconv.Itoa(i), Delay: time.Minute}}})
		at.NextBody++
	}
	if due, ok := s.NextPulse(); !ok || due < at.Now.Add(time.Minute) || due > at.Now.Add(2*time.Minute) {
		t.Errorf("next pulse at %d, %t", due, ok)
	}
	at.Now = at.Now.Add(2 * time.Minute)
	for pulses := 0; ; pulses++ {
		if due, ok := s.NextPulse(); !ok || due > at.Now {
			break
		}
		if pulses == 10 {
			t.Fatal("there are pulses without end")
		}
		s.Pulse(at)
	}
	m := &s.queues[q].messages
	if late := m.waiting.below(upTo(at.Now), m.byNext); late > lateDelays {
		t.Errorf("%d lists are left, want at most %d", late, lateDelays)
	}
	found := do(GetQueueAttributes{Queue: q}).(GetQueueAttributesResult)
	if found.Visible != groups || found.Delayed != 0 {
		t.Errorf("got %d visible, %d delayed, want %d, 0", found.Visible, found.Delayed, groups)
	}
}
