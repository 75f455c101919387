package peer

import (
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/raft"
)

// Target is a node to talk to.
type Target struct {
	// Name is who must answer there.
	Name string
	// Address is the host:port of its peer port.
	Address string
}

// String is name=host:port, as in the flag --cluster.
func (t Target) String() string { return t.Name + "=" + t.Address }

// RaftAddress is t as the address of a server in raft's configuration: raft
// dials addresses, and without the name nobody could check who answers.
func (t Target) RaftAddress() raft.ServerAddress { return raft.ServerAddress(t.String()) }

// ParseTarget reads what String writes, such as a raft address.
func ParseTarget(s string) (Target, error) {
	name, address, found := strings.Cut(s, "=")
	if !found || name == "" || address == "" {
		return Target{}, fmt.Errorf("parse peer %q: want NAME=HOST:PORT", s)
	}
	return Target{Name: name, Address: address}, nil
}

// SplitAddress takes HOST:PORT apart. It looks no host up, but wants a port that
// there can be: 0 to 65535, or the name of a service.
func SplitAddress(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("split address: %w", err)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("split address %s: %w", address, err)
	}
	return host, nil
}
