package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
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

	// formationTimeout is how long a new leader tries to seed the state of a new
	// cluster before it looks whether it still leads.
	formationTimeout = 2 * time.Second

	// handOverTimeout bounds how long a leader that ends looks for another one.
	handOverTimeout = time.Second

	// trailingEntries stay in raft's view of the log behind a snapshot: as few as
	// possible, since an entry may have megabytes. The log itself keeps more, by
	// bytes, and raft finds it there.
	trailingEntries = 1
)

// group is one raft group of this node, with all that proposing to it needs.
// This version has one group.
type group struct {
	groupConfig
	guarded *raftMachine   // the machine as raft knows it
	stable  *haltingStable // the same of the stable store

	admission *admission
	coalescer *coalescer

	raft     atomic.Pointer[raft.Raft] // replaced by reopen
	asked    outstanding               // of raft, but for snapshots, which it always answers
	reopened chan struct{}             // capacity 1: follow looks at the new raft
	reopens  sync.Mutex                // held by reopen and close

	proposing atomic.Bool   // leads, and its clock goes on from that of the leader before
	leading   atomic.Bool   // and serves: all of the terms before is applied, and there are settings
	changes   atomic.Uint64 // of leadership
	compared  sync.Once     // the settings, with those given

	// installed is how the last installation of a leader's snapshot ended; nil: there was none.
	installed atomic.Pointer[error]

	news     sync.Mutex
	turnover chan struct{} // closed when the leader known here changes
}

// groupConfig is what openGroup needs.
type groupConfig struct {
	id      raft.ServerID
	stores  *stores
	machine *raftfsm.Machine
	clock   *clock
	elapsed func() time.Duration
	failed  func(error)   // ends the process; does not block
	timeout time.Duration // of a command
	log     *slog.Logger
	// transport makes what raft talks to the other members with. Raft closes it.
	transport func() guardedTransport
	// breakLinks closes the connections to a member; nil if there is none.
	breakLinks func(raft.ServerAddress)
	// lease, nil if the node is alone, tells how fresh its leadership is.
	lease *lease
	// leads is told when this node begins to serve as the leader, or ends to.
	leads func(bool)
	// ask, which may be nil, has all other members tell anew how they are.
	ask func(context.Context)
	// seed is what the settings are when the cluster forms.
	seed func() raftfsm.Settings
	// fatal ends the process.
	fatal func(code int, err error)
}

// openGroup starts raft on the stores. A group without members does nothing until
// bootstrap names them.
func openGroup(c groupConfig) (*group, error) {
	g := &group{
		groupConfig: c,
		guarded:     &raftMachine{Machine: c.machine, elapsed: c.elapsed, failed: c.failed, fatal: c.fatal},
		stable:      &haltingStable{StableStore: c.stores.stable, elapsed: c.elapsed, failed: c.failed},
		admission:   &admission{pending: c.stores.bodies.Pending},
		reopened:    make(chan struct{}, 1),
		turnover:    make(chan struct{}),
	}
	if err := g.openRaft(); err != nil {
		return nil, err
	}
	g.coalescer = newCoalescer(g.apply, c.clock.now, g.machine.FanOut, g.admission.release)
	return g, nil
}

// openRaft starts a raft on the stores, with a transport of its own.
func (g *group) openRaft() error {
	if err := mendLog(g.stores.log, g.stores.snapshots); err != nil {
		return err
	}
	transport := g.guard(g.transport())
	log := &haltingLog{LogStore: g.stores.log}
	g.guarded.running.Store(false)
	g.stable.running.Store(false)
	r, err := newRaft(log, g.stable, func() (*raft.Raft, error) {
		return raft.NewRaft(raftConfig(g.id, g.log), g.guarded, log, g.stable, g.stores.snapshots, transport)
	})
	if err != nil {
		err = errors.Join(err, transport.Close())
		_, damage := g.stores.snapshots.List() // raft has logged both, but returns neither
		return errors.Join(fmt.Errorf("open raft: %w: %w", ErrRestore, err), g.guarded.refused, damage)
	}
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if _, ok := o.Data.(raft.LeaderObservation); ok {
			g.announce()
		}
		return false
	}))
	g.raft.Store(r)
	g.guarded.running.Store(true)
	return nil
}

