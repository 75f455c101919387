package jepsen_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// TestThreeNodes: what one node does the others know, and what is acknowledged
// outlives the leader and the loss of power.
func TestThreeNodes(t *testing.T) {
	c := startTrio(t)
	nodes := c.Nodes()
	q := createQueue(t, c.client(nodes[0]), "q", "30")
	for i := range nodes {
		sender, receiver, deleter := c.client(nodes[i]), c.client(nodes[(i+1)%3]), c.client(nodes[(i+2)%3])
		send(t, sender, q, fmt.Sprint("first ", i))
		got := receiver.Receive(t.Context(), q, 1, time.Minute, 5*time.Second)
		if len(got.Messages) != 1 {
			t.Fatalf("receive: got %+v, want the message that was sent through n%d", got, i+1)
		}
		if o := deleter.Delete(t.Context(), q, got.Messages[0].Handle); o.Outcome != history.OK {
			t.Errorf("delete: got %+v", o)
		}
	}

	old := c.leader()
	c.kill(old)
	began := time.Now()
	send(t, c.client(c.Others(old)[0]), q, "after the leader's death")
	took := time.Since(began)
	t.Logf("the first send after the leader's death took %v", took)
	if limit := bar(2*time.Second, patience); took > limit {
		t.Errorf("the first send after the leader's death took %v, want less than %v", took, limit)
	}
	c.restart(old)
	send(t, c.client(old), q, "through the node that was dead")

	c.restartAll()
	for i, n := range nodes {
		if got := c.status(n).Totals.Visible; got != 2 {
			t.Errorf("n%d: got %d messages after the restart of all, want 2", i+1, got)
		}
	}
}

// TestRollingRestart stops one node after the other under load, each when the one
// before is ready again. Clients see no error, and no connection breaks.
func TestRollingRestart(t *testing.T) {
	c := startTrio(t)
	load := c.drive(patience)
	for _, n := range c.Nodes() {
		time.Sleep(300 * time.Millisecond) // of load
		c.recorder.Fault("stop")           // none to clients, unless the machine stands still
		stop(t, n)
		c.restart(n)
	}
	load.judge(bar(time.Second, 10*time.Second))
	operations := c.recorder.Operations()
	expectNoErrors(t, operations)
	for _, o := range operations {
		if o.Outcome == history.Info {
			t.Errorf("a client does not know what became of %+v", o)
		}
	}
}

// TestStopOutlastsAPause: a member that stops, and is paused meanwhile, still answers what
// was sent to it on connections that it had left open.
func TestStopOutlastsAPause(t *testing.T) {
	c := startTrio(t)
	n := c.Nodes()[0]
	clients := make([]*workload.Client, 20)
	for i := range clients {
		clients[i] = c.unrecorded(n)
		if err := clients[i].Call(t.Context(), "ListQueues", map[string]any{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Terminate(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the begin of the stop", func() bool { return !n.Ready(t.Context()) })
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for i, client := range clients {
		asking.Go(func() {
			if err := client.Call(t.Context(), "ListQueues", map[string]any{}, nil); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	time.Sleep(1500 * time.Millisecond) // of pause
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	if code, err := n.Wait(c.within(time.Minute)); code != 0 || err != nil {
		t.Errorf("the stop ended with %d, %v", code, err)
	}
}

// TestWipedNodes: two of three lose their data and are started with the same command
// lines. They must not serve, nor outvote the third.
func TestWipedNodes(t *testing.T) {
	c := startTrio(t)
	createQueue(t, c.client(c.Nodes()[0]), "q", "30")
	for _, n := range c.Nodes() {
		if _, err := n.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.Nodes()[:2] {
		if err := os.RemoveAll(n.DataDir()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.Nodes() {
		if err := n.Launch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.Nodes()[:2] {
		advice := "bring that very folder back"
		awaitTrue(t, advice, func() bool { return strings.Contains(fmt.Sprint(c.status(n).Reasons), advice) })
		if s := c.status(n); s.ClusterID != "" || n.Ready(t.Context()) {
			t.Errorf("a wiped node is of cluster %q, want none and not ready", s.ClusterID)
		}
	}
	for i, n := range c.Nodes() {
		client := c.unrecorded(n)
		client.Timeout = time.Second
		if err := client.Call(t.Context(), "ListQueues", map[string]any{}, nil); err == nil {
			t.Errorf("n%d lists queues", i+1)
		}
	}
	if c.Nodes()[2].Ready(t.Context()) {
		t.Error("one of three is ready although the others have lost their votes")
	}
}

// TestLonelyNode: a node whose leader is gone says so to whoever looks into the state,
// and tells what it knows only to whoever asks for that; one that was restarted knows
// nothing, and does not say that there is nothing.
func TestLonelyNode(t *testing.T) {
	c := startTrio(t)
	leader := c.leader()
	createQueue(t, c.client(leader), "q", "30")
	awaitTrue(t, "the queue in the state of that node", func() bool {
		_, list := command(t, leader, "queue", "list")
		return strings.Contains(list, " q ")
	})
	for _, n := range c.Others(leader) {
		if _, err := n.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitTrue(t, "a leader that is none any more", func() bool { return slices.Contains(c.status(leader).Reasons, "no leader") })
	looks := [][]string{{"queue", "list"}, {"queue", "show", "q"}, {"topic", "list"}, {"settings", "get", "region"}}
	for _, look := range looks {
		if code, said := command(t, leader, look...); code != 1 || !strings.Contains(said, "not ready: no leader") {
			t.Errorf("%v: got exit %d, %q, want the reason", look, code, said)
		}
		if code, said := command(t, leader, append(slices.Clone(look), "--stale")...); code != 0 {
			t.Errorf("%v --stale: got exit %d, %q", look, code, said)
		}
	}
	if _, list := command(t, leader, "queue", "list", "--stale"); !strings.Contains(list, " q ") {
		t.Errorf("queue list --stale: got %q, want the queue", list)
	}

	stop(t, leader)
	if err := leader.Launch(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, look := range looks {
		for _, flags := range [][]string{nil, {"--stale"}} {
			if code, said := command(t, leader, append(slices.Clone(look), flags...)...); code != 1 || !strings.Contains(said, "this node ") {
				t.Errorf("%v %v after the restart: got exit %d, %q, want the reason", look, flags, code, said)
			}
		}
	}
}

// command runs the binary's command line about a node, and returns its exit code and
// all that it said.
func command(t *testing.T, n *fault.Node, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append(slices.Clone(args), "--admin", n.Admin())...)
	output, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(output)
}
