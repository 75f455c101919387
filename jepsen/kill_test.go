package jepsen_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/fault"
)

// killPlan says how often and how fast a node is killed.
type killPlan struct {
	kills    int
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

// A node that is killed under load again and again, at random moments, some of
// them while it starts, keeps every promise of standard queues.
func TestKill(t *testing.T) {
	plan := planKills()
	s := newStorm(t, startNode(t, "--test-mode", "--test-snapshot-entries", plan.snapshot), plan)
	s.blowStandard(s.kill)
	t.Logf("slowest start %v", s.slowest)
}

// kill kills the node and starts it again, which one time in five is killed, too,
// if it takes its time.
func (s *storm) kill() {
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