// guard puts a guard around a transport.
func (g *group) guard(transport guardedTransport) *guard {
	return newGuard(transport, guardConfig{
		log: g.stores.log, snapshots: g.stores.snapshots,
		applied:    g.machine.AppliedIndex,
		last:       func() uint64 { return g.raft.Load().LastIndex() },
		reopen:     g.reopen,
		breakLinks: g.breakLinks,
		installed:  func(err error) { g.installed.Store(&err) },
		fatal:      func(err error) { g.fatal(ExitCode(err), err) },
		logger:     g.log,
	})
}

// reopen ends raft and starts it anew on the same stores, which repair may change
// in between. Commands in flight get ErrOutcomeUnknown.
func (g *group) reopen(repair func() error) error {
	g.reopens.Lock()
	defer g.reopens.Unlock()
	if g.coalescer.isClosed() {
		return ErrNoLeader
	}
	g.lower()
	if err := g.rewindable(); err != nil {
		return err
	}
	g.asked.end()
	if err := g.raft.Load().Shutdown().Error(); err != nil {
		return fmt.Errorf("end raft: %w", err)
	}
	if err := repair(); err != nil {
		return err
	}
	if err := g.openRaft(); err != nil {
		return err
	}
	g.asked.begin()
	select {
	case g.reopened <- struct{}{}:
	default:
	}
	return nil
}

// rewindable makes sure that there is a snapshot: a raft that is opened begins
// with the newest one, and without one it would apply the log to a state that has
// it.
func (g *group) rewindable() error {
	newest, err := newestSnapshot(g.stores.snapshots)
	if err != nil || newest.Index > 0 || g.machine.AppliedIndex() == 0 {
		return err
	}
	if err := g.raft.Load().Snapshot().Error(); err != nil {
		return fmt.Errorf("take snapshot to go back to: %w", err)
	}
	return nil
}

// bootstrap names the first members of the group. Every one of them does it, with
// the same list.
func (g *group) bootstrap(voters []raft.Server) error {
	for i := range voters {
		voters[i].Suffrage = raft.Voter
	}
	if err := g.raft.Load().BootstrapCluster(raft.Configuration{Servers: voters}).Error(); err != nil {
		return fmt.Errorf("bootstrap group: %w", err)
	}
	return nil
}

// apply puts an entry into the log if this node may propose. Error of the future is
// called once.
func (g *group) apply(entry []byte) raft.ApplyFuture {
	if !g.proposing.Load() || !g.asked.ask() {
		return refused{}
	}
	began := g.elapsed()
	future := &entryFuture{g.raft.Load().Apply(entry, g.timeout), &g.asked}
	if g.lease == nil {
		return future
	}
	return g.lease.watch(future, began)
}

// refused is the answer to an entry that was not given to raft.
type refused struct{ raft.ApplyFuture }

func (refused) Error() error { return raft.ErrNotLeader }

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

// lead waits until this node leads and serves. It is for a node that is alone.
func (g *group) lead(ctx context.Context) error {
	for leads := false; !leads; {
		select {
		case leads = <-g.raft.Load().LeaderCh():
		case <-ctx.Done():
			return fmt.Errorf("wait for leadership: %w", ctx.Err())
		}
	}
	return g.takeOver(ctx)
}

// takeOver makes this node, which raft says leads, a leader that serves:
// everything from before is applied, the clock goes on from it, and there is a
// cluster.
func (g *group) takeOver(ctx context.Context) error {
	term := g.raft.Load().CurrentTerm() // before the barrier: afterwards it may be that of the next leader
	if g.ask != nil {
		g.clock.consult(ctx, g.ask)
	}
	g.lease.begin()
	if err := g.asked.await(func() raft.Future { return g.raft.Load().Barrier(g.timeout) }); err != nil {
		return fmt.Errorf("apply the log: %w", err)
	}
	var applied sqs.Time
	g.machine.View(func(v raftfsm.View) { applied = v.Now() })
	g.clock.lead(applied, term)
	g.proposing.Store(true)
	if err := g.form(ctx, g.seed()); err != nil {
		return fmt.Errorf("form cluster: %w", err)
	}
	g.changes.Add(1)
	g.leading.Store(true)
	if g.leads != nil {
		g.leads(true)
	}
	g.announce()
	return nil
}

