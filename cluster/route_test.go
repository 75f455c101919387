package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// linkCuts are the ways in which a follower and the leader lose each other while the
// third member hears both.
var linkCuts = []struct {
	name string
	cut  func(c *nodes, leader, follower int)
}{
	{"nothing comes from the leader", func(c *nodes, leader, follower int) { c.cut(leader, follower) }},
	{"nothing goes to the leader", func(c *nodes, leader, follower int) { c.cut(follower, leader) }},
	{"nothing passes", func(c *nodes, leader, follower int) { c.cut(leader, follower); c.cut(follower, leader) }},
}

// acrossCuts runs a test on a cluster in which a follower does not reach the leader
// any more, once for each way.
func acrossCuts(t *testing.T, test func(t *testing.T, c *nodes, leader, follower int)) {
	t.Helper()
	for _, l := range linkCuts {
		t.Run(l.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *nodes) {
				leader, follower := c.leader(), c.follower()
				l.cut(c, leader, follower)
				test(t, c, leader, follower)
				c.heal()
			})
		})
	}
}

// TestFollowerThatLostTheLeaderServes: its clients see the time until it has noticed
// the cut, and nothing else; each command is executed once.
func TestFollowerThatLostTheLeaderServes(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, leader, follower int) {
		for i := range 5 {
			limit := 2 * time.Second
			if i > 0 {
				limit = 100 * time.Millisecond
			}
			got := <-ask(t, c.list[follower], fmt.Sprint("m", i))
			if got.err != nil || got.outcome.Err != nil || got.took > limit {
				t.Fatalf("send %d: got %v, %v after %v, want an answer within %v", i, got.err, got.outcome.Err, got.took, limit)
			}
			if d := receive(t, c.list[follower], 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != fmt.Sprint("m", i) {
				t.Fatalf("receive %d: got %+v", i, d.Messages)
			}
		}
		if stored := c.stored(); stored != 5 {
			t.Errorf("got %d messages, want 5", stored)
		}
		if c.leader() != leader {
			t.Error("another member leads: the cut was not what it seems")
		}
		c.heal()
		c.await("straight way", 5*time.Second, func() bool {
			r := c.list[follower].gateway.reign.Load()
			return r.known && r.via.Name == ""
		})
	})
}

// TestPollOfFollowerThatLostTheLeader: it waits at the leader all the same, has its
// turn there, and gives its place away when its client leaves.
func TestPollOfFollowerThatLostTheLeader(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, leader, follower int) {
		polled := make(chan Delivery, 1)
		go func() { polled <- receive(t, c.list[follower], 20*time.Second) }()
		time.Sleep(3 * time.Second)
		if parked := c.list[leader].line.parked.Load(); parked != 1 {
			t.Errorf("%d receives stand in the leader's line, want 1", parked)
		}
		send(t, c.list[leader], "awaited", 0)
		time.Sleep(100 * time.Millisecond)
		if len(polled) != 1 {
			t.Fatal("the poll did not have its turn")
		}
		if d := <-polled; len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 || bodyOf(t, d.Messages[0]) != "awaited" {
			t.Errorf("got %+v, want the message", d.Messages)
		}

		var gone atomic.Bool
		go func() {
			d, err := c.list[follower].Receive(t.Context(), receiveOne(time.Minute), 20*time.Second, func() bool { return !gone.Load() })
			if err != nil {
				t.Error(err)
			}
			polled <- d
		}()
		time.Sleep(1500 * time.Millisecond)
		gone.Store(true)
		send(t, c.list[leader], "for somebody else", 0)
		if d := receive(t, c.list[leader], 2*time.Second); len(d.Messages) != 1 || d.Messages[0].ReceiveCount != 1 {
			t.Errorf("got %+v, want the message for the first time", d.Messages)
		}
		if d := <-polled; len(d.Messages) != 0 {
			t.Errorf("got %+v for a client that has left", d.Messages)
		}
		synctest.Wait()
		waits := &c.list[3-leader-follower].gateway.waits
		waits.mu.Lock()
		defer waits.mu.Unlock()
		if len(waits.open) != 0 {
			t.Errorf("%d receives are left at the member between", len(waits.open))
		}
	})
}

