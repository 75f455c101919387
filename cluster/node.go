package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// Node is one broker process: its data directory, its member of the raft group,
// and its receivers in waiting. It is safe for concurrent use.
type Node struct {
	config      Config
	stores      *stores
	members     *members
	port        *peer.Port // nil if the node is alone
	formation   *formation // nil if the node is alone
	pings       *pings     // nil if the node is alone
	readiness   readiness
	machine     *raftfsm.Machine
	damage      *damage
	group       *group
	gateway     *gateway // nil if the node is alone
	line        *line
	clock       *clock
	gauges      *gauges
	snapshotter *snapshotter
	fsyncs      *histogram
	tails       *tails
	strandings  *strandings
	undelivered *undelivered
	tracing     sync.Mutex // held by the one trace that runs
	startedAt   time.Duration

	aloneID   string // the cluster's, if the node is alone
	draining  atomic.Bool
	unreached atomic.Bool // the leader does not reach this node, which reaches it
	stop      context.CancelFunc
	loops     sync.WaitGroup
	dying     sync.Once
	closing   sync.Once
	closed    error
}

// Start opens the node's data directory and replays its log. A node that is alone
// forms its cluster if there is none yet, and serves when Start returns. A member
// looks for the others from then on; until it has found them Ready says what it
// waits for, and commands wait as they do for a leader. ExitCode tells what an
// error of Start means to the process.
func Start(ctx context.Context, c Config) (*Node, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{config: c, startedAt: c.Elapsed(), fsyncs: &histogram{elapsed: c.Elapsed}}
	n.members = newMembers(c.NodeName, c.Members, c.Elapsed)
	dog := newWatchdog(n.fatal, c.Elapsed)
	if err := n.open(dog); err != nil {
		if errors.Is(err, wal.ErrCorrupt) && !n.members.alone() {
			err = fmt.Errorf("%w; %s", err, lostDataAdvice)
		}
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.loops.Go(func() { dog.run(background) })
	n.loops.Go(func() { n.line.run(background) })

	if n.members.alone() {
		if err := n.leadAlone(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	} else {
		n.join(background)
	}
	n.gauges.look()
	pulse := &pulse{group: n.group, log: c.Logger}
	loops := []func(context.Context){
		n.group.follow, n.gauges.run, n.strandings.run, n.undelivered.run, pulse.run, n.snapshotter.run,
	}
	if n.gateway != nil {
		loops = append(loops, n.gateway.follow, n.gateway.keepSession)
	}
	for _, loop := range loops {
		n.loops.Go(func() { loop(background) })
	}
	c.Logger.Info("node started", "node", c.NodeName, "raft_id", n.group.id,
		"cluster_id", n.clusterID(), "applied", n.machine.AppliedIndex(), "pid", os.Getpid())
	return n, nil
}

// leadAlone has a node lead that is alone: it is the only voter of its group, and
// names itself when the group is new.
func (n *Node) leadAlone(ctx context.Context) error {
	g := n.group
	if len(g.raft.Load().GetConfiguration().Configuration().Servers) == 0 {
		self := raft.Server{ID: g.id, Address: raft.ServerAddress(g.id)}
		if err := g.bootstrap([]raft.Server{self}); err != nil {
			return err
		}
	}
	return g.lead(ctx)
}

// join has a member talk to the others: first until there is a cluster, then as
// one of it.
func (n *Node) join(ctx context.Context) {
	n.loops.Go(func() {
		if err := n.port.Serve(); err != nil {
			n.fatal(1, err)
		}
	})
	n.loops.Go(func() {
		if err := n.formation.run(ctx); err != nil {
			n.fatal(logErrorCode(err), err)
			return
		}
		n.pings.run(ctx)
	})
}

// open opens the stores and makes the parts, none of which runs yet but raft.
func (n *Node) open(dog *watchdog) (err error) {
	c := n.config
	id, err := n.openStores(dog)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.closePort(), n.stores.close())
		}
	}()
	n.clock = newClock(c.Now, c.Elapsed, 1+len(n.members.others), c.Logger)
	n.readiness.elapsed = c.Elapsed
	leads := func() bool { return n.group.leading.Load() }
	n.strandings = newStrandings(c.Elapsed, leads, c.Logger)
	n.undelivered = newUndelivered(c.Elapsed, leads, c.Logger)
	n.damage = &damage{
		bodies: n.stores.bodies, repair: n.stores.repair, log: c.Logger, call: n.call,
		next:   func() uint64 { return n.machine.NextBody() },
		others: func() []peer.Target { return n.members.others },
		do:     func(ctx context.Context, c raftfsm.Command) (raftfsm.Outcome, error) { return n.Do(ctx, c) },
	}
	n.machine = raftfsm.New(n.damage.shared(), func(events []sqs.Event) {
		n.strandings.notify(events)
		n.line.notify(events)
	})
	n.machine.NotifyTopics(n.undelivered.notify)
	n.stores.retention.lowest = func() uint64 { return n.members.lowestApplied(n.machine.AppliedIndex()) }
	n.tails = &tails{machine: n.machine}
	receive := func(ctx context.Context, c sqs.ReceiveMessage) (raftfsm.Outcome, error) {
		return n.group.propose(ctx, c, nil)
	}
	n.line = newLine(receive, n.machine.View, n.clock.now, c.Elapsed)
	if err := n.openGroup(id, dog); err != nil {
		return err
	}
	n.gauges = &gauges{
		dir: c.DataDir, memory: c.Memory, reserve: c.DiskReserve, majority: n.members.lowDisk,
		admission: n.group.admission, machine: n.machine, log: c.Logger, scarce: n.stores.diskIsScarce,
	}
	n.snapshotter = newSnapshotter(c, n.group, n.stores, n.gauges)
	n.snapshotter.ending = n.draining.Load
	dog.busy = func() time.Duration { return max(n.stores.busy(), n.group.stable.busy()) }
	dog.tick = func() { n.clock.now() }
	dog.replaceable = func() bool { return n.group.leading.Load() && n.members.hasMajority(len(n.members.up())) }
	return nil
}

