package sqs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var fifoKey = QueueKey{Name: "q.fifo"}

// fifoState is a state with a FIFO queue of two groups of eleven messages, the
// first ten of the first one in flight and known by an attempt id.
func fifoState(t *testing.T) (*State, Moment) {
	t.Helper()
	s, at := New(), Moment{Now: 1000, NextBody: 1, Rules: Rules{DedupWindow: time.Minute}}
	do := func(c Command) {
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatal(err)
		}
	}
	do(CreateQueue{Queue: fifoKey, Attributes: []Attribute{{Name: FifoQueue, Value: "true"}}})
	for i := range 11 {
		at.Now++
		do(SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{
			{GroupID: "g", DeduplicationID: fmt.Sprint("g", i)}, {GroupID: "h", DeduplicationID: fmt.Sprint("h", i)},
		}})
		at.NextBody += 2
	}
	do(ReceiveMessage{Queue: fifoKey, MaxMessages: 10, VisibilityTimeout: time.Hour, AttemptID: "a"})
	return s, at
}

func TestDamageFIFO(t *testing.T) {
	for _, test := range []struct {
		name              string
		damage            func(f *fifo)
		visible, inFlight int
	}{
		{"nothing", func(*fifo) {}, 12, 10},
		{"orders are lost", func(f *fifo) { f.fresh, f.held, f.leases = order{}, order{}, order{} }, 12, 10},
		{"chains are lost", func(f *fifo) { f.chains, f.groups.all = chains{}, nil }, 12, 10},
		{"a group is not filed", func(f *fifo) { f.groups.unfile(1) }, 12, 10},
		{"a sequence number twice", func(f *fifo) { f.records.edit(3).sequence = 2 }, 11, 10},
		{"a sequence number too high", func(f *fifo) { f.records.edit(3).sequence = 1 << 40 }, 11, 10},
		{"a time to come", func(f *fifo) { f.records.edit(3).sentAt = 1 << 50 }, 11, 10},
		{"a time before those before it", func(f *fifo) { f.records.edit(3).sentAt = 1 }, 11, 10},
		{"a lease of what was never received", func(f *fifo) { f.records.edit(3).visibleAt = 1 << 50 }, 12, 10},
		{"a lease before the first time", func(f *fifo) { f.records.edit(0).visibleAt = -1 }, 22, 0},
		{"groups are lost", func(f *fifo) { f.groups = groups{} }, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, at := fifoState(t)
			test.damage(s.queues[fifoKey].fifo)
			s.Damage(fifoKey)
			want := Totals{Queues: 1, Damaged: 1, Visible: test.visible, InFlight: test.inFlight}
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
		})
	}
}

