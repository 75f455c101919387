package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// inBubble runs a test on a node with one queue, in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, n *Node), attributes ...sqs.Attribute) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		createQueue(t, n, attributes...)
		test(t, n)
	})
}

func TestLongPoll(t *testing.T) {
	ownWait := sqs.Attribute{Name: sqs.ReceiveMessageWaitTimeSeconds, Value: "5"}
	for _, test := range []struct {
		name      string
		delay     time.Duration // of a message that is sent first; 0: none
		leased    time.Duration // a message was received for so long; 0: none
		sendAfter time.Duration // of a message sent while waiting; 0: none
		wait      time.Duration
		wantAfter time.Duration
		want      int
	}{
		{name: "nothing comes", wait: 20 * time.Second, wantAfter: 20 * time.Second},
		{name: "sent while waiting", sendAfter: 7 * time.Second, wait: 20 * time.Second, wantAfter: 7 * time.Second, want: 1},
		{name: "delay ends", delay: 9 * time.Second, wait: 20 * time.Second, wantAfter: 9 * time.Second, want: 1},
		{name: "delay ends too late", delay: time.Minute, wait: 20 * time.Second, wantAfter: 20 * time.Second},
		{name: "lease ends", leased: 4 * time.Second, wait: 20 * time.Second, wantAfter: 4 * time.Second, want: 1},
		{name: "queue's own wait", wait: -1, wantAfter: 5 * time.Second},
		{name: "short poll", sendAfter: time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n *Node) {
				if test.delay > 0 {
					send(t, n, "delayed", test.delay)
				}
				if test.leased > 0 {
					send(t, n, "leased", 0)
					if d, err := n.Receive(t.Context(), receiveOne(test.leased), 0, nil); err != nil || len(d.Messages) != 1 {
						t.Fatalf("got %+v, %v", d, err)
					}
				}
				if test.sendAfter > 0 {
					go func() {
						time.Sleep(test.sendAfter)
						send(t, n, "sent", 0)
					}()
				}
				begin := time.Now()
				d := receive(t, n, test.wait)
				after := time.Since(begin).Round(100 * time.Millisecond)
				if len(d.Messages) != test.want || after != test.wantAfter {
					t.Errorf("got %d messages after %v, want %d after %v", len(d.Messages), after, test.want, test.wantAfter)
				}
				time.Sleep(2 * time.Second) // the sender of the short poll's test
			}, ownWait)
		})
	}
}

func TestManyWaitersOneMessageOneProposal(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		var got atomic.Int64
		var polls sync.WaitGroup
		for range 1000 {
			polls.Go(func() { got.Add(int64(len(receive(t, n, 20*time.Second).Messages))) })
		}
		time.Sleep(3 * time.Second)
		before := n.Metrics().Commands
		send(t, n, "one", 0)
		time.Sleep(time.Second)
		if proposed := n.Metrics().Commands - before; proposed != 2 {
			t.Errorf("got %d commands, want the send and one receive", proposed)
		}
		polls.Wait()
		if got.Load() != 1 {
			t.Errorf("the message was received %d times", got.Load())
		}
		m := n.Metrics()
		if proposed := m.Commands - before; proposed != 2 {
			t.Errorf("got %d commands at the end, want 2: an empty answer needs none", proposed)
		}
		if m.EmptyReceives[queue] != 999 {
			t.Errorf("got %d empty receives, want 999", m.EmptyReceives[queue])
		}
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		answered := make(chan int, 10)
		var polls sync.WaitGroup
		for i := range 10 {
			polls.Go(func() {
				if len(receive(t, n, 20*time.Second).Messages) == 1 {
					answered <- i
				}
			})
			synctest.Wait()
		}
		for i := range 10 {
			send(t, n, fmt.Sprint("message ", i), 0)
			synctest.Wait()
		}
		polls.Wait()
		close(answered)
		var order []int
		for i := range answered {
			order = append(order, i)
		}
		if len(order) != 10 || !slices.IsSorted(order) {
			t.Errorf("got answers in the order %v, want that of the arrivals", order)
		}
	})
}

func TestClientThatLeavesConsumesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		left := make(chan Delivery, 1)
		begin := time.Now()
		go func() {
			d, err := n.Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, func() bool {
				return time.Since(begin) < 5*time.Second
			})
			if err != nil {
				t.Error(err)
			}
			left <- d
		}()
		time.Sleep(6500 * time.Millisecond)
		if len(left) != 1 {
			t.Error("the node has not noticed after 1.5 s that the client has left")
		}
		send(t, n, "for somebody else", 0)
		d := receive(t, n, 0)
		if len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
			t.Errorf("got %+v, want the message with receive count 1", d.Messages)
		}
	})
}

func TestClientThatLeftPassesItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		looks := 0
		go func() {
			d, err := n.Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, func() bool {
				looks++
				return false
			})
			if err != nil || len(d.Messages) > 0 {
				t.Errorf("got %+v, %v for a client that has left", d, err)
			}
		}()
		synctest.Wait()
		second := make(chan Delivery, 1)
		go func() { second <- receive(t, n, 20*time.Second) }()
		synctest.Wait()
		send(t, n, "message", 0)
		synctest.Wait()
		select {
		case d := <-second:
			if len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 || looks != 1 {
				t.Errorf("got %+v after %d looks at the first client", d.Messages, looks)
			}
		default:
			t.Error("the second waiter did not get the turn that the first has left")
		}
	})
}

func TestContextEndsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		d, err := n.Receive(ctx, receiveOne(30*time.Second), 20*time.Second, nil)
		if err != nil || len(d.Messages) > 0 || time.Since(begin) != 3*time.Second {
			t.Errorf("got %+v, %v after %v; want an empty answer after 3s", d, err, time.Since(begin))
		}
		if n.line.parked.Load() != 0 {
			t.Error("it still stands in line")
		}
	})
}

func TestUnknownQueueIsAnsweredFromTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		c := receiveOne(30 * time.Second)
		c.Queue.Name = "unknown"
		for _, wait := range []time.Duration{-1, 0, 20 * time.Second} {
			begin := time.Now()
			d, err := n.Receive(t.Context(), c, wait, nil)
			answer, ok := errors.AsType[*sqs.Error](err)
			if !ok || answer.Code != sqs.QueueDoesNotExist || d.Index == 0 || time.Since(begin) != 0 {
				t.Errorf("wait %v: got %+v, %v after %v; want %s", wait, d, err, time.Since(begin), sqs.QueueDoesNotExist)
			}
		}
	})
}

func TestDeletedQueueWakesItsWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		answers := make(chan error, 20)
		for range 20 {
			go func() {
				_, err := n.Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, nil)
				answers <- err
			}()
		}
		time.Sleep(time.Second)
		do(t, n, sqs.DeleteQueue{Queue: queue})
		begin := time.Now()
		for range 20 {
			err := <-answers
			if answer, ok := errors.AsType[*sqs.Error](err); !ok || answer.Code != sqs.QueueDoesNotExist {
				t.Errorf("got %v, want %s", err, sqs.QueueDoesNotExist)
			}
		}
		if time.Since(begin) != 0 {
			t.Errorf("it took %v", time.Since(begin))
		}
		if len(n.line.queues) != 0 {
			t.Errorf("%d lines are left of a queue that is gone", len(n.line.queues))
		}
	})
}

func TestDeletedQueueLeavesNoLine(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		receive(t, n, 0)
		do(t, n, sqs.DeleteQueue{Queue: queue})
		if len(n.line.queues) != 0 {
			t.Errorf("%d lines are left of a queue that is gone", len(n.line.queues))
		}
	})
}

// holdBack has the next receive that is proposed wait for the returned function,
// which gives the error that it ends with; nil lets it go on.
func holdBack(n *Node) func(error) {
	gate, inner := make(chan error), n.line.propose
	var held atomic.Bool
	n.line.propose = func(ctx context.Context, c sqs.ReceiveMessage) (raftfsm.Outcome, error) {
		if held.CompareAndSwap(false, true) {
			if err := <-gate; err != nil {
				return raftfsm.Outcome{}, err
			}
		}
		return inner(ctx, c)
	}
	return func(err error) { gate <- err }
}

func TestTurnPassesOnWhenReceiveComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		send(t, n, "one", 0)
		letGo := holdBack(n)
		first := make(chan error, 1)
		go func() {
			_, err := n.Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, nil)
			first <- err
		}()
		synctest.Wait()
		second := make(chan Delivery, 1)
		go func() { second <- receive(t, n, 20*time.Second) }()
		synctest.Wait()
		if n.line.parked.Load() != 1 {
			t.Fatal("the second receiver does not wait although the only message is the first one's")
		}
		letGo(ErrOutcomeUnknown)
		if err := <-first; !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v, want %v", err, ErrOutcomeUnknown)
		}
		synctest.Wait()
		if len(second) != 1 || len((<-second).Messages) != 1 {
			t.Error("the second receiver did not get the message that the first has left")
		}
	})
}

func TestEmptyReceiveKeepsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		send(t, n, "snatched", 0)
		letGo := holdBack(n)
		answered := make(chan string, 2)
		wait := func(name string) {
			go func() {
				if len(receive(t, n, 20*time.Second).Messages) == 1 {
					answered <- name
				}
			}()
			synctest.Wait()
		}
		wait("first") // has its turn, but somebody is faster
		wait("second")
		do(t, n, receiveOne(time.Hour))
		letGo(nil)
		synctest.Wait()
		if n.line.parked.Load() != 2 {
			t.Fatalf("got %d parked, want both", n.line.parked.Load())
		}
		send(t, n, "a", 0)
		synctest.Wait()
		send(t, n, "b", 0)
		if one, other := <-answered, <-answered; one != "first" || other != "second" {
			t.Errorf("got %s before %s", one, other)
		}
	})
}

func TestLongPollIsNoErrorWhenTheWindowFillsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := bubbleConfig()
		config.Seed.Account = queue.Account
		config.Seed.Rules.InFlightLimit = 1
		n := start(t, config)
		createQueue(t, n)
		send(t, n, "a", 0)
		send(t, n, "b", 0)
		letGo := holdBack(n)
		waiting := make(chan Delivery, 1)
		go func() { waiting <- receive(t, n, 10*time.Second) }()
		synctest.Wait()
		do(t, n, receiveOne(time.Hour))
		begin := time.Now()
		letGo(nil)
		if d := <-waiting; len(d.Messages) != 0 || time.Since(begin) < 9*time.Second {
			t.Errorf("got %+v after %v, want an empty answer at the end of the wait", d, time.Since(begin))
		}
	})
}

func TestShortPollNeedsNoEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		before := n.Metrics().Commands
		for range 10 {
			if d := receive(t, n, 0); len(d.Messages) != 0 || d.Index != 0 {
				t.Errorf("got %+v, want an empty answer without proof", d)
			}
		}
		if got := n.Metrics().Commands - before; got != 0 {
			t.Errorf("%d commands were proposed", got)
		}
	})
}

func TestFullInFlightWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := bubbleConfig()
		config.Seed.Account = queue.Account
		config.Seed.Rules.InFlightLimit = 2
		n := start(t, config)
		createQueue(t, n)
		for i := range 3 {
			send(t, n, fmt.Sprint("message ", i), 0)
		}
		first := receive(t, n, 0)
		receive(t, n, 0)
		_, err := n.Receive(t.Context(), receiveOne(30*time.Second), 0, nil)
		if answer, ok := errors.AsType[*sqs.Error](err); !ok || answer.Code != sqs.OverLimit {
			t.Errorf("short poll: got %v, want %s", err, sqs.OverLimit)
		}
		before, begin := n.Metrics().Commands, time.Now()
		d := receive(t, n, 10*time.Second)
		if len(d.Messages) != 0 || time.Since(begin).Round(100*time.Millisecond) != 10*time.Second {
			t.Errorf("long poll: got %d messages after %v, want none after 10s", len(d.Messages), time.Since(begin))
		}
		if proposed := n.Metrics().Commands - before; proposed > 1 {
			t.Errorf("long poll: %d receives were proposed in vain", proposed)
		}
		var deleted sync.WaitGroup
		deleted.Go(func() {
			time.Sleep(time.Second)
			do(t, n, sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{first.Messages[0].Receipt}})
		})
		begin = time.Now()
		d = receive(t, n, 10*time.Second)
		if len(d.Messages) != 1 || time.Since(begin) > 1100*time.Millisecond {
			t.Errorf("after a delete: got %d messages after %v, want 1 after 1s", len(d.Messages), time.Since(begin))
		}
		deleted.Wait()
	})
}

// A parked receive gets its message when the limit of messages in flight is raised.
func TestRaisedInFlightLimitWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := bubbleConfig()
		config.Seed.Account = queue.Account
		config.Seed.Rules.InFlightLimit = 1
		n := start(t, config)
		createQueue(t, n)
		send(t, n, "first", 0)
		send(t, n, "second", 0)
		receive(t, n, 0)
		var raising sync.WaitGroup
		defer raising.Wait() // the receive may return before the setting is answered
		raising.Go(func() {
			time.Sleep(time.Second)
			do(t, n, raftfsm.SetSetting{Name: "inflight-limit", Value: "2"})
		})
		begin := time.Now()
		d := receive(t, n, 10*time.Second)
		if len(d.Messages) != 1 || time.Since(begin) > 1100*time.Millisecond {
			t.Errorf("got %d messages after %v, want 1 after 1s", len(d.Messages), time.Since(begin))
		}
	})
}