func (n *Node) openStores(dog *watchdog) (id identity, err error) {
	c := n.config
	if c.InMemory != nil {
		n.stores, id = c.InMemory.open(c.NodeName, len(c.Members) > 0)
		return id, nil
	}
	n.stores, id, err = openStores(c, n.fsyncs, dog.failed)
	return id, err
}

// openGroup starts raft.
func (n *Node) openGroup(id identity, dog *watchdog) (err error) {
	c := n.config
	empty, err := n.stores.check()
	if err != nil {
		return err
	}
	group := groupConfig{
		id: raft.ServerID(id.RaftID), stores: n.stores, machine: n.machine,
		clock: n.clock, elapsed: c.Elapsed, failed: dog.failed, timeout: c.RequestTimeout, log: c.Logger, fatal: n.fatal,
		seed: func() raftfsm.Settings {
			seed := c.Seed
			seed.ClusterID = n.clusterID()
			return seed
		},
	}
	if n.members.alone() {
		n.aloneID = id.ClusterID
		group.transport = func() guardedTransport {
			_, transport := raft.NewInmemTransport(raft.ServerAddress(id.RaftID))
			return transport
		}
		n.group, err = openGroup(group)
		return err
	}
	n.openPort(id)
	group.transport, group.breakLinks = n.transport, n.breakLinks
	group.ask = n.pings.refresh
	group.lease = newLease(c.Elapsed, n.members.hasMajority)
	group.leads = n.line.lead
	n.line.proven = group.lease.holds
	n.line.lead(false)
	if n.group, err = openGroup(group); err != nil {
		return err
	}
	if err := n.checkMembership(!empty); err != nil {
		return errors.Join(err, n.group.close(n.cutOff)) // raft must not outlive its stores
	}
	n.gateway = newGateway(n)
	n.gateway.handle()
	return nil
}

