package jepsen_test

import (
	"context"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// clusterStorm is a storm over a cluster.
type clusterStorm struct {
	*storm
	c *trio
}

func (c *trio) newStorm() *clusterStorm {
	c.t.Helper()
	s := &clusterStorm{storm: newStorm(c.t), c: c}
	s.options.Cluster = true
	c.recorder = s.recorder
	return s
}

// clients are those of all nodes: they go to the ready ones in turn, repeat nothing,
// and wait for an answer as long as timeout.
func (s *clusterStorm) clients(timeout time.Duration) workload.Standard {
	s.t.Helper()
	clients := s.storm.clients("http://cluster", s.c.balanced())
	clients.Timeout = timeout
	return clients
}

// drive starts the load of TestKill on a cluster.
func (c *trio) drive(timeout time.Duration) *clusterStorm {
	c.t.Helper()
	s := c.newStorm()
	s.start(s.standard(s.clients(timeout)))
	return s
}

// judge ends the load, restarts every node, so that what was under way is decided,
// empties the queues and holds the history against the promises. Messages may be
// late by slack.
func (s *clusterStorm) judge(slack time.Duration) checker.Coverage {
	s.t.Helper()
	s.stop()
	s.c.restartAll()
	s.options.Slack = slack
	coverage := s.storm.judge()
	s.c.expectSameState()
	return coverage
}

// legalRefusals are what the state answers to clients that come late.
var legalRefusals = []string{"InvalidParameterValueException", "MessageNotInflight"}

// patience is how long clients wait that are to see no error.
const patience = 15 * time.Second

// expectNoErrors fails the test if a client got an answer with an error: a node
// that lives has no reason for one.
func expectNoErrors(t *testing.T, operations []history.Operation) {
	t.Helper()
	counts := map[string]int{}
	for _, o := range operations {
		if o.Status >= 400 && !slices.Contains(legalRefusals, o.Error) {
			counts[string(o.Kind)+" "+strconv.Itoa(o.Status)+" "+o.Error]++
		}
	}
	for text, count := range counts {
		t.Errorf("%d clients of living nodes were answered %s", count, text)
	}
}

// expectSameState waits until all nodes have digests of one index, which must be
// equal.
func (c *trio) expectSameState() {
	c.t.Helper()
	sums := map[uint64]map[string]string{}
	for _, n := range c.Nodes() {
		s, err := n.Status(c.within(10 * time.Second))
		if err != nil {
			c.t.Error(err)
			continue
		}
		for _, d := range s.Groups[0].Digests {
			if sums[d.Index] == nil {
				sums[d.Index] = map[string]string{}
			}
			sums[d.Index][s.Node] = d.Sum
		}
	}
	for index, nodes := range sums {
		for _, sum := range nodes {
			for _, other := range nodes {
				if sum != other {
					c.t.Fatalf("the states differ at index %d: %v", index, nodes)
				}
			}
		}
	}
}

// outage does something to the cluster while a client of each of the nodes sends
// one message after the other, and returns how long it took from then until a
// send that began when it was done was acknowledged. None of them may see an error.
func (c *trio) outage(q workload.Queue, nodes []*fault.Node, do func()) time.Duration {
	c.t.Helper()
	recorder := history.NewRecorder(io.Discard) // of their own: what they send is not received
	var mu sync.Mutex
	var sent []history.Operation
	from := history.Never
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var sending sync.WaitGroup
	for _, n := range nodes {
		client := c.client(n)
		client.Recorder = recorder
		sending.Go(func() {
			for ctx.Err() == nil {
				o := client.Send(context.WithoutCancel(ctx), q, "probe", history.QueueDefault)
				mu.Lock()
				o.Return = recorder.Now()
				sent = append(sent, o)
				if o.Outcome == history.OK && o.Call >= from {
					cancel()
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond) // leaves the machine room
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // of peace
	start := recorder.Now()
	do()
	mu.Lock()
	from = recorder.Now()
	mu.Unlock()
	sending.Wait()
	expectNoErrors(c.t, sent)
	first := history.Never
	for _, o := range sent {
		if o.Outcome == history.OK && o.Call >= from {
			first = min(first, o.Return-start)
		}
	}
	return first
}
