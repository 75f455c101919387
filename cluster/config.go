package cluster

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.internal/raftfsm"
)

// Config configures a Node. Zero values are replaced by defaults in Start.
type Config struct {
	// DataDir is the node's folder. It is made with mode 0700 if it is missing.
	DataDir string
	// NodeName is the name by which operators know the node: 1–64 letters,
	// digits, dots, hyphens or underscores. Default "n1".
	NodeName string
	// Seed is what the replicated settings are when the cluster forms. Later it
	// is only compared with them. Its cluster id and keys are not looked at.
	// Default raftfsm.DefaultSettings.
	Seed raftfsm.Settings
	// RequestTimeout is the deadline of a command whose context has none, and
	// of a receive's proposal. Default 10 s.
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
	return c, nil
}

// machineMemory is the size of the machine's memory in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		panic("cluster: read sysinfo: " + err.Error()) // it fails for a bad pointer only
	}
	return int64(info.Totalram) * int64(info.Unit)
}