// checkMembership fails if log, identity and command line of a member do not fit
// together. Bootstrapped says that the log or a snapshot names the members.
func (n *Node) checkMembership(bootstrapped bool) error {
	if bootstrapped {
		if err := n.members.agree(n.group.raft.Load().GetConfiguration().Configuration().Servers); err != nil {
			return err
		}
	}
	return n.formation.resume(bootstrapped)
}

// clusterID is that of the cluster that the node is of; empty if there is none yet.
func (n *Node) clusterID() string {
	if n.formation == nil {
		return n.aloneID
	}
	return n.formation.clusterID()
}

// Do proposes a command and returns its outcome. A SendMessageBatch has one body
// (sqs.AppendContent) per entry, and so has a PublishBatch (sns.AppendMessage). An
// *sqs.Error, *sns.Error or *raftfsm.SettingError in Outcome.Err is an answer; the
// error is ErrNoLeader, ErrOutcomeUnknown, ErrOverloaded, or a fault. The deadline
// is Config.RequestTimeout from now, or that of ctx if it is sooner.
func (n *Node) Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	if _, ok := c.(sns.CreateTopic); ok {
		if err := n.ensureSigningKey(ctx); err != nil {
			return raftfsm.Outcome{}, err
		}
	}
	if n.gateway != nil {
		return n.gateway.do(ctx, c, bodies)
	}
	return n.group.propose(ctx, c, bodies)
}

// Receive is ReceiveMessage. It waits for messages up to wait; a negative wait
// stands for the queue's ReceiveMessageWaitTimeSeconds, and 0 is a short poll.
// Waiting takes no entry in the log.
//
// While it waits it calls alive, which may be nil, once a second, and once more
// when it has its turn. If alive reports false, or ctx is done while it waits,
// nothing is received and the answer is empty.
//
// The error is that of Do, or the *sqs.Error that the queue answers with; then
// Delivery.Index is set.
func (n *Node) Receive(ctx context.Context, c sqs.ReceiveMessage, wait time.Duration, alive func() bool) (Delivery, error) {
	outcome, err := n.receive(ctx, c, wait, alive)
	if err != nil {
		return Delivery{}, err
	}
	return deliver(outcome, n.machine.Settings(), func(m sqs.Received, err error) {
		n.damage.withheld(context.WithoutCancel(ctx), c.Queue, m, err)
	})
}

func (n *Node) receive(ctx context.Context, c sqs.ReceiveMessage, wait time.Duration, alive func() bool) (raftfsm.Outcome, error) {
	if n.gateway != nil {
		return n.gateway.receive(ctx, c, wait, alive)
	}
	return n.line.receive(ctx, &poll{command: c, wait: wait, alive: alive})
}

// ParseHandle reads a receipt handle; false for a text that no node of this
// cluster has minted.
func (n *Node) ParseHandle(text string) (sqs.Receipt, bool) {
	settings := n.machine.Settings()
	return settings.ParseHandle(text)
}

// AwaitFormed waits until Settings are those of the cluster. A member that has
// started reads its log only when it has heard from the others how much of it
// holds; until then it knows neither region nor the keys of receipt handles. The
// deadline is Config.RequestTimeout from now, or that of ctx if it is sooner; the error
// is ErrNoLeader.
func (n *Node) AwaitFormed(ctx context.Context) error {
	select {
	case <-n.machine.Formed():
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, n.config.RequestTimeout)
	defer cancel()
	select {
	case <-n.machine.Formed():
		return nil
	case <-ctx.Done():
		return ErrNoLeader
	}
}

// Settings are the replicated settings as of now; before AwaitFormed returns, defaults.
func (n *Node) Settings() raftfsm.Settings { return n.machine.Settings() }

// Now is cluster time as this node knows it, for Date headers and metrics. While the
// node leads it never goes back; else it may, when the leader is heard.
func (n *Node) Now() sqs.Time { return n.clock.now() }

