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

// inCluster runs a test on three nodes with one queue, in virtual time.
func inCluster(t *testing.T, test func(t *testing.T, c *nodes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		createQueue(t, c.list[c.awaitLeader()])
		c.awaitApplied()
		test(t, c)
	})
}

// stored is how many messages the leader has.
func (c *nodes) stored() int {
	c.t.Helper()
	n := c.list[c.awaitLeader()]
	attributes := do(c.t, n, sqs.GetQueueAttributes{Queue: queue}).Result.(sqs.GetQueueAttributesResult)
	return attributes.Visible + attributes.InFlight
}

func TestAnyNodeServes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		for i, n := range c.list {
			body := fmt.Sprint("through ", n.config.NodeName)
			send(t, n, body, 0)
			d := receive(t, c.list[(i+1)%3], 0)
			if len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != body || d.Index == 0 {
				t.Fatalf("got %+v, want %q", d, body)
			}
			last := c.list[(i+2)%3]
			receipt, ok := last.ParseHandle(d.Messages[0].Handle)
			if !ok || receipt != d.Messages[0].Receipt {
				t.Errorf("got receipt %+v, %v, want %+v", receipt, ok, d.Messages[0].Receipt)
			}
			outcome := do(t, last, sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{receipt}})
			if outcome.Index <= d.Index {
				t.Errorf("got index %d of the delete, want more than that of the receive, %d", outcome.Index, d.Index)
			}
		}
		if left := c.stored(); left != 0 {
			t.Errorf("%d messages are left", left)
		}
	})
}

// TestStartedMemberAwaitsItsLog: until a member knows how much of its log holds, it
// can neither read receipt handles nor make any.
func TestStartedMemberAwaitsItsLog(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		send(t, c.list[0], "x", 0)
		handle := receive(t, c.list[0], 0).Messages[0].Handle
		for i := range c.list {
			c.stop(i)
		}
		first := c.start(0)
		began := time.Now()
		if err := first.AwaitFormed(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("alone: got %v, want ErrNoLeader", err)
		}
		if waited := time.Since(began); waited != first.config.RequestTimeout {
			t.Errorf("alone: waited %v, want %v", waited, first.config.RequestTimeout)
		}
		second := c.start(1)
		for _, n := range []*Node{first, second} {
			if err := n.AwaitFormed(t.Context()); err != nil {
				t.Fatalf("%s: await cluster: %v", n.config.NodeName, err)
			}
			if _, ok := n.ParseHandle(handle); !ok {
				t.Errorf("%s does not know the key of a handle", n.config.NodeName)
			}
		}
	})
}

// TestAnyNodeAnswersWithRefusals: they are the state's, with the index of the
// entry that decided them.
func TestAnyNodeAnswersWithRefusals(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		for _, n := range c.list {
			outcome, err := n.Do(t.Context(), sqs.DeleteQueue{Queue: sqs.QueueKey{Account: queue.Account, Name: "none"}})
			if answer, ok := errors.AsType[*sqs.Error](outcome.Err); err != nil || !ok || answer.Code != sqs.QueueDoesNotExist || outcome.Index == 0 {
				t.Errorf("%s: got %+v, %v, want %s", n.config.NodeName, outcome, err, sqs.QueueDoesNotExist)
			}
			outcome, err = n.Do(t.Context(), raftfsm.SetSetting{Name: "nonsense", Value: "v"})
			if refusal, ok := errors.AsType[*raftfsm.SettingError](outcome.Err); err != nil || !ok || refusal.Value != "v" {
				t.Errorf("%s: got %+v, %v, want a setting error", n.config.NodeName, outcome, err)
			}
			c := receiveOne(time.Minute)
			c.Queue.Name = "none"
			d, err := n.Receive(t.Context(), c, time.Second, nil)
			if answer, ok := errors.AsType[*sqs.Error](err); !ok || answer.Code != sqs.QueueDoesNotExist || d.Index == 0 {
				t.Errorf("%s: got %+v, %v, want %s", n.config.NodeName, d, err, sqs.QueueDoesNotExist)
			}
		}
	})
}

func TestLongPollThroughFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		follower := c.list[c.follower()]
		polled := make(chan Delivery, 1)
		go func() { polled <- receive(t, follower, 20*time.Second) }()
		time.Sleep(7 * time.Second)
		began := time.Now()
		send(t, follower, "awaited", 0)
		d := <-polled
		if len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "awaited" || time.Since(began) > time.Second {
			t.Errorf("got %+v after %v", d, time.Since(began))
		}
		began = time.Now()
		if d := receive(t, follower, 5*time.Second); len(d.Messages) != 0 {
			t.Errorf("got %+v, want nothing", d)
		}
		if took := time.Since(began).Round(100 * time.Millisecond); took != 5*time.Second {
			t.Errorf("the wait took %v, want 5s", took)
		}
	})
}

// TestThousandPollsWhileLeaderDies: every one gets a message that was sent
// afterwards, or an empty answer in time.
func TestThousandPollsWhileLeaderDies(t *testing.T) {
	polls, messages := 1000, 300
	if raceEnabled {
		polls, messages = 300, 100
	}
	inCluster(t, func(t *testing.T, c *nodes) {
		dies := c.leader()
		var got atomic.Int64
		var all sync.WaitGroup
		for i := range polls {
			n := c.list[(dies+1+i%2)%3]
			all.Go(func() {
				began := time.Now()
				got.Add(int64(len(receive(t, n, 20*time.Second).Messages)))
				if took := time.Since(began); took > 21*time.Second {
					t.Errorf("a poll took %v", took)
				}
			})
		}
		time.Sleep(3 * time.Second)
		c.kill(dies)
		for i := range messages {
			send(t, c.list[(dies+1+i%2)%3], fmt.Sprint("message ", i), 0)
		}
		time.Sleep(5 * time.Second)
		if got.Load() != int64(messages) {
			t.Errorf("%d messages were received while the polls waited, want %d", got.Load(), messages)
		}
		all.Wait()
		if got.Load() != int64(messages) {
			t.Errorf("%d messages were received, want %d", got.Load(), messages)
		}
	})
}

