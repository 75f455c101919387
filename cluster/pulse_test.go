package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/sqs"
)

// movable makes a dead-letter queue of n messages.
func movable(t *testing.T, n *Node, messages int) (source, destination sqs.QueueKey) {
	t.Helper()
	source = sqs.QueueKey{Account: queue.Account, Name: "dlq"}
	do(t, n, sqs.CreateQueue{Queue: source})
	createQueue(t, n, sqs.Attribute{
		Name: sqs.RedrivePolicyAttribute, Value: "to dlq", Redrive: &sqs.RedrivePolicy{Target: source, MaxReceiveCount: 1},
	})
	for sent := 0; sent < messages; sent += 10 {
		c := sqs.SendMessageBatch{Queue: source}
		var contents [][]byte
		for i := range 10 {
			one, content := sendMessage(fmt.Sprint(sent+i), 0)
			c.Entries = append(c.Entries, one.Entries...)
			contents = append(contents, content)
		}
		do(t, n, c, contents...)
	}
	return source, queue
}

// arrivals receives all messages and returns when they were sent.
func arrivals(t *testing.T, n *Node) (times []sqs.Time) {
	t.Helper()
	for {
		c := receiveOne(time.Hour)
		c.MaxMessages = 10
		d, err := n.Receive(t.Context(), c, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Messages) == 0 {
			return times
		}
		for _, m := range d.Messages {
			times = append(times, m.SentAt)
		}
	}
}

// TestMoveTaskKeepsItsRate runs move tasks through a whole node, which is closed
// and started again after a while: in no second more than a tenth above the rate,
// in a minute as many as the rate says, within two percent. A rate below ten leaves
// no room in which to make up for the time that the node was down.
func TestMoveTaskKeepsItsRate(t *testing.T) {
	for _, test := range []struct {
		rate int
		down time.Duration
	}{{1, 0}, {3, 0}, {30, 0}, {500, 0}, {30, time.Second}, {500, time.Second}} {
		if raceEnabled && test.rate == 500 {
			continue // tens of thousands of messages
		}
		t.Run(fmt.Sprintf("%d a second, down for %v", test.rate, test.down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepRate(t, test.rate, test.down) })
		})
	}
}

func keepRate(t *testing.T, rate int, down time.Duration) {
	c := bubbleConfig()
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	source, destination := movable(t, n, rate*70)
	do(t, n, sqs.StartMessageMoveTask{Source: source, Task: sqs.TaskID{1}, Destination: &destination, MaxPerSecond: rate})
	began := n.Now()
	time.Sleep(20500 * time.Millisecond)
	if down > 0 {
		stop(t, n)
		time.Sleep(down)
		n = start(t, c)
	}
	time.Sleep(60*time.Second - n.Now().Sub(began))
	moved := do(t, n, sqs.CancelMessageMoveTask{Source: source, Task: sqs.TaskID{1}}).Result.(sqs.CancelMessageMoveTaskResult).Moved
	if most, least := float64(60*rate)*1.02, float64(60*rate)*0.98; float64(moved) > most || float64(moved) < least {
		t.Errorf("got %d messages moved in a minute, want %.0f to %.0f", moved, least, most)
	}
	times := arrivals(t, n)
	if len(times) != int(moved) {
		t.Errorf("got %d messages, %d were moved", len(times), moved)
	}
	first := 0
	for i, last := range times {
		for times[first] <= last-1000 {
			first++
		}
		if n := i - first + 1; n > rate+rate/10 {
			t.Fatalf("got %d messages in the second before %v", n, last.Sub(began))
		}
	}
	if down == 0 {
		stop(t, n)
	}
}

// TestMoveTaskStartsSoon: nothing but the pulse looks after a task.
func TestMoveTaskStartsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		source, destination := movable(t, n, 3000)
		do(t, n, sqs.StartMessageMoveTask{Source: source, Task: sqs.TaskID{1}, Destination: &destination})
		time.Sleep(pulseEvery)
		synctest.Wait()
		if got := len(arrivals(t, n)); got != 3000 {
			t.Errorf("got %d messages after %v, want all 3,000", got, pulseEvery)
		}
	})
}