// Whoever waits at a queue that is deleted and made anew in one entry waits at the
// new one.
func TestQueueMadeAnewInOneEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		received := make(chan Delivery, 1)
		go func() { received <- receive(t, n, 20*time.Second) }()
		synctest.Wait()
		entry := raftfsm.AppendEntryHeader(nil, n.clock.now())
		for _, c := range []raftfsm.Command{sqs.DeleteQueue{Queue: queue}, sqs.CreateQueue{Queue: queue}} {
			command, err := raftfsm.AppendCommand(nil, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			entry = raftfsm.AppendOperation(entry, raftfsm.Origin{}, command)
		}
		if err := n.group.apply(entry).Error(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		send(t, n, "m", 0)
		if d := <-received; len(d.Messages) != 1 || time.Since(begin) > time.Second {
			t.Errorf("got %d messages after %v, want 1 at once", len(d.Messages), time.Since(begin))
		}
	})
}

// TestNoWakeUpIsLost has many receivers and senders at once: every message must
// be received while receivers wait, not after the end of their waits.
func TestNoWakeUpIsLost(t *testing.T) {
	const receivers, senders, each = 20, 10, 30
	inBubble(t, func(t *testing.T, n *Node) {
		var seen sync.Map
		var received atomic.Int64
		var all sync.WaitGroup
		for range receivers {
			all.Go(func() {
				for received.Load() < senders*each {
					c := receiveOne(time.Hour)
					c.MaxMessages = 3
					d, err := n.Receive(t.Context(), c, time.Second, nil)
					if err != nil {
						t.Error(err)
						return
					}
					for _, m := range d.Messages {
						if _, twice := seen.LoadOrStore(m.Receipt.Sequence, true); twice {
							t.Errorf("message %d was received twice", m.Receipt.Sequence)
						}
						received.Add(1)
					}
				}
			})
		}
		begin := time.Now()
		for i := range senders {
			all.Go(func() {
				for j := range each {
					send(t, n, fmt.Sprintf("%d/%d", i, j), 0)
				}
			})
		}
		for received.Load() < senders*each && time.Since(begin) < 100*time.Millisecond {
			time.Sleep(time.Millisecond)
		}
		if received.Load() < senders*each {
			t.Errorf("got %d of %d messages at once", received.Load(), senders*each)
		}
		all.Wait()
	})
}

// TestLineOfNodeThatLeadsNoMore sends all away at once, and nobody is proposed.
func TestLineOfNodeThatLeadsNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		moved := make(chan error, 2)
		wait := func() {
			_, err := n.line.receive(t.Context(), &poll{command: receiveOne(time.Minute), wait: 20 * time.Second})
			moved <- err
		}
		go wait()
		time.Sleep(1500 * time.Millisecond)
		began, before := time.Now(), n.Metrics().Commands
		n.line.lead(false)
		go wait()
		for range 2 {
			if err := <-moved; !errors.Is(err, errMoved) || time.Since(began) != 0 {
				t.Errorf("got %v after %v, want %v at once", err, time.Since(began), errMoved)
			}
		}
		if n.line.parked.Load() != 0 || n.Metrics().Commands != before {
			t.Errorf("%d are parked, %d commands were proposed", n.line.parked.Load(), n.Metrics().Commands-before)
		}
		n.line.lead(true)
		send(t, n, "m", 0)
		if d := receive(t, n, time.Second); len(d.Messages) != 1 {
			t.Errorf("got %+v after it leads again", d)
		}
	})
}

func TestWheelAfterLateTicker(t *testing.T) {
	var h wheel
	w := &waiter{signal: make(chan struct{}, 1), end: time.Hour}
	h.turn(10 * time.Second)
	h.arm(w, 20*time.Second) // the ticker has not run for ten seconds
	h.turn(20*time.Second + lineTick)
	if len(w.signal) != 0 {
		t.Fatal("signalled a second too early")
	}
	h.turn(21*time.Second + 2*lineTick)
	if len(w.signal) != 1 {
		t.Error("the wheel has forgotten the waiter")
	}
}

func TestWaiterListKeepsOrder(t *testing.T) {
	var l waiterList
	ws := make([]*waiter, 6)
	for i := range ws {
		ws[i] = &waiter{ticket: uint64(i)}
		l.insert(ws[i])
	}
	for _, i := range []int{0, 3, 5, 1} {
		l.remove(ws[i])
	}
	for _, i := range []int{3, 0, 5, 1} {
		l.insert(ws[i])
	}
	want := uint64(0)
	for w := l.first; w != nil; w = w.next {
		if w.ticket != want {
			t.Fatalf("got ticket %d, want %d", w.ticket, want)
		}
		want++
	}
	if l.len != 6 || want != 6 || l.last != ws[5] {
		t.Errorf("got %d waiters, length %d, want 6", want, l.len)
	}
}
