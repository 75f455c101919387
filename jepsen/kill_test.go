package jepsen_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
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
	node := startNode(t, "--test-mode", "--test-snapshot-entries", plan.snapshot)
	strikeUnderLoad(t, node, plan, func(recorder *history.Recorder, random *rand.Rand) {
		slowest := killUnderLoad(t, node, recorder, random, plan)
		t.Logf("slowest start %v", slowest)
	})
}

// strikeUnderLoad loads a node while strike brings it down and up again, drains
// it, and holds the history against the promises.
func strikeUnderLoad(t *testing.T, node *fault.Node, plan killPlan, strike func(*history.Recorder, *rand.Rand)) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1<<32))
	file, err := os.Create(filepath.Join(t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorder := history.NewRecorder(file)
	load := workload.Standard{
		Endpoint: node.Endpoint(), Recorder: recorder, Run: "k" + strconv.FormatUint(seed, 36),
		Producers: 3, Consumers: 6, Pause: 15 * time.Millisecond, Seed: seed,
	}
	setup := &workload.Client{Endpoint: node.Endpoint(), Recorder: recorder}
	load.Queues = []workload.Queue{createQueue(t, setup, "short", "2"), createQueue(t, setup, "long", "4")}

	ctx, cancel := context.WithCancel(t.Context())
	driven := make(chan struct{})
	go func() {
		defer close(driven)
		load.Drive(ctx)
	}()
	strike(recorder, random)
	cancel()
	<-driven
	// What was under way and unanswered is decided by one more restart.
	kill(t, node, recorder)
	restart(t, node)
	drain, cancelDrain := context.WithTimeout(t.Context(), time.Minute)
	defer cancelDrain()
	load.Drain(drain)

	report := checker.Check(recorder.Operations(), checker.Options{
		Queues:  map[string]checker.Queue{"short": {VisibilityTimeout: 2 * time.Second}, "long": {VisibilityTimeout: 4 * time.Second}},
		Drained: true,
	})
	t.Log(report.Coverage)
	if len(report.Violations) > 0 {
		t.Errorf("seed %d, history in %s:\n%s", seed, file.Name(), report)
	}
	demandCoverage(t, report.Coverage, plan)
	if err := recorder.Err(); err != nil {
		t.Error(err)
	}
}

// killUnderLoad kills the node as the plan says, and returns the longest time
// that it took to be ready again.
func killUnderLoad(t *testing.T, node *fault.Node, recorder *history.Recorder, random *rand.Rand, plan killPlan) (slowest time.Duration) {
	t.Helper()
	for range plan.kills {
		time.Sleep(plan.low + time.Duration(random.Int64N(int64(plan.high-plan.low))))
		kill(t, node, recorder)
		if random.IntN(5) == 0 && startInterrupted(t, node, time.Duration(random.Int64N(int64(600*time.Millisecond)))) {
			continue
		}
		slowest = max(slowest, restart(t, node))
	}
	return slowest
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

func kill(t *testing.T, node *fault.Node, recorder *history.Recorder) {
	t.Helper()
	if !node.Running() {
		t.Fatal("the node has ended by itself")
	}
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	recorder.Fault("kill")
}

// demandCoverage fails the test if the run did not bring the broker into the
// situations that the promises are about.
func demandCoverage(t *testing.T, c checker.Coverage, plan killPlan) {
	t.Helper()
	for _, m := range []struct {
		what      string
		got, want int
	}{
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
	} {
		if m.got < m.want {
			t.Errorf("%d %s, want at least %d: the run proves too little", m.got, m.what, m.want)
		}
	}
}
