package main

import (
	"fmt"
	"log/slog"
	"net"

	"holdfast.internal/cluster"
	"holdfast.internal/cluster/peer"
)

// members are the nodes that --cluster names.
func (f *serveFlags) members() ([]peer.Target, error) {
	var members []peer.Target
	for _, text := range f.Cluster {
		member, err := peer.ParseTarget(text)
		if err != nil {
			return nil, fmt.Errorf("--cluster %q: want NAME=HOST:PORT of each member", text)
		}
		members = append(members, member)
	}
	if len(members) == 0 {
		return nil, nil
	}
	if err := cluster.CheckMembers(members, f.Node); err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	return members, nil
}

// checkCluster checks the flags of a member.
func (f *serveFlags) checkCluster() error {
	members, err := f.members()
	if err != nil {
		return err
	}
	certificates := f.PeerCA != "" || f.PeerCert != "" || f.PeerKey != ""
	switch {
	case len(members) == 0 && (certificates || f.InsecurePeers || f.Peer != ""):
		return fmt.Errorf("--peer, --insecure-peers, --peer-ca, --peer-cert and --peer-key are for members: name all of them by --cluster")
	case len(members) == 0:
		return nil
	case certificates && f.InsecurePeers:
		return fmt.Errorf("--insecure-peers does not go with --peer-ca, --peer-cert and --peer-key")
	case !certificates && !f.InsecurePeers:
		return fmt.Errorf("members of a cluster need --peer-ca, --peer-cert and --peer-key (holdfast cert makes them), or --insecure-peers for a trial on one machine")
	case certificates && (f.PeerCA == "" || f.PeerCert == "" || f.PeerKey == ""):
		return fmt.Errorf("--peer-ca, --peer-cert and --peer-key go together")
	}
	if err := f.checkPeerPort(members); err != nil {
		return err
	}
	if f.InsecurePeers && !f.Insecure {
		return f.checkLoopback(members)
	}
	return nil
}

// checkPeerPort refuses to listen where nobody looks for this member: the others dial
// its address in --cluster. Both may differ behind a proxy or a translation of
// addresses, but not in the port alone.
func (f *serveFlags) checkPeerPort(members []peer.Target) error {
	listens, told := f.peerAddress(members), addressOf(members, f.Node)
	if _, err := peer.SplitAddress(listens); err != nil {
		return fmt.Errorf("--peer %q: want HOST:PORT", f.Peer)
	}
	host, port, _ := net.SplitHostPort(listens)
	toldHost, toldPort, _ := net.SplitHostPort(told) // --cluster was checked
	switch {
	case toldPort == "0":
		return fmt.Errorf("--cluster: the others find no port 0: want the port of %q", f.Node)
	case host == toldHost && port != toldPort:
		return fmt.Errorf("--peer %s: the other members look for %q at %s (--cluster)", f.Peer, f.Node, told)
	}
	return nil
}

// checkLoopback refuses to talk in the clear over a network: whoever reaches the
// peer port could write to the log.
func (f *serveFlags) checkLoopback(members []peer.Target) error {
	addresses := []string{f.peerAddress(members)}
	for _, m := range members {
		addresses = append(addresses, m.Address)
	}
	for _, address := range addresses {
		if host, err := peer.SplitAddress(address); err != nil || !isLoopback(host) {
			return fmt.Errorf("--insecure-peers is for loopback addresses, and %s is none: make certificates (holdfast cert), or say --insecure", address)
		}
	}
	return nil
}

// peerAddress is where this member's peer port listens.
func (f *serveFlags) peerAddress(members []peer.Target) string {
	if f.Peer != "" {
		return f.Peer
	}
	return addressOf(members, f.Node)
}

func addressOf(members []peer.Target, name string) string {
	for _, m := range members {
		if m.Name == name {
			return m.Address
		}
	}
	return ""
}

// peerCredentials are how members prove who they are; nil in the clear.
func (f *serveFlags) peerCredentials(log *slog.Logger) (*peer.Credentials, error) {
	if f.InsecurePeers || len(f.Cluster) == 0 {
		return nil, nil
	}
	return peer.LoadCredentials(f.PeerCA, f.PeerCert, f.PeerKey, f.Node, log)
}
