package sqs_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// liveBodies counts the bodies that the state still refers to.
func (p *player) liveBodies() (n uint64) {
	for _, count := range p.state.Freeze().Bodies() {
		n += count
	}
	return n
}

// TestExpiryIsBounded lets thousands of received messages expire at once. They
// are not counted and not received from then on, but dropped a thousand at a time.
func TestExpiryIsBounded(t *testing.T) {
	p := newPlayer(t)
	p.send(2500)
	p.receive(2500, time.Second)
	p.at.Now = p.at.Now.Add(4 * 24 * time.Hour)

	if got := p.state.Totals(p.at.Now); got != (sqs.Totals{Queues: 1}) {
		t.Errorf("got %+v, want no messages", got)
	}
	if got := p.receive(10, 0); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	for _, want := range []uint64{1500, 501, 0} { // a pulse takes a step for the queue
		if got := p.liveBodies(); got != want {
			t.Errorf("got %d messages left, want %d", got, want)
		}
		if at, ok := p.state.NextPulse(); ok != (want > 0) || ok && at > p.at.Now {
			t.Errorf("with %d left: next pulse %v %t", want, at, ok)
		}
		p.state.Pulse(p.at)
	}
}

// TestAgeBehindPoison: however many messages were received three times, the age is
// that of the oldest other one, in flight or not.
func TestAgeBehindPoison(t *testing.T) {
	const poison = 1500
	p := newPlayer(t)
	age := func() sqs.Time {
		described, _ := p.state.Describe(key("q"), p.at.Now)
		if described.Quiet.OldestSentAt != described.OldestSentAt {
			t.Errorf("the oldest of quiet groups is of %d, that of all of %d", described.Quiet.OldestSentAt, described.OldestSentAt)
		}
		return described.OldestSentAt
	}
	p.send(poison)
	p.receive(3*poison, 0)
	if got := age(); got != 0 {
		t.Errorf("of nothing but poison: got %d, want 0", got)
	}
	p.send(10)
	sentAt := p.at.Now
	p.receive(10, time.Hour)
	if got := age(); got != sentAt {
		t.Errorf("of messages in flight: got %d, want %d", got, sentAt)
	}
	p.state = thaw(t, p.state)
	if got := age(); got != sentAt {
		t.Errorf("after a restore: got %d, want %d", got, sentAt)
	}
}

// TestExpiredIsNeverReceived lets more expire than one receive may drop, wherever
// it lies. The receive leaves the rest alone and finds what was sent later, if
// that is not behind it.
func TestExpiredIsNeverReceived(t *testing.T) {
	for _, test := range []struct {
		name   string
		fill   func(p *player)
		behind int // messages found behind the expired
	}{
		{"never received, by groups", func(p *player) {
			for i := range 1500 {
				p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{GroupID: fmt.Sprint(i)}}})
			}
		}, 0},
		{"came back", func(p *player) {
			p.send(1500)
			p.receive(1500, time.Second)
			p.at.Now = p.at.Now.Add(time.Minute)
			p.receive(20, 0) // ends a thousand leases each
		}, 1},
		{"received three times", func(p *player) {
			p.send(1500)
			p.receive(3*1500, 0)
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlayer(t)
			test.fill(p)
			p.at.Now = p.at.Now.Add(4 * 24 * time.Hour)
			p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 1)})
			if got := len(p.receive(10, 0)); got != test.behind {
				t.Errorf("the first receive found %d messages, want %d", got, test.behind)
			}
			if got := p.liveBodies(); got != 501 {
				t.Errorf("got %d messages left, want 501", got)
			}
			if got := p.receive(10, 0); len(got) != 1 {
				t.Errorf("the second receive found %v, want one message", got)
			}
		})
	}
}

