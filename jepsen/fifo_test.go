package jepsen_test

import (
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
)

// dedupWindow is how long the nodes know a deduplication id: not long, so that many
// are used anew, but longer than a node takes to start.
func dedupWindow() time.Duration {
	if raceEnabled {
		return 5 * time.Second
	}
	return 3 * time.Second
}

// A node that is killed under load keeps the promises of FIFO queues: the order
// and the lock of each group, deduplication within its window and not beyond,
// sequence numbers.
func TestKillFIFO(t *testing.T) {
	window := dedupWindow()
	plan := killPlan{kills: 3, low: 2 * time.Second, high: 4 * time.Second, minSent: 400, snapshot: "300"}
	if raceEnabled || testing.Short() {
		plan.minSent = 50
	}
	if *long {
		plan = killPlan{kills: 20, low: 300 * time.Millisecond, high: 8 * time.Second, minSent: 4000, snapshot: "1500"}
	}
	node := startNode(t, "--test-mode", "--test-snapshot-entries", plan.snapshot, "--test-dedup-window", window.String())
	s := newNodeStorm(t, node, plan)
	s.blow(s.ordered(s.clients(), window), s.kill, fifoDemands)
}

// fifoDemands are the situations that the promises of FIFO queues are about.
func fifoDemands(c checker.Coverage, plan killPlan) []demand {
	return []demand{
		{"kills", c.Faults, plan.kills},
		{"acknowledged sends", c.Sent, plan.minSent},
		{"hand-outs within a group", c.InOrder, plan.minSent / 2},
		{"redeliveries", c.Redeliveries, plan.kills},
		{"leases over a kill", c.LeasesAcross, plan.kills / 2},
		{"repeated sends", c.Repeats, plan.minSent / 20},
		{"repeated sends after a kill", c.RepeatAcross, plan.kills},
		{"repeated sends after one without an answer", c.Retried, plan.kills / 6},
		{"handles used after a kill", c.AcrossFaults, plan.kills},
		{"ids used anew after their window", c.Renewals, plan.kills},
		{"deletes", c.Deletes, plan.minSent / 4},
	}
}
