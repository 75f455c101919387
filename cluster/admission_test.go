package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

func TestGrowingCommands(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Node) {
		topic := sns.TopicKey{Account: queue.Account, Name: "topic"}
		do(t, n, sns.CreateTopic{Topic: topic})
		for _, c := range []raftfsm.Command{
			sqs.SendMessageBatch{Queue: queue},
			sqs.CreateQueue{Queue: sqs.QueueKey{Account: queue.Account, Name: "another"}},
			sqs.TagQueue{Queue: queue},
			sns.PublishBatch{Topic: topic},
			sns.CreateTopic{Topic: sns.TopicKey{Account: queue.Account, Name: "another"}},
			sns.Subscribe{},
		} {
			if !grows(c, n.group.machine) {
				t.Errorf("%T passes although it makes the state larger", c)
			}
		}
		for _, c := range []raftfsm.Command{
			sqs.ReceiveMessage{},
			sqs.DeleteMessageBatch{},
			sqs.ChangeMessageVisibilityBatch{},
			sqs.CreateQueue{Queue: queue}, // is there
			sqs.DeleteQueue{},
			sqs.PurgeQueue{},
			sqs.GetQueueUrl{},
			sns.CreateTopic{Topic: topic}, // is there
			raftfsm.Pulse{},
		} {
			if grows(c, n.group.machine) {
				t.Errorf("%T is held back although it does not make the state larger", c)
			}
		}
	})
}

func TestAdmissionLimits(t *testing.T) {
	for _, test := range []struct {
		name  string
		short func(a *admission, pending *int64)
		heal  func(a *admission, pending *int64)
	}{
		{
			name:  "proposals",
			short: func(a *admission, _ *int64) { a.held = maxHeld },
			heal:  func(a *admission, _ *int64) { a.release(maxHeld) },
		},
		{
			name:  "bodies",
			short: func(_ *admission, pending *int64) { *pending = maxPendingBodies },
			heal:  func(a *admission, pending *int64) { *pending = 0; a.observe(false, false) },
		},
		{
			name:  "disk",
			short: func(a *admission, _ *int64) { a.observe(true, false) },
			heal:  func(a *admission, _ *int64) { a.observe(false, false) },
		},
		{
			name:  "memory",
			short: func(a *admission, _ *int64) { a.observe(false, true) },
			heal:  func(a *admission, _ *int64) { a.observe(false, false) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pending := int64(0)
				a := &admission{pending: func() int64 { return pending }}
				test.short(a, &pending)

				brief, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begin := time.Now()
				if err := a.admit(brief, nil, 10); !errors.Is(err, ErrOverloaded) || time.Since(begin) != time.Second {
					t.Errorf("short: got %v after %v, want %v after 1s", err, time.Since(begin), ErrOverloaded)
				}
				if a.refusals() != 1 {
					t.Errorf("got %d refusals, want 1", a.refusals())
				}

				admitted := make(chan error, 1)
				go func() { admitted <- a.admit(t.Context(), nil, 10) }()
				synctest.Wait()
				test.heal(a, &pending)
				if err := <-admitted; err != nil {
					t.Errorf("healed: got %v, want none", err)
				}
			})
		})
	}
}

func TestAdmissionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{pending: func() int64 { return 0 }}
		a.held = maxHeld
		order := make(chan int64, 3)
		come := func(size int64) {
			go func() {
				if err := a.admit(t.Context(), nil, size); err != nil {
					t.Error(err)
				}
				order <- size
			}()
			synctest.Wait()
		}
		come(3 << 20)
		come(1)
		a.release(2 << 20) // room for the second and the third, but they came later
		come(2 << 20)
		if len(order) != 0 {
			t.Errorf("%d bytes were let in before those that came first", <-order)
		}
		a.release(1 << 20)
		if first := <-order; first != 3<<20 {
			t.Errorf("got %d first, want %d", first, 3<<20)
		}
		a.release(maxHeld)
		<-order
		<-order
	})
}

func TestAdmissionLargeCommandGoesAlone(t *testing.T) {
	a := &admission{pending: func() int64 { return 0 }}
	if err := a.admit(t.Context(), nil, maxHeld*2); err != nil {
		t.Error(err)
	}
}

func TestAdmissionClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{pending: func() int64 { return 0 }}
		a.observe(true, false)
		waiting := make(chan error, 1)
		go func() { waiting <- a.admit(t.Context(), nil, 1) }()
		synctest.Wait()
		a.close()
		if err := <-waiting; !errors.Is(err, ErrNoLeader) {
			t.Errorf("got %v, want %v", err, ErrNoLeader)
		}
		if err := a.admit(t.Context(), nil, 1); !errors.Is(err, ErrNoLeader) {
			t.Errorf("after close: got %v, want %v", err, ErrNoLeader)
		}
	})
}

// TestOverloadIsToldThroughFollowers as well: the leader says in time that a command
// was held back, and the client may safely send it again.
func TestOverloadIsToldThroughFollowers(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		room := c.list[c.leader()].group.admission
		if err := room.admit(t.Context(), nil, maxHeld); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.list {
			if got := <-ask(t, n, "m"); !errors.Is(got.err, ErrOverloaded) || got.took > n.config.RequestTimeout {
				t.Errorf("%s: got %v after %v, want %v", n.config.NodeName, got.err, got.took, ErrOverloaded)
			}
		}
		room.release(maxHeld)
		for _, n := range c.list {
			send(t, n, "m", 0)
		}
		if stored := c.stored(); stored != len(c.list) {
			t.Errorf("got %d messages, want %d", stored, len(c.list))
		}
	})
}
