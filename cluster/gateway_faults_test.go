package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// asked is what became of a command.
type asked struct {
	outcome raftfsm.Outcome
	err     error
	took    time.Duration
}

// ask begins to send a message through a node.
func ask(t *testing.T, n *Node, body string) <-chan asked {
	t.Helper()
	command, content := sendMessage(body, 0)
	answer := make(chan asked, 1)
	began := time.Now()
	go func() {
		outcome, err := n.Do(t.Context(), command, content)
		answer <- asked{outcome, err, time.Since(began)}
	}()
	return answer
}

// others are the indexes of the nodes but one.
func (c *nodes) others(i int) (int, int) { return (i + 1) % 3, (i + 2) % 3 }

// TestSendIsStoredOnce whatever happens to the leader between the request and its
// answer.
func TestSendIsStoredOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		// at sends through a node, given the leader and the others, and breaks
		// things on the way.
		at func(t *testing.T, c *nodes, leader, one, other int) <-chan asked
		// before says that the entry that answers is one that was in the log
		// before the leader changed.
		before bool
	}{
		{
			name: "leader dies before it is asked",
			at: func(t *testing.T, c *nodes, leader, one, _ int) <-chan asked {
				c.kill(leader)
				return ask(t, c.list[one], "m")
			},
		},
		{
			name: "leader has appended, and reaches nobody",
			at: func(t *testing.T, c *nodes, leader, one, other int) <-chan asked {
				c.cut(leader, one)
				c.cut(leader, other)
				return ask(t, c.list[one], "m")
			},
		},
		{
			name: "leader has committed, and the answer is lost",
			at: func(t *testing.T, c *nodes, leader, one, _ int) <-chan asked {
				c.cut(leader, one)
				answer := ask(t, c.list[one], "m")
				time.Sleep(250 * time.Millisecond)
				c.kill(leader)
				return answer
			},
			before: true,
		},
		{
			name: "leader is asked by its own client, and cut off at once",
			at: func(t *testing.T, c *nodes, leader, _, _ int) <-chan asked {
				c.isolate(leader)
				answer := ask(t, c.list[leader], "m")
				time.Sleep(3 * time.Second)
				c.heal()
				return answer
			},
		},
		{
			name: "leader has committed, its own client is answered by the next one",
			at: func(t *testing.T, c *nodes, leader, one, other int) <-chan asked {
				c.cut(one, leader) // acknowledgements are lost, entries are not
				c.cut(other, leader)
				answer := ask(t, c.list[leader], "m")
				time.Sleep(3 * time.Second)
				c.heal()
				return answer
			},
			before: true,
		},
		{
			name: "leader hands over",
			at: func(t *testing.T, c *nodes, leader, one, _ int) <-chan asked {
				answer := ask(t, c.list[one], "m")
				c.stop(leader)
				return answer
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *nodes) {
				leader := c.leader()
				one, other := c.others(leader)
				last := c.list[one].group.raft.Load().LastIndex()
				got := <-test.at(t, c, leader, one, other)
				if got.err != nil || got.outcome.Err != nil {
					t.Fatalf("got %v, %v", got.err, got.outcome.Err)
				}
				if got.took > 5*time.Second {
					t.Errorf("took %v", got.took)
				}
				c.heal()
				if stored := c.stored(); stored != 1 {
					t.Errorf("got %d messages, want 1", stored)
				}
				if before := got.outcome.Index <= last+3; before != test.before && test.before {
					t.Errorf("answered by entry %d, want one that was in the log before the leader changed (%d and on)", got.outcome.Index, last)
				}
			})
		})
	}
}

