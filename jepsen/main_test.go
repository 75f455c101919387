package jepsen_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

var long = flag.Bool("long", os.Getenv("HOLDFAST_LONG") != "", "run the long forms of the tests")

// bar is how long something may take: strict in the long form without the race
// detector. The short form runs on machines that are busy with other things, and
// fails only on what that does not explain.
func bar(strict, generous time.Duration) time.Duration {
	if *long && !raceEnabled {
		return strict
	}
	return generous
}

// binary is the broker under test: HOLDFAST_BIN, or built by TestMain.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	if binary = os.Getenv("HOLDFAST_BIN"); binary != "" {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "holdfast-jepsen-")
	if err != nil {
		return 0, fmt.Errorf("make folder for the binary: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary)
	if raceEnabled { // then it is the broker's races that matter
		build.Args = append(build.Args, "-race")
	}
	build.Args = append(build.Args, "holdfast.internal/cmd/holdfast")
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the broker: %w\n%s", err, output)
	}
	return m.Run(), nil
}

// startNode runs a node with its data in a folder of the test. When the test has
// failed, the end of the node's output is shown.
func startNode(t *testing.T, flags ...string) *fault.Node {
	t.Helper()
	return startNodeIn(t, filepath.Join(t.TempDir(), "data"), flags...)
}

// startNodeIn is startNode with a data folder of its own.
func startNodeIn(t *testing.T, data string, flags ...string) *fault.Node {
	t.Helper()
	n, err := fault.Start(t.Context(), fault.Options{Binary: binary, DataDir: data, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Kill(); err != nil {
			t.Error(err)
		}
		output := n.Output()
		if t.Failed() {
			t.Logf("output of the node:\n%s", output)
		}
		if strings.Contains(output, "WARNING: DATA RACE") {
			t.Error("the broker has a data race")
		}
	})
	return n
}

// restart starts a stopped node again and returns how long it took to be ready.
func restart(t *testing.T, n *fault.Node) time.Duration {
	t.Helper()
	start := time.Now()
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// stop asks the node to stop and returns how long that took. The exit code must
// be 0.
func stop(t *testing.T, n *fault.Node) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	if code, err := n.Stop(ctx); err != nil || code != 0 {
		t.Fatalf("stop: exit code %d, %v", code, err)
	}
	return time.Since(start)
}

// newClient returns a client of the node, with a history of its own.
func newClient(t *testing.T, n *fault.Node) *workload.Client {
	t.Helper()
	return &workload.Client{Endpoint: n.Endpoint(), Recorder: history.NewRecorder(io.Discard), Process: 1, Timeout: patience}
}

// createQueue creates a queue with the given visibility timeout in seconds.
func createQueue(t *testing.T, c *workload.Client, name, visibility string) workload.Queue {
	t.Helper()
	q, err := c.CreateQueue(t.Context(), name, map[string]string{"VisibilityTimeout": visibility})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// send sends one message and fails the test if it is not acknowledged.
func send(t *testing.T, c *workload.Client, q workload.Queue, body string) history.Operation {
	t.Helper()
	return succeed(t, c.Send(t.Context(), q, body, history.QueueDefault))
}

// receive receives with the queue's visibility timeout and fails the test if the
// answer has not exactly want messages.
func receive(t *testing.T, c *workload.Client, q workload.Queue, want int, wait time.Duration) []history.Delivery {
	t.Helper()
	o := succeed(t, c.Receive(t.Context(), q, 10, history.QueueDefault, wait))
	if len(o.Messages) != want {
		t.Fatalf("received %d messages, want %d", len(o.Messages), want)
	}
	return o.Messages
}

func succeed(t *testing.T, o history.Operation) history.Operation {
	t.Helper()
	if o.Outcome != history.OK {
		t.Fatalf("%s: %s, status %d, %s", o.Kind, o.Outcome, o.Status, o.Error)
	}
	return o
}