// TestLeavingPollOfFollowerThatLostTheLeader gives up its place in the leader's line.
func TestLeavingPollOfFollowerThatLostTheLeader(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, leader, follower int) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		d, err := c.list[follower].Receive(ctx, receiveOne(time.Minute), 20*time.Second, nil)
		if err != nil || len(d.Messages) != 0 {
			t.Errorf("got %+v, %v, want an empty answer", d.Messages, err)
		}
		synctest.Wait()
		if parked := c.list[leader].line.parked.Load(); parked != 0 {
			t.Errorf("%d receives still stand in line", parked)
		}
	})
}

// TestPollOfFollowerThatLostTheLeaderEndsEmpty in time.
func TestPollOfFollowerThatLostTheLeaderEndsEmpty(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, _, follower int) {
		began := time.Now()
		d := receive(t, c.list[follower], 5*time.Second)
		if took := time.Since(began); len(d.Messages) != 0 || took < 4900*time.Millisecond || took > 6*time.Second {
			t.Errorf("got %+v after %v, want an empty answer after 5s", d.Messages, took)
		}
	})
}

// TestPollOutlivesTheRelay: a poll that waits at the leader through another member
// and loses both is answered empty in time, for nothing was executed.
func TestPollOutlivesTheRelay(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, leader, follower int) {
		polled := make(chan Delivery, 1)
		began := time.Now()
		go func() { polled <- receive(t, c.list[follower], 5*time.Second) }()
		time.Sleep(3 * time.Second)
		c.kill(leader)
		time.Sleep(50 * time.Millisecond)
		c.kill(3 - leader - follower)
		d := <-polled
		if took := time.Since(began); len(d.Messages) != 0 || took < 4900*time.Millisecond || took > 6*time.Second {
			t.Errorf("got %+v after %v, want an empty answer after 5s", d.Messages, took)
		}
	})
}

// TestRelayedIsExecutedOnce although the answer of the member between is lost, or
// the leader dies behind it.
func TestRelayedIsExecutedOnce(t *testing.T) {
	acrossCuts(t, func(t *testing.T, c *nodes, leader, follower int) {
		between := 3 - leader - follower
		send(t, c.list[follower], "first", 0)
		c.cut(between, follower)
		answer := ask(t, c.list[follower], "second")
		time.Sleep(3 * time.Second)
		c.heal()
		if got := <-answer; got.err != nil || got.outcome.Err != nil || got.took > 6*time.Second {
			t.Errorf("answer lost: got %v, %v after %v", got.err, got.outcome.Err, got.took)
		}
		c.awaitReady()
		if stored := c.stored(); stored != 2 {
			t.Errorf("answer lost: got %d messages, want 2", stored)
		}
		linkCuts[2].cut(c, leader, follower)
		send(t, c.list[follower], "third", 0)
		c.cut(leader, between)
		answer = ask(t, c.list[follower], "fourth")
		time.Sleep(100 * time.Millisecond)
		c.kill(leader)
		if got := <-answer; got.err != nil || got.outcome.Err != nil || got.took > 4*time.Second {
			t.Errorf("leader dies: got %v, %v after %v", got.err, got.outcome.Err, got.took)
		}
		c.heal()
		if stored := c.stored(); stored != 4 {
			t.Errorf("leader dies: got %d messages, want 4", stored)
		}
	})
}

// TestRelayGoesOverOneMember: who does not reach the leader itself, or takes the one
// that asks for the leader, passes nothing on.
func TestRelayGoesOverOneMember(t *testing.T) {
	n1, n2, n3 := peer.Target{Name: "n1"}, peer.Target{Name: "n2"}, peer.Target{Name: "n3"}
	for name, r := range map[string]route{
		"no leader":           {},
		"this node leads":     {leader: n2, here: true, known: true},
		"through another one": {leader: n1, via: n3, known: true},
		"the one that asks":   {leader: n3, known: true},
	} {
		g := fakeGateway("")
		g.reign.Store(newReign(t.Context(), r))
		p := relay{gateway: g, from: n3}
		answer := p.pass(t.Context(), peer.MethodPropose, nil, nil)
		if len(answer) == 0 || callStatus(answer[0]) != statusNotLeader {
			t.Errorf("%s: got %q, want status %d", name, answer, statusNotLeader)
		}
	}
}

