package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// raftTimeout is the heartbeat and the election timeout and the leader's lease:
// a new leader is there 0.7 s after the old one died (median), 0.93 s at most.
const raftTimeout = 300 * time.Millisecond

const (
	// retryEvery is the pause before a command that met no leader is proposed
	// again.
	retryEvery = 20 * time.Millisecond

	// trailingEntries stay in raft's view of the log behind a snapshot: as few as
	// possible, since an entry may have megabytes. The log itself keeps more, by
	// bytes, and raft finds it there.
	trailingEntries = 1
)

// group is one raft group of this node, with all that proposing to it needs.
// This version has one group.
type group struct {
	raft      *raft.Raft
	machine   *raftfsm.Machine
	guarded   *raftMachine // the same, as raft knows it
	clock     *clock
	admission *admission
	coalescer *coalescer
	timeout   time.Duration // of a command whose context has no deadline
	log       *slog.Logger

	leading atomic.Bool   // leads, and has applied all of the terms before
	changes atomic.Uint64 // of leadership
}

// groupConfig is what openGroup needs.
type groupConfig struct {
	id      raft.ServerID
	stores  *stores
	machine *raftfsm.Machine
	clock   *clock
	elapsed func() time.Duration
	failed  func(error) // ends the process; does not block
	timeout time.Duration
	log     *slog.Logger
}

// openGroup starts raft on the stores, as the only voter of its group. The
// group bootstraps itself when the stores are empty.
func openGroup(c groupConfig) (*group, error) {
	address, transport := raft.NewInmemTransport(raft.ServerAddress(c.id))
	empty, err := c.stores.empty()
	if err == nil {
		err = c.stores.check()
	}
	if err != nil {
		return nil, err
	}
	machine := &raftMachine{Machine: c.machine, elapsed: c.elapsed, failed: c.failed}
	log, stable := &haltingLog{LogStore: c.stores.log}, &haltingStable{StableStore: c.stores.stable, failed: c.failed}
	r, err := newRaft(log, stable, func() (*raft.Raft, error) {
		return raft.NewRaft(raftConfig(c.id, c.log), machine, log, stable, c.stores.snapshots, transport)
	})
	if err != nil {
		_, damage := c.stores.snapshots.List() // raft has logged it, but does not return it
		return nil, errors.Join(fmt.Errorf("open raft: %w: %w", ErrRestore, err), damage)
	}
	g := &group{
		raft: r, machine: c.machine, guarded: machine, clock: c.clock, timeout: c.timeout, log: c.log,
		admission: &admission{pending: c.stores.bodies.Pending},
	}
	g.coalescer = newCoalescer(
		func(entry []byte) raft.ApplyFuture { return r.Apply(entry, c.timeout) },
		c.clock.now, g.admission.release)
	if !empty {
		return g, nil
	}
	voters := raft.Configuration{Servers: []raft.Server{{ID: c.id, Address: address}}}
	if err := r.BootstrapCluster(voters).Error(); err != nil {
		return nil, errors.Join(fmt.Errorf("bootstrap group: %w", err), g.close())
	}
	return g, nil
}

// raftConfig is raft's configuration for the member id. Snapshots have triggers
// of our own: raft's counts entries, and entries are of very different size.
func raftConfig(id raft.ServerID, log *slog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = id
	c.HeartbeatTimeout = raftTimeout
	c.ElectionTimeout = raftTimeout
	c.LeaderLeaseTimeout = raftTimeout
	c.MaxAppendEntries = 64
	c.TrailingLogs = trailingEntries
	c.SnapshotInterval = time.Hour
	c.SnapshotThreshold = 1 << 40
	c.NoLegacyTelemetry = true
	c.Logger = newRaftLogger(log)
	return c
}