func TestThawRefusesFIFO(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(s *State, q *queue, f *fifo)
	}{
		{"a message without a group", func(_ *State, _ *queue, f *fifo) { f.records.edit(3).group = 0 }},
		{"a message sent before the one before it", func(_ *State, _ *queue, f *fifo) { f.records.edit(3).sentAt = 1 }},
		{"a message sent later than now", func(s *State, _ *queue, _ *fifo) { s.now = 1005 }},
		{"a message behind the last sequence number", func(_ *State, q *queue, _ *fifo) { q.lastSequence-- }},
		{"a lease of what was never received", func(_ *State, _ *queue, f *fifo) { f.records.edit(1).visibleAt = 5000 }},
		{"a lease in the middle of a group", func(_ *State, _ *queue, f *fifo) { f.records.edit(0).visibleAt = 0 }},
		{"eleven leases in a group", func(_ *State, _ *queue, f *fifo) {
			r := f.records.edit(20)
			r.received, r.visibleAt = 1, 5000
		}},
		{"two ids of one message", func(_ *State, _ *queue, f *fifo) { f.dedup.pages[0].entries[1].sequence = 0 }},
		{"an id of a message to come", func(_ *State, _ *queue, f *fifo) { f.dedup.pages[0].entries[21].sequence = 100 }},
		{"an id of a time to come", func(_ *State, _ *queue, f *fifo) { f.dedup.pages[0].entries[21].at = 100 }},
		{"an attempt to come", func(_ *State, _ *queue, f *fifo) { f.attempts.first.at = 2000 }},
		{"an attempt without an id", func(_ *State, _ *queue, f *fifo) { f.attempts.first.id = "" }},
		{"an attempt without messages", func(_ *State, _ *queue, f *fifo) { f.attempts.first.sequences = nil }},
		{"an attempt of a message twice", func(_ *State, _ *queue, f *fifo) { f.attempts.first.sequences[1] = 1 }},
		{"an attempt of a message not received", func(_ *State, _ *queue, f *fifo) { f.attempts.first.sequences[1] = 2 }},
		{"an attempt that ends otherwise than its leases", func(_ *State, _ *queue, f *fifo) { f.attempts.first.visibleAt++ }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := fifoState(t)
			q := s.queues[fifoKey]
			test.spoil(s, q, q.fifo)
			if _, err := Thaw(s.Freeze().AppendTo(nil)); !errors.Is(err, errThaw) {
				t.Errorf("got %v, want it refused", err)
			}
		})
	}
	s, _ := fifoState(t)
	data := s.Freeze().AppendTo(nil)
	for n := range data {
		if _, err := Thaw(data[:n]); !errors.Is(err, errThaw) {
			t.Errorf("the first %d of %d bytes: got %v, want them refused", n, len(data), err)
		}
	}
}

// TestFrozenFIFO encodes a Frozen after the queue has gone on.
func TestFrozenFIFO(t *testing.T) {
	s, at := fifoState(t)
	frozen := s.Freeze()
	want := frozen.AppendTo(nil)
	at.Now = at.Now.Add(30 * time.Second)
	for _, c := range []Command{
		ReceiveMessage{Queue: fifoKey, MaxMessages: 10, VisibilityTimeout: time.Hour, AttemptID: "a"},
		ReceiveMessage{Queue: fifoKey, MaxMessages: 10, VisibilityTimeout: time.Hour, AttemptID: "b"},
		SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{{GroupID: "i", DeduplicationID: "i"}}},
		DeleteMessageBatch{Queue: fifoKey, Receipts: []Receipt{{Incarnation: 1, Sequence: 1, ReceiveNumber: 1, ReceivedAt: 1011}}},
		PurgeQueue{Queue: fifoKey},
	} {
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatal(err)
		}
		if got := frozen.AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("%T changed what was frozen", c)
		}
	}
}

