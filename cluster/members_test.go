package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// fakeMembers is n1's view of a cluster of n1 to n5, with a clock that the test
// moves.
func fakeMembers() (*members, *time.Duration) {
	now := new(time.Duration)
	var all []peer.Target
	for _, name := range []string{"n4", "n1", "n3", "n2", "n5"} {
		all = append(all, peer.Target{Name: name, Address: name + ":1"})
	}
	return newMembers("n1", all, func() time.Duration { return *now }), now
}

func TestMembersAreUpWhileTheyAnswer(t *testing.T) {
	m, now := fakeMembers()
	if m.alone() || len(m.others) != 4 || m.others[0].Name != "n2" || m.self.Address != "n1:1" {
		t.Fatalf("got %+v, others %+v", m.self, m.others)
	}
	m.record(pong{Name: "n2"}, 0)
	*now += upFor
	m.record(pong{Name: "n3"}, 0)
	if got := len(m.up()); got != 2 {
		t.Errorf("got %d members up, want 2", got)
	}
	*now++
	if up := m.up(); len(up) != 1 || up[0].Name != "n3" {
		t.Errorf("got %+v up, want n3 alone", up)
	}
	if m.hasMajority(1) || !m.hasMajority(2) {
		t.Error("three of five are a majority, two are not")
	}
}

func TestMembersSayWhatTheLogMustKeep(t *testing.T) {
	m, now := fakeMembers()
	if got := m.lowestApplied(100); got != 100 {
		t.Errorf("nobody was heard: got %d, want 100", got)
	}
	m.record(pong{Name: "n2", Applied: 40}, 0)
	m.record(pong{Name: "n3", Applied: 120}, 0)
	if got := m.lowestApplied(100); got != 40 {
		t.Errorf("got %d, want 40, which n2 has applied", got)
	}
	*now += appliedFor + 1
	m.record(pong{Name: "n3", Applied: 130}, 0)
	if got := m.lowestApplied(140); got != 130 {
		t.Errorf("n2 is long gone: got %d, want 130", got)
	}
}

func TestMajorityOfDisksCounts(t *testing.T) {
	m, _ := fakeMembers()
	m.record(pong{Name: "n2", LowDisk: true}, 0)
	if m.lowDisk(true) {
		t.Error("two of five are low: refused already")
	}
	m.record(pong{Name: "n3", LowDisk: true}, 0)
	if m.lowDisk(false) || !m.lowDisk(true) {
		t.Error("three of five with this node's are a majority, two are not")
	}
	alone := newMembers("n1", nil, func() time.Duration { return 0 })
	if alone.lowDisk(false) || !alone.lowDisk(true) {
		t.Error("alone, its own disk counts")
	}
}

func TestSuccessorHasTheNewestLog(t *testing.T) {
	m, now := fakeMembers()
	if p, ok := m.successor(); ok {
		t.Errorf("got %+v although nobody was heard", p)
	}
	m.record(pong{Name: "n5", RaftID: "n5/1", Last: 90}, 0)
	*now += upFor + 1
	m.record(pong{Name: "n2", RaftID: "n2/1", Last: 50}, 0)
	m.record(pong{Name: "n3", RaftID: "n3/1", Last: 70}, 0)
	m.record(pong{Name: "n4", RaftID: "n4/1", Last: 80, Draining: true}, 0)
	if p, ok := m.successor(); !ok || p.Name != "n3" {
		t.Errorf("got %+v, want n3: n4 ends as well, n5 is gone", p)
	}
}

// TestPauseIsNoUnreachedNode: a node that stood still hears the leader before the leader
// has reached it again.
func TestPauseIsNoUnreachedNode(t *testing.T) {
	m, now := fakeMembers()
	answers := func(d time.Duration) {
		for end := *now + d; *now <= end; *now += pingEvery {
			m.record(pong{Name: "n2"}, 0)
		}
	}
	m.record(pong{Name: "n2"}, 0)
	m.called("n2")
	*now += time.Minute
	m.record(pong{Name: "n2"}, 0)
	if m.isUnreachedBy("n2") {
		t.Error("said so at once, after a pause")
	}
	answers(deafAfter)
	if !m.isUnreachedBy("n2") {
		t.Errorf("not said after %v of answers without a call", deafAfter)
	}
	m.called("n2")
	if m.isUnreachedBy("n2") {
		t.Error("said after a call")
	}
}

