//go:build !linux

package fault

import (
	"context"
	"fmt"
	"net"
)

// Network is a network of hosts whose links can be cut; there is none but on
// Linux.
type Network struct{}

// Host is one host of a Network.
type Host struct{}

// NewNetwork returns ErrUnavailable.
func NewNetwork(int, uint64) (*Network, error) {
	return nil, fmt.Errorf("make network: %w", ErrUnavailable)
}

// Host returns a host by number.
func (*Network) Host(int) *Host { return nil }

// Set says how the link from one host to another is.
func (*Network) Set(_, _ *Host, _ Link) {}

// Isolate cuts the links between a host and others.
func (*Network) Isolate(*Host, ...*Host) {}

// Heal makes all links good.
func (*Network) Heal() {}

// Close takes the network away.
func (*Network) Close() {}

// Address is the IP address of the host.
func (*Host) Address() string { return "" }

// Dial connects to an address of the network.
func (*Host) Dial(context.Context, string, string) (net.Conn, error) { return nil, ErrUnavailable }

// Listen listens at an address of the host.
func (*Host) Listen(string, string) (net.Listener, error) { return nil, ErrUnavailable }

func (*Host) inside(func() error) error { return ErrUnavailable }
