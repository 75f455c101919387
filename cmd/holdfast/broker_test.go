package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// A node that must not go on breaks its connections before it ends, and ends
// even if nobody takes the last line of its log.
func TestFailStop(t *testing.T) {
	api, err := httpapi.New(stoppedClock{}, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stuck := make(chan struct{})
	exited := make(chan int, 2)
	b := &broker{
		log:   slog.New(slog.NewTextHandler(stuckWriter(stuck), nil)),
		exit:  func(code int) { exited <- code },
		api:   api,
		admin: &http.Server{ReadHeaderTimeout: time.Minute},
	}
	if err := b.listen(&serveFlags{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	go func() { served <- b.api.Serve(b.apiPort) }()
	go func() { served <- b.admin.Serve(b.adminPort) }()
	clients := []net.Conn{beginRequest(t, b.apiPort), beginRequest(t, b.adminPort)}

	failed := make(chan struct{})
	go func() {
		defer close(failed)
		b.failStop(4, errors.New("fsync: input/output error"))
	}()
	for _, client := range clients {
		if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: got error %v, want the end of the connection", err)
		}
		if _, err := net.DialTimeout("tcp", client.RemoteAddr().String(), time.Second); err == nil {
			t.Error("dial: got a connection, want a closed port")
		}
	}
	if code := <-exited; code != 4 {
		t.Errorf("got exit %d, want 4", code)
	}
	close(stuck)
	<-failed
	for range 2 {
		<-served
	}
}

// A node that ends itself closes its ports, and who sees that must not end the process
// first, with another exit code. Nor must a stop that has begun.
func TestFailStopDecidesTheExitCode(t *testing.T) {
	for name, ask := range map[string]func(stop func()){
		"a port has ended":    func(func()) {},
		"it was told to stop": func(stop func()) { stop() },
	} {
		api, err := httpapi.New(stoppedClock{}, httpapi.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := &broker{
			log: slog.New(slog.DiscardHandler), exit: func(int) {}, api: api, admin: &http.Server{ReadHeaderTimeout: time.Minute},
			ended: make(chan error, 2), hangup: make(chan os.Signal, 1),
		}
		if err := b.listen(&serveFlags{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"}); err != nil {
			t.Fatal(err)
		}
		go func() { b.ended <- b.api.Serve(b.apiPort) }()
		go func() { b.ended <- b.admin.Serve(b.adminPort) }()
		ctx, stop := context.WithCancel(t.Context())
		b.failStop(4, errors.New("fsync: input/output error"))
		ask(stop)
		if err := b.wait(ctx); exitCode(err) != 4 {
			t.Errorf("%s: got exit %d (%v), want 4", name, exitCode(err), err)
		}
		stop()
	}
}

// stoppedClock is the part of a broker that answers need which ask it nothing.
type stoppedClock struct{ httpapi.Broker }

func (stoppedClock) Now() sqs.Time { return 0 }

// beginRequest returns a connection that the server knows of: it has answered
// one request, and got the first byte of another.
func beginRequest(t *testing.T, port net.Listener) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", port.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if _, err := io.WriteString(client, "G"); err != nil {
		t.Fatal(err)
	}
	return client
}

// stuckWriter takes nothing until it is closed.
type stuckWriter chan struct{}

func (w stuckWriter) Write(p []byte) (int, error) {
	<-w
	return len(p), nil
}

func TestLimitHeap(t *testing.T) {
	const before = math.MaxInt64 // a broker that an earlier test has run has left its own
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
	t.Setenv("GOMEMLIMIT", "")
	if err := limitHeap(2 << 30); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got != 3<<30 {
		t.Errorf("got limit %d, want %d", got, 3<<30)
	}
	if err := limitHeap(0); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got == 3<<30 || got >= before {
		t.Errorf("without --memory: got limit %d, want one of this machine", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	debug.SetMemoryLimit(before)
	if err := limitHeap(2 << 30); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT: got limit %d, want %d as before", got, int64(before))
	}
}

func TestGCPercent(t *testing.T) {
	for _, test := range []struct {
		live uint64
		want int
	}{
		{0, 100},
		{192 << 20, 100},
		{193 << 20, 90},
		{512 << 20, 30},
		{1 << 30, 20},
		{64 << 30, 20},
	} {
		if got := gcPercent(test.live); got != test.want {
			t.Errorf("%d bytes alive: got %d, want %d", test.live, got, test.want)
		}
	}
}