// lower ends the leadership of this node.
func (g *group) lower() {
	g.proposing.Store(false)
	if g.leading.Swap(false) {
		g.changes.Add(1)
	}
	if g.leads != nil {
		g.leads(false)
	}
	g.announce()
}

// form seeds the state of a new cluster. In one that is formed the state is
// obeyed. It checks that both are of the same cluster.
func (g *group) form(ctx context.Context, seed raftfsm.Settings) error {
	settings := g.machine.Settings()
	if settings.ClusterID == "" {
		key := raftfsm.HandleKey{ID: 1}
		_, _ = rand.Read(key.Key[:]) // never fails
		seed.HandleKeys = []raftfsm.HandleKey{key}
		ctx, cancel := context.WithTimeout(ctx, formationTimeout)
		defer cancel()
		outcome, err := g.propose(ctx, raftfsm.Form{ClusterID: seed.ClusterID, Settings: seed}, nil)
		if err == nil {
			err = outcome.Err
		}
		return err
	}
	if settings.ClusterID != seed.ClusterID {
		return fmt.Errorf("%w: the state is of cluster %s, %s of %s", ErrIdentity, settings.ClusterID, identityFile, seed.ClusterID)
	}
	g.compareSettings()
	return nil
}

// compareSettings logs, once, in what the settings in force differ from those that
// this node was started with. A default says nothing: nobody gave it.
func (g *group) compareSettings() {
	settings := g.machine.Settings()
	if settings.ClusterID == "" {
		return
	}
	g.compared.Do(func() {
		seed := g.seed()
		seed.Version = settings.Version
		seed.SNSURL = settings.SNSURL // each node would seed its own address
		obeyed, defaults := settings.List(), raftfsm.DefaultSettings().List()
		for i, given := range seed.List() {
			if given != obeyed[i] && given != defaults[i] {
				g.log.Warn("setting differs; the state is obeyed", "setting", given.Name, "given", given.Value, "state", obeyed[i].Value)
			}
		}
	})
}

// follow keeps track of the leadership until ctx is done.
func (g *group) follow(ctx context.Context) {
	for {
		var leads bool
		select {
		case <-ctx.Done():
			return
		case <-g.reopened:
			leads = g.raft.Load().State() == raft.Leader
		case leads = <-g.raft.Load().LeaderCh():
		}
		led := g.leading.Load()
		g.lower()
		switch {
		case leads:
			g.log.Info("this node leads", "term", g.raft.Load().CurrentTerm())
			g.serve(ctx)
		case led:
			g.log.Info("this node leads no longer")
		}
	}
}

// serve takes over, again and again as long as this node leads.
func (g *group) serve(ctx context.Context) {
	for ctx.Err() == nil && g.raft.Load().State() == raft.Leader {
		err := g.takeOver(ctx)
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrIdentity):
			g.fatal(ExitIdentity, err)
			return
		}
		g.log.Warn("leadership not taken over", "err", err)
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// leader is the node that leads, as known here, and the term. It may be this one,
// before it serves.
func (g *group) leader() (peer.Target, uint64, bool) {
	r := g.raft.Load()
	address, id := r.LeaderWithID()
	if id == "" {
		return peer.Target{}, r.CurrentTerm(), false
	}
	target, err := peer.ParseTarget(string(address))
	if err != nil {
		target = peer.Target{Name: nameOf(id)} // alone, or this node itself
	}
	return target, r.CurrentTerm(), true
}

// nameOf is the node of a raft id.
func nameOf(id raft.ServerID) string {
	name, _, _ := strings.Cut(string(id), "/")
	return name
}

// changed is closed at the next change of the leader, as known here, or of
// whether it serves.
func (g *group) changed() <-chan struct{} {
	g.news.Lock()
	defer g.news.Unlock()
	return g.turnover
}

