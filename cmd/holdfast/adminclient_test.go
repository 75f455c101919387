package main

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSilentNode: one that accepts connections and says nothing, as one that was paused
// does, is named in words.
func TestSilentNode(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	silent := "the node at " + ln.Addr().String() + " does not answer"
	for method, want := range map[string]string{
		http.MethodGet: silent, http.MethodPut: silent + "; it may still do what it was told",
	} {
		err := callAdmin(t.Context(), method, adminURL(ln.Addr().String())+"/settings", strings.NewReader(""), 10*time.Millisecond, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", method, err, want)
		}
		if got := silence(err); got != "does not answer" {
			t.Errorf("%s in a table of nodes: got %q", method, got)
		}
	}
}

// TestNoName: the name of a queue that cannot be is wrong usage, before any node is asked.
func TestNoName(t *testing.T) {
	for _, args := range [][]string{
		{"queue", "show", ""}, {"queue", "peek", "a/b"}, {"queue", "purge", ""}, {"queue", "tail", ".."}, {"queue", "redrive", ""},
	} {
		want := "\"" + args[2] + "\" cannot be the name of a queue"
		if got := command(t, exitUsage, append(args, "--admin", "127.0.0.1:1")...); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %s", args, got, want)
		}
	}
	command(t, exitUsage, "topic", "subscriptions", "", "--admin", "127.0.0.1:1")
}
