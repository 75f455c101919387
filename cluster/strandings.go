package cluster

import (
	"log/slog"
	"time"

	"holdfast.internal/sqs"
)

// strandings warns of queues that hand out messages again which should be in a
// dead-letter queue, because that queue does not exist.
type strandings struct{ reminders[sqs.QueueKey] }

func newStrandings(elapsed func() time.Duration, leads func() bool, log *slog.Logger) *strandings {
	return &strandings{reminders[sqs.QueueKey]{elapsed: elapsed, leads: leads, warn: func(queue sqs.QueueKey) {
		log.Warn("dead-letter queue is missing; its source hands out messages again", "account", queue.Account, "queue", queue.Name)
	}}}
}

// notify hears what the commands of a batch did.
func (s *strandings) notify(events []sqs.Event) {
	for _, e := range events {
		if e.Kind == sqs.DeadLetterTargetMissing {
			s.add(e.Queue)
		}
	}
}
