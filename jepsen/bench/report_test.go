package bench

import (
	"slices"
	"testing"
)

// What was measured is set against the goals for the nodes that were loaded, and
// nothing else is.
func TestAims(t *testing.T) {
	send := Measured{Phase: phaseSend, Batch: 1, Connections: 64, Ratio: 0.4, FloorRate: 40_000}
	batch := Measured{Phase: phaseSend, Batch: maxBatch, Connections: 64, Ratio: 1, Rate: 60_000}
	cycle := Measured{Phase: phaseCycle, Connections: 64, Ratio: 0.4}
	wake := Measured{Phase: phaseWake, P50: 900, CommitP50: 400}
	type line struct {
		work string
		met  bool
	}
	for _, test := range []struct {
		name  string
		nodes int
		runs  []Measured
		want  []line
	}{
		{"one node", 1, []Measured{send, batch, cycle, wake}, []line{
			{"SendMessage, one node, 64 connections", false},
			{"SendMessageBatch × 10, one node, 64 connections", false},
			{"send + receive + delete, one node, 64 connections", false},
			{"long-poll wake, p50", true},
		}},
		{"three nodes", 3, []Measured{send, batch, cycle, wake}, []line{
			{"SendMessage, three nodes, 64 connections", true},
			{"SendMessageBatch × 10, three nodes, 64 connections", true},
			{"long-poll wake, p50", true},
		}},
		{"five nodes", 5, []Measured{send}, []line{{"SendMessage, 5 nodes, 64 connections", true}}},
		{"one phase", 3, []Measured{send}, []line{{"SendMessage, three nodes, 64 connections", true}}},
		{"batch alone", 3, []Measured{batch}, nil},
		{"without the floor", 1, []Measured{{Phase: phaseSend, Batch: 1}, {Phase: phaseCycle}}, nil},
		{"nothing", 1, nil, nil},
	} {
		o := Options{Endpoints: make([]string, test.nodes)}
		r := newReport(o)
		r.Runs = test.runs
		var got []line
		for _, a := range r.aims() {
			got = append(got, line{a.Work, a.Met})
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
