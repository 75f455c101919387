package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// gateway is how the clients of a member reach the leader, wherever it is. An
// operation has a number in the node's session, and is sent again under that
// number until its answer arrives: it is executed at most once.
type gateway struct {
	node    string
	group   *group
	line    *line
	members *members
	port    *peer.Port
	elapsed func() time.Duration
	leader  func() (leader peer.Target, term uint64, known bool) // by the word of raft
	log     *slog.Logger

	reign atomic.Pointer[reign]
	waits waits
	calls sync.Pool // of *[]byte: requests

	mu      sync.Mutex
	opened  *session      // nil: there is none yet, or any more
	renewed chan struct{} // closed when opened changes

	drained chan struct{} // closed: no receive waits any more
	drain   func()
}

// reign is a time in which this node knows the same leader, and the same way to it,
// or none.
type reign struct {
	route
	ctx context.Context // ends with the reign
	end context.CancelFunc
}

func newGateway(n *Node) *gateway {
	g := &gateway{
		node: n.config.NodeName, group: n.group, line: n.line, members: n.members, port: n.port,
		elapsed: n.config.Elapsed, leader: n.group.leader, log: n.config.Logger,
		renewed: make(chan struct{}), drained: make(chan struct{}),
	}
	g.drain = sync.OnceFunc(func() { close(g.drained) })
	g.calls.New = func() any { return new([]byte) }
	g.waits.open = map[uint64]*remoteWait{}
	g.reign.Store(newReign(context.Background(), route{}))
	return g
}

func newReign(ctx context.Context, way route) *reign {
	r := &reign{route: way}
	r.ctx, r.end = context.WithCancel(ctx)
	return r
}

// handle answers the other members. It is called before they are served.
func (g *gateway) handle() {
	g.port.Handle(peer.MethodPropose, g.answerProposal)
	g.port.Handle(peer.MethodReceive, g.answerReceive)
	g.port.Handle(peer.MethodTurn, g.answerTurn)
}

// follow keeps track of who leads, and how to reach it, until ctx is done.
func (g *gateway) follow(ctx context.Context) {
	looks := time.NewTicker(pingEvery) // for what the pongs of others say
	defer looks.Stop()
	detour := detour{log: g.log}
	for ctx.Err() == nil {
		changed := g.group.changed()
		before, next := g.reign.Load(), g.route()
		if next != before.route || before.ctx.Err() != nil {
			g.reign.Store(newReign(ctx, next))
			before.end()
		}
		detour.note(next, g.members.elapsed())
		select {
		case <-changed:
		case <-looks.C:
		case <-ctx.Done():
		}
	}
	g.reign.Load().end()
}

// keepSession opens a session, and another one when that has ended, until ctx is
// done.
func (g *gateway) keepSession(ctx context.Context) {
	for ctx.Err() == nil {
		if have, renewed := g.current(); have != nil {
			select {
			case <-renewed:
			case <-ctx.Done():
			}
			continue
		}
		opened := newSession()
		outcome, err := g.run(ctx, &session{}, raftfsm.OpenSession{Session: opened.id, Node: g.node}, nil)
		if err == nil && outcome.Err == nil {
			g.replace(nil, opened)
			g.log.Info("session opened", "index", outcome.Index)
			continue
		}
		g.log.Debug("session not opened", "err", errors.Join(err, outcome.Err))
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// replace makes next the session if it is still the one it was.
func (g *gateway) replace(before, next *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != before {
		return
	}
	g.opened = next
	close(g.renewed)
	g.renewed = make(chan struct{})
}

// current is the session; nil while there is none, and a channel that is closed
// when that changes.
func (g *gateway) current() (*session, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, g.renewed
}

// ready reports whether operations can be numbered.
func (g *gateway) ready() bool {
	s, _ := g.current()
	return s != nil
}

// do has a command executed by the leader and returns its outcome (Node.Do).
func (g *gateway) do(ctx context.Context, c raftfsm.Command, bodies [][]byte) (raftfsm.Outcome, error) {
	return g.run(ctx, nil, c, bodies)
}

func (g *gateway) run(ctx context.Context, s *session, c raftfsm.Command, bodies [][]byte) (raftfsm.Outcome, error) {
	if ctx.Err() != nil {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	p := g.group.coalescer.take()
	p.expired.Reset(g.group.timeout)
	var err error
	if p.command, err = raftfsm.AppendCommand(p.command[:0], c, bodies); err != nil {
		g.group.coalescer.recycle(p)
		return raftfsm.Outcome{}, err
	}
	o := operation{
		gateway: g, numbering: numbering{session: s}, p: p, grows: grows(c, g.group.machine), ends: g.elapsed() + g.group.timeout,
	}
	return o.run(ctx)
}
