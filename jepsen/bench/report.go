package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Report is what a run measured; its JSON form is that of `holdfast bench
// --json`.
type Report struct {
	Version string     `json:"version"`
	Host    Host       `json:"host"`
	Nodes   int        `json:"nodes"` // that were loaded
	Runs    []Measured `json:"runs"`
	Aims    []Aim      `json:"aims,omitempty"`
}

// Host is the machine of the load generator.
type Host struct {
	Cores int `json:"cores"`
}

// Measured is one phase. With a floor, rates and ratio are medians over the
// rounds, and everything else is taken over all of them.
type Measured struct {
	Phase        string  `json:"phase"`
	Protocol     string  `json:"protocol"`
	Client       string  `json:"client"`
	Connections  int     `json:"connections"`
	Body         int     `json:"body"`
	Batch        int     `json:"batch"`
	Queues       int     `json:"queues"`
	Groups       int     `json:"groups,omitempty"`
	Seconds      float64 `json:"seconds"`
	Messages     uint64  `json:"messages"`
	Rate         float64 `json:"rate"`          // messages per second
	RequestsRate float64 `json:"requests_rate"` // requests per second
	P50          float64 `json:"p50_us"`
	P99          float64 `json:"p99_us"`
	Max          float64 `json:"max_us"`
	Errors       uint64  `json:"errors"`
	FirstError   string  `json:"first_error,omitempty"`
	FloorRate    float64 `json:"floor_rate"` // messages per second; 0 without a floor
	Ratio        float64 `json:"ratio"`      // to the floor; 0 without one
	Rounds       int     `json:"rounds"`
	CommitP50    float64 `json:"commit_p50_us,omitempty"` // wake: the sends
	ClientCPU    float64 `json:"client_cpu_us,omitempty"` // per request, of this process
	ServerCPU    float64 `json:"server_cpu_us,omitempty"` // per request, of a node that Run started
	FloorCPU     float64 `json:"floor_cpu_us,omitempty"`  // per request, of this process and the echo server
}

