package cluster

import (
	"context"
	"log/slog"
	"time"

	"holdfast.internal/raftfsm"
)

const (
	// pulseEvery is how long it is at most until it is looked whether work is due:
	// commands may bring it forward.
	pulseEvery = 250 * time.Millisecond
	// pulseGap is how long it is at least from a pulse that has left nothing to the
	// next. So many move tasks, each with a rhythm of its own, share pulses, and
	// the slowest one is not late by more than a half percent.
	pulseGap = 5 * time.Millisecond
)

// pulse proposes a raftfsm.Pulse when the state has work that is due by the
// clock and that no command does: then at once again until nothing is left.
type pulse struct {
	group *group
	log   *slog.Logger
}

func (p *pulse) run(ctx context.Context) {
	timer := time.NewTimer(pulseEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(p.work(ctx))
	}
}

// work proposes pulses as long as something is due, and returns when to look
// again. After a failure that is not at once, even if something is due.
func (p *pulse) work(ctx context.Context) time.Duration {
	for {
		if wait := p.wait(); wait > 0 {
			return max(wait, pulseGap)
		}
		outcome, err := p.group.propose(ctx, raftfsm.Pulse{}, nil)
		if err == nil {
			err = outcome.Err
		}
		if err != nil {
			p.log.Debug("pulse was not applied", "err", err)
			return pulseEvery
		}
	}
}

// wait is how long it is until work is due by the clock, at most pulseEvery.
func (p *pulse) wait() time.Duration {
	if !p.group.leading.Load() {
		return pulseEvery
	}
	at, ever := p.group.machine.NextPulse()
	if !ever {
		return pulseEvery
	}
	return min(at.Sub(p.group.clock.now()), pulseEvery)
}
