package jepsen_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// A node that is killed under load keeps the promises of FIFO queues: the order
// and the lock of each group, deduplication within its window and not beyond,
// sequence numbers.
func TestKillFIFO(t *testing.T) {
	const window = 2 * time.Second
	plan := killPlan{kills: 3, low: 2 * time.Second, high: 4 * time.Second, minSent: 400, snapshot: "300"}
	if raceEnabled || testing.Short() {
		plan.minSent = 50
	}
	if *long {
		plan = killPlan{kills: 20, low: 300 * time.Millisecond, high: 8 * time.Second, minSent: 4000, snapshot: "1500"}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	file, err := os.Create(filepath.Join(t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorder := history.NewRecorder(file)
	node := startNode(t, "--test-mode", "--test-snapshot-entries", plan.snapshot, "--test-dedup-window", window.String())
	load := workload.FIFO{Standard: workload.Standard{
		Endpoint: node.Endpoint(), Recorder: recorder, Run: "f" + strconv.FormatUint(seed, 36),
		Producers: 3, Consumers: 6, Pause: 15 * time.Millisecond, Seed: seed,
	}, Groups: 20}
	setup := &workload.Client{Endpoint: node.Endpoint(), Recorder: recorder}
	load.Queues = []workload.Queue{
		createFIFO(t, setup, "queue.fifo", "2", "queue"), createFIFO(t, setup, "group.fifo", "2", "messageGroup"),
	}
	ctx, cancel := context.WithCancel(t.Context())
	driven := make(chan struct{})
	go func() {
		defer close(driven)
		load.Drive(ctx)
	}()
	killUnderLoad(t, node, recorder, rand.New(rand.NewPCG(seed, 2<<32)), plan)
	cancel()
	<-driven
	kill(t, node, recorder)
	restart(t, node)
	drain, cancelDrain := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancelDrain()
	load.Drain(drain)

	q := checker.Queue{VisibilityTimeout: 2 * time.Second, FIFO: true, DedupWindow: window}
	byGroup := q
	byGroup.DedupByGroup = true
	report := checker.Check(recorder.Operations(), checker.Options{
		Queues: map[string]checker.Queue{"queue.fifo": q, "group.fifo": byGroup}, Drained: true,
	})
	t.Log(report.Coverage)
	if len(report.Violations) > 0 {
		t.Errorf("seed %d, history in %s:\n%s", seed, file.Name(), report)
	}
	demandFIFOCoverage(t, report.Coverage, plan)
	if err := recorder.Err(); err != nil {
		t.Error(err)
	}
}

func demandFIFOCoverage(t *testing.T, c checker.Coverage, plan killPlan) {
	t.Helper()
	for _, m := range []struct {
		what      string
		got, want int
	}{
		{"kills", c.Faults, plan.kills},
		{"acknowledged sends", c.Sent, plan.minSent},
		{"hand-outs within a group", c.InOrder, plan.minSent / 2},
		{"redeliveries", c.Redeliveries, plan.kills},
		{"leases over a kill", c.LeasesAcross, plan.kills / 2},
		{"repeated sends", c.Repeats, plan.minSent / 20},
		{"repeated sends after a kill", c.RepeatAcross, plan.kills},
		{"ids used anew after their window", c.Renewals, plan.kills},
		{"deletes", c.Deletes, plan.minSent / 4},
	} {
		if m.got < m.want {
			t.Errorf("%d %s, want at least %d: the run proves too little", m.got, m.what, m.want)
		}
	}
}