func TestDiverged(t *testing.T) {
	at := func(index, sum uint64) []raftfsm.IndexedDigest {
		return []raftfsm.IndexedDigest{{Index: index, Sum: sum}}
	}
	for _, test := range []struct {
		name   string
		own    []raftfsm.IndexedDigest
		others [][]raftfsm.IndexedDigest
		want   bool
	}{
		{name: "equal", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(4096, 1), at(4096, 1)}},
		{name: "alone", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(4096, 2), at(4096, 2)}, want: true},
		{name: "another one is alone", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(4096, 1), at(4096, 2)}},
		{name: "one other", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(4096, 2)}},
		{name: "three values", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(4096, 2), at(4096, 3)}},
		{name: "other indexes", own: at(4096, 1), others: [][]raftfsm.IndexedDigest{at(8192, 2), at(8192, 2)}},
		{name: "nothing yet", others: [][]raftfsm.IndexedDigest{at(4096, 2), at(4096, 2)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pongs []pong
			for _, d := range test.others {
				pongs = append(pongs, pong{Digests: d})
			}
			if _, got := diverged(test.own, pongs, 3); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestThreeNodesFailOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		leader := c.awaitLeader()
		createQueue(t, c.list[leader])
		send(t, c.list[leader], "kept", 0)
		c.awaitApplied()

		began := time.Now()
		c.kill(leader)
		next := c.awaitLeader()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the others took %v to elect a leader, want less than 2s", took)
		}
		c.awaitReady() // ready all the time, as far as a load balancer sees
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the others were ready again after %v, want less than 2s", took)
		}
		if d := receive(t, c.list[next], 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "kept" {
			t.Errorf("got %+v from the new leader, want the message that the old one has acknowledged", d.Messages)
		}
		c.start(leader)
		c.awaitReady()
		c.awaitApplied()
		if got, _, ok := c.list[leader].group.leader(); !ok || got != c.configs[0].Members[next] {
			t.Errorf("the old leader takes %v, %v for the leader, want %v", got, ok, c.configs[0].Members[next])
		}
	})
}

// TestMembersTellOtherSettings: each node says, once, in what it was started
// otherwise than its cluster was formed.
func TestMembersTellOtherSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		logged := make([]logBuffer, 3)
		for i := range 3 {
			c.configs[i].Seed = raftfsm.DefaultSettings()
			c.configs[i].Seed.Region = fmt.Sprintf("eu-west-%d", i+1)
			c.configs[i].Seed.SNSURL = fmt.Sprintf("http://127.0.0.%d:4566", i+1) // is not a setting of the node's
			c.configs[i].Logger = slog.New(slog.NewTextHandler(&logged[i], nil))
			c.start(i)
		}
		c.awaitReady()
		time.Sleep(someRounds)
		for i := range 3 {
			want := 1
			if c.list[i].Settings().Region == c.configs[i].Seed.Region {
				want = 0
			}
			if got := strings.Count(logged[i].String(), "setting differs"); got != want {
				t.Errorf("n%d logged %d differences, want %d", i+1, got, want)
			}
			if got := c.list[i].Metrics().LeaderChanges; got == 0 {
				t.Errorf("n%d has seen no change of leader, want one", i+1)
			}
			c.stop(i)
		}
	})
}

// TestStopHandsOver: a leader that is told to stop leaves no gap in which there is
// none.
func TestStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		for range 6 { // a rolling restart, twice
			leader := c.awaitLeader()
			began := time.Now()
			c.stop(leader)
			c.awaitLeader()
			if took := time.Since(began); took > raftTimeout {
				t.Errorf("without a leader for %v, want less than an election", took)
			}
			c.start(leader)
			c.awaitReady()
		}
	})
}

// TestLastNodesStopInTime: nobody is left to hand over to.
func TestLastNodesStopInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		leader := c.awaitLeader()
		for i := range 3 {
			if i != leader {
				c.stop(i)
			}
		}
		began := time.Now()
		c.stop(leader)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the stop took %v, want less than 2s", took)
		}
	})
}

// TestIsolatedLeader steps down, learns nothing new, and follows after the heal.
func TestIsolatedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		old := c.awaitLeader()
		c.isolate(old)
		c.await("old leader steps down", 2*time.Second, func() bool { return !c.list[old].group.leading.Load() })
		c.await("new leader", 3*time.Second, func() bool { l := c.leader(); return l >= 0 && l != old })
		createQueue(t, c.list[c.leader()])
		time.Sleep(leaderGrace)
		if ready, reasons := c.list[old].Ready(); ready {
			t.Errorf("the isolated node is ready (%v)", reasons)
		}
		status := c.list[c.leader()].Status()
		for _, m := range status.Members {
			if isOld := m.Name == c.configs[old].NodeName; m.Up == isOld || isOld != (m.LagEntries > 0) {
				t.Errorf("status says of the members: %+v", m)
			}
		}
		c.heal()
		c.awaitReady()
		c.awaitApplied()
	})
}

