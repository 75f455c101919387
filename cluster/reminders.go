package cluster

import (
	"context"
	"sync"
	"time"
)

const (
	// reminderLook is how often it is looked whether there is one to give.
	reminderLook = time.Second

	// reminderPause is kept between two reminders of one thing.
	reminderPause = time.Minute
)

// reminders warns of things, each at most once a minute, on a goroutine of its own:
// the one that applies entries must not wait for whoever reads the log.
type reminders[K comparable] struct {
	elapsed func() time.Duration
	leads   func() bool // only the leader warns: all nodes hear the same
	warn    func(K)

	mu      sync.Mutex
	pending map[K]struct{}      // not warned of yet
	warned  map[K]time.Duration // when last
}

func (r *reminders[K]) add(thing K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending, r.warned = map[K]struct{}{}, map[K]time.Duration{}
	}
	r.pending[thing] = struct{}{}
}

func (r *reminders[K]) run(ctx context.Context) {
	ticker := time.NewTicker(reminderLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		due := r.due()
		if !r.leads() {
			continue
		}
		for _, thing := range due {
			r.warn(thing)
		}
	}
}

// due takes the things that are to be warned of now.
func (r *reminders[K]) due() (things []K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.elapsed()
	for thing, at := range r.warned {
		if now-at >= reminderPause {
			delete(r.warned, thing)
		}
	}
	for thing := range r.pending {
		if _, lately := r.warned[thing]; !lately {
			things = append(things, thing)
			r.warned[thing] = now
		}
	}
	clear(r.pending)
	return things
}
