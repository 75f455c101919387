package sqs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// TestLateWork plays random commands to a state that may do so little in each that
// there is always work left over, and to its thawed twin. Nobody may notice: what is
// counted is exact, and only what is visible is received.
func TestLateWork(t *testing.T) {
	for _, steps := range []int{1, 3, 7} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			l := newLateWork(t, steps)
			for i := range 2000 {
				if problem := l.step(); problem != "" {
					t.Fatalf("command %d: %s", i, problem)
				}
			}
		})
	}
}

// lateWork is a standard and a FIFO queue whose commands leave work over.
type lateWork struct {
	*player
	*rand.Rand
	steps     int
	twin      *sqs.State
	retention [2]time.Duration
	receipts  [2][]sqs.Receipt
	deleted   map[sqs.Receipt]bool // but for the number and the time of the receive
}

var lateQueues = [2]sqs.QueueKey{key("q"), key("q.fifo")}

func newLateWork(t *testing.T, steps int) *lateWork {
	t.Helper()
	l := &lateWork{player: newPlayer(t), Rand: rand.New(rand.NewPCG(uint64(steps), 0)), steps: steps, deleted: map[sqs.Receipt]bool{}}
	l.at.Rules = sqs.Rules{InFlightLimit: 40, DedupWindow: 5 * time.Minute}
	l.do(sqs.CreateQueue{Queue: lateQueues[1], Attributes: []sqs.Attribute{attribute(t, sqs.FifoQueue, "true")}})
	l.retention = [2]time.Duration{96 * time.Hour, 96 * time.Hour}
	l.change()
	return l
}

// change goes on with what was thawed.
func (l *lateWork) change() {
	l.state, l.twin = thaw(l.t, l.state), l.state
	l.state.SetSteps(l.steps)
	l.twin.SetSteps(l.steps)
}

func (l *lateWork) step() string {
	l.at.Now += sqs.Time(l.IntN(2000))
	if l.IntN(10) == 0 {
		l.at.Now += sqs.Time(l.IntN(200_000))
	}
	if l.IntN(20) == 0 {
		l.state.Pulse(l.at)
		l.twin.Pulse(l.at)
	}
	if l.IntN(100) == 0 {
		if !bytes.Equal(l.encoding(), l.twin.Freeze().AppendTo(nil)) {
			return "the twins differ"
		}
		l.change()
	}
	i := l.IntN(2)
	c := l.command(i)
	before := l.peek(i)
	receive, _ := c.(sqs.ReceiveMessage)
	repeats := l.state.Repeats(receive, l.at.Now)
	other, _, _ := l.twin.Apply(l.at, c)
	result := l.do(c)
	if !reflect.DeepEqual(other, result) {
		return fmt.Sprintf("%T%+v: the twin answers %+v, not %+v", c, c, other, result)
	}
	for _, m := range received(result) {
		l.receipts[i] = append(l.receipts[i], m.Receipt)
		found, ok := before[m.Receipt.Sequence]
		if !ok || !repeats && found.State != sqs.Visible || l.deleted[sqs.Receipt{Incarnation: m.Receipt.Incarnation, Sequence: m.Receipt.Sequence}] {
			return fmt.Sprintf("received %+v, which was %+v", m, found)
		}
	}
	l.note(i, c, result)
	return l.compareCounts()
}

func received(result sqs.Result) []sqs.Received {
	r, _ := result.(sqs.ReceiveMessageResult)
	return r.Messages
}

// note takes note of what a command has done.
func (l *lateWork) note(i int, c sqs.Command, result sqs.Result) {
	switch c := c.(type) {
	case sqs.SetQueueAttributes:
		fmt.Sscan(c.Attributes[0].Value, &l.retention[i])
		l.retention[i] *= time.Second
	case sqs.DeleteMessageBatch:
		if result.(sqs.BatchResult).Errors[0] == nil {
			l.deleted[sqs.Receipt{Incarnation: c.Receipts[0].Incarnation, Sequence: c.Receipts[0].Sequence}] = true
		}
	}
}

func (l *lateWork) command(i int) sqs.Command {
	q, receipts := lateQueues[i], l.receipts[i]
	receipts = receipts[max(0, len(receipts)-30):]
	switch n := l.IntN(20); {
	case n < 5:
		c := sqs.SendMessageBatch{Queue: q}
		for range 1 + l.IntN(5) {
			e := sqs.SendEntry{Delay: time.Duration((1-i)*l.IntN(30)) * time.Second, GroupID: fmt.Sprint("g", l.IntN(4))}
			if i == 1 {
				e.DeduplicationID = fmt.Sprint(l.Uint64())
			} else if l.IntN(2) == 0 {
				e.GroupID = ""
			}
			c.Entries = append(c.Entries, e)
		}
		return c
	case n < 8 && len(receipts) > 0:
		return sqs.DeleteMessageBatch{Queue: q, Receipts: []sqs.Receipt{receipts[l.IntN(len(receipts))]}}
	case n < 10 && len(receipts) > 0:
		e := sqs.VisibilityEntry{Receipt: receipts[l.IntN(len(receipts))], Timeout: time.Duration(l.IntN(200)) * time.Second}
		return sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{e}}
	case n < 11:
		retention := []string{"60", "600", "3600"}[l.IntN(3)]
		return sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{attribute(l.t, sqs.MessageRetentionPeriod, retention)}}
	}
	attempt := []string{"", "a", "b"}[i*l.IntN(3)]
	return sqs.ReceiveMessage{Queue: q, MaxMessages: 1 + l.IntN(2)*9, VisibilityTimeout: time.Duration(l.IntN(3)*100) * time.Second, AttemptID: attempt}
}

// peek returns all messages of a queue by their sequence numbers.
func (l *lateWork) peek(i int) map[uint64]sqs.Peeked {
	all := map[uint64]sqs.Peeked{}
	page, _ := l.state.Peek(lateQueues[i], l.at.Now, sqs.AnyState, 0, 10_000)
	for _, m := range page.Messages {
		all[m.Sequence] = m
	}
	return all
}

// compareCounts counts one by one.
func (l *lateWork) compareCounts() string {
	for i, c := range l.state.Census(l.at.Now) {
		var n [4]int // by state
		for _, m := range l.peek(i) {
			n[m.State]++
			if m.SentAt.Add(l.retention[i]) <= l.at.Now {
				return fmt.Sprintf("peeked into expired %+v", m)
			}
		}
		if got := [4]int{0, c.Visible, c.InFlight, c.Delayed}; got != n {
			return fmt.Sprintf("counted %v in %s, want %v", got, c.Queue.Name, n)
		}
	}
	return ""
}
