package sqs_test

import (
	"strconv"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// benchPlayer is a player for benchmarks: it fails by panic.
func benchPlayer(b *testing.B) *player {
	b.Helper()
	p := &player{t: nil, state: sqs.New(), at: sqs.Moment{Now: scriptStart, NextBody: 1}}
	if _, _, err := p.state.Apply(p.at, sqs.CreateQueue{Queue: key("q")}); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *player) benchSend(n, each int) {
	c := sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{Size: 1024, Delay: sqs.QueueDefault}}}
	for i := range n {
		if i%each == 0 {
			p.at.Now++
		}
		_, _, _ = p.state.Apply(p.at, c)
		p.at.NextBody++
	}
}

func (p *player) benchReceive(most int, timeout time.Duration) []sqs.Received {
	r, _, _ := p.state.Apply(p.at, sqs.ReceiveMessage{Queue: key("q"), MaxMessages: most, VisibilityTimeout: timeout})
	return r.(sqs.ReceiveMessageResult).Messages
}

func (p *player) benchDelete(messages []sqs.Received) {
	c := sqs.DeleteMessageBatch{Queue: key("q"), Receipts: make([]sqs.Receipt, len(messages))}
	for i := range messages {
		c.Receipts[i] = messages[i].Receipt
	}
	_, _, _ = p.state.Apply(p.at, c)
}

func BenchmarkSend(b *testing.B) {
	p := benchPlayer(b)
	b.ReportAllocs()
	for b.Loop() {
		p.benchSend(1, 1)
	}
}

// BenchmarkCycle sends, receives and deletes one message, beside as many in
// flight, and in a queue with as many waiting, as its name says.
func BenchmarkCycle(b *testing.B) {
	for _, bench := range []struct {
		name              string
		waiting, inFlight int
	}{{"empty", 0, 0}, {"inflight=100k", 0, 100_000}, {"waiting=1M", 1_000_000, 0}, {"waiting=1M,inflight=1M", 1_000_000, 1_000_000}} {
		b.Run(bench.name, func(b *testing.B) {
			p := benchPlayer(b)
			p.benchSend(bench.inFlight, 10)
			for range bench.inFlight / 10 {
				p.benchReceive(10, 12*time.Hour)
			}
			p.benchSend(bench.waiting, 10)
			b.ReportAllocs()
			for b.Loop() {
				p.benchSend(1, 1)
				p.benchDelete(p.benchReceive(1, 30*time.Second))
			}
		})
	}
}

// BenchmarkRandomDelete deletes one in the middle of so many in flight, and
// receives another.
func BenchmarkRandomDelete(b *testing.B) {
	const inFlight = 100_000
	p := benchPlayer(b)
	p.benchSend(inFlight, 10)
	var all []sqs.Received
	for range inFlight / 10 {
		all = append(all, p.benchReceive(10, 12*time.Hour)...)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 61_803) % inFlight
		p.benchSend(1, 1)
		p.benchDelete(all[i : i+1])
		all[i] = p.benchReceive(1, 12*time.Hour)[0]
	}
}

func BenchmarkMillion(b *testing.B) {
	p := benchPlayer(b)
	p.benchSend(1_000_000, 10)
	for range 100_000 {
		p.benchReceive(10, 12*time.Hour)
	}
	b.Run("Freeze", func(b *testing.B) {
		for b.Loop() {
			p.state.Freeze()
		}
	})
	frozen := p.state.Freeze()
	b.Run("AppendTo", func(b *testing.B) {
		for b.Loop() {
			b.SetBytes(int64(len(frozen.AppendTo(nil))))
		}
	})
	b.Run("Bodies", func(b *testing.B) {
		for b.Loop() {
			for range frozen.Bodies() {
			}
		}
	})
	data := frozen.AppendTo(nil)
	b.Run("Thaw", func(b *testing.B) {
		for b.Loop() {
			if _, err := sqs.Thaw(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGroups freezes, and receives from, a million messages of a hundred
// thousand groups.
func BenchmarkGroups(b *testing.B) {
	const groups = 100_000
	p := benchPlayer(b)
	c := sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 1)}
	send := func(i int) {
		c.Entries[0].GroupID = strconv.Itoa(i % groups)
		_, _, _ = p.state.Apply(p.at, c)
		p.at.NextBody++
	}
	for i := range 10 * groups {
		send(i)
	}
	b.Run("Freeze", func(b *testing.B) {
		for b.Loop() {
			p.state.Freeze()
		}
	})
	b.Run("Cycle", func(b *testing.B) {
		i := 0
		for b.Loop() {
			send(i)
			i++
			p.benchDelete(p.benchReceive(1, 30*time.Second))
		}
	})
}

// BenchmarkTenThousandQueues freezes and counts what is mostly small.
func BenchmarkTenThousandQueues(b *testing.B) {
	p := benchPlayer(b)
	for i := range 10_000 {
		q := key("queue" + string(rune('a'+i%26)) + time.Duration(i).String())
		_, _, _ = p.state.Apply(p.at, sqs.CreateQueue{Queue: q})
		_, _, _ = p.state.Apply(p.at, sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, 3)})
	}
	b.Run("Freeze", func(b *testing.B) {
		for b.Loop() {
			p.state.Freeze()
		}
	})
	b.Run("Census", func(b *testing.B) {
		for b.Loop() {
			p.state.Census(p.at.Now)
		}
	})
}

// BenchmarkMoveTask moves messages to and fro; an operation is one message.
func BenchmarkMoveTask(b *testing.B) {
	s, at := sqs.New(), sqs.Moment{Now: scriptStart, NextBody: 1}
	do := func(c sqs.Command) {
		if _, _, err := s.Apply(at, c); err != nil {
			b.Fatal(err)
		}
	}
	queues := [2]sqs.QueueKey{key("a"), key("b")}
	for _, q := range queues {
		do(sqs.CreateQueue{Queue: q})
	}
	for i, q := range queues {
		do(sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{{
			Name: sqs.RedrivePolicyAttribute, Value: "policy", Redrive: &sqs.RedrivePolicy{Target: queues[1-i], MaxReceiveCount: 1},
		}}})
	}
	const messages = 100_000
	for range messages / 10 {
		do(sqs.SendMessageBatch{Queue: queues[0], Entries: make([]sqs.SendEntry, 10)})
		at.NextBody += 10
	}
	for moved := 0; b.Loop(); moved++ {
		if n := moved % messages; n == 0 {
			from := moved / messages % 2
			do(sqs.StartMessageMoveTask{Source: queues[from], Task: sqs.TaskID{1}, Destination: &queues[1-from]})
		}
		if moved%500 == 0 {
			at.Now++
			s.Pulse(at)
		}
	}
}

// BenchmarkMessages counts the messages of 10,000 queues.
func BenchmarkMessages(b *testing.B) {
	s, at := sqs.New(), sqs.Moment{Now: scriptStart, NextBody: 1}
	for i := range 10_000 {
		q := key(strconv.Itoa(i))
		for _, c := range []sqs.Command{sqs.CreateQueue{Queue: q}, sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, 1)}} {
			if _, _, err := s.Apply(at, c); err != nil {
				b.Fatal(err)
			}
		}
		at.NextBody++
	}
	for b.Loop() {
		if s.Messages() != 10_000 {
			b.Fatal("messages are missing")
		}
	}
}
