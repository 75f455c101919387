package sqs_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// fifoPlayer is a player with the queue q.fifo, and with ids that are known for
// five minutes.
func fifoPlayer(tb testing.TB) *player {
	tb.Helper()
	p := &player{state: sqs.New(), at: sqs.Moment{Now: scriptStart, NextBody: 1, Rules: sqs.Rules{DedupWindow: 5 * time.Minute}}}
	if _, _, err := p.state.Apply(p.at, sqs.CreateQueue{Queue: key("q.fifo"), Attributes: []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}}); err != nil {
		tb.Fatal(err)
	}
	return p
}

// sendFIFO sends one message with a new id to a group.
func (p *player) sendFIFO(group string) {
	c := sqs.SendMessageBatch{Queue: key("q.fifo"), Entries: []sqs.SendEntry{{
		Size: 1024, Delay: sqs.QueueDefault, GroupID: group, DeduplicationID: strconv.FormatUint(p.at.NextBody, 10),
	}}}
	_, _, _ = p.state.Apply(p.at, c)
	p.at.NextBody++
}

func (p *player) receiveFIFO(most int, timeout time.Duration) []sqs.Received {
	r, _, _ := p.state.Apply(p.at, sqs.ReceiveMessage{Queue: key("q.fifo"), MaxMessages: most, VisibilityTimeout: timeout})
	return r.(sqs.ReceiveMessageResult).Messages
}

func (p *player) deleteFIFO(messages []sqs.Received) {
	c := sqs.DeleteMessageBatch{Queue: key("q.fifo")}
	for i := range messages {
		c.Receipts = append(c.Receipts, messages[i].Receipt)
	}
	_, _, _ = p.state.Apply(p.at, c)
}

// BenchmarkFIFOSend sends without pause, so that ids are forgotten as fast as
// they come once the window is full.
func BenchmarkFIFOSend(b *testing.B) {
	p := fifoPlayer(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%50 == 0 {
			p.at.Now++
		}
		p.sendFIFO("g" + strconv.Itoa(i%100))
	}
}

// BenchmarkFIFOCycle receives and deletes messages, and sends as many: one by
// one, or by ten as far as the groups have them.
func BenchmarkFIFOCycle(b *testing.B) {
	for _, bench := range []struct {
		name            string
		backlog, groups int
	}{
		{"small", 100, 10},
		{"1M,groups=100k", 1_000_000, 100_000},
		{"1M,groups=1", 1_000_000, 1},
	} {
		groups := make([]string, bench.groups)
		for i := range groups {
			groups[i] = fmt.Sprintf("group-%d", i)
		}
		for _, most := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/receive=%d", bench.name, most), func(b *testing.B) {
				p := fifoPlayer(b)
				for i := range bench.backlog {
					p.at.Now += sqs.Time(i & 1)
					p.sendFIFO(groups[i%len(groups)])
				}
				runtime.GC()
				b.ReportAllocs()
				for i := 0; b.Loop(); {
					p.at.Now++
					received := p.receiveFIFO(most, 30*time.Second)
					p.deleteFIFO(received)
					for range received {
						p.sendFIFO(groups[i%len(groups)])
						i += 7
					}
				}
			})
		}
	}
}

// BenchmarkFIFOReceive receives what is there and leaves it in flight.
func BenchmarkFIFOReceive(b *testing.B) {
	for _, groups := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			p := fifoPlayer(b)
			for i := range 10 * groups {
				p.sendFIFO(strconv.Itoa(i % groups))
			}
			b.ReportAllocs()
			for b.Loop() {
				p.at.Now++
				if len(p.receiveFIFO(1, 50*time.Millisecond)) == 0 {
					b.Fatal("nothing is available")
				}
			}
		})
	}
}
