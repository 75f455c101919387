package peer

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// refusals logs connections that were refused: a line a minute, with the number
// of those in between, since a wrong node tries again and again.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	last    time.Time
	skipped int
}

const refusalEvery = time.Minute

func (r *refusals) note(remote net.Addr, h hello, reason string) {
	r.mu.Lock()
	now := r.now()
	if !r.last.IsZero() && now.Sub(r.last) < refusalEvery {
		r.skipped++
		r.mu.Unlock()
		return
	}
	skipped := r.skipped
	r.last, r.skipped = now, 0
	r.mu.Unlock()
	log := r.log
	if h != (hello{}) { // else it did not come so far
		log = log.With("from", h.from, "to", h.to, "cluster", h.cluster)
	}
	log.Warn("peer connection refused", "remote", remote.String(), "reason", reason, "refused_since_last", skipped)
}
