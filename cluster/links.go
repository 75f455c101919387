package cluster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
)

const (
	// raftPool is how many connections raft keeps to a member, raftIOTimeout how
	// long one of its requests may take.
	raftPool      = 3
	raftIOTimeout = 3 * time.Second
)

// openPort makes the peer port and what talks through it. Nobody is served yet.
func (n *Node) openPort(id identity) {
	c := n.config
	n.formation = &formation{
		self: n.members.self, others: n.members.others, identity: id, log: c.Logger,
		call:      n.call,
		write:     n.stores.identify,
		bootstrap: func(servers []raft.Server) error { return n.group.bootstrap(servers) },
	}
	n.port = peer.New(c.PeerListener, peer.Config{
		Name: c.NodeName, Advertise: n.members.self.Address, ClusterID: n.formation.clusterID,
		Credentials: c.PeerCredentials, Logger: c.Logger, Dial: c.peerDial,
	})
	n.pings = &pings{
		members: n.members, call: n.call, elapsed: c.Elapsed, log: c.Logger,
		applied: n.machine.AppliedIndex, heard: n.heard,
	}
	n.port.Handle(peer.MethodFormation, n.formation.answer)
	n.port.Handle(peer.MethodPing, n.pong)
	n.port.Handle(peer.MethodBody, n.damage.answer)
}

func (n *Node) call(ctx context.Context, to peer.Target, method byte, request []byte) ([]byte, error) {
	return n.port.Call(ctx, to, method, request)
}

// transport is what a raft talks to the other members with.
func (n *Node) transport() guardedTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: n.port.Raft(0), MaxPool: raftPool, Timeout: raftIOTimeout,
		ServerAddressProvider: addressBook{n.members}, Logger: newRaftLogger(n.config.Logger),
	})
}

// breakLinks closes the connections to the member at a raft address.
func (n *Node) breakLinks(address raft.ServerAddress) {
	if target, err := peer.ParseTarget(string(address)); err == nil {
		n.port.CloseConnectionsOf(target.Name)
	}
}

// addressBook has raft dial members where --cluster says that they are, which may
// have changed since they became members.
type addressBook struct{ members *members }

// ServerAddr implements raft.ServerAddressProvider.
func (b addressBook) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	target, err := b.members.target(nameOf(id))
	return target.RaftAddress(), err
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

// handOver gives the leadership away before the node ends.
func (n *Node) handOver() {
	if !n.members.alone() && n.group.leading.Load() {
		n.group.handOver(n.members.successor)
	}
}
