package cluster

import "holdfast.internal/sqs"

// Metrics are counters since the process began, for the metrics endpoint.
type Metrics struct {
	Commands      uint64 // that went into entries
	Entries       uint64 // proposed; Commands/Entries is what coalescing yields
	EntryBytes    uint64
	Refused       uint64 // growing commands that admission refused
	LeaderChanges uint64
	Snapshots     uint64
	Panics        uint64 // of commands
	Fsyncs        Histogram
	// EmptyReceives counts the empty answers per queue. They are no part of the
	// state, since most of them leave no entry.
	EmptyReceives map[sqs.QueueKey]uint64
}

// Metrics reads the counters.
func (n *Node) Metrics() Metrics {
	c := n.group.coalescer
	return Metrics{
		Commands:      c.commands.Load(),
		Entries:       c.entries.Load(),
		EntryBytes:    c.bytes.Load(),
		Refused:       n.group.admission.refusals(),
		LeaderChanges: n.group.changes.Load(),
		Snapshots:     n.snapshotter.taken.Load(),
		Panics:        n.machine.Panics(),
		Fsyncs:        n.fsyncs.snapshot(),
		EmptyReceives: n.line.emptyReceives(),
	}
}