// TestOutcomeOfCutOffLeader: what it had in its log is unknown, what came later
// was certainly not done.
func TestOutcomeOfCutOffLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		leader := c.leader()
		c.isolate(leader)
		first := ask(t, c.list[leader], "first")
		time.Sleep(2 * time.Second)
		second := ask(t, c.list[leader], "second")
		for name, want := range map[string]error{"first": ErrOutcomeUnknown, "second": ErrNoLeader} {
			answer := first
			if name == "second" {
				answer = second
			}
			got := <-answer
			if !errors.Is(got.err, want) || got.took > 11*time.Second {
				t.Errorf("%s: got %v after %v, want %v", name, got.err, got.took, want)
			}
		}
		c.heal()
		c.awaitReady()
		c.awaitApplied()
		if stored := c.stored(); stored != 0 {
			t.Errorf("got %d messages: what nobody waits for any more was stored", stored)
		}
	})
}

// TestOutcomeWithoutMajority through a follower that has lost both others.
func TestOutcomeWithoutMajority(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		leader := c.leader()
		one, other := c.others(leader)
		c.kill(leader)
		c.kill(other)
		if got := <-ask(t, c.list[one], "m"); !errors.Is(got.err, ErrNoLeader) || got.took > 11*time.Second {
			t.Errorf("got %v after %v, want %v", got.err, got.took, ErrNoLeader)
		}
		began := time.Now()
		_, err := c.list[one].Receive(t.Context(), receiveOne(time.Minute), 2*time.Second, nil)
		if took := time.Since(began); !errors.Is(err, ErrNoLeader) || took < 6*time.Second || took > 8*time.Second {
			t.Errorf("receive: got %v after %v, want %v after 7s", err, took, ErrNoLeader)
		}
	})
}

// TestPatientCallerHasItsDeadline: who would wait for longer than a request may take
// is answered when that time is over, and not left with a leader who refuses it.
func TestPatientCallerHasItsDeadline(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		leader := c.leader()
		one, _ := c.others(leader)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.isolate(one)
		time.AfterFunc(15*time.Second, c.heal)
		began := time.Now()
		_, err := c.list[one].Do(ctx, sqs.CreateQueue{Queue: queue})
		if took := time.Since(began); err == nil || took > 11*time.Second {
			t.Errorf("got %v after %v, want an error after 10s", err, took)
		}
		time.Sleep(10 * time.Second)
	})
}

// TestCutOffLeaderGivesNoStaleAnswer: what the others have decided meanwhile is
// never denied; an empty answer is at most as old as the lease.
func TestCutOffLeaderGivesNoStaleAnswer(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		old := c.leader()
		c.isolate(old)
		cut := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var clients sync.WaitGroup
		for _, wait := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
			clients.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					d, err := c.list[old].Receive(ctx, receiveOne(time.Minute), wait, nil)
					if err == nil && ctx.Err() == nil && began.Sub(cut) > leaseLength {
						t.Errorf("a receive that began %v after the cut got %+v after %v", began.Sub(cut), d, time.Since(began))
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		clients.Go(func() {
			outcome, err := c.list[old].Do(ctx, sqs.GetQueueAttributes{Queue: queue})
			if err == nil {
				t.Errorf("got %+v from a leader that is cut off", outcome)
			}
		})
		one, _ := c.others(old)
		send(t, c.list[one], "m", 0)
		clients.Wait()
		c.heal()
		if d := receive(t, c.list[old], time.Second); len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
			t.Errorf("after the heal: got %+v, want the message for the first time", d.Messages)
		}
	})
}

// TestReceiveIsExecutedOnce: a message that was received for an answer that got
// lost is in the answer to the repetition, and counts once.
func TestReceiveIsExecutedOnce(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		inCluster(t, func(t *testing.T, c *nodes) {
			leader := c.leader()
			one, _ := c.others(leader)
			send(t, c.list[leader], "m", 0)
			c.cut(leader, one)
			got := make(chan Delivery, 1)
			go func() { got <- receive(t, c.list[one], wait) }()
			time.Sleep(250 * time.Millisecond)
			c.kill(leader)
			d := <-got
			if len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 || bodyOf(t, d.Messages[0]) != "m" {
				t.Errorf("wait %v: got %+v, want the message, received once", wait, d.Messages)
			}
			c.heal()
		})
	}
}

