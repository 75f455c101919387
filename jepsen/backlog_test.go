package jepsen_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/bench"
)

// A short backlog, in the way of `make bench-backlog`: what is measured is
// shown, and every message of it is on disk after the restart.
func TestBacklog(t *testing.T) {
	t.Chdir(t.TempDir()) // for the data of the nodes
	var out bytes.Buffer
	o := bench.Options{
		// So short that the turns leave something to be deleted, at 200,000 messages a second too.
		Binary: binary, Connections: 8, Duration: 30 * time.Millisecond, Body: 1024,
		JSON: "report.json", Flags: []string{"--test-mode", "--test-snapshot-entries", "20"},
	}
	if !*long { // the last message is a minute old when it expires
		o.Backlogs = []string{"all", "half"}
	}
	report, err := bench.Backlog(t.Context(), o, 40_000, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if len(report.Runs) < 2 {
		t.Fatalf("got %d runs, want one for each backlog", len(report.Runs))
	}
	for _, run := range report.Runs {
		if run.Files == 0 || run.Files > 20 || run.FileBytes < 1<<20 || run.Rate == 0 || run.ReferenceRate == 0 || run.Ready == 0 ||
			run.Emptied.Bytes <= 0 || run.Emptied.Max == 0 {
			t.Errorf("got %+v", run)
		}
	}
	left, err := filepath.Glob(".holdfast-bench-*")
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, error %v", left, err)
	}
}

// A tenth of what `make bench-backlog` does, and of its forms the one with the
// largest state: each message received, every second one deleted by its handle.
// The rates are not judged here, since other tests may have the machine.
func TestBacklogOfAMillion(t *testing.T) {
	skipUnderRace(t)
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Chdir(t.TempDir()) // for the data of the node
	var out bytes.Buffer
	report, err := bench.Backlog(t.Context(), bench.Options{
		Binary: binary, Connections: 64, Duration: time.Second, Body: 1024, Backlogs: []string{"half"},
	}, 1_000_000, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	run := report.Runs[0]
	const most = 700 << 20 // bytes; 10 million have 1 GiB
	if run.FillMemory > most || run.DrainMemory > most || run.ReadyCPU > 10_000 || run.Emptied.Bytes < 500<<20 {
		t.Errorf("got %+v", run)
	}
}

// With a memory limit below what bodies may wait for the next snapshot, a backlog
// goes to disk all the same: its producers are not held back for good.
func TestBacklogBeyondASmallMemory(t *testing.T) {
	skipUnderRace(t)
	const messages = 80 // of a MiB
	node := startNode(t, "--memory", "64MiB")
	client := newClient(t, node)
	q := createQueue(t, client, "q", "30")
	body := strings.Repeat("x", 1<<20)
	for range messages {
		send(t, client, q, body)
	}
	if o := succeed(t, client.Count(t.Context(), q)); o.Visible != messages {
		t.Errorf("got %d messages, want %d", o.Visible, messages)
	}
}
