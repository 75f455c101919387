package fault_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

func newNetwork(t *testing.T, hosts int) *fault.Network {
	t.Helper()
	n, err := fault.NewNetwork(hosts, 1)
	if errors.Is(err, fault.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// echo makes a host answer every connection with what it sends.
func echo(t *testing.T, h *fault.Host) string {
	t.Helper()
	l, err := h.Listen("tcp", h.Address()+":7000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// trip sends a byte over a connection and returns how long the answer took; 0 if
// there was none in the time.
func trip(t *testing.T, conn net.Conn, within time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	conn.SetDeadline(start.Add(within))
	b := []byte{1}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b); err != nil {
		return 0
	}
	return time.Since(start)
}

func TestNetworkLinks(t *testing.T) {
	n := newNetwork(t, 3)
	a, b := n.Host(0), n.Host(1)
	address := echo(t, b)
	conn, err := a.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if took := trip(t, conn, patience); took == 0 {
		t.Fatal("no answer over good links")
	}
	n.Set(a, b, fault.Link{Delay: 50 * time.Millisecond, Jitter: time.Millisecond})
	if took := trip(t, conn, patience); took < 50*time.Millisecond {
		t.Errorf("answer after %v over a slow link", took)
	}
	n.Set(a, b, fault.Link{Loss: 0.2})
	for range 5 {
		if took := trip(t, conn, patience); took == 0 {
			t.Fatal("no answer over a link that loses a fifth")
		}
	}
	for _, cut := range [][2]*fault.Host{{a, b}, {b, a}} { // either way is enough
		n.Heal()
		n.Set(cut[0], cut[1], fault.Link{Cut: true})
		if took := trip(t, conn, 200*time.Millisecond); took != 0 {
			t.Errorf("answer after %v over a link that is cut", took)
		}
		other, err := n.Host(2).Dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("another host meets the cut: %v", err)
		}
		other.Close()
		n.Heal()
		b := []byte{0}
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatalf("what was sent over a link that was cut did not come afterwards: %v", err)
		}
	}
	n.Isolate(a, b)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if conn, err := a.Dial(ctx, "tcp", address); err == nil {
		conn.Close()
		t.Error("reached an isolated host")
	}
}

func TestNodeOnAHost(t *testing.T) {
	n := newNetwork(t, 2)
	o := options(t, "serve")
	o.Host, o.Client = n.Host(0), n.Host(1)
	node, err := fault.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Kill() })
	if !node.Ready(t.Context()) {
		t.Error("not ready")
	}
	n.Isolate(n.Host(0), n.Host(1))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if node.Ready(ctx) {
		t.Error("an isolated node was reached")
	}
	n.Heal()
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := node.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}
