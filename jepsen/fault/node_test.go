package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

// patience is how long a test waits for what must come. TCP that meets losses, or a
// machine that stands still, tries again ever more rarely.
const patience = 2 * time.Minute

// fakeMode in the environment makes this test binary play a broker.
const fakeMode = "HOLDFAST_FAKE_MODE"

func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(fakeMode); ok {
		os.Exit(fake(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fake is `holdfast serve --json` reduced to its ports: it announces where it
// listens, is ready, and ends with code 0 on SIGTERM.
func fake(mode string, arguments []string) int {
	_, _ = fmt.Fprintln(os.Stderr, "fake broker in mode", mode)
	if mode == "corrupt" {
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	flag := func(name string) string { return arguments[slices.Index(arguments, name)+1] }
	api, err := net.Listen("tcp", flag("--listen"))
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 2
	}
	status := http.StatusOK
	if mode == "never-ready" {
		status = http.StatusServiceUnavailable
	}
	began := time.Now()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Uptime", time.Since(began).String())
		w.WriteHeader(status)
	})}
	go func() { _ = server.Serve(api) }()
	_, _ = fmt.Printf("{\n \"api\": \"http://%s\", \"admin\": \"http://127.0.0.1:1\"}\n", api.Addr())
	<-stop
	return 0
}

func options(t *testing.T, mode string) fault.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fault.Options{Binary: self, DataDir: t.TempDir(), Env: []string{fakeMode + "=" + mode}, ReadyTimeout: patience}
}

func start(t *testing.T) *fault.Node {
	t.Helper()
	n, err := fault.Start(t.Context(), options(t, "serve"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Kill() })
	return n
}

func TestNodeKeepsItsPortsOverKills(t *testing.T) {
	n := start(t)
	endpoint := n.Endpoint()
	for range 3 {
		if !n.Ready(t.Context()) || !n.Running() {
			t.Fatal("not ready after a start")
		}
		before := n.PID()
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		if n.Running() || n.Ready(t.Context()) {
			t.Fatal("still there after a kill")
		}
		if err := n.Kill(); err != nil {
			t.Errorf("second kill: %v", err)
		}
		if err := n.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n.Endpoint() != endpoint || n.PID() == before {
			t.Fatalf("got %s, pid %d; want %s and another pid than %d", n.Endpoint(), n.PID(), endpoint, before)
		}
	}
}

func TestStopTellsTheExitCode(t *testing.T) {
	n := start(t)
	if code, err := n.Stop(t.Context()); code != 0 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if code, err := n.Wait(t.Context()); code != -1 || err != nil {
		t.Errorf("after a kill: got %d, %v", code, err)
	}
}

func TestPausedNodeAnswersNothingUntilResumed(t *testing.T) {
	n := start(t)
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if n.Ready(ctx) {
		t.Error("ready while paused")
	}
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	if !n.Ready(t.Context()) {
		t.Error("not ready after it was resumed")
	}
}

func TestStartTellsWhyItFailed(t *testing.T) {
	_, err := fault.Start(t.Context(), options(t, "corrupt"))
	if !errors.Is(err, fault.ErrEnded) || !strings.Contains(err.Error(), "fake broker in mode corrupt") {
		t.Errorf("got %v", err)
	}
	o := options(t, "never-ready")
	o.ReadyTimeout = 500 * time.Millisecond
	if _, err := fault.Start(t.Context(), o); !errors.Is(err, fault.ErrNotReady) {
		t.Errorf("got %v", err)
	}
}
