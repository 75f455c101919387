package jepsen_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

// clusterLoad is the load of TestKill on all nodes of a cluster in turn.
type clusterLoad struct {
	c      *trio
	load   workload.Standard
	file   *os.File
	cancel context.CancelFunc
	driven chan struct{}
}

// drive starts a load. The clients repeat nothing, wait for an answer as long as
// timeout, and go to the nodes that are ready in turn.
func (c *trio) drive(timeout time.Duration) *clusterLoad {
	c.t.Helper()
	file, err := os.Create(filepath.Join(c.t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { file.Close() })
	c.recorder = history.NewRecorder(file)
	seed := uint64(time.Now().UnixNano())
	c.t.Logf("seed %d", seed)
	d := &clusterLoad{c: c, file: file, driven: make(chan struct{}), load: workload.Standard{
		Endpoint: "http://cluster", Transport: c.balanced(), Recorder: c.recorder, Run: "c" + strconv.FormatUint(seed, 36),
		Producers: 3, Consumers: 6, Pause: 15 * time.Millisecond, Timeout: timeout, Seed: seed,
	}}
	setup := &workload.Client{Endpoint: d.load.Endpoint, Recorder: c.recorder, Timeout: patience, HTTP: &http.Client{Transport: d.load.Transport}}
	d.load.Queues = []workload.Queue{createQueue(c.t, setup, "short", "2"), createQueue(c.t, setup, "long", "4")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	d.cancel = cancel
	go func() {
		defer close(d.driven)
		d.load.Drive(ctx)
	}()
	c.t.Cleanup(d.stop)
	return d
}

// stop ends the load and waits until its calls are answered.
func (d *clusterLoad) stop() {
	d.cancel()
	<-d.driven
}

// check holds what has been recorded by now against the promises.
func (d *clusterLoad) check(slack time.Duration, drained bool) checker.Report {
	return checker.Check(d.c.recorder.Operations(), checker.Options{
		Queues:  map[string]checker.Queue{"short": {VisibilityTimeout: 2 * time.Second}, "long": {VisibilityTimeout: 4 * time.Second}},
		Slack:   slack,
		Cluster: true,
		Drained: drained,
	})
}

// judge ends the load, restarts every node, so that what was under way is decided,
// empties the queues and holds the history against the promises. Messages may be
// late by slack.
func (d *clusterLoad) judge(slack time.Duration) checker.Coverage {
	t := d.c.t
	t.Helper()
	d.stop()
	if err := d.c.Kill(); err != nil {
		t.Fatal(err)
	}
	d.c.recorder.Fault("kill all")
	if err := d.c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	drained := drain(t, d.load)
	report := d.check(slack, drained)
	t.Log(report.Coverage)
	if len(report.Violations) > 0 {
		t.Errorf("history in %s:\n%s", d.file.Name(), report)
	}
	d.c.expectSameState()
	if err := d.c.recorder.Err(); err != nil {
		t.Error(err)
	}
	return report.Coverage
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
