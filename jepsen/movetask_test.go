package jepsen_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// A node that is killed while a move task runs goes on with it. The messages go to
// and fro between two queues, at a rate or as fast as can be; there is one copy of
// each at the end, never received and with an id of its own.
func TestKillDuringMoveTasks(t *testing.T) {
	kills, messages := 5, 400
	if *long {
		kills, messages = 20, 2000
	}
	random := rand.New(rand.NewPCG(newSeed(t), 3<<32))
	node := startNode(t, "--test-mode", "--test-snapshot-entries", "40")
	c := newClient(t, node)
	queues := [2]workload.Queue{createQueue(t, c, "a", "60"), createQueue(t, c, "b", "60")}
	var arns [2]string
	for i, q := range queues {
		var err error
		if arns[i], err = c.ARN(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range queues {
		if err := c.SetRedrivePolicy(t.Context(), q, arns[1-i], 10); err != nil {
			t.Fatal(err)
		}
	}
	fillNumbered(t, c, queues[0], messages)
	at, interrupted := 0, 0
	for i := range kills {
		rate, high := 500, time.Duration(messages)*2*time.Millisecond
		if i%5 == 4 {
			rate, high = 0, 300*time.Millisecond
		}
		if err := c.StartMoveTask(t.Context(), arns[at], arns[1-at], rate); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(high))))
		if latestTask(t, c, arns[at]).Status == "RUNNING" { // after a slow restart it is done before anybody can ask
			interrupted++
		}
		kill(t, node, c.Recorder)
		restart(t, node)
		awaitMoveTask(t, c, arns[at], messages)
		at = 1 - at
	}
	if interrupted == 0 {
		t.Error("no kill came while a task was running: the run proves nothing")
	}
	t.Logf("%d of %d tasks were interrupted", interrupted, kills)
	oneCopyEach(t, c, queues[at], queues[1-at], messages)
}

// latestTask is the latest task of a source.
func latestTask(t *testing.T, c *workload.Client, source string) workload.MoveTask {
	t.Helper()
	tasks, err := c.MoveTasks(t.Context(), source)
	if err != nil || len(tasks) == 0 {
		t.Fatalf("the task is lost: %v", err)
	}
	return tasks[0]
}

// awaitMoveTask waits until the latest task of a source has moved all messages.
func awaitMoveTask(t *testing.T, c *workload.Client, source string, messages int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		task := latestTask(t, c, source)
		switch {
		case task.Status == "COMPLETED":
			if task.Moved != messages || task.ToMove != messages {
				t.Errorf("got %+v, want %d messages moved", task, messages)
			}
			return
		case task.Status != "RUNNING" || time.Now().After(end):
			t.Fatalf("got %+v, want it completed", task)
		}
	}
}

// oneCopyEach checks that every message is in the one queue, and none in the other.
func oneCopyEach(t *testing.T, c *workload.Client, full, empty workload.Queue, messages int) {
	t.Helper()
	receive(t, c, empty, 0, 0)
	bodies, ids := map[string]int{}, map[string]int{}
	for {
		o := succeed(t, c.Receive(t.Context(), full, 10, history.QueueDefault, 0))
		if len(o.Messages) == 0 {
			break
		}
		for _, m := range o.Messages {
			bodies[m.Body]++
			ids[m.MessageID]++
			if m.Count != 1 {
				t.Errorf("%s was received %d times, want once", m.Body, m.Count)
			}
		}
	}
	for i := range messages {
		if n := bodies[fmt.Sprint("body ", i)]; n != 1 {
			t.Errorf("body %d: got %d copies, want 1", i, n)
		}
	}
	if len(bodies) != messages || len(ids) != messages {
		t.Errorf("got %d bodies under %d ids, want %d", len(bodies), len(ids), messages)
	}
}
