package jepsen_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// pastState is what a leader that was replaced may still believe: an attribute, a
// list of queues, and messages to hand out, which have all changed since.
type pastState struct {
	c         *trio
	attribute workload.Queue // its VisibilityTimeout is raised
	messages  workload.Queue // they are received by somebody else
}

const pastMessages = 10

// newPastState sets up what is going to change.
func (c *trio) newPastState() *pastState {
	c.t.Helper()
	client := c.unrecorded(c.leader())
	s := &pastState{c: c, attribute: createQueue(c.t, client, "attribute", "30"), messages: createQueue(c.t, client, "messages", "30")}
	fill(c.t, client, s.messages, pastMessages)
	c.awaitCaughtUp()
	return s
}

// change changes all of it, on one node.
func (s *pastState) change(n *fault.Node) {
	t := s.c.t
	t.Helper()
	client := s.c.unrecorded(n)
	in := map[string]any{"QueueUrl": s.attribute.URL, "Attributes": map[string]string{"VisibilityTimeout": "77"}}
	if err := client.Call(t.Context(), "SetQueueAttributes", in, nil); err != nil {
		t.Fatal(err)
	}
	createQueue(t, client, "later", "30")
	for received := 0; received < pastMessages; {
		o := succeed(t, client.Receive(t.Context(), s.messages, 10, 5*time.Minute, 5*time.Second))
		received += len(o.Messages)
	}
}

// ask asks a node for all of it, now, often and on connections of their own, and
// returns when every question is on its way. The returned function waits for the
// answers, none of which may be of the past, and counts those that were good.
func (s *pastState) ask(n *fault.Node, times int) (answered func() int) {
	t := s.c.t
	var asking, asked sync.WaitGroup
	var mu sync.Mutex
	good := 0
	question := func(f func(*workload.Client) (ok bool, past string)) {
		asked.Add(1)
		asking.Go(func() {
			client := s.c.unrecorded(n)
			asked.Done()
			ok, past := f(client)
			mu.Lock()
			defer mu.Unlock()
			if past != "" {
				t.Errorf("a leader that was replaced answered %s", past)
			}
			if ok {
				good++
			}
		})
	}
	for range times {
		question(s.askAttribute)
		question(s.askList)
		question(s.askMessages)
	}
	asked.Wait()
	time.Sleep(200 * time.Millisecond) // until the questions are in the node's sockets
	return func() int {
		asking.Wait()
		return good
	}
}

func (s *pastState) askAttribute(client *workload.Client) (ok bool, past string) {
	var out struct {
		Attributes struct{ VisibilityTimeout string }
	}
	in := map[string]any{"QueueUrl": s.attribute.URL, "AttributeNames": []string{"VisibilityTimeout"}}
	if client.Call(s.c.t.Context(), "GetQueueAttributes", in, &out) != nil {
		return false, ""
	}
	if out.Attributes.VisibilityTimeout != "77" {
		past = "the VisibilityTimeout of the past, " + out.Attributes.VisibilityTimeout
	}
	return true, past
}

func (s *pastState) askList(client *workload.Client) (ok bool, past string) {
	var out struct{ QueueUrls []string }
	if client.Call(s.c.t.Context(), "ListQueues", map[string]any{}, &out) != nil {
		return false, ""
	}
	if !slices.ContainsFunc(out.QueueUrls, func(url string) bool { return strings.HasSuffix(url, "/later") }) {
		past = "the list of the past"
	}
	return true, past
}

func (s *pastState) askMessages(client *workload.Client) (ok bool, past string) {
	o := client.Receive(s.c.t.Context(), s.messages, 10, history.QueueDefault, 0)
	if len(o.Messages) > 0 {
		past = "with messages that another client holds"
	}
	return o.Outcome == history.OK, past
}

// recover waits until a send through each node is acknowledged, which must take
// less than five seconds, or half a minute on a busy machine.
func (c *trio) recover(q workload.Queue) {
	c.t.Helper()
	start := time.Now()
	var sending sync.WaitGroup
	for i, n := range c.Nodes() {
		client := c.unrecorded(n)
		client.Timeout = time.Second
		sending.Go(func() {
			for client.Send(c.t.Context(), q, "probe", history.QueueDefault).Outcome != history.OK {
				if time.Since(start) > time.Minute {
					c.t.Errorf("n%d does not take messages", i+1)
					return
				}
				time.Sleep(10 * time.Millisecond) // between two tries
			}
		})
	}
	sending.Wait()
	took := time.Since(start)
	c.t.Logf("all nodes take messages %v later", took)
	if limit := bar(5*time.Second, 30*time.Second); took > limit {
		c.t.Errorf("it took %v, want less than %v", took, limit)
	}
}

// A leader that stood still answers nothing of the past when it goes on, whatever
// has been waiting in its sockets.
func TestClusterPausedLeader(t *testing.T) {
	pause := 4 * time.Second
	if *long {
		pause = 10 * time.Second
	}
	c := startTrio(t)
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	s := c.newPastState()
	load := c.drive(2 * time.Second)
	leader := c.leader()
	if err := leader.Pause(); err != nil {
		t.Fatal(err)
	}
	c.recorder.Fault("pause leader")
	start := time.Now()
	s.change(c.leader(c.Others(leader)...))
	answered := s.ask(leader, 20)
	time.Sleep(pause - time.Since(start))
	if err := leader.Resume(); err != nil {
		t.Fatal(err)
	}
	c.recorder.Fault("resume leader")
	c.recover(probed)
	if good := answered(); good == 0 {
		t.Error("nothing that was asked during the pause was answered")
	}
	load.judge(10 * time.Second)
}

// A leader that only clients still reach answers nothing of the past.
func TestClusterIsolatedLeader(t *testing.T) {
	skipUnderRace(t)
	network := newNetwork(t)
	c := startTrioWith(t, fault.ClusterOptions{Network: network, Flags: []string{"--request-timeout", "6s"}})
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	s := c.newPastState()
	load := c.drive(2 * time.Second)
	leader := c.leader()
	at := slices.Index(c.Nodes(), leader)
	network.Isolate(network.Host(at), network.Host((at+1)%3), network.Host((at+2)%3))
	c.recorder.Fault("isolate leader")
	s.change(c.leader(c.Others(leader)...))
	s.ask(leader, 5)()
	answered := s.ask(leader, 20)
	network.Heal()
	c.recorder.Fault("heal")
	c.recover(probed)
	if good := answered(); good == 0 {
		t.Error("nothing that was asked before the heal was answered")
	}
	load.judge(15 * time.Second)
}
