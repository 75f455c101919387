package balance

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// backend is a node that says who it is, and whether it is ready.
type backend struct {
	*httptest.Server
	unready atomic.Bool
}

func newBackend(t *testing.T, name string) *backend {
	b := &backend{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health/ready" {
			if b.unready.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, name+" "+r.Host+" "+string(body))
	}))
	t.Cleanup(b.Close)
	return b
}

// serveBalancer serves the backends behind one address and waits until so many are
// ready.
func serveBalancer(t *testing.T, ready int, endpoints ...string) (*Balancer, *httptest.Server) {
	t.Helper()
	b, err := New(endpoints, &http.Transport{}) // which waits for a machine that stands still
	if err != nil {
		t.Fatal(err)
	}
	b.looks.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { b.Watch(ctx, nil) })
	server := httptest.NewServer(b)
	t.Cleanup(func() {
		server.Close()
		cancel()
		watching.Wait()
	})
	await(t, b, ready)
	return b, server
}

func await(t *testing.T, b *Balancer, ready int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); b.Ready() != ready; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d nodes ready, want %d", b.Ready(), ready)
		}
	}
}

// ask posts n requests and counts the answers by their first word.
func ask(t *testing.T, url string, n int) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range n {
		response, err := http.Post(url, "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		name, rest, _ := strings.Cut(string(answer), " ")
		if response.StatusCode == http.StatusOK && rest != strings.TrimPrefix(url, "http://")+" body" {
			t.Errorf("got %q, want the host that the client asked and its body", rest)
		}
		counts[name]++
	}
	return counts
}

func TestRequestsGoAround(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	balancer, server := serveBalancer(t, 2, a.URL, b.URL)
	if got := ask(t, server.URL, 10); got["a"] != 5 || got["b"] != 5 {
		t.Errorf("got %v, want 5 each", got)
	}
	a.unready.Store(true)
	await(t, balancer, 1)
	if got := ask(t, server.URL, 10); got["b"] != 10 {
		t.Errorf("got %v, want all from b: a is not ready", got)
	}
	b.unready.Store(true)
	await(t, balancer, 0)
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %s with no node ready, want 503", response.Status)
	}
}

// Nodes of which none was ready when it was asked last are asked again: the machine
// may have stood still.
func TestNoneIsReadyAsksAgain(t *testing.T) {
	a := newBackend(t, "a")
	b, err := New([]string{a.URL}, &http.Transport{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	defer server.Close()
	if got := ask(t, server.URL, 2); got["a"] != 2 {
		t.Errorf("got %v, want all from a", got)
	}
}

func TestNodeThatIsGoneIsPassedOver(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	balancer, server := serveBalancer(t, 2, a.URL, b.URL)
	a.Close()
	balancer.nodes[0].ready.Store(true) // as long as nobody has looked
	if got := ask(t, server.URL, 4); got["b"] != 4 {
		t.Errorf("got %v, want all from b", got)
	}
}