// TestExpiresToTheMillisecond: a receive that cannot drop all that expires in this
// millisecond takes none of the rest, wherever it lies.
func TestExpiresToTheMillisecond(t *testing.T) {
	for name, fill := range map[string]func(p *player){
		"never received": func(p *player) { // in lists of their own
			p.at.Now++
			for i := range 1500 {
				c := sqs.Copy{Receiver: [16]byte{byte(i), byte(i >> 8)}, Shape: 1}
				if err := p.state.SendCopy(p.at, sqs.CopyEntry{Queue: key("q"), Copy: c, Body: 1}); err != nil {
					p.t.Fatal(err)
				}
			}
		},
		"came back": func(p *player) {
			p.flood(1500, 1500)
			p.receive(1500, time.Second)
			p.at.Now = p.at.Now.Add(time.Minute)
			p.receive(20, 0) // ends a thousand leases each
		},
		"received three times": func(p *player) {
			p.flood(1500, 1500)
			p.receive(3*1500, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			fill(p)
			p.at.Now = scriptStart.Add(4*24*time.Hour) + 1
			if got := p.receive(10, 0); len(got) != 0 {
				t.Errorf("received %v", got)
			}
			if got := p.state.Messages(); got != 500 {
				t.Errorf("got %d messages left, want 500", got)
			}
		})
	}
}

// TestExpiredMakeRoom: messages in flight that have expired leave room for others at
// once, however many there are.
func TestExpiredMakeRoom(t *testing.T) {
	p := newPlayer(t)
	p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{attribute(t, sqs.MessageRetentionPeriod, "60")}})
	p.send(2500)
	p.receive(2500, time.Hour)
	p.at.Now = p.at.Now.Add(time.Minute)
	p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 1)})
	p.at.Rules.InFlightLimit = 1000
	got := p.do(sqs.ReceiveMessage{Queue: key("q"), MaxMessages: 10, VisibilityTimeout: time.Minute, Short: true})
	if n := len(got.(sqs.ReceiveMessageResult).Messages); n != 1 {
		t.Errorf("received %d messages, want 1", n)
	}
}

// minutePlayer has a FIFO queue whose messages expire after a minute.
func minutePlayer(t *testing.T) *player {
	t.Helper()
	p := fifoPlayer(t)
	p.t = t
	p.do(sqs.SetQueueAttributes{Queue: key("q.fifo"), Attributes: []sqs.Attribute{attribute(t, sqs.MessageRetentionPeriod, "60")}})
	return p
}

// TestExpiredAttemptIsNotRepeated repeats a receive whose messages have expired behind
// more than one receive may drop.
func TestExpiredAttemptIsNotRepeated(t *testing.T) {
	p := minutePlayer(t)
	for i := range 1010 {
		p.sendFIFO(fmt.Sprint(i))
	}
	for range 100 {
		p.receiveFIFO(10, time.Hour)
	}
	again := sqs.ReceiveMessage{Queue: key("q.fifo"), MaxMessages: 10, VisibilityTimeout: time.Hour, AttemptID: "a"}
	if got := len(p.do(again).(sqs.ReceiveMessageResult).Messages); got != 10 {
		t.Fatalf("received %d messages, want 10", got)
	}
	p.at.Now = p.at.Now.Add(time.Minute)
	if got := len(p.do(again).(sqs.ReceiveMessageResult).Messages); got != 0 {
		t.Errorf("received %d expired messages once more", got)
	}
}

