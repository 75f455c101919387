package sqs

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// TestDamage breaks the index of a queue in several ways. After Damage it must
// count, freeze and thaw without a panic, and hold the messages that could be
// saved.
func TestDamage(t *testing.T) {
	for _, test := range []struct {
		name                       string
		damage                     func(m *messages)
		visible, inFlight, delayed int
	}{
		{"nothing", func(*messages) {}, 30, 10, 10},
		{"orders are lost", func(m *messages) { m.leases, m.due, m.sequences = order{}, order{}, order{} }, 30, 10, 10},
		{"a record is in no order", func(m *messages) { m.lift(3) }, 30, 10, 10},
		{"a sequence number twice", func(m *messages) { m.records.edit(1).sequence = 3 }, 30, 9, 10},
		{"a record of a run", func(m *messages) { m.records.edit(1).sequence = 15 }, 30, 9, 10},
		{"a sequence number too high", func(m *messages) { m.records.edit(1).sequence = 1 << 40 }, 30, 9, 10},
		{"a time to come", func(m *messages) { m.records.edit(1).sentAt = 1 << 50 }, 30, 9, 10},
		{"a head behind the end", func(m *messages) { m.lists.at(0).head = 1000 }, 10, 10, 10},
		{"names are lost", func(m *messages) { m.groups = names[string]{} }, 30, 10, 10},
		{"counts are wrong", func(m *messages) { m.ready, m.delayed, m.records.used = -1, 99, 7 }, 30, 10, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, at := damageable(t)
			test.damage(&s.queues[QueueKey{Name: "q"}].messages)
			s.Damage(QueueKey{Name: "q"})
			want := Totals{Queues: 1, Damaged: 1, Visible: test.visible, InFlight: test.inFlight, Delayed: test.delayed}
			if got := s.Totals(at.Now); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			data := s.Freeze().AppendTo(nil)
			thawed, err := Thaw(data)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(thawed.Freeze().AppendTo(nil), data) {
				t.Error("a damaged queue changes in a round trip")
			}
			at.Now = at.Now.Add(5 * 24 * time.Hour)
			s.Pulse(at)
			if got := s.Totals(at.Now); got != (Totals{Queues: 1, Damaged: 1}) {
				t.Errorf("after its retention it still holds %+v", got)
			}
			if got := s.queues[QueueKey{Name: "q"}].messages.groups.entries; len(got) != 0 {
				t.Errorf("names are still in use: %v", got)
			}
		})
	}
}

// TestPulsePanic: the queue at which a pulse panics is known, and once it is damaged
// the pulses go on with the others.
func TestPulsePanic(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(s *State, at *Moment, q *queue)
	}{
		{"in a move task", func(s *State, at *Moment, q *queue) {
			s.addTask(q, moveTask{id: TaskID{1}, status: TaskRunning, pace: newPace(at.Now, 0)})
			q.messages.lists = lists{}
			at.Now += 1000
		}},
		{"at what has expired", func(_ *State, at *Moment, q *queue) {
			q.messages.leases = order{}
			at.Now = at.Now.Add(5 * 24 * time.Hour)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, at := damageable(t)
			q := QueueKey{Name: "q"}
			tt.spoil(s, &at, s.queues[q])
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the pulse did not panic")
					}
				}()
				s.Pulse(at)
			}()
			if got, ok := s.Working(); got != q || !ok {
				t.Fatalf("the pulse was at %v, %t, want %v", got, ok, q)
			}
			s.Damage(q)
			s.Pulse(at)
			if at, due := s.NextPulse(); due && at <= s.now {
				t.Error("the next pulse is due at once")
			}
			if got, ok := s.Working(); ok {
				t.Errorf("after a pulse that was carried out, it is at %v", got)
			}
		})
	}
}

// damageable is a state with a queue of ten messages in flight, ten of the same
// run visible, ten more by turns with ten of a group, and ten delayed.
func damageable(t *testing.T) (*State, Moment) {
	t.Helper()
	s, at := New(), Moment{Now: 1000, NextBody: 1}
	do := func(c Command) {
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatal(err)
		}
	}
	q := QueueKey{Name: "q"}
	send := func(entries ...SendEntry) {
		at.Now++
		c := SendMessageBatch{Queue: q, Entries: slices.Repeat(entries, 10)}
		do(c)
		at.NextBody += uint64(len(c.Entries))
	}
	do(CreateQueue{Queue: q})
	send(SendEntry{}, SendEntry{})
	do(ReceiveMessage{Queue: q, MaxMessages: 10, VisibilityTimeout: time.Minute})
	send(SendEntry{}, SendEntry{GroupID: "g"})
	send(SendEntry{Delay: time.Minute})
	return s, at
}