// TestFIFOExpiryIsBounded lets more expire than one command drops. What is left
// is neither counted nor received, and does not hide what was sent later for good.
func TestFIFOExpiryIsBounded(t *testing.T) {
	s, at := New(), Moment{Now: 1000, NextBody: 1}
	do := func(c Command) Result {
		r, _, err := s.Apply(at, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	send := func() {
		do(SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{{GroupID: "g", DeduplicationID: "d"}}})
	}
	do(CreateQueue{Queue: fifoKey, Attributes: []Attribute{{Name: FifoQueue, Value: "true"}, {Name: MessageRetentionPeriod, Value: "60"}}})
	for range 2500 {
		send()
	}
	do(ReceiveMessage{Queue: fifoKey, MaxMessages: 10, VisibilityTimeout: time.Hour})
	at.Now = at.Now.Add(time.Minute)
	send()
	if got, want := s.Totals(at.Now), (Totals{Queues: 1, Visible: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := s.Census(at.Now)[0].OldestSentAt; got != at.Now {
		t.Errorf("oldest: got %d, want %d", got, at.Now)
	}
	for i, want := range []int{0, 0, 1} {
		if got := len(do(ReceiveMessage{Queue: fifoKey, MaxMessages: 10}).(ReceiveMessageResult).Messages); got != want {
			t.Errorf("receive %d: got %d messages, want %d", i, got, want)
		}
	}
}

// TestFIFOCountsAtTheMillisecond: a message whose lease ends in the millisecond in
// which it expires is neither in flight nor visible, though nothing has dropped it.
func TestFIFOCountsAtTheMillisecond(t *testing.T) {
	s, at := New(), Moment{Now: 1000, NextBody: 1}
	expiry := at.Now.Add(time.Minute)
	do := func(c Command) {
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatal(err)
		}
	}
	do(CreateQueue{Queue: fifoKey, Attributes: []Attribute{{Name: FifoQueue, Value: "true"}, {Name: MessageRetentionPeriod, Value: "60"}}})
	do(SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{{GroupID: "g", DeduplicationID: "d"}}})
	at.Now = expiry - Time(0).WindowEnd(30*time.Second)
	do(ReceiveMessage{Queue: fifoKey, MaxMessages: 1, VisibilityTimeout: 30 * time.Second})
	for now, want := range map[Time]Totals{expiry - 1: {Queues: 1, InFlight: 1}, expiry: {Queues: 1}} {
		if got := s.Totals(now); got != want {
			t.Errorf("%d ms before it expires: got %+v, want %+v", expiry-now, got, want)
		}
	}
}

// TestDeadLetterMovesAreBounded moves a hundred messages in one receive, and the
// rest in the next one.
func TestDeadLetterMovesAreBounded(t *testing.T) {
	s, at := New(), Moment{Now: 1000, NextBody: 1}
	dead := QueueKey{Name: "dead.fifo"}
	do := func(c Command) Result {
		r, _, err := s.Apply(at, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	do(CreateQueue{Queue: dead, Attributes: []Attribute{{Name: FifoQueue, Value: "true"}}})
	do(CreateQueue{Queue: fifoKey, Attributes: []Attribute{
		{Name: FifoQueue, Value: "true"}, {Name: RedrivePolicyAttribute, Value: "{}", Redrive: &RedrivePolicy{Target: dead, MaxReceiveCount: 1}},
	}})
	receive := func() int {
		return len(do(ReceiveMessage{Queue: fifoKey, MaxMessages: 10}).(ReceiveMessageResult).Messages)
	}
	for i := range 110 {
		do(SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{{GroupID: fmt.Sprint("g", i), DeduplicationID: "d"}}})
	}
	for range 11 {
		at.Now++
		receive()
	}
	at.Now++
	do(SendMessageBatch{Queue: fifoKey, Entries: []SendEntry{{GroupID: "last", DeduplicationID: "d"}}})
	if got := receive(); got != 0 {
		t.Errorf("got %d messages behind a hundred to move", got)
	}
	if got := receive(); got != 1 {
		t.Errorf("got %d messages, want 1", got)
	}
	if got := s.Census(at.Now)[0]; got.Queue != dead || got.Visible != 110 {
		t.Errorf("got %+v, want 110 visible", got)
	}
}

func TestOrderUntil(t *testing.T) {
	for _, size := range []int{0, 1, orderPage, orderPage + 1, 5 * orderPage} {
		var o order
		of := func(id uint32) rank { return rank{sequence: uint64(id)} }
		var ids []uint32
		for i := range size {
			o.add(uint32(2*i), of)
			ids = append(ids, uint32(2*i))
		}
		for limit := range uint32(2*size + 2) {
			want, _ := slices.BinarySearch(ids, limit)
			if got := o.until(func(id uint32) bool { return id >= limit }); got != want {
				t.Fatalf("%d ids, until %d: got %d, want %d", size, limit, got, want)
			}
			if got := o.below(rank{sequence: uint64(limit)}, of); got != want {
				t.Fatalf("%d ids, below %d: got %d, want %d", size, limit, got, want)
			}
			id, ok := o.nth(want)
			if ok != (want < size) || ok && id != ids[want] {
				t.Fatalf("%d ids, number %d: got %d %t", size, want, id, ok)
			}
		}
	}
}