// TestSendsWhileLeadersDie: no client of a living node sees an error, and every
// message is stored once.
func TestSendsWhileLeadersDie(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		var sent atomic.Int64
		for range 4 {
			dies := c.awaitLeader()
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			for i := range 8 {
				n := c.list[(dies+1+i%2)%3]
				clients.Go(func() {
					for ctx.Err() == nil {
						send(t, n, fmt.Sprint("message ", sent.Add(1)), 0)
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			c.kill(dies)
			time.Sleep(2 * time.Second)
			stop()
			clients.Wait()
			c.start(dies)
			c.awaitReady()
		}
		if got := c.stored(); got != int(sent.Load()) {
			t.Errorf("got %d messages, want %d", got, sent.Load())
		}
	})
}

// TestHandlesOutliveLeaders: messages are received on one node and extended on
// another, the leader dies, and they are deleted on the third.
func TestHandlesOutliveLeaders(t *testing.T) {
	const messages = 50
	deaths := 20
	if raceEnabled {
		deaths = 4 // each of both queues and both orders
	}
	fifo := sqs.QueueKey{Account: queue.Account, Name: "q.fifo"}
	inCluster(t, func(t *testing.T, c *nodes) {
		do(t, c.list[0], sqs.CreateQueue{Queue: fifo, Attributes: []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}})
		for death := range deaths {
			dies := c.awaitLeader()
			one, other := c.others(dies)
			first, second := c.list[dies], c.list[one]
			if death%2 == 0 {
				first, second = second, first
			}
			key := queue
			if death%4 < 2 {
				key = fifo
			}
			sendMany(t, c.list[other], key, fmt.Sprint("death ", death), messages)
			receipts := receiveMany(t, first, key, messages)
			var extended []sqs.VisibilityEntry
			for _, r := range receipts {
				extended = append(extended, sqs.VisibilityEntry{Receipt: r, Timeout: 10 * time.Minute})
			}
			for batch := range slices.Chunk(extended, 10) {
				succeeds(t, do(t, second, sqs.ChangeMessageVisibilityBatch{Queue: key, Entries: batch}))
			}
			c.kill(dies)
			time.Sleep(time.Minute) // the first leases would have ended
			for batch := range slices.Chunk(receipts, 10) {
				succeeds(t, do(t, c.list[other], sqs.DeleteMessageBatch{Queue: key, Receipts: batch}))
			}
			c.start(dies)
			c.awaitReady()
			attributes := do(t, c.list[dies], sqs.GetQueueAttributes{Queue: key}).Result.(sqs.GetQueueAttributesResult)
			if attributes.Visible+attributes.InFlight != 0 {
				t.Fatalf("death %d: %d visible and %d in flight are left", death, attributes.Visible, attributes.InFlight)
			}
		}
	})
}

func sendMany(t *testing.T, n *Node, key sqs.QueueKey, name string, messages int) {
	t.Helper()
	for i := range messages {
		c, content := sendMessage(fmt.Sprint(name, " ", i), 0)
		c.Queue = key
		if sqs.IsFIFO(key.Name) {
			c.Entries[0].GroupID = fmt.Sprint("group ", i%10)
			c.Entries[0].DeduplicationID = fmt.Sprint(name, i)
		}
		do(t, n, c, content)
	}
}

// receiveMany receives until it has so many, with their handles parsed by the node.
func receiveMany(t *testing.T, n *Node, key sqs.QueueKey, messages int) (receipts []sqs.Receipt) {
	t.Helper()
	for len(receipts) < messages {
		c := sqs.ReceiveMessage{Queue: key, MaxMessages: 10, VisibilityTimeout: 30 * time.Second}
		d, err := n.Receive(t.Context(), c, time.Second, nil)
		if err != nil || len(d.Messages) == 0 {
			t.Fatalf("got %d of %d messages, then %v", len(receipts), messages, err)
		}
		for _, m := range d.Messages {
			r, ok := n.ParseHandle(m.Handle)
			if !ok {
				t.Fatalf("handle %q was not understood", m.Handle)
			}
			receipts = append(receipts, r)
		}
	}
	return receipts
}

// succeeds checks that no entry of a batch was refused.
func succeeds(t *testing.T, o raftfsm.Outcome) {
	t.Helper()
	for _, err := range o.Result.(sqs.BatchResult).Errors {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	}
}

// TestAnswersAreAcknowledged: the state keeps the results of what is in flight, and
// not more, whatever receives did with the acknowledgements that they carried.
func TestAnswersAreAcknowledged(t *testing.T) {
	sends := 200
	if raceEnabled {
		sends = 50
	}
	inCluster(t, func(t *testing.T, c *nodes) {
		var all sync.WaitGroup
		for i, n := range c.list {
			all.Go(func() {
				for j := range sends {
					send(t, n, fmt.Sprint(i, "/", j), 0)
					c := receiveOne(time.Hour)
					c.MaxMessages = 10
					for wait := time.Duration(0); ; wait = 100 * time.Millisecond {
						if d, err := n.Receive(t.Context(), c, wait, nil); err != nil || len(d.Messages) == 0 {
							break
						}
					}
				}
			})
		}
		all.Wait()
		for _, n := range c.list {
			do(t, n, sqs.GetQueueUrl{Queue: queue})
		}
		c.awaitApplied()
		c.list[0].machine.View(func(v raftfsm.View) {
			if kept := v.Unacknowledged(); kept > 0 {
				t.Errorf("%d results are kept for nobody", kept)
			}
		})
	})
}
