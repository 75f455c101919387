package jepsen_test

import (
	"context"
	"math/rand/v2"
	"net/http"
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

// storm is a load on brokers that are brought down and up again, and the history of
// that.
type storm struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	file     *os.File
	recorder *history.Recorder
	options  checker.Options // how the history is judged
	load     loader
	stop     func() // ends the load, and returns when its calls are answered
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

// demands are those of a plan, held against what a run covered.
type demands func(checker.Coverage, killPlan) []demand

func newStorm(t *testing.T) *storm {
	t.Helper()
	seed := newSeed(t)
	file, err := os.Create(filepath.Join(t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &storm{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1<<32)), file: file, recorder: history.NewRecorder(file),
	}
}

// newSeed returns a seed that is in the test's output.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// clients are three producers and six consumers of the brokers at an endpoint, which
// they reach by transport; nil is a connection for each.
func (s *storm) clients(endpoint string, transport http.RoundTripper) workload.Standard {
	return workload.Standard{
		Endpoint: endpoint, Transport: transport, Recorder: s.recorder, Run: "s" + strconv.FormatUint(s.seed, 36),
		Producers: 3, Consumers: 6, Pause: 15 * time.Millisecond, Seed: s.seed,
	}
}

// setup is a client that prepares the load of others.
func (s *storm) setup(clients workload.Standard) *workload.Client {
	return &workload.Client{
		Endpoint: clients.Endpoint, Recorder: s.recorder, Timeout: patience, HTTP: &http.Client{Transport: clients.Transport},
	}
}

// standard is the load of such clients on two standard queues, which it creates.
func (s *storm) standard(clients workload.Standard) loader {
	s.t.Helper()
	setup := s.setup(clients)
	clients.Queues = []workload.Queue{createQueue(s.t, setup, "short", "2"), createQueue(s.t, setup, "long", "4")}
	s.options.Queues = map[string]checker.Queue{
		"short": {VisibilityTimeout: 2 * time.Second}, "long": {VisibilityTimeout: 4 * time.Second},
	}
	return clients
}

// ordered is the load of such clients on two FIFO queues, which it creates: one of
// each DeduplicationScope. The nodes know ids for window.
func (s *storm) ordered(clients workload.Standard, window time.Duration) loader {
	s.t.Helper()
	setup := s.setup(clients)
	clients.Queues = []workload.Queue{
		createFIFO(s.t, setup, "queue.fifo", "2", "queue"), createFIFO(s.t, setup, "group.fifo", "2", "messageGroup"),
	}
	q := checker.Queue{VisibilityTimeout: 2 * time.Second, FIFO: true, DedupWindow: window}
	byGroup := q
	byGroup.DedupByGroup = true
	s.options.Queues = map[string]checker.Queue{"queue.fifo": q, "group.fifo": byGroup}
	return workload.FIFO{Standard: clients, Groups: 20}
}

// start starts a load, which ends with the test at the latest.
func (s *storm) start(load loader) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	driven := make(chan struct{})
	go func() {
		defer close(driven)
		load.Drive(ctx)
	}()
	s.load = load
	s.stop = func() {
		cancel()
		<-driven
	}
	s.t.Cleanup(s.stop)
}

// judge empties the queues, once the load has ended, and holds the history against
// the promises.
func (s *storm) judge() checker.Coverage {
	s.t.Helper()
	s.options.Drained = drain(s.t, s.load)
	report := checker.Check(s.recorder.Operations(), s.options)
	s.t.Log(report.Coverage)
	if len(report.Violations) > 0 {
		s.t.Errorf("seed %d, history in %s:\n%s", s.seed, s.file.Name(), report)
	}
	if err := s.recorder.Err(); err != nil {
		s.t.Error(err)
	}
	return report.Coverage
}

// coverage is what the run has brought the broker into by now.
func (s *storm) coverage() checker.Coverage {
	return checker.Check(s.recorder.Operations(), s.options).Coverage
}

// strikes strikes as often as planned, and on a slow machine, where less happens
// meanwhile, until enough has happened; but no more than four times as often.
func (s *storm) strikes(plan killPlan, strike func(), demands demands) {
	s.t.Helper()
	enough := func() bool {
		return len(missed(demands(s.coverage(), plan))) == 0
	}
	for i := 0; i < plan.kills || i < 4*plan.kills && !enough(); i++ {
		time.Sleep(plan.low + time.Duration(s.random.Int64N(int64(plan.high-plan.low))))
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

// expect fails the test if a demand is not met.
func expect(t *testing.T, demands []demand) {
	t.Helper()
	for _, d := range missed(demands) {
		t.Errorf("%d %s, want at least %d: the run proves too little", d.got, d.what, d.want)
	}
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
