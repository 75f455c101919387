package cluster

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// Node is one broker process: its data directory, its member of the raft group,
// and its receivers in waiting. It is safe for concurrent use.
type Node struct {
	config      Config
	identity    identity
	stores      *stores
	machine     *raftfsm.Machine
	group       *group
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

	draining atomic.Bool
	stop     context.CancelFunc
	loops    sync.WaitGroup
	closing  sync.Once
	closed   error
}

// Start opens the node's data directory, replays its log, forms the cluster if
// there is none yet, and returns when the node serves. ExitCode tells what an
// error of it means to the process.
func Start(ctx context.Context, c Config) (*Node, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{config: c, startedAt: c.Elapsed(), fsyncs: &histogram{elapsed: c.Elapsed}}
	dog := newWatchdog(c.Fatal)
	if err := n.open(dog); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.loops.Go(func() { dog.run(background) })
	n.loops.Go(func() { n.line.run(background) })

	seed := c.Seed
	seed.ClusterID = n.identity.ClusterID
	if err := n.group.lead(ctx, seed); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	pulse := &pulse{group: n.group, log: c.Logger}
	n.gauges.look()
	n.loops.Go(func() { n.group.follow(background) })
	n.loops.Go(func() { n.gauges.run(background) })
	n.loops.Go(func() { n.strandings.run(background) })
	n.loops.Go(func() { n.undelivered.run(background) })
	n.loops.Go(func() { pulse.run(background) })
	n.loops.Go(func() { n.snapshotter.run(background) })
	c.Logger.Info("node started", "node", c.NodeName, "raft_id", n.identity.RaftID,
		"cluster_id", n.identity.ClusterID, "applied", n.machine.AppliedIndex(), "pid", os.Getpid())
	return n, nil
}

// open opens the stores and makes the parts, none of which runs yet but raft.
func (n *Node) open(dog *watchdog) error {
	c := n.config
	if c.InMemory != nil {
		n.stores, n.identity = c.InMemory.open(c.NodeName)
	} else {
		var err error
		if n.stores, n.identity, err = openStores(c, n.fsyncs, dog.logFailed); err != nil {
			return err
		}
	}
	n.clock = newClock(c.Now, c.Elapsed, c.Logger)
	n.strandings = newStrandings(c.Elapsed, c.Logger)
	n.undelivered = newUndelivered(c.Elapsed, c.Logger)
	n.machine = raftfsm.New(n.stores.bodies, func(events []sqs.Event) {
		n.strandings.notify(events)
		n.line.notify(events)
	})
	n.machine.NotifyTopics(n.undelivered.notify)
	n.tails = &tails{machine: n.machine}
	receive := func(ctx context.Context, c sqs.ReceiveMessage) (raftfsm.Outcome, error) {
		return n.group.propose(ctx, c, nil)
	}
	n.line = newLine(receive, n.machine.View, n.clock.now, c.Elapsed)
	group, err := openGroup(groupConfig{
		id: raft.ServerID(n.identity.RaftID), stores: n.stores, machine: n.machine,
		clock: n.clock, timeout: c.RequestTimeout, log: c.Logger,
	})
	if err != nil {
		return errors.Join(err, n.stores.close())
	}
	n.group = group
	n.gauges = &gauges{
		dir: c.DataDir, memory: c.Memory, reserve: c.DiskReserve,
		admission: group.admission, machine: n.machine, log: c.Logger,
	}
	n.snapshotter = newSnapshotter(c, group, n.stores, n.gauges)
	dog.busy = n.stores.busy
	dog.tick = func() { n.clock.now() }
	return nil
}

// Do proposes a command and returns its outcome. A SendMessageBatch has one body
// (sqs.AppendContent) per entry, and so has a PublishBatch (sns.AppendMessage). An
// *sqs.Error, *sns.Error or *raftfsm.SettingError in Outcome.Err is an answer; the error is ErrNoLeader, ErrOutcomeUnknown,
// ErrOverloaded, or a fault. The deadline is that of ctx, or else
// Config.RequestTimeout from now.
func (n *Node) Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	if _, ok := c.(sns.CreateTopic); ok {
		if err := n.ensureSigningKey(ctx); err != nil {
			return raftfsm.Outcome{}, err
		}
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
	outcome, err := n.line.receive(ctx, c, wait, alive)
	if err != nil {
		return Delivery{}, err
	}
	return deliver(outcome, n.machine.Settings(), func(m sqs.Received, err error) {
		n.config.Logger.Error("message withheld, its body is damaged",
			"account", c.Queue.Account, "queue", c.Queue.Name, "sequence_number", m.SequenceNumber, "err", err)
	})
}

// ParseHandle reads a receipt handle; false for a text that no node of this
// cluster has minted.
func (n *Node) ParseHandle(text string) (sqs.Receipt, bool) {
	settings := n.machine.Settings()
	return settings.ParseHandle(text)
}

// Settings are the replicated settings as of now.
func (n *Node) Settings() raftfsm.Settings { return n.machine.Settings() }

// Now is cluster time, for Date headers and metrics. It never goes back.
func (n *Node) Now() sqs.Time { return n.clock.now() }

// Ready reports whether the node serves: it leads, has applied its log, and is
// not draining. If not, it says why.
func (n *Node) Ready() (bool, []string) {
	var reasons []string
	if !n.group.leading.Load() {
		reasons = append(reasons, "no leader")
	}
	if n.draining.Load() {
		reasons = append(reasons, "draining")
	}
	return len(reasons) == 0, reasons
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
	err := n.group.close()
	n.stop()
	n.loops.Wait()
	return errors.Join(err, n.stores.close())
}
