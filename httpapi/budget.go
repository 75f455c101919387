package httpapi

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// smallBody is the largest request body, in bytes, that is not counted against
// the budget.
const smallBody = 64 << 10

// longestCall is more than any action takes from its whole request to its answer.
const longestCall = 2 * time.Minute

// bodyBudget bounds the memory of the larger request bodies that are being read
// or carried out. The HTTP server makes room for a body as soon as a head has
// announced it, so without this a thousand heads would take gigabytes.
//
// The server does not tell of every client that leaves between head and body. What
// such a request has taken is taken back when nobody can have it any more.
type bodyBudget struct {
	limit int           // of all larger bodies together, in bytes
	most  time.Duration // for which one request can have its body
	now   func() time.Time

	count atomic.Int32 // of held
	mu    sync.Mutex
	held  map[*fasthttp.RequestHeader]room // a connection has one for all its requests
	sum   int                              // of held
}

// room is what one request has taken of the budget.
type room struct {
	bytes int
	since time.Time
}

// reserve takes n bytes for the request of that head, unless there are not so
// many left. What the connection's request before has left is taken back.
func (b *bodyBudget) reserve(h *fasthttp.RequestHeader, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(h)
	now := b.now()
	if b.sum+n > b.limit {
		b.dropOld(now)
	}
	if b.sum+n > b.limit {
		return false
	}
	if b.held == nil {
		b.held = make(map[*fasthttp.RequestHeader]room)
	}
	b.held[h] = room{n, now}
	b.sum += n
	b.count.Add(1)
	return true
}

// release gives back what the request of that head has taken, and reports
// whether there was anything.
func (b *bodyBudget) release(h *fasthttp.RequestHeader) bool {
	if b.count.Load() == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drop(h)
}

func (b *bodyBudget) drop(h *fasthttp.RequestHeader) bool {
	r, ok := b.held[h]
	if ok {
		delete(b.held, h)
		b.sum -= r.bytes
		b.count.Add(-1)
	}
	return ok
}

// dropOld takes back what nobody can have any more.
func (b *bodyBudget) dropOld(now time.Time) {
	for h, r := range b.held {
		if now.Sub(r.since) > b.most {
			b.drop(h)
		}
	}
}

// admit is told of the head of every request, and says how large the body may
// be. A body for which there is no room is refused like one that is too large;
// handleUnreadable tells them apart.
func (s *Server) admit(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	n := h.ContentLength()
	if n == -1 {
		n = s.config.MaxBody // chunked: it may become so large
	}
	if n <= smallBody || n > s.config.MaxBody || s.bodies.reserve(h, n) {
		return fasthttp.RequestConfig{}
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: 1}
}