// Aim is one line of what the project wants to reach, beside what was measured.
type Aim struct {
	Work     string `json:"work"`
	Aim      string `json:"aim"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

func newReport(o Options) Report {
	return Report{Version: o.Version, Host: Host{Cores: runtime.NumCPU()}, Nodes: max(len(o.Endpoints), 1), Runs: []Measured{}}
}

// summary puts the measurements of one phase together.
func (o Options) summary(phase string, measured []*measurement) Measured {
	if phase == phaseBatch {
		phase, o.Batch = phaseSend, maxBatch
	}
	var all measurement
	var rates, requestRates []float64
	for _, m := range measured {
		all.add(&m.tally)
		all.elapsed += m.elapsed
		all.clientCPU += m.clientCPU
		all.serverCPU += m.serverCPU
		rates = append(rates, m.rate())
		requestRates = append(requestRates, float64(m.requests)/m.elapsed.Seconds())
	}
	r := Measured{
		Phase: phase, Protocol: o.Protocol, Client: o.Client, Connections: o.Connections, Body: o.Body, Batch: o.Batch,
		Queues: o.Queues, Groups: o.Groups, Seconds: all.elapsed.Seconds(), Messages: all.messages,
		Rate: median(rates), RequestsRate: median(requestRates), Rounds: len(measured),
		P50: microseconds(all.latency.quantile(0.5)), P99: microseconds(all.latency.quantile(0.99)), Max: microseconds(all.latency.max),
		Errors: all.errors, CommitP50: microseconds(all.commit.quantile(0.5)),
		ClientCPU: all.perRequest(all.clientCPU), ServerCPU: all.perRequest(all.serverCPU),
	}
	if phase == phaseWake {
		r.Connections, r.Queues = 2, 1
	}
	if all.first != nil {
		r.FirstError = all.first.Error()
	}
	return r
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// goals are what the project wants to reach, as ratios to the floor, so that they
// hold on any machine; 0 for what has none.
type goals struct {
	nodes string
	send  float64 // SendMessage, of the echo's rate
	batch float64 // messages of SendMessageBatch × 10, per SendMessage of the echo
	cycle float64 // send, receive and delete, of the echo's rate
}

// goalsFor are those for so many nodes. The ones for a cluster are for three nodes
// on the machine of the load generator: 50,000 messages/s in batches where the echo
// does 40,000 requests/s.
func goalsFor(nodes int) goals {
	switch nodes {
	case 1:
		return goals{nodes: "one node", send: 0.6, batch: 2.5, cycle: 0.6}
	case 3:
		return goals{nodes: "three nodes", send: 0.37, batch: 1.25}
	}
	return goals{nodes: fmt.Sprintf("%d nodes", nodes), send: 0.37, batch: 1.25}
}

// aims sets what was measured against the goals. A phase that did not run, or that
// has no goal, is left out.
func (r Report) aims() []Aim {
	g := goalsFor(r.Nodes)
	var aims []Aim
	single := 0.0 // requests per second of the echo server under SendMessage
	for _, m := range r.Runs {
		switch {
		case m.Phase == phaseSend && m.Batch == 1 && m.Ratio > 0:
			single = m.FloorRate
			aims = append(aims, g.ratioAim("SendMessage", m, g.send))
		case m.Phase == phaseSend && m.Batch == maxBatch && single > 0:
			perEcho := m.Rate / single
			aims = append(aims, Aim{
				g.work("SendMessageBatch × 10", m), fmt.Sprintf("≥ %v messages per SendMessage of the echo", g.batch),
				fmt.Sprintf("%.2f (%.0f/s where it does %.0f/s)", perEcho, m.Rate, single), perEcho >= g.batch,
			})
		case m.Phase == phaseCycle && m.Ratio > 0 && g.cycle > 0:
			aims = append(aims, g.ratioAim("send + receive + delete", m, g.cycle))
		case m.Phase == phaseWake:
			aims = append(aims, Aim{
				"long-poll wake, p50", "≤ one commit + 1 ms",
				fmt.Sprintf("%.2f ms, a commit is %.2f ms", m.P50/1000, m.CommitP50/1000), m.P50 <= m.CommitP50+1000,
			})
		}
	}
	return aims
}

func (g goals) work(name string, m Measured) string {
	return fmt.Sprintf("%s, %s, %d connections", name, g.nodes, m.Connections)
}

func (g goals) ratioAim(name string, m Measured, goal float64) Aim {
	return Aim{g.work(name, m), fmt.Sprintf("≥ %v of the echo", goal), fmt.Sprintf("%.2f", m.Ratio), m.Ratio >= goal}
}

// save writes the report as JSON.
func (r Report) save(path string) error { return saveJSON(path, r) }

func saveJSON(path string, report any) error {
	b, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	return nil
}

// table writes the report as text, a row at a time.
type table struct {
	out io.Writer
	err error
}

func newTable(out io.Writer) *table {
	t := &table{out: out}
	t.write("%-6s %-5s %-8s %5s %5s %9s %9s %9s %9s %9s %6s %9s %6s   %s\n",
		"phase", "proto", "client", "conns", "batch", "msg/s", "req/s", "p50 ms", "p99 ms", "max ms", "errors", "floor/s", "ratio", "CPU µs a request: load + node (floor)")
	return t
}

func (t *table) write(format string, arguments ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format, arguments...)
	}
}

func (t *table) row(r Measured) {
	floor, ratio, floorCPU := "-", "-", "-"
	if r.Ratio > 0 {
		floor, ratio, floorCPU = fmt.Sprintf("%.0f", r.FloorRate), fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.1f", r.FloorCPU)
	}
	nodeCPU := "?" // of nodes that somebody else runs
	if r.ServerCPU > 0 {
		nodeCPU = fmt.Sprintf("%.1f", r.ServerCPU)
	}
	t.write("%-6s %-5s %-8s %5d %5d %9.0f %9.0f %9.3f %9.3f %9.3f %6d %9s %6s   %.1f + %s (%s)\n",
		r.Phase, r.Protocol, r.Client, r.Connections, r.Batch, r.Rate, r.RequestsRate, r.P50/1000, r.P99/1000, r.Max/1000,
		r.Errors, floor, ratio, r.ClientCPU, nodeCPU, floorCPU)
	if r.FirstError != "" {
		t.write("       first error: %s\n", r.FirstError)
	}
}

func (t *table) aims(aims []Aim) {
	if len(aims) == 0 {
		return
	}
	t.write("\n%-50s %-45s %-45s %s\n", "work", "aim", "measured", "met")
	for _, a := range aims {
		met := "no"
		if a.Met {
			met = "yes"
		}
		t.write("%-50s %-45s %-45s %s\n", a.Work, a.Aim, a.Measured, met)
	}
}
