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
	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// storm is a node that is brought down and up again under load, and the history of
// that.
type storm struct {
	t        *testing.T
	node     *fault.Node
	plan     killPlan
	seed     uint64
	random   *rand.Rand
	file     *os.File
	recorder *history.Recorder
	slowest  time.Duration // of the starts
}

// loader is a kind of load.
type loader interface {
	Drive(context.Context)
	Drain(context.Context) bool
}

// demand is a situation that a run must have brought the broker into: so often at
// least, or it proves too little.
type demand struct {
	what      string
	got, want int
}

func newStorm(t *testing.T, node *fault.Node, plan killPlan) *storm {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	file, err := os.Create(filepath.Join(t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &storm{
		t: t, node: node, plan: plan, seed: seed, random: rand.New(rand.NewPCG(seed, 1<<32)),
		file: file, recorder: history.NewRecorder(file),
	}
}

// load is that of three producers and six consumers; run is a letter.
func (s *storm) load(run string) workload.Standard {
	return workload.Standard{
		Endpoint: s.node.Endpoint(), Recorder: s.recorder, Run: run + strconv.FormatUint(s.seed, 36),
		Producers: 3, Consumers: 6, Pause: 15 * time.Millisecond, Seed: s.seed,
	}
}

// blowStandard is blow for standard queues.
func (s *storm) blowStandard(strike func()) {
	s.t.Helper()
	load := s.load("k")
	setup := newClient(s.t, s.node)
	load.Queues = []workload.Queue{createQueue(s.t, setup, "short", "2"), createQueue(s.t, setup, "long", "4")}
	s.blow(load, strike, standardDemands, map[string]checker.Queue{
		"short": {VisibilityTimeout: 2 * time.Second}, "long": {VisibilityTimeout: 4 * time.Second},
	})
}

// blow loads the node while strike brings it down and up again, drains it, and
// holds the history against the promises.
func (s *storm) blow(load loader, strike func(), demands func(checker.Coverage, killPlan) []demand, queues map[string]checker.Queue) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	driven := make(chan struct{})
	go func() {
		defer close(driven)
		load.Drive(ctx)
	}()
	options := checker.Options{Queues: queues}
	s.strikes(strike, func() bool {
		return len(missed(demands(checker.Check(s.recorder.Operations(), options).Coverage, s.plan))) == 0
	})
	cancel()
	<-driven
	// What was under way and unanswered is decided by one more restart.
	kill(s.t, s.node, s.recorder)
	restart(s.t, s.node)
	options.Drained = drain(s.t, load)
	report := checker.Check(s.recorder.Operations(), options)
	s.t.Log(report.Coverage)
	if len(report.Violations) > 0 {
		s.t.Errorf("seed %d, history in %s:\n%s", s.seed, s.file.Name(), report)
	}
	for _, d := range missed(demands(report.Coverage, s.plan)) {
		s.t.Errorf("%d %s, want at least %d: the run proves too little", d.got, d.what, d.want)
	}
	if err := s.recorder.Err(); err != nil {
		s.t.Error(err)
	}
}

// strikes strikes as often as planned, and on a slow machine, where less happens
// meanwhile, until enough has happened; but no more than four times as often.
func (s *storm) strikes(strike func(), enough func() bool) {
	for i := 0; i < s.plan.kills || i < 4*s.plan.kills && !enough(); i++ {
		time.Sleep(s.plan.low + time.Duration(s.random.Int64N(int64(s.plan.high-s.plan.low))))
		strike()
	}
}

func missed(demands []demand) (short []demand) {
	for _, d := range demands {
		if d.got < d.want {
			short = append(short, d)
		}
	}
	return short
}

// drain empties the queues of a load, and reports whether it could. How long that
// takes is for the machine to say; the test's own timeout is the bound.
func drain(t *testing.T, load loader) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	drained := load.Drain(ctx)
	if !drained {
		t.Error("the queues are not empty after five minutes of draining")
	}
	return drained
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
