package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// poorListener fails to accept with each of the errors in turn.
type poorListener struct {
	net.Listener
	errs []error
}

func (l *poorListener) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// A port outlives a time without file descriptors, and says so once; but not its
// listener.
func TestPortOutlivesWantOfDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	var logged bytes.Buffer
	ln := &patientListener{
		Listener: &poorListener{inner, []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EINVAL}},
		log:      slog.New(slog.NewTextHandler(&logged, nil)),
	}
	if _, err := ln.Accept(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("accept: got %v, want %v", err, syscall.EINVAL)
	}
	if got := strings.Count(logged.String(), "connections not accepted"); got != 1 {
		t.Errorf("got %d lines, want 1: %s", got, fmt.Sprint(&logged))
	}
}

func TestPortURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:4566": "http://127.0.0.1:4566",
		"10.0.0.1:80":    "http://10.0.0.1:80",
		"[::1]:4566":     "http://[::1]:4566",
		"0.0.0.0:4566":   "http://127.0.0.1:4566",
		"[::]:4566":      "http://127.0.0.1:4566", // what the system says of 0.0.0.0, too
	} {
		if got := portURL("http", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
