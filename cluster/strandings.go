package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"holdfast.internal/sqs"
)

const (
	// strandingLook is how often it is looked whether there is one to warn of.
	strandingLook = time.Second

	// strandingPause is kept between two warnings about the same queue.
	strandingPause = time.Minute
)

// strandings warns of queues that hand out messages again which should be in a
// dead-letter queue, because that queue does not exist. It logs on a goroutine of
// its own: the one that applies entries must not wait for whoever reads the log.
type strandings struct {
	elapsed func() time.Duration
	leads   func() bool // only the leader warns: all nodes hear the same
	log     *slog.Logger

	mu      sync.Mutex
	pending map[sqs.QueueKey]struct{}      // not warned of yet
	warned  map[sqs.QueueKey]time.Duration // when last
}

// notify hears what the commands of a batch did.
func (s *strandings) notify(events []sqs.Event) {
	for _, e := range events {
		if e.Kind == sqs.DeadLetterTargetMissing {
			s.add(e.Queue)
		}
	}
}

func (s *strandings) add(queue sqs.QueueKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending, s.warned = map[sqs.QueueKey]struct{}{}, map[sqs.QueueKey]time.Duration{}
	}
	s.pending[queue] = struct{}{}
}

func (s *strandings) run(ctx context.Context) {
	ticker := time.NewTicker(strandingLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		due := s.due()
		if !s.leads() {
			continue
		}
		for _, queue := range due {
			s.log.Warn("dead-letter queue is missing; its source hands out messages again",
				"account", queue.Account, "queue", queue.Name)
		}
	}
}

// due takes the queues that are to be warned of now.
func (s *strandings) due() (queues []sqs.QueueKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.elapsed()
	for queue, at := range s.warned {
		if now-at >= strandingPause {
			delete(s.warned, queue)
		}
	}
	for queue := range s.pending {
		if _, lately := s.warned[queue]; !lately {
			queues = append(queues, queue)
			s.warned[queue] = now
		}
	}
	clear(s.pending)
	return queues
}
