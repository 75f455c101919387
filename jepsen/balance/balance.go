// Package balance is a small load balancer for the nodes of a cluster on one
// machine: each request goes to the next node that is ready.
//
// It stands for whatever a user has in front of a cluster. It knows nodes by
// GET /health/ready alone, and repeats a request only if no connection was made.
package balance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a node is asked whether it is ready, lookTimeout how
	// long it may take over the answer.
	lookEvery   = 100 * time.Millisecond
	lookTimeout = time.Second

	// dialTimeout is how long a node may take to accept a connection.
	dialTimeout = time.Second
)

// errNone says that no node is ready: as when no connection is made, nobody has seen
// anything of the request.
var errNone error = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no node is ready")}

// Balancer is an http.Handler.
type Balancer struct {
	nodes []*node
	turns *turns
	proxy *httputil.ReverseProxy
	looks *http.Client // by which nodes are asked whether they are ready
	next  atomic.Uint64
}

type node struct {
	url    *url.URL
	health string // the URL that says whether it is ready
	ready  *atomic.Bool
}

// New makes a balancer of the nodes with these API URLs, which it reaches by
// transport. None counts as ready before it was asked.
func New(endpoints []string, transport http.RoundTripper) (*Balancer, error) {
	var nodes []*node
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			return nil, fmt.Errorf("balance: %w", err)
		}
		nodes = append(nodes, &node{url: u, health: u.JoinPath("/health/ready").String(), ready: new(atomic.Bool)})
	}
	return newBalancer(nodes, transport), nil
}

// Beside makes a balancer of another port of the same nodes, whose URLs are in the
// same order. A node is ready there when the first port says so.
func (b *Balancer) Beside(endpoints []string) (*Balancer, error) {
	beside, err := New(endpoints, b.turns.transport)
	if err != nil {
		return nil, err
	}
	if len(beside.nodes) != len(b.nodes) {
		return nil, fmt.Errorf("balance: got %d nodes, want %d", len(beside.nodes), len(b.nodes))
	}
	for i, n := range b.nodes {
		beside.nodes[i].health, beside.nodes[i].ready = n.health, n.ready
	}
	return beside, nil
}

func newBalancer(nodes []*node, transport http.RoundTripper) *Balancer {
	b := &Balancer{nodes: nodes, looks: &http.Client{Transport: transport, Timeout: lookTimeout}}
	b.turns = &turns{balancer: b, transport: transport}
	b.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.Host // queue URLs are made of it
			r.Out.URL.Scheme = "http"
		},
		Transport:     b.turns,
		ErrorHandler:  refuse,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		FlushInterval: -1,
	}
	return b
}

// refuse answers as load balancers do, in HTML: by its first tag botocore knows a
// gateway's error, which it tries again, from an answer that it cannot parse.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, errNone) {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><body><h1>%d %s</h1><p>%s</p></body></html>\n", status, http.StatusText(status), html.EscapeString(err.Error()))
}

// NewTransport is for nodes on this machine.
func NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 1024,
		DisableCompression:  true,
	}
}

// Transport is for a client that is its own balancer: a request goes to the next
// node that is ready, and an error is that of the connection to it.
func (b *Balancer) Transport() http.RoundTripper { return b.turns }

// ServeHTTP implements http.Handler.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

// Watch asks the nodes whether they are ready until ctx is done. changed, which may
// be nil, is told of each change; it is called by several goroutines.
func (b *Balancer) Watch(ctx context.Context, changed func(endpoint string, ready bool)) {
	var watchers sync.WaitGroup
	for _, n := range b.nodes {
		watchers.Go(func() { n.watch(ctx, b.looks, changed) })
	}
	watchers.Wait()
}

// Ready is the number of nodes that were ready when they were asked last.
func (b *Balancer) Ready() (ready int) {
	for _, n := range b.nodes {
		if n.ready.Load() {
			ready++
		}
	}
	return ready
}

func (n *node) watch(ctx context.Context, client *http.Client, changed func(string, bool)) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		ready := n.ask(ctx, client)
		if n.ready.Swap(ready) != ready && changed != nil && ctx.Err() == nil {
			changed(n.url.String(), ready)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (n *node) ask(ctx context.Context, client *http.Client) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.health, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// turns sends each request to the node whose turn it is.
type turns struct {
	balancer  *Balancer
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A node that accepts no connection is
// passed over: it has seen nothing of the request.
func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil { // a try that fails uses it up
			return nil, err
		}
	}
	response, err := t.try(r, body, func(n *node) bool { return n.ready.Load() })
	if errors.Is(err, errNone) { // this machine may have stood still while it waited for their answers
		return t.try(r, body, func(n *node) bool { return n.ask(r.Context(), t.balancer.looks) })
	}
	return response, err
}

// try sends the request to the next node that is ready.
func (t *turns) try(r *http.Request, body []byte, ready func(*node) bool) (*http.Response, error) {
	nodes := t.balancer.nodes
	first := t.balancer.next.Add(1)
	err := errNone
	for i := range nodes {
		n := nodes[(first+uint64(i))%uint64(len(nodes))]
		if !ready(n) {
			continue
		}
		try := r.Clone(r.Context())
		try.URL.Host = n.url.Host
		try.Body, try.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		var response *http.Response
		if response, err = t.transport.RoundTrip(try); !isDialError(err) {
			return response, err
		}
	}
	return nil, err
}

func isDialError(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}
