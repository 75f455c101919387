package jepsen_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/workload"
)

// progress is how many messages a task had moved at a moment between two times.
type progress struct {
	call, ret time.Time
	moved     int
}

// A move task keeps to its rate, also over a kill -9: what it did not do meanwhile it
// makes up for a second's worth only, and never faster than a tenth above the rate.
func TestMoveTaskRateOverKill(t *testing.T) {
	const rate = 100
	messages, kills := 900, 1
	if *long {
		messages, kills = 12_000, 2
	}
	node := startNode(t, "--test-mode", "--test-snapshot-entries", "100")
	c := newClient(t, node)
	dead, back := createQueue(t, c, "dead", "60"), createQueue(t, c, "back", "60")
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
	for sent := 0; sent < messages; sent += 10 {
		bodies := make([]string, 10)
		for i := range bodies {
			bodies[i] = fmt.Sprint("body ", sent+i)
		}
		for _, o := range c.SendBatch(t.Context(), dead, bodies) {
			succeed(t, o)
		}
	}
	if err := c.StartMoveTask(t.Context(), from, to, rate); err != nil {
		t.Fatal(err)
	}
	seen := watchRate(t, node, c, from, messages, kills)
	checkVelocity(t, seen, rate)
	t.Logf("%d messages in %v, %d looks", messages, seen[len(seen)-1].ret.Sub(seen[0].call).Round(time.Millisecond), len(seen))
}

// watchRate looks at the task all the time until it has ended, and kills the node so
// often while it runs.
func watchRate(t *testing.T, node *fault.Node, c *workload.Client, source string, messages, kills int) (seen []progress) {
	t.Helper()
	next := messages / (kills + 1)
	for {
		p := progress{call: time.Now()}
		tasks, err := c.MoveTasks(t.Context(), source)
		p.ret = time.Now()
		if err != nil || len(tasks) == 0 {
			t.Fatalf("the task is lost: %v", err)
		}
		p.moved = tasks[0].Moved
		seen = append(seen, p)
		switch {
		case tasks[0].Status == "COMPLETED" && p.moved == messages && kills == 0:
			return seen
		case tasks[0].Status != "RUNNING":
			t.Fatalf("got %+v with %d kills to come, want it running", tasks[0], kills)
		case kills > 0 && p.moved >= next:
			kills--
			next += messages / 3
			kill(t, node, c.Recorder)
			time.Sleep(2 * time.Second) // what would have been moved meanwhile is not made up for
			restart(t, node)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkVelocity compares every two looks that are at most a second apart, and those
// a minute apart. What was moved between two looks was moved between the call of the
// first and the return of the second.
func checkVelocity(t *testing.T, seen []progress, rate int) {
	t.Helper()
	first, minute := 0, 0
	for i, p := range seen {
		for first < i && p.ret.Sub(seen[first].call) > time.Second {
			first++
		}
		if n := p.moved - seen[first].moved; n > rate+rate/10 {
			t.Fatalf("%d messages in %v, want at most %d", n, p.ret.Sub(seen[first].call), rate+rate/10)
		}
		for minute < i && p.ret.Sub(seen[minute].call) > time.Minute {
			minute++
		}
		if n := p.moved - seen[minute].moved; n > rate*60*102/100 {
			t.Fatalf("%d messages in %v, want at most %d", n, p.ret.Sub(seen[minute].call), rate*60*102/100)
		}
	}
}