// TestRelayedIsNotRelayedAgain: whoever is asked in place of the leader is asked to
// execute, not to pass on, or a request could go round for as long as members disagree
// about who leads.
func TestRelayedIsNotRelayedAgain(t *testing.T) {
	open := func(name string) *peer.Port {
		ln, err := peer.ListenTCP("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return peer.New(ln, peer.Config{Name: name, ClusterID: func() string { return "c" }})
	}
	between, leader := open("n1"), open("n2")
	heard := make(chan proposalCall, 1)
	hear := func(_ context.Context, _ string, request []byte) []byte {
		heard <- (&callReader{data: request}).head()
		return []byte{byte(statusNotLeader)}
	}
	leader.Handle(peer.MethodPropose, hear)
	leader.Handle(peer.MethodReceive, hear)
	for _, port := range []*peer.Port{between, leader} {
		var serving sync.WaitGroup
		serving.Go(func() { _ = port.Serve() })
		t.Cleanup(func() { _ = port.Close(); serving.Wait() })
	}
	g := fakeGateway("")
	g.group, g.port, g.waits.open = &group{}, between, map[uint64]*remoteWait{}
	g.members, _ = fakeMembers()
	g.reign.Store(newReign(t.Context(), route{leader: leader.Self(), known: true}))

	command, err := raftfsm.AppendCommand(nil, receiveOne(time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := proposalCall{left: time.Minute, grows: true, again: true, relay: true}
	want := asked
	want.relay = false
	for name, answer := range map[string]func() []byte{
		"proposal": func() []byte {
			return g.answerProposal(t.Context(), "n3", appendProposal(nil, asked, someOrigin, command))
		},
		"receive": func() []byte {
			return g.answerReceive(t.Context(), "n3", appendReceive(nil, receiveCall{proposalCall: asked}, someOrigin, command))
		},
	} {
		if got := answer(); len(got) == 0 || callStatus(got[0]) != statusNotLeader {
			t.Fatalf("%s: got %q, want what the leader answered", name, got)
		}
		if got := <-heard; got != want {
			t.Errorf("%s: the leader heard %+v, want %+v", name, got, want)
		}
	}
}

// TestRoute: whose word counts about the leader, and who is asked.
func TestRoute(t *testing.T) {
	for _, test := range []struct {
		name   string
		leader string // that raft knows, in term 3; "" for none
		silent bool   // it has answered, and then not for deafAfter
		heard  []pong
		want   string // leader, and the member between
	}{
		{name: "nobody knows a leader", heard: []pong{{Name: "n2", Term: 3}}},
		{name: "raft knows", leader: "n4", want: "n4"},
		{name: "raft knows another one than is told", leader: "n4", heard: []pong{{Name: "n2", Term: 3, Leader: "n3"}}, want: "n4"},
		{name: "raft knows one that is silent", leader: "n4", silent: true, want: "n4"},
		{name: "and another one hears it", leader: "n4", silent: true, heard: []pong{{Name: "n2", Term: 3, Leader: "n4"}}, want: "n4 n2"},
		{name: "and another one hears somebody else", leader: "n4", silent: true, heard: []pong{{Name: "n2", Term: 4, Leader: "n3"}}, want: "n4"},
		{name: "raft knows a stranger", leader: "n9"},
		{name: "one is told", heard: []pong{{Name: "n2", Term: 3}, {Name: "n3", Term: 3, Leader: "n4"}}, want: "n4 n3"},
		{name: "of two terms", heard: []pong{{Name: "n2", Term: 4, Leader: "n3"}, {Name: "n4", Term: 3, Leader: "n5"}}, want: "n3 n2"},
		{name: "the leader says so itself", heard: []pong{{Name: "n2", Term: 4, Leader: "n3"}, {Name: "n3", Term: 4, Leader: "n3", Leads: true}}, want: "n3"},
		{name: "an old term", heard: []pong{{Name: "n2", Term: 2, Leader: "n3"}}},
		{name: "this node is told", heard: []pong{{Name: "n2", Term: 3, Leader: "n1"}}},
		{name: "a stranger is told", heard: []pong{{Name: "n2", Term: 3, Leader: "n9"}}},
	} {
		m, now := fakeMembers()
		if test.silent {
			m.record(pong{Name: test.leader, Term: 3, Leader: test.leader, Leads: true}, 0)
			*now += deafAfter + 1
		}
		for _, p := range test.heard {
			m.record(p, 0)
		}
		r := m.route(test.leader, 3, test.leader != "")
		got := strings.TrimSpace(r.leader.Name + " " + r.via.Name)
		if !r.known {
			got = ""
		}
		if got != test.want || r.here {
			t.Errorf("%s: got %+v, want %q", test.name, r, test.want)
		}
		*now += upFor + 1
		if r := m.route("", 3, false); r.known {
			t.Errorf("%s: got %+v, by the word of one that is not up any more", test.name, r)
		}
	}
}

// TestDetourIsLogged once it has lasted, and its end.
func TestDetourIsLogged(t *testing.T) {
	var log logBuffer
	d := detour{log: slog.New(slog.NewTextHandler(&log, nil))}
	straight := route{leader: peer.Target{Name: "n2"}, known: true}
	around := route{leader: peer.Target{Name: "n2"}, via: peer.Target{Name: "n3"}, known: true}
	for i, step := range []struct {
		at   time.Duration
		way  route
		want string // in the only new line; empty: there is none
	}{
		{time.Hour, straight, ""},
		{time.Hour + detourNotice - 1, around, ""},
		{2 * time.Hour, straight, ""},
		{2*time.Hour + detourNotice, around, "passes requests on"},
		{3 * time.Hour, around, ""},
		{3 * time.Hour, route{}, ""},
		{3 * time.Hour, straight, "is reached"},
		{3 * time.Hour, straight, ""},
	} {
		before := log.String()
		d.note(step.way, step.at)
		line := strings.TrimPrefix(log.String(), before)
		if step.want == "" && line != "" || !strings.Contains(line, step.want) {
			t.Errorf("step %d: got %q, want a line with %q", i, line, step.want)
		}
	}
}

// TestHints are followed to members that are heard, if they are news.
func TestHints(t *testing.T) {
	m, now := fakeMembers()
	m.record(pong{Name: "n4"}, 0)
	*now += deafAfter + 1
	m.record(pong{Name: "n5"}, 0)
	g := &gateway{node: "n1", members: m}
	r := &reign{route: route{leader: peer.Target{Name: "n3"}, via: peer.Target{Name: "n2"}, known: true}}
	for hint, want := range map[string]string{
		"": "", "n1": "", "n2": "", "n3": "", "n4": "", "n5": "n5", "n9": "",
	} {
		if got := g.hinted(hint, peer.Target{Name: "n2"}, r); got.Name != want {
			t.Errorf("n2 says %q: got %q, want %q", hint, got.Name, want)
		}
	}
}

// TestFollowersLeaveACutOffLeader as soon as there is another one, whatever they and
// that one have heard of it last.
func TestFollowersLeaveACutOffLeader(t *testing.T) {
	for range 10 {
		inCluster(t, func(t *testing.T, c *nodes) {
			leader := c.leader()
			one, other := c.others(leader)
			c.isolate(leader)
			asked := []<-chan asked{ask(t, c.list[one], "one"), ask(t, c.list[other], "other")}
			for _, answer := range asked {
				if got := <-answer; got.err != nil || got.took > 2*time.Second {
					t.Errorf("got %v after %v, want an answer within 2s", got.err, got.took)
				}
			}
			c.heal()
		})
	}
}