// lead waits until this node leads the group, and makes it ready: everything
// from before is applied, the clock goes on from it, and there is a cluster.
func (g *group) lead(ctx context.Context, seed raftfsm.Settings) error {
	for leads := false; !leads; {
		select {
		case leads = <-g.raft.LeaderCh():
		case <-ctx.Done():
			return fmt.Errorf("wait for leadership: %w", ctx.Err())
		}
	}
	if err := g.raft.Barrier(g.timeout).Error(); err != nil {
		return fmt.Errorf("apply the log: %w", err)
	}
	var applied sqs.Time
	g.machine.View(func(v raftfsm.View) { applied = v.Now() })
	g.clock.start(applied)
	if err := g.form(ctx, seed); err != nil {
		return fmt.Errorf("form cluster: %w", err)
	}
	g.changes.Add(1)
	g.leading.Store(true)
	return nil
}

// form seeds the state of a new cluster. In one that is formed the state is
// obeyed, and differences to seed are logged. It checks that both are of the
// same cluster.
func (g *group) form(ctx context.Context, seed raftfsm.Settings) error {
	settings := g.machine.Settings()
	if settings.ClusterID == "" {
		key := raftfsm.HandleKey{ID: 1}
		_, _ = rand.Read(key.Key[:]) // never fails
		seed.HandleKeys = []raftfsm.HandleKey{key}
		outcome, err := g.propose(ctx, raftfsm.Form{ClusterID: seed.ClusterID, Settings: seed}, nil)
		if err == nil {
			err = outcome.Err
		}
		return err
	}
	if settings.ClusterID != seed.ClusterID {
		return fmt.Errorf("%w: the state is of cluster %s, %s of %s", ErrIdentity, settings.ClusterID, identityFile, seed.ClusterID)
	}
	seed.Version = settings.Version
	obeyed := settings.List()
	for i, given := range seed.List() {
		if given != obeyed[i] {
			g.log.Warn("setting differs; the state is obeyed", "setting", given.Name, "given", given.Value, "state", obeyed[i].Value)
		}
	}
	return nil
}

// follow keeps track of the leadership until ctx is done.
func (g *group) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case leads := <-g.raft.LeaderCh():
			g.leading.Store(false)
			g.changes.Add(1)
			g.log.Info("leader changed", "leads", leads)
			if leads && g.raft.Barrier(g.timeout).Error() == nil {
				g.leading.Store(true)
			}
		}
	}
}

// propose puts one command into the log and returns its outcome. While there is
// no leader it tries again. The error is nil, ErrNoLeader, ErrOutcomeUnknown,
// ErrOverloaded, or that of a command that cannot be encoded.
func (g *group) propose(ctx context.Context, c raftfsm.Command, bodies [][]byte) (raftfsm.Outcome, error) {
	if ctx.Err() != nil {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	p := g.coalescer.take()
	if _, bounded := ctx.Deadline(); !bounded {
		p.expired.Reset(g.timeout)
	}
	var err error
	if p.command, err = raftfsm.AppendCommand(p.command[:0], c, bodies); err != nil {
		g.coalescer.recycle(p)
		return raftfsm.Outcome{}, err
	}
	if grows(c) {
		size := int64(len(p.command)) + commandOverhead
		if err := g.admission.admit(ctx, p.expired.C, size); err != nil {
			g.coalescer.recycle(p)
			return raftfsm.Outcome{}, err
		}
		p.held = size
	}
	return g.submit(ctx, p)
}

// submit puts p into the log, again and again until it meets a leader.
func (g *group) submit(ctx context.Context, p *proposal) (raftfsm.Outcome, error) {
	for {
		if err := g.coalescer.submit(ctx, p); err != nil {
			return raftfsm.Outcome{}, err
		}
		if errors.Is(p.err, ErrNoLeader) && g.pause(ctx, p) {
			continue
		}
		outcome, err := p.outcome, p.err
		g.coalescer.recycle(p)
		return outcome, err
	}
}

// pause waits before the next try of p; false means that there is no time for
// one.
func (g *group) pause(ctx context.Context, p *proposal) bool {
	if g.coalescer.isClosed() {
		return false
	}
	select {
	case <-time.After(retryEvery):
		return true
	case <-p.expired.C:
	case <-ctx.Done():
	}
	return false
}

// close refuses new commands, lets those in flight be answered, and ends raft,
// which waits for a snapshot that is being written.
func (g *group) close() error {
	g.leading.Store(false)
	g.admission.close()
	g.coalescer.close()
	return g.raft.Shutdown().Error()
}