// Ready reports whether the node serves: it is a member of a cluster that has a
// leader, has applied its log, and is not draining. If not, it says why.
func (n *Node) Ready() (bool, []string) {
	reasons := n.unready()
	if n.draining.Load() {
		reasons = append(reasons, "draining")
	}
	return len(reasons) == 0, reasons
}

func (n *Node) unready() []string {
	leading := n.group.leading.Load()
	switch {
	case leading:
		n.readiness.led()
		return n.sessionless()
	case n.formation == nil:
		return []string{"no leader"}
	}
	if obstacle := n.formation.waitsFor(); obstacle != "" {
		return []string{obstacle}
	}
	reasons := append(n.readiness.reasons(), n.sessionless()...)
	if len(reasons) == 0 {
		return nil
	}
	if reason := n.shortOfDisk(); reason != "" {
		reasons = append(reasons, reason)
	}
	reasons = append(reasons, n.strangers()...)
	if n.unreached.Load() {
		reasons = append(reasons, fmt.Sprintf("the leader does not reach this node at %s, where --cluster has it", n.members.self.Address))
	}
	return reasons
}

// shortOfDisk is diskReason of this node as of now.
func (n *Node) shortOfDisk() string {
	var installed error
	if last := n.group.installed.Load(); last != nil {
		installed = *last
	}
	return diskReason(n.gauges.read(), n.config.DiskReserve, installed)
}

// sessionless says that a member cannot number its operations yet.
func (n *Node) sessionless() []string {
	if n.gateway == nil || n.gateway.ready() {
		return nil
	}
	return []string{"session not open"}
}

// Queues describes all queues as of now, in the order of their keys.
func (n *Node) Queues() []sqs.QueueCensus {
	var queues []sqs.QueueCensus
	now := n.clock.now()
	n.machine.View(func(v raftfsm.View) { queues = v.Queues().Census(now) })
	return queues
}

// Drain prepares for Close: receives in waiting answer empty at once, and new
// ones do not wait; tails end. Commands are still taken.
func (n *Node) Drain() {
	n.draining.Store(true)
	n.line.drain()
	if n.gateway != nil {
		n.gateway.drain()
	}
	n.tails.drain()
}

// closeTimeout bounds Close, which would else wait for a snapshot that is being
// written, or for a disk that hangs.
const closeTimeout = 1800 * time.Millisecond

// Close drains, answers what is in flight, and closes the data directory. It
// takes less than two seconds; with an error, the process must end, since it
// may still write. The node cannot be used afterwards.
func (n *Node) Close() error {
	n.closing.Do(func() {
		n.Drain()
		ended := make(chan error, 1)
		go func() { ended <- n.end() }()
		select {
		case n.closed = <-ended:
		case <-time.After(closeTimeout):
			n.closed = errors.New("close node: it is still writing")
		}
	})
	return n.closed
}

func (n *Node) end() error {
	n.stores.stop()
	n.handOver()
	err := n.group.close(n.cutOff)
	n.stop()
	err = errors.Join(err, n.closePort())
	n.loops.Wait()
	return errors.Join(err, n.stores.close())
}

// handOver gives the leadership away before the node ends.
func (n *Node) handOver() {
	if !n.members.alone() && n.group.leading.Load() {
		n.group.handOver(n.members.successor)
	}
}

// cutOff breaks the connections with the others, and makes none any more.
func (n *Node) cutOff() {
	if n.port != nil {
		_ = n.port.Abort()
	}
}

func (n *Node) closePort() error {
	if n.port == nil {
		return nil
	}
	return n.port.Close()
}

// fatal ends the process. The others see it gone first: the kernel would keep the
// connections open for as long as a thread hangs in fsync.
func (n *Node) fatal(code int, err error) {
	if n.port != nil {
		_ = n.port.Abort()
	}
	n.dying.Do(func() { n.config.Fatal(code, err) })
}