// TestDeletedExpiredIsGone deletes messages of a FIFO queue that have expired and were
// not dropped yet: a longer retention must not bring them back.
func TestDeletedExpiredIsGone(t *testing.T) {
	p := minutePlayer(t)
	p.sendFIFO("g")
	received := p.receiveFIFO(1, time.Hour)
	p.at.Now = p.at.Now.Add(time.Minute)
	p.deleteFIFO(received)
	if n := p.state.Messages(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestDeletedExpiredTellsWaiters deletes an expired message for whose sake its group
// counted as available. Whoever waits must hear when the next one of the group is.
func TestDeletedExpiredTellsWaiters(t *testing.T) {
	p := minutePlayer(t)
	p.sendFIFO("g")
	p.at.Now = p.at.Now.Add(30 * time.Second)
	p.sendFIFO("g")
	first := p.receiveFIFO(2, 40*time.Second)[0].Receipt
	p.do(sqs.ChangeMessageVisibilityBatch{Queue: key("q.fifo"), Entries: []sqs.VisibilityEntry{{Receipt: first}}})
	p.at.Now = p.at.Now.Add(30 * time.Second)
	if next, ok := p.state.NextAvailable(key("q.fifo"), p.at.Now); ok {
		t.Fatalf("got %d as the next time, want none while the first message counts as available", next)
	}
	_, events, err := p.state.Apply(p.at, sqs.DeleteMessageBatch{Queue: key("q.fifo"), Receipts: []sqs.Receipt{first}})
	if err != nil || len(events) != 1 || events[0].Kind != sqs.MessagesAvailable {
		t.Errorf("got %+v, %v", events, err)
	}
	if _, ok := p.state.NextAvailable(key("q.fifo"), p.at.Now); !ok {
		t.Error("the second message is not waited for")
	}
}

// TestRunsExpireAtOnce drops any number of never-received messages of one list in
// one step.
func TestRunsExpireAtOnce(t *testing.T) {
	p := newPlayer(t)
	p.send(20_000)
	p.at.Now = p.at.Now.Add(2 * 24 * time.Hour)
	p.send(10)
	p.at.Now = p.at.Now.Add(2 * 24 * time.Hour)
	p.state.Pulse(p.at)
	if got := p.liveBodies(); got != 10 {
		t.Errorf("got %d messages left, want 10", got)
	}
	if got := len(p.receive(20, 0)); got != 20 {
		t.Errorf("received %d times, want the ten left twice", got)
	}
}

// TestLeasesEndInSteps ends thousands of leases at once. All messages count as
// visible, although one receive makes only a thousand of them ready.
func TestLeasesEndInSteps(t *testing.T) {
	p := newPlayer(t)
	p.send(2500)
	p.receive(2500, time.Minute)
	p.at.Now = p.at.Now.Add(time.Hour)
	if got := p.state.Totals(p.at.Now); got.Visible != 2500 || got.InFlight != 0 {
		t.Errorf("got %+v, want all visible", got)
	}
	if got := p.state.Available(key("q"), p.at.Now, 5000); got != 2500 {
		t.Errorf("got %d available, want 2500", got)
	}
	seen := map[uint64]bool{}
	for _, r := range p.receive(2500, time.Minute) {
		seen[r.Sequence] = true
	}
	if len(seen) != 2500 {
		t.Errorf("received %d different messages, want 2500", len(seen))
	}
}

// TestTagLimit allows fifty tags after the call, and changes none when there
// would be more (SQS API reference, TagQueue).
func TestTagLimit(t *testing.T) {
	tags := func(from, n int) (all []sqs.Tag) {
		for i := range n {
			all = append(all, sqs.Tag{Key: fmt.Sprintf("k%03d", from+i), Value: "v"})
		}
		return all
	}
	p := newPlayer(t)
	p.do(sqs.TagQueue{Queue: key("q"), Tags: tags(0, 49)})
	for _, c := range []sqs.Command{
		sqs.TagQueue{Queue: key("q"), Tags: tags(49, 2)},
		sqs.CreateQueue{Queue: key("other"), Tags: tags(0, 51)},
	} {
		_, _, err := p.state.Apply(p.at, c)
		want := "Too many tags added for queue " + c.Target().Name + "."
		if err == nil || err.Code != sqs.InvalidParameterValue || err.Message != want {
			t.Errorf("%T: got %v, want %q", c, err, want)
		}
	}
	p.do(sqs.TagQueue{Queue: key("q"), Tags: tags(48, 2)}) // one is there already
	if got := p.do(sqs.ListQueueTags{Queue: key("q")}).(sqs.ListQueueTagsResult); len(got.Tags) != 50 {
		t.Errorf("got %d tags, want 50", len(got.Tags))
	}
}

// TestAsSendMessage checks both wordings of a message that is too long (AWS
// recordings test_send_batch_message_size, test_send_oversized_message).
func TestAsSendMessage(t *testing.T) {
	entry := sqs.EntryTooLong(1024)
	if want := "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."; entry.Message != want {
		t.Errorf("got %q, want %q", entry.Message, want)
	}
	single := sqs.AsSendMessage(entry)
	if want := "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."; single.Message != want {
		t.Errorf("got %q, want %q", single.Message, want)
	}
	if got := sqs.MessageTooLong(1024); *got != *single {
		t.Errorf("got %v, want %v", got, single)
	}
	other := &sqs.Error{Code: sqs.InternalFailure, Message: "x"}
	if got := sqs.AsSendMessage(other); got != other {
		t.Errorf("got %v, want it as it was", got)
	}
}