// announce tells those who wait for changed.
func (g *group) announce() {
	g.news.Lock()
	defer g.news.Unlock()
	close(g.turnover)
	g.turnover = make(chan struct{})
}

// propose puts one command into the log and returns its outcome. While there is
// no leader it tries again. The error is nil, ErrNoLeader, ErrOutcomeUnknown,
// ErrOverloaded, or that of a command that cannot be encoded.
func (g *group) propose(ctx context.Context, c raftfsm.Command, bodies [][]byte) (raftfsm.Outcome, error) {
	if ctx.Err() != nil {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	p := g.coalescer.take()
	p.expired.Reset(g.timeout)
	var err error
	if p.command, err = raftfsm.AppendCommand(p.command[:0], c, bodies); err != nil {
		g.coalescer.recycle(p)
		return raftfsm.Outcome{}, err
	}
	if grows(c, g.machine) {
		size := int64(len(p.command)) + commandOverhead
		if err := g.admission.admit(ctx, p.expired.C, size); err != nil {
			g.coalescer.recycle(p)
			return raftfsm.Outcome{}, err
		}
		p.held = size
	}
	return g.submit(ctx, p)
}

// proposeOnce puts one command into the log, under its origin, and returns its
// outcome. It does not try again; else it is as propose.
func (g *group) proposeOnce(ctx context.Context, c raftfsm.Command, o raftfsm.Origin, timeout time.Duration) (raftfsm.Outcome, error) {
	p := g.coalescer.take()
	p.expired.Reset(timeout)
	p.origin = o
	var err error
	if p.command, err = raftfsm.AppendCommand(p.command[:0], c, nil); err != nil {
		g.coalescer.recycle(p)
		return raftfsm.Outcome{}, err
	}
	if err := g.coalescer.submit(ctx, p); err != nil {
		return raftfsm.Outcome{}, err
	}
	outcome, err := p.outcome, p.err
	g.coalescer.recycle(p)
	return outcome, err
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

// handOver gives the leadership to the member that successor names, within
// handOverTimeout: else the others would notice only after an election timeout
// that there is none. Commands meanwhile wait for the new leader. It is for a node
// that ends: raft may not leave the state of a transfer that fails (hashicorp/raft
// issue 696).
func (g *group) handOver(successor func() (pong, bool)) {
	deadline := time.After(handOverTimeout)
	for g.leading.Load() {
		if to, ok := successor(); ok {
			err := g.asked.await(func() raft.Future {
				return g.raft.Load().LeadershipTransferToServer(raft.ServerID(to.RaftID), g.addressOf(to.RaftID))
			})
			if err == nil {
				g.log.Info("leadership handed over", "to", to.Name)
				return
			}
			g.log.Debug("leadership not handed over", "to", to.Name, "err", err)
		}
		select {
		case <-time.After(retryEvery):
		case <-deadline:
			g.log.Warn("leadership not handed over: the others elect a leader")
			return
		}
	}
}

// addressOf is the address of a member in raft's configuration.
func (g *group) addressOf(id string) raft.ServerAddress {
	for _, s := range g.raft.Load().GetConfiguration().Configuration().Servers {
		if string(s.ID) == id {
			return s.Address
		}
	}
	return ""
}

// answerTimeout is how long raft may take, when the node ends, to answer what is in
// flight. Then it loses its connections: a leader that reaches too few steps down,
// and a follower stops to read a snapshot of a leader that is paused.
const answerTimeout = 700 * time.Millisecond

// close refuses new commands, lets those in flight be answered, and ends raft,
// which waits for a snapshot that is being written, and would wait for other
// members, but that they are cut off.
func (g *group) close(cutOff func()) error {
	g.leading.Store(false)
	g.admission.close()
	late := time.AfterFunc(answerTimeout, cutOff)
	defer late.Stop()
	g.coalescer.close()
	cutOff()
	g.reopens.Lock()
	defer g.reopens.Unlock()
	g.asked.end()
	return g.raft.Load().Shutdown().Error()
}
