package main

import (
	"fmt"
	"log/slog"
	"time"

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
	if _, err := peer.SplitAddress(f.peerAddress(members)); err != nil {
		return fmt.Errorf("--peer %q: want HOST:PORT", f.Peer)
	}
	if f.InsecurePeers && !f.Insecure {
		return f.checkLoopback(members)
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
	for _, m := range members {
		if m.Name == f.Node {
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

// expiryNotice is how long before its end a peer certificate is warned of.
const expiryNotice = 30 * 24 * time.Hour

// tellExpiry logs that this member's certificate has expired, or will soon: then
// the others refuse it, which looks like a network that is cut.
func tellExpiry(c *peer.Credentials, now time.Time, log *slog.Logger) {
	if c == nil {
		return
	}
	switch end := c.NotAfter(); {
	case now.After(end):
		log.Error("peer certificate has expired: other members refuse it", "not_after", end)
	case now.Add(expiryNotice).After(end):
		log.Warn("peer certificate expires soon", "not_after", end)
	}
}
