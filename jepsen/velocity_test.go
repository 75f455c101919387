package jepsen_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// A move task keeps to its rate, also over a kill -9: what it did not do meanwhile it
// makes up for a second's worth only, and never faster than a tenth above the rate. In
// the long form the node is started again at once, and 60 s with that in them have what
// the rate says, but for two in a hundred.
func TestMoveTaskRateOverKill(t *testing.T) {
	const rate = 100
	messages, kills, pause := 900, 1, 2*time.Second
	if *long {
		messages, kills, pause = 9000, 2, 0
	}
	node := startNode(t, "--test-mode", "--test-snapshot-entries", "100")
	c := newClient(t, node)
	dead, back := createQueue(t, c, "dead", "300"), createQueue(t, c, "back", "300")
	from, err := c.ARN(t.Context(), dead)
	if err != nil {
		t.Fatal(err)
	}
	to, err := c.ARN(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetRedrivePolicy(t.Context(), back, from, 10); err != nil {
		t.Fatal(err)
	}
	fillNumbered(t, c, dead, messages)
	if err := c.StartMoveTask(t.Context(), from, to, rate); err != nil {
		t.Fatal(err)
	}
	for i := range kills {
		awaitMoved(t, c, from, messages*(i+1)/(kills+1))
		kill(t, node, c.Recorder)
		time.Sleep(pause)
		t.Logf("started again in %v", restart(t, node))
	}
	awaitMoveTask(t, c, from, messages)
	checkVelocity(t, movedAt(t, c, back, messages), rate)
}

// fillNumbered sends so many messages, ten at a time.
func fillNumbered(t *testing.T, c *workload.Client, q workload.Queue, messages int) {
	t.Helper()
	for sent := 0; sent < messages; sent += 10 {
		bodies := make([]string, 10)
		for i := range bodies {
			bodies[i] = fmt.Sprint("body ", sent+i)
		}
		for _, o := range c.SendBatch(t.Context(), q, bodies) {
			succeed(t, o)
		}
	}
}

// awaitMoved waits until the latest task of a source, which must be running, has moved
// so many messages.
func awaitMoved(t *testing.T, c *workload.Client, source string, least int) {
	t.Helper()
	for ; ; time.Sleep(10 * time.Millisecond) {
		task := latestTask(t, c, source)
		if task.Status != "RUNNING" {
			t.Fatalf("got %+v, want it running", task)
		}
		if task.Moved >= least {
			return
		}
	}
}

// movedAt empties the queue that a task has filled, and returns when each message came
// into it, in order: a moved message is a new one, with a SentTimestamp of its own.
func movedAt(t *testing.T, c *workload.Client, q workload.Queue, messages int) []time.Duration {
	t.Helper()
	var times []time.Duration
	for len(times) < messages {
		o := succeed(t, c.Receive(t.Context(), q, 10, history.QueueDefault, 0))
		if len(o.Messages) == 0 {
			t.Fatalf("got %d messages, want %d", len(times), messages)
		}
		for _, m := range o.Messages {
			times = append(times, time.Duration(m.SentAt)*time.Millisecond)
		}
	}
	slices.Sort(times)
	return times
}

// checkVelocity looks at every second, and in the long form at every minute, that
// begins with a moved message.
func checkVelocity(t *testing.T, times []time.Duration, rate int) {
	t.Helper()
	length := times[len(times)-1] - times[0]
	t.Logf("%d messages in %v", len(times), length)
	within := func(first int, window time.Duration) int {
		end, _ := slices.BinarySearch(times[first:], times[first]+window)
		return end
	}
	least, minutes := len(times), 0
	for i, at := range times {
		if n := within(i, time.Second); n > rate+rate/10 {
			t.Fatalf("%d messages in the second from %v on, want at most %d", n, at-times[0], rate+rate/10)
		}
		n := within(i, time.Minute)
		if most := rate * 60 * 102 / 100; n > most {
			t.Fatalf("%d messages in the minute from %v on, want at most %d", n, at-times[0], most)
		}
		if at+time.Minute <= times[len(times)-1] {
			least, minutes = min(least, n), minutes+1
		}
	}
	if !*long || raceEnabled {
		return // the machine may have had no time for it
	}
	if want := rate * 60 * 98 / 100; minutes == 0 || least < want {
		t.Errorf("of %d minutes the slowest has %d messages, want at least %d", minutes, least, want)
	}
}