// TestLagIsNoAge: what was applied since a member was asked does not count as its lag.
func TestLagIsNoAge(t *testing.T) {
	inCluster(t, func(t *testing.T, c *nodes) {
		n := c.list[c.leader()]
		for range 10 {
			time.Sleep(pingEvery)
			c.awaitApplied()
			for _, to := range n.members.others {
				if err := n.pings.ping(t.Context(), to); err != nil {
					t.Fatal(err)
				}
			}
			send(t, n, "m", 0)
			for _, m := range n.Status().Members {
				if m.LagEntries != 0 || !m.Up {
					t.Fatalf("got %+v, of one that has applied all that there was when it was asked", m)
				}
			}
		}
	})
}

// TestDivergedNodeEndsItself: two agree, the third has another state.
func TestDivergedNodeEndsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		ended := make(chan int, 1)
		c.configs[2].Fatal = func(code int, _ error) { ended <- code }
		for i := range 3 {
			c.start(i)
		}
		c.awaitReady()
		digests := []raftfsm.IndexedDigest{{Index: 4096, Sum: 1}}
		other := pong{Digests: digests}
		for _, name := range []string{"n1", "n2"} {
			other.Name = name
			c.list[2].members.record(other, 0)
		}
		c.list[2].endIfDiverged([]raftfsm.IndexedDigest{{Index: 4096, Sum: 2}})
		if code := <-ended; code != ExitDigest {
			t.Errorf("got exit code %d, want %d", code, ExitDigest)
		}
	})
}

// TestFatalBreaksConnections: a node that ends itself is gone for the others at once,
// even if its process takes its time.
func TestFatalBreaksConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		codes := make(chan int, 3)
		for i := range 3 {
			c.configs[i].Fatal = func(code int, _ error) { codes <- code } // and does not end
			c.start(i)
		}
		c.awaitReady()
		leader := c.awaitLeader()
		c.list[leader].fatal(ExitStall, errors.New("the disk hangs"))
		c.list[leader].fatal(ExitLogError, errors.New("and fails"))
		if code := <-codes; code != ExitStall || len(codes) > 0 {
			t.Errorf("got exit code %d and %d more, want %d alone", code, len(codes), ExitStall)
		}
		target := c.configs[leader].Members[leader]
		if _, err := c.list[(leader+1)%3].call(t.Context(), target, peer.MethodPing, nil); err == nil {
			t.Error("the node still answers")
		}
		c.await("new leader", 3*time.Second, func() bool { l := c.leaderAmongOthers(leader); return l >= 0 })
	})
}

// leaderAmongOthers is the leader but for node i; -1 if there is none.
func (c *nodes) leaderAmongOthers(i int) int {
	for j, n := range c.list {
		if j != i && n.group.leading.Load() {
			return j
		}
	}
	return -1
}

// TestMemberWithAnotherList: a member that is told of other members than its
// cluster has does not start, since it would count majorities wrongly.
func TestMemberWithAnotherList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		c.stop(2)
		config := c.configs[2]
		for name, list := range map[string][]peer.Target{
			"too short": config.Members[1:],
			"too long":  append(slices.Clone(config.Members), peer.Target{Name: "n4", Address: "n4:1"}),
		} {
			other := config
			other.Members = list
			other.PeerListener = c.lan.listen(c.address(2))
			if n, err := Start(t.Context(), other); !errors.Is(err, ErrIdentity) {
				t.Errorf("%s: got %v, want %v", name, err, ErrIdentity)
				if n != nil {
					_ = n.Close()
				}
			}
		}
		c.start(2)
		c.awaitReady()
	})
}

// TestMemberThatIsLookedForElsewhere: a member whose own --cluster names another
// address than those of the others do hears the leader, gets nothing from it, and
// says so.
func TestMemberThatIsLookedForElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		follower := c.follower()
		createQueue(t, c.list[c.leader()])
		c.stop(follower)
		home := c.configs[follower]
		var log logBuffer
		moved := home
		moved.Logger = slog.New(slog.NewTextHandler(&log, nil))
		moved.Members = slices.Clone(home.Members)
		moved.Members[follower].Address = "elsewhere:1"
		_ = c.lan.listen(c.address(follower)).Close() // nobody is there any more
		c.configs[follower] = moved
		n := c.start(follower)
		send(t, c.list[c.leader()], "missed", 0)
		time.Sleep(time.Minute)
		const want = "the leader does not reach this node at elsewhere:1, where --cluster has it"
		if ready, reasons := n.Ready(); ready || !slices.Contains(reasons, want) {
			t.Errorf("got ready %v, %q, want %q among the reasons", ready, reasons, want)
		}
		if got := strings.Count(log.String(), "the leader does not reach this node"); got != 1 {
			t.Errorf("got %d warnings, want 1:\n%s", got, log.String())
		}
		c.stop(follower)
		c.configs[follower] = home
		n = c.start(follower)
		c.awaitReady()
		if n.unreached.Load() {
			t.Error("the leader is still said not to reach the node")
		}
	})
}
