package jepsen_test

import (
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

// death is a way in which nodes of a cluster end at once.
type death struct {
	nodes  func(leader, a, b *fault.Node) []*fault.Node
	gently bool // by SIGTERM: a leader hands over
}

var deaths = []death{
	{nodes: func(leader, _, _ *fault.Node) []*fault.Node { return []*fault.Node{leader} }},
	{nodes: func(leader, _, _ *fault.Node) []*fault.Node { return []*fault.Node{leader} }, gently: true},
	{nodes: func(_, a, _ *fault.Node) []*fault.Node { return []*fault.Node{a} }},
	{nodes: func(_, a, b *fault.Node) []*fault.Node { return []*fault.Node{a, b} }},
	{nodes: func(leader, a, _ *fault.Node) []*fault.Node { return []*fault.Node{a, leader} }},
	{nodes: func(leader, a, b *fault.Node) []*fault.Node { return []*fault.Node{leader, a, b} }},
}

// die returns a strike: nodes die in one of all ways, each in its turn, and are
// started again some moments later. It returns when all are ready, but does not wait
// until all have caught up.
func (s *clusterStorm) die() func() {
	var turns []int
	return func() {
		s.t.Helper()
		if len(turns) == 0 {
			turns = s.random.Perm(len(deaths))
		}
		d := deaths[turns[0]]
		turns = turns[1:]
		leader := s.c.leader()
		others := s.c.Others(leader)
		a := s.random.IntN(2)
		for _, n := range d.nodes(leader, others[a], others[1-a]) {
			if d.gently {
				stop(s.t, n)
				s.recorder.Fault("stop")
			} else {
				s.c.kill(n)
			}
		}
		time.Sleep(time.Duration(s.random.Int64N(int64(300 * time.Millisecond)))) // of death
		s.c.start()
	}
}

// Nodes of a cluster die under load, one, two or all of them, or the leader hands
// over. Clients go from node to node with each call: what is received on one is
// extended and deleted on others. Every promise of FIFO queues is kept.
func TestClusterKillFIFO(t *testing.T) {
	window := dedupWindow()
	plan := killPlan{kills: len(deaths), low: 300 * time.Millisecond, high: 1200 * time.Millisecond, minSent: 300, snapshot: "300"}
	switch {
	case *long:
		plan = killPlan{kills: 60, low: 300 * time.Millisecond, high: 6 * time.Second, minSent: 4000, snapshot: "1500"}
	case raceEnabled || testing.Short():
		plan.kills, plan.minSent = 2, 50
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", plan.snapshot, "--test-dedup-window", window.String())
	s := c.newStorm()
	s.start(s.ordered(s.clients(patience), window))
	s.strikes(plan, s.die(), fifoDemands)
	expect(t, fifoDemands(s.judge(bar(3*time.Second, 10*time.Second)), plan))
}