// TestReceiveOfForgottenSession: a receive that may have been executed in a session
// that has ended is not tried again and again, for its result is gone.
func TestReceiveOfForgottenSession(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		for i, n := range c.list {
			ended := newSession()
			r := reception{
				gateway: n.gateway, numbering: numbering{session: ended, origin: ended.begin(nil), maybe: true},
				poll: poll{command: receiveOne(time.Minute)}, limit: 20 * time.Second, began: n.config.Elapsed(),
			}
			began := time.Now()
			_, err := r.run(t.Context())
			if took := time.Since(began); !errors.Is(err, ErrOutcomeUnknown) || took > time.Second {
				t.Errorf("node %d: got %v after %v, want %v at once", i, err, took, ErrOutcomeUnknown)
			}
		}
	})
}

// TestPollThatHadItsTurn: a poll through a follower that got its turn is answered
// although the leader died with the answer.
func TestPollThatHadItsTurn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		leader := c.leader()
		one, other := c.others(leader)
		got := make(chan Delivery, 1)
		var hasTurn atomic.Bool
		go func() {
			d, err := c.list[one].Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, func() bool {
				if hasTurn.Load() {
					c.cut(leader, one)
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
			got <- d
		}()
		time.Sleep(1500 * time.Millisecond)
		hasTurn.Store(true)
		send(t, c.list[other], "m", 0)
		time.Sleep(250 * time.Millisecond)
		c.kill(leader)
		d := <-got
		if len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
			t.Errorf("got %+v, want the message, received once", d.Messages)
		}
		c.heal()
	})
}

func TestClientThatLeavesFollowerConsumesNothing(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Second, time.Hour} {
		inCluster(t, func(t *testing.T, c *nodes) {
			follower := c.list[c.follower()]
			left := make(chan Delivery, 1)
			began := time.Now()
			var gone atomic.Bool
			go func() {
				d, err := follower.Receive(t.Context(), receiveOne(30*time.Second), 20*time.Second, func() bool {
					return !gone.Load() && time.Since(began) < after
				})
				if err != nil {
					t.Error(err)
				}
				left <- d
			}()
			time.Sleep(6500 * time.Millisecond)
			if noticed := len(left) == 1; noticed != (after < time.Hour) {
				t.Errorf("after %v: the client's leaving was noticed: %v", after, noticed)
			}
			gone.Store(true) // a moment before its turn
			send(t, follower, "for somebody else", 0)
			d := receive(t, follower, 2*time.Second)
			if len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
				t.Errorf("got %+v, want the message with receive count 1", d.Messages)
			}
			if d := <-left; len(d.Messages) != 0 {
				t.Errorf("got %+v for a client that has left", d)
			}
			if parked := c.list[c.leader()].line.parked.Load(); parked != 0 {
				t.Errorf("%d receives still stand in line", parked)
			}
		})
	}
}

func TestContextEndsWaitThroughFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		d, err := c.list[c.follower()].Receive(ctx, receiveOne(30*time.Second), 20*time.Second, nil)
		if err != nil || len(d.Messages) > 0 || time.Since(began) != 3*time.Second {
			t.Errorf("got %+v, %v after %v; want an empty answer after 3s", d, err, time.Since(began))
		}
		synctest.Wait()
		if parked := c.list[c.leader()].line.parked.Load(); parked != 0 {
			t.Errorf("%d receives still stand in line", parked)
		}
	})
}

// TestDrainAnswersOwnClients: the clients of the node that ends are answered, those
// of others go on waiting.
func TestDrainAnswersOwnClients(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		leader := c.leader()
		one, other := c.others(leader)
		var answered [3]chan Delivery
		for i := range c.list {
			answered[i] = make(chan Delivery, 1)
		}
		for i := range c.list {
			go func() { answered[i] <- receive(t, c.list[i], 20*time.Second) }()
		}
		time.Sleep(3 * time.Second)
		c.list[one].Drain()
		c.list[leader].Drain()
		time.Sleep(10 * time.Millisecond)
		if len(answered[leader]) != 1 || len(answered[one]) != 1 {
			t.Errorf("answered: leader %d, follower %d, want both", len(answered[leader]), len(answered[one]))
		}
		c.stop(leader)
		time.Sleep(time.Second)
		if len(answered[other]) != 0 {
			t.Error("the client of a node that does not drain was answered")
		}
		send(t, c.list[other], "m", 0)
		if d := <-answered[other]; len(d.Messages) != 1 {
			t.Errorf("got %+v, want the message from the new leader", d)
		}
	})
}

