package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

const (
	// pingEvery is how often each member is asked how it is.
	pingEvery = 250 * time.Millisecond

	// pingTimeout is how long it may take over the answer.
	pingTimeout = time.Second

	// pingGrace is how long a member that has never answered may take before it is
	// warned of: nodes that are started together do not come up at once.
	pingGrace = 5 * time.Second

	// freshTimeout is how long a new leader waits for what the others know of
	// cluster time.
	freshTimeout = 250 * time.Millisecond
)

// pong is what a member says of itself when it is asked.
type pong struct {
	Name      string `json:"name"`
	RaftID    string `json:"raft_id"`
	ClusterID string `json:"cluster_id"`
	Version   string `json:"version"`
	Term      uint64 `json:"term"`
	Leader    string `json:"leader,omitempty"` // as it knows
	Leads     bool   `json:"leads,omitempty"`  // and serves
	Commit    uint64 `json:"commit"`
	Applied   uint64 `json:"applied"`
	Last      uint64 `json:"last"`
	FreeDisk  int64  `json:"free_disk"`          // bytes
	LowDisk   bool   `json:"low_disk,omitempty"` // below its reserve
	Ready     bool   `json:"ready,omitempty"`
	Draining  bool   `json:"draining,omitempty"`

	Clock   clockReading            `json:"clock"`
	Digests []raftfsm.IndexedDigest `json:"digests,omitempty"` // the newest of the running digest
}

// pings asks all other members how they are, all the time.
type pings struct {
	members *members
	call    func(ctx context.Context, to peer.Target, method byte, request []byte) ([]byte, error)
	elapsed func() time.Duration
	applied func() uint64                              // by this node
	heard   func(p pong, sent, received time.Duration) // by elapsed
	log     *slog.Logger
}

// run pings until ctx is done.
func (p *pings) run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, to := range p.members.others {
		loops.Go(func() { p.watch(ctx, to) })
	}
	loops.Wait()
}

// watch pings one member.
func (p *pings) watch(ctx context.Context, to peer.Target) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	c := contact{to: to, since: p.elapsed(), log: p.log}
	for {
		err := p.ping(ctx, to)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.members.fail(to.Name, err)
		}
		c.note(err, p.elapsed())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// contact logs whether a member answers: what has changed, in a line each.
type contact struct {
	to       peer.Target
	since    time.Duration // by elapsed
	log      *slog.Logger
	met      bool   // it has answered once
	failures int    // since it did
	said     string // why it does not answer; empty if nothing was logged
}

// note takes in how a ping ended, at a time by elapsed.
func (c *contact) note(err error, now time.Duration) {
	if err == nil {
		if !c.met || c.failures > 0 {
			c.log.Info("member is up", "member", c.to.Name)
		}
		c.met, c.failures, c.said = true, 0, ""
		return
	}
	c.failures++
	reason := peer.Reason(err)
	switch {
	case reason == "" && c.failures == 1: // as its connections break; the next try may tell more
		return
	case !c.met && now-c.since < pingGrace:
		c.log.Debug("member does not answer yet", "member", c.to.Name, "address", c.to.Address, "err", err)
		return
	case reason == "":
		reason = "no answer in time"
	}
	if reason != c.said {
		c.log.Warn("member does not answer", "member", c.to.Name, "address", c.to.Address, "reason", reason)
		c.said = reason
	}
}

// ping asks one member and takes in its answer.
func (p *pings) ping(ctx context.Context, to peer.Target) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	sent, applied := p.elapsed(), p.applied()
	answer, err := p.call(ctx, to, peer.MethodPing, nil)
	if err != nil {
		return err
	}
	received := p.elapsed()
	var pong pong
	if err := json.Unmarshal(answer, &pong); err != nil {
		return fmt.Errorf("decode pong of %s: %w", to.Name, err)
	}
	pong.Name = to.Name // the port has checked who answers
	p.members.record(pong, applied)
	p.heard(pong, sent, received)
	return nil
}

// refresh asks all others at once, and returns when they have answered or their
// time is over.
func (p *pings) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, to := range p.members.others {
		asked.Go(func() { _ = p.ping(ctx, to) }) // who does not answer is known to watch
	}
	asked.Wait()
}

// pong is the peer.Handler of pings.
func (n *Node) pong(_ context.Context, from string, _ []byte) []byte {
	n.members.called(from)
	raft, r := n.group.raft.Load(), n.gauges.read()
	leader, term, _ := n.group.leader()
	p := pong{
		Name: n.config.NodeName, RaftID: string(n.group.id), ClusterID: n.clusterID(), Version: n.config.Version,
		Term: term, Leader: leader.Name, Leads: n.group.leading.Load(),
		Commit: raft.CommitIndex(), Applied: n.machine.AppliedIndex(), Last: raft.LastIndex(),
		FreeDisk: r.free, LowDisk: r.lowDisk, Draining: n.draining.Load(),
		Clock: n.clock.reading(), Digests: n.machine.Digests(),
	}
	p.Ready, _ = n.Ready()
	answer, err := json.Marshal(p)
	if err != nil {
		panic("cluster: encode pong: " + err.Error()) // numbers and strings
	}
	return answer
}

// heard takes in what a member said of itself.
func (n *Node) heard(p pong, sent, received time.Duration) {
	n.clock.heard(p.Name, p.Clock, sent, received)
	if p.Leader == n.config.NodeName && p.Term == n.group.raft.Load().CurrentTerm() {
		n.group.lease.follows(p.Name, sent)
	}
	if n.members.isNewLeader(p) {
		n.group.changes.Add(1)
		n.config.Logger.Info("member leads", "member", p.Name, "term", p.Term)
	}
	switch {
	case n.group.leading.Load():
		n.readiness.led()
	case p.Leads:
		n.readiness.heard(p.Applied, n.machine.AppliedIndex())
		n.noticeUnreached(p.Name)
		n.group.compareSettings()
	}
	n.endIfDiverged(n.machine.Digests())
}

// noticeUnreached notices that the leader answers this node and does not reach it,
// as when it looks for it at another address than where it listens.
func (n *Node) noticeUnreached(leader string) {
	unreached := n.members.isUnreachedBy(leader)
	if n.unreached.Swap(unreached) != unreached && unreached {
		n.config.Logger.Warn("the leader does not reach this node, which reaches it", "leader", leader,
			"address", n.members.self.Address, "listens", n.config.PeerListener.Addr().String())
	}
}
