package cluster

import (
	"context"
	"log/slog"
	"time"

	"holdfast.internal/raftfsm"
)

// pulseEvery is how often it is looked whether work is due.
const pulseEvery = 250 * time.Millisecond

// pulse proposes a raftfsm.Pulse when the state has work that is due by the
// clock and that no command does: then at once again until nothing is left.
type pulse struct {
	group *group
	log   *slog.Logger
}

func (p *pulse) run(ctx context.Context) {
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for p.due() && ctx.Err() == nil {
			if _, err := p.group.propose(ctx, raftfsm.Pulse{}, nil); err != nil {
				p.log.Debug("pulse was not applied", "err", err)
				break
			}
		}
	}
}

func (p *pulse) due() bool {
	if !p.group.leading.Load() {
		return false
	}
	at, ever := p.group.machine.NextPulse()
	return ever && at <= p.group.clock.now()
}
