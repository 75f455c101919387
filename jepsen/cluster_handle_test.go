package jepsen_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// createFIFO creates a FIFO queue with the given visibility timeout in seconds and
// deduplication scope: queue, or messageGroup as for high throughput.
func createFIFO(t *testing.T, c *workload.Client, name, visibility, scope string) workload.Queue {
	t.Helper()
	limit := "perQueue"
	if scope == "messageGroup" {
		limit = "perMessageGroupId"
	}
	q, err := c.CreateQueue(t.Context(), name, map[string]string{
		"FifoQueue": "true", "VisibilityTimeout": visibility, "DeduplicationScope": scope, "FifoThroughputLimit": limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A handle is received on one node and extended on the second; the leader dies;
// then it deletes its message on the third.
func TestClusterHandlesSurviveLeaders(t *testing.T) {
	deaths, handles := 2, 30
	if *long {
		deaths, handles = 20, 50
	}
	c := startTrio(t)
	setup := c.client(c.leader())
	queues := []workload.Queue{createQueue(t, setup, "standard", "300"), createFIFO(t, setup, "ordered.fifo", "300", "queue")}
	for death := range deaths {
		leader := c.leader()
		others := c.Others(leader)
		rand.Shuffle(2, func(i, j int) { others[i], others[j] = others[j], others[i] })
		receives, extends, deletes := c.client(leader), c.client(others[0]), c.client(others[1])
		if death%2 == 1 {
			receives, extends = extends, receives
		}
		var kept [2][]string
		for i, q := range queues {
			kept[i] = receiveHandles(t, receives, q, death, handles/2)
			for _, h := range kept[i] {
				succeed(t, extends.Change(t.Context(), q, h, 10*time.Minute))
			}
		}
		c.kill(leader)
		for i, q := range queues {
			for _, h := range kept[i] {
				succeed(t, deletes.Delete(t.Context(), q, h))
			}
			if n := succeed(t, deletes.Count(t.Context(), q)); n.Visible+n.InFlight+n.Delayed != 0 {
				t.Fatalf("death %d: %s holds %d, %d in flight after all were deleted", death, q.Name, n.Visible, n.InFlight)
			}
		}
		c.restart(leader)
	}
}

// receiveHandles sends messages and receives them, on one node.
func receiveHandles(t *testing.T, c *workload.Client, q workload.Queue, round, count int) (handles []string) {
	t.Helper()
	for i := range count {
		body := history.Body(history.Name{Run: "handles", Process: round, Counter: i}, 200)
		if strings.HasSuffix(q.Name, ".fifo") {
			succeed(t, c.SendFIFO(t.Context(), q,
				workload.FIFOMessage{Body: body, Group: fmt.Sprint("group-", i), DedupID: fmt.Sprint(round, "-", i)})[0])
			continue
		}
		send(t, c, q, body)
	}
	for len(handles) < count {
		o := succeed(t, c.Receive(t.Context(), q, 10, history.QueueDefault, 0))
		if len(o.Messages) == 0 {
			t.Fatalf("%s: received %d of %d", q.Name, len(handles), count)
		}
		for _, m := range o.Messages {
			handles = append(handles, m.Handle)
		}
	}
	return handles
}

// Polls that are parked on living nodes when the leader dies each get a message
// that is sent afterwards, or an empty answer in time.
func TestClusterParkedPollsOutliveTheLeader(t *testing.T) {
	polls := 300
	if *long {
		polls = 1000
	}
	wait := bar(10*time.Second, 20*time.Second) // all are to be parked and all messages sent in it
	c := startTrio(t)
	leader := c.leader()
	others := c.Others(leader)
	setup := c.client(others[0])
	q := createQueue(t, setup, "q", "300")

	transport := c.Transport()
	transport.MaxIdleConnsPerHost = polls
	answers := make([]history.Operation, polls)
	took := make([]time.Duration, polls)
	var parked sync.WaitGroup
	firstEnd := time.Now().Add(wait)
	for i := range polls {
		client := c.client(others[i%2])
		client.HTTP = &http.Client{Transport: transport}
		parked.Go(func() {
			start := time.Now()
			answers[i] = client.Receive(t.Context(), q, 1, history.QueueDefault, wait)
			took[i] = time.Since(start)
		})
	}
	awaitTrue(t, "parked polls", func() bool {
		s, err := leader.Status(t.Context())
		return err == nil && s.Groups[0].ParkedPolls >= polls
	})
	c.kill(leader)
	messages := polls / 2
	for i := 0; i < messages; i += 10 {
		var bodies []string
		for j := range 10 {
			bodies = append(bodies, history.Body(history.Name{Run: "polls", Counter: i + j}, 100))
		}
		for _, o := range setup.SendBatch(t.Context(), q, bodies) {
			succeed(t, o)
		}
	}
	left := time.Until(firstEnd)
	parked.Wait()
	seen := map[string]bool{}
	for i, o := range answers {
		if o.Outcome != history.OK || took[i] > wait+bar(5*time.Second, patience) {
			t.Fatalf("poll %d: %s, status %d, %s, after %v", i, o.Outcome, o.Status, o.Error, took[i])
		}
		for _, m := range o.Messages {
			if seen[m.Body] {
				t.Errorf("%q was handed out twice", m.Body)
			}
			seen[m.Body] = true
		}
	}
	t.Logf("%d of %d messages were handed out; the last was sent %v before the first poll ended", len(seen), messages, left)
	if len(seen) != messages && left > bar(0, 2*time.Second) {
		t.Errorf("%d messages were not handed out", messages-len(seen))
	}
}
