package cluster

import (
	"context"
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
