package sqs_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// TestMemory holds the index to the bytes of heap that each message or queue may
// take. The figures are in DESIGN.md.
func TestMemory(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("figures, not rules")
	}
	const messages = 200_000
	for _, test := range []struct {
		name string
		most float64 // bytes each
		each int
		fill func(p *player)
	}{
		{"flood of 30 a millisecond", 2, messages, func(p *player) { p.flood(messages, 30) }},
		{"one at a time", 40, messages, func(p *player) { p.flood(messages, 1) }},
		{"one at a time, delayed", 40, messages, func(p *player) {
			p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{attribute(t, sqs.DelaySeconds, "900")}})
			p.flood(messages, 1)
		}},
		{"received", 64 + 20, messages, func(p *player) {
			p.flood(messages, 10)
			p.receive(messages, time.Hour)
		}},
		{"received and back", 64 + 20, messages, func(p *player) {
			p.flood(messages, 10)
			p.receive(messages, time.Second)
			p.at.Now = p.at.Now.Add(time.Hour)
			p.receive(messages*2, 0) // the steps of 1,000 each end the leases
		}},
		{"one of a group", 360, messages / 10, func(p *player) {
			for i := range messages / 10 {
				p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{GroupID: fmt.Sprint(i)}}})
			}
		}},
		{"groups that are gone", 2, messages / 10, func(p *player) {
			for i := range messages / 10 {
				p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{GroupID: fmt.Sprint(i)}}})
			}
			p.remove(p.receive(messages/10, time.Hour)...)
		}},
		{"FIFO, one group", 100, messages, func(p *player) { p.fifoFlood(messages, 1) }},
		{"FIFO, ten to a group", 110, messages, func(p *player) { p.fifoFlood(messages, messages/10) }},
		{"FIFO, received", 100, messages, func(p *player) {
			p.fifoFlood(messages, 1)
			for range messages / 10 {
				p.deleteFIFO(p.receiveFIFO(10, 0))
			}
		}},
		{"FIFO messages that are gone", 2, messages, func(p *player) {
			p.fifoFlood(messages, messages/10)
			for range messages / 10 {
				p.deleteFIFO(p.receiveFIFO(10, time.Hour))
			}
		}},
		{"empty queue", 1024, 10_000, func(p *player) { p.queues(10_000, 0) }},
		{"queue of three messages", 1536, 10_000, func(p *player) { p.queues(10_000, 3) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlayer(t)
			before := heapBytes()
			test.fill(p)
			each := float64(heapBytes()-before) / float64(test.each)
			t.Logf("%.1f bytes each", each)
			if each > test.most {
				t.Errorf("got %.1f bytes each, want at most %.0f", each, test.most)
			}
			runtime.KeepAlive(p)
		})
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// flood sends n messages one by one, so many in each millisecond.
func (p *player) flood(n, each int) {
	p.t.Helper()
	for i := range n {
		if i%each == 0 {
			p.at.Now++
		}
		p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{Size: 1, Delay: sqs.QueueDefault}}})
	}
}

// fifoFlood sends n messages to so many groups of a FIFO queue without
// deduplication.
func (p *player) fifoFlood(n, groups int) {
	p.t.Helper()
	p.do(sqs.CreateQueue{Queue: key("q.fifo"), Attributes: []sqs.Attribute{attribute(p.t, sqs.FifoQueue, "true")}})
	for i := range n {
		p.at.Now += sqs.Time(i & 1)
		p.sendFIFO(fmt.Sprint(i % groups))
	}
}

func (p *player) queues(n, messages int) {
	p.t.Helper()
	for i := range n {
		q := key(fmt.Sprintf("queue-%d", i))
		p.do(sqs.CreateQueue{Queue: q})
		if messages > 0 {
			p.do(sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, messages)})
		}
	}
}
