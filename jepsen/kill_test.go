package jepsen_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/workload"
)

// killPlan says how often and how fast brokers are killed.
type killPlan struct {
	kills    int           // or other strikes
	low      time.Duration // shortest time of load between two kills
	high     time.Duration // longest
	minSent  int           // fewer acknowledged sends prove nothing
	snapshot string        // --test-snapshot-entries
}

func planKills() killPlan {
	switch {
	case *long:
		return killPlan{kills: 100, low: 300 * time.Millisecond, high: 6 * time.Second, minSent: 10_000, snapshot: "5000"}
	case raceEnabled || testing.Short():
		return killPlan{kills: 6, low: 500 * time.Millisecond, high: 2 * time.Second, minSent: 200, snapshot: "500"}
	}
	return killPlan{kills: 30, low: 300 * time.Millisecond, high: 2500 * time.Millisecond, minSent: 3000, snapshot: "2000"}
}

// nodeStorm is a storm over one node.
type nodeStorm struct {
	*storm
	node    *fault.Node
	plan    killPlan
	slowest time.Duration // of the starts
}

func newNodeStorm(t *testing.T, node *fault.Node, plan killPlan) *nodeStorm {
	t.Helper()
	return &nodeStorm{storm: newStorm(t), node: node, plan: plan}
}

// clients are those of the node.
func (s *nodeStorm) clients() workload.Standard { return s.storm.clients(s.node.Endpoint(), nil) }

// blow loads the node while strike brings it down and up again, drains it, and
// holds the history against the promises.
func (s *nodeStorm) blow(load loader, strike func(), demands demands) {
	s.t.Helper()
	s.start(load)
	s.strikes(s.plan, strike, demands)
	s.stop()
	// What was under way and unanswered is decided by one more restart.
	kill(s.t, s.node, s.recorder)
	restart(s.t, s.node)
	expect(s.t, demands(s.judge(), s.plan))
}

// A node that is killed under load again and again, at random moments, some of
// them while it starts, keeps every promise of standard queues.
func TestKill(t *testing.T) {
	plan := planKills()
	s := newNodeStorm(t, startNode(t, "--test-mode", "--test-snapshot-entries", plan.snapshot), plan)
	s.blow(s.standard(s.clients()), s.kill, standardDemands)
	t.Logf("slowest start %v", s.slowest)
}

// kill kills the node and starts it again, which one time in five is killed, too,
// if it takes its time.
func (s *nodeStorm) kill() {
	s.t.Helper()
	kill(s.t, s.node, s.recorder)
	if s.random.IntN(5) == 0 && startInterrupted(s.t, s.node, time.Duration(s.random.Int64N(int64(600*time.Millisecond)))) {
		return
	}
	s.slowest = max(s.slowest, restart(s.t, s.node))
}

// startInterrupted starts the node, kills it after the given time if it is not
// ready by then, and reports whether it was.
func startInterrupted(t *testing.T, node *fault.Node, after time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	err := node.Restart(ctx)
	if err != nil && !errors.Is(err, fault.ErrNotReady) {
		t.Fatal(err)
	}
	return err == nil
}

// standardDemands are the situations that the promises of standard queues are about.
func standardDemands(c checker.Coverage, plan killPlan) []demand {
	return []demand{
		{"kills", c.Faults, plan.kills},
		{"acknowledged sends", c.Sent, plan.minSent},
		{"redeliveries", c.Redeliveries, plan.kills},
		{"deletes", c.Deletes, plan.minSent / 2},
		{"deletes by superseded handles", c.Superseded, plan.kills / 30}, // rare: a short run may have none
		{"handles used after a kill", c.AcrossFaults, plan.kills},
		{"leases over a kill", c.LeasesAcross, plan.kills / 2},
		{"delays over a kill", c.DelaysAcross, plan.kills / 2},
		{"unknown outcomes", c.Unknown, plan.kills / 2},
		{"empty receives", c.EmptyReceives, plan.kills},
	}
}
