package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// Config configures a Node. Zero values are replaced by defaults in Start.
type Config struct {
	// DataDir is the node's folder. It is made with mode 0700 if it is missing.
	DataDir string
	// NodeName is the name by which operators know the node: 1–64 letters,
	// digits, dots, hyphens or underscores. Default "n1".
	NodeName string
	// Members are the nodes of the cluster, this one included. Without any the node
	// is alone: a cluster by itself, without a peer port.
	Members []peer.Target
	// PeerListener is where this member's peer port listens; the others reach it at
	// its address in Members. Start takes it over, and Close closes it.
	PeerListener net.Listener
	// PeerCredentials are for both directions. Nil: in the clear.
	PeerCredentials *peer.Credentials
	// Seed is what the replicated settings are when the cluster forms. Later it
	// is only compared with them. Its cluster id and keys are not looked at.
	// Default raftfsm.DefaultSettings.
	Seed raftfsm.Settings
	// RequestTimeout is how long a command may take, and the proposal of a receive.
	// Default 10 s.
	RequestTimeout time.Duration
	// Logger gets what operators want to know. Default: discarded.
	Logger *slog.Logger
	// Now is the wall clock. Default time.Now.
	Now func() time.Time
	// Elapsed is a clock without steps. Default CLOCK_BOOTTIME.
	Elapsed func() time.Duration
	// Fatal ends the process, with one of the exit codes, after every listener
	// and connection was closed: nothing may be acknowledged any more. It is
	// called at most once, from a goroutine that does not touch the disk.
	// Default: a panic.
	Fatal func(code int, err error)
	// Memory is the size of the live heap, in bytes, from which growing commands
	// are held back. Default: half of the machine's memory.
	Memory int64
	// DiskReserve is the free space, in bytes, below which growing commands are
	// held back. Default 1 GiB.
	DiskReserve int64
	// SnapshotEntries, for tests, has a snapshot taken after so many entries.
	// Default 0: only by the triggers of an ordinary node.
	SnapshotEntries uint64
	// Version is shown in Status.
	Version string
	// InMemory, for tests in virtual time, replaces DataDir.
	InMemory *InMemory

	retainBytes, retainLimit int64 // of the log; other than the defaults in tests

	// peerDial, for tests, replaces TCP.
	peerDial func(ctx context.Context, address string) (net.Conn, error)
}

var nodeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (c Config) withDefaults() (Config, error) {
	if c.NodeName == "" {
		c.NodeName = "n1"
	}
	if c.Seed.Account == "" {
		c.Seed = raftfsm.DefaultSettings()
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the one place where the wall clock comes in
	}
	if c.Elapsed == nil {
		c.Elapsed = newSteadyClock().elapsed
	}
	if c.retainBytes == 0 {
		c.retainBytes, c.retainLimit = wal.DefaultRetainBytes, wal.DefaultRetainLimit
	}
	if c.Fatal == nil {
		c.Fatal = func(code int, err error) { panic(fmt.Sprintf("cluster: exit %d: %v", code, err)) }
	}
	if c.Memory == 0 {
		c.Memory = machineMemory() / 2
	}
	if c.DiskReserve == 0 {
		c.DiskReserve = 1 << 30
	}
	switch {
	case !nodeName.MatchString(c.NodeName):
		return c, fmt.Errorf("check node name %q: must match %s", c.NodeName, nodeName)
	case c.DataDir == "" && c.InMemory == nil:
		return c, fmt.Errorf("check data directory: none given")
	}
	return c, c.checkMembers()
}

// CheckMembers fails for a list of members that no cluster can have: it needs two
// at least, each with a name and an address of its own, and node among them.
func CheckMembers(members []peer.Target, node string) error {
	names, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		_, err := peer.SplitAddress(m.Address)
		switch {
		case !nodeName.MatchString(m.Name):
			return fmt.Errorf("member %q: a name must match %s", m, nodeName)
		case err != nil:
			return fmt.Errorf("member %q: want NAME=HOST:PORT", m)
		case names[m.Name]:
			return fmt.Errorf("member %q is named twice", m.Name)
		case addresses[m.Address]:
			return fmt.Errorf("member %q has the address of another one", m)
		}
		names[m.Name], addresses[m.Address] = true, true
	}
	switch {
	case !names[node]:
		return fmt.Errorf("this node, %q, is not among the members", node)
	case len(members) < 2:
		return fmt.Errorf("a cluster of one node has no list of members")
	}
	return nil
}

func (c Config) checkMembers() error {
	if len(c.Members) == 0 {
		return nil
	}
	if c.PeerListener == nil {
		return fmt.Errorf("check members: no peer port given")
	}
	if err := CheckMembers(c.Members, c.NodeName); err != nil {
		return fmt.Errorf("check members: %w", err)
	}
	return nil
}

// machineMemory is the size of the machine's memory in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		panic("cluster: read sysinfo: " + err.Error()) // it fails for a bad pointer only
	}
	return int64(info.Totalram) * int64(info.Unit)
}
