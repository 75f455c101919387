package balance

import (
	"context"
	"errors"
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
	aborts  atomic.Bool // requests, by breaking the connection
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
		if b.aborts.Load() {
			panic(http.ErrAbortHandler)
		}
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
	expectRefusal(t, server.URL, http.StatusServiceUnavailable)
	if _, err := balancer.Transport().RoundTrip(httptest.NewRequest(http.MethodGet, server.URL, nil)); !isDialError(err) {
		t.Errorf("got %v with no node ready, want an error that says that nobody was asked", err)
	}
}

// expectRefusal wants the status, in a form that clients of AWS take for that of a
// gateway.
func expectRefusal(t *testing.T, url string, status int) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status || !strings.HasPrefix(string(answer), "<html>") {
		t.Errorf("got %s %q, want %d in HTML", response.Status, answer, status)
	}
}

func TestNodeThatBreaksOff(t *testing.T) {
	a := newBackend(t, "a")
	_, server := serveBalancer(t, 1, a.URL)
	a.aborts.Store(true)
	expectRefusal(t, server.URL, http.StatusBadGateway)
}

func TestOtherPortsOfTheNodes(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	otherA, otherB := newBackend(t, "other a"), newBackend(t, "other b")
	balancer, _ := serveBalancer(t, 2, a.URL, b.URL)
	beside, err := balancer.Beside([]string{otherA.URL, otherB.URL})
	if err != nil {
		t.Fatal(err)
	}
	b.unready.Store(true)
	await(t, balancer, 1)
	otherA.unready.Store(true) // which nobody asks
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	for range 4 {
		response := httptest.NewRecorder()
		beside.ServeHTTP(response, request)
		if got := response.Body.String(); !strings.HasPrefix(got, "other a") {
			t.Errorf("got %q, want the other port of a: b is not ready", got)
		}
	}
	if _, err := balancer.Beside(nil); err == nil {
		t.Error("no ports were taken for those of two nodes")
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
