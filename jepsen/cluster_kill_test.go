package jepsen_test

import (
	"slices"
	"testing"
	"time"
)

// The leader is killed under load again and again, each time after all nodes have
// caught up. Clients of the other nodes notice latency, nothing else.
func TestClusterKillLeader(t *testing.T) {
	kills := 5
	switch {
	case *long:
		kills = 50
	case raceEnabled || testing.Short():
		kills = 2
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "2000")
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	load := c.drive(patience)
	var outages []time.Duration
	for range kills {
		leader := c.leader()
		outages = append(outages, c.outage(probed, c.Others(leader), func() { c.kill(leader) }))
		c.restart(leader)
	}
	slices.Sort(outages)
	median, worst := outages[len(outages)/2], outages[len(outages)-1]
	t.Logf("first success after a kill: median %v, worst %v", median, worst)
	if limit := 5 * time.Second; worst > limit { // whatever the machine does
		t.Errorf("worst %v, want less than %v", worst, limit)
	}
	if *long && (median > time.Second || worst > 2*time.Second) {
		t.Errorf("median %v, worst %v, want less than 1s and 2s", median, worst)
	}
	coverage := load.judge(3 * time.Second)
	expectNoErrors(t, c.recorder.Operations())
	if coverage.Sent < 100*kills || coverage.AcrossFaults < kills || coverage.LeasesAcross < kills/2 {
		t.Errorf("the run proves too little: %s", coverage)
	}
}

// All nodes are killed at once, under load.
func TestClusterKillAll(t *testing.T) {
	skipUnderRace(t)
	kills := 3
	if *long {
		kills = 30
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "1000")
	load := c.drive(patience)
	for range kills {
		time.Sleep(2 * time.Second) // of load
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		c.recorder.Fault("kill all")
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	load.judge(10 * time.Second) // nobody was there
}