// TestSessionIsRenewed when it has ended: here because so many others were opened.
func TestSessionIsRenewed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		for id := range uint64(1024) {
			if _, err := c.list[c.leader()].group.propose(t.Context(), raftfsm.OpenSession{Session: id + 1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i, n := range c.list {
			for j := range 10 {
				all.Go(func() { send(t, n, fmt.Sprint(i, "/", j), 0) })
			}
			all.Go(func() { receive(t, n, 0) })
		}
		all.Wait()
		if stored := c.stored(); stored != 30 {
			t.Errorf("got %d messages, want 30", stored)
		}
		c.awaitApplied()
		if sessions := c.list[0].Status().Groups[0].Sessions; sessions != 1024 {
			t.Errorf("got %d sessions, want 1024", sessions)
		}
	})
}

// TestPollMovesFromCutOffLeader: neither its own client nor that of a follower
// notices anything but the message.
func TestPollMovesFromCutOffLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		old := c.leader()
		one, other := c.others(old)
		answered := map[int]chan Delivery{old: make(chan Delivery, 1), one: make(chan Delivery, 1)}
		for i, answer := range answered {
			go func() { answer <- receive(t, c.list[i], 20*time.Second) }()
		}
		time.Sleep(time.Second)
		c.isolate(old)
		time.Sleep(2 * time.Second)
		send(t, c.list[other], "for the follower", 0)
		time.Sleep(100 * time.Millisecond)
		if len(answered[one]) != 1 || len((<-answered[one]).Messages) != 1 {
			t.Error("the follower's poll does not stand in the new leader's line")
		}
		c.heal()
		time.Sleep(5 * time.Second)
		send(t, c.list[other], "for the old leader", 0)
		time.Sleep(100 * time.Millisecond)
		if len(answered[old]) != 1 || len((<-answered[old]).Messages) != 1 {
			t.Error("the old leader's poll does not stand in the new leader's line")
		}
	})
}

// TestPollEndsInTimeWithoutLeader: a poll that a leader has seen waiting is
// answered empty at its end, although there is no leader any more.
func TestPollEndsInTimeWithoutLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		old := c.leader()
		_, other := c.others(old)
		c.kill(other)
		var polls sync.WaitGroup
		for i := range c.list {
			if c.list[i] == nil {
				continue
			}
			polls.Go(func() {
				began := time.Now()
				d := receive(t, c.list[i], 5*time.Second)
				if took := time.Since(began); len(d.Messages) != 0 || took < 4900*time.Millisecond || took > 6*time.Second {
					t.Errorf("got %+v after %v, want an empty answer after 5s", d, took)
				}
			})
		}
		time.Sleep(time.Second)
		c.isolate(old)
		polls.Wait()
	})
}

// TestEmptyAnswerNeedsProof: without a fresh proof of the leadership an empty
// answer comes from the log, and a poll waits only after the log has said that
// there is nothing.
func TestEmptyAnswerNeedsProof(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		proven := false
		n.line.proven = func() bool { return proven }
		for _, test := range []struct {
			proven bool
			wait   time.Duration
			want   uint64
		}{{true, 0, 0}, {false, 0, 1}, {true, 3 * time.Second, 0}, {false, 3 * time.Second, 1}} {
			proven = test.proven
			before, began := n.Metrics().Commands, time.Now()
			d := receive(t, n, test.wait)
			proposed := n.Metrics().Commands - before
			if len(d.Messages) != 0 || proposed != test.want || time.Since(began) < test.wait {
				t.Errorf("proven %v, wait %v: got %+v after %v with %d commands, want %d", test.proven, test.wait, d, time.Since(began), proposed, test.want)
			}
		}
	})
}
