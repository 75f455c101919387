// Package raftfsm turns the state machines of sqs and sns into one raft.FSM: it is
// the only room that knows both cores and Raft's log.
//
// It adds what Raft needs and the cores must not have: the lock, the encoding
// of log entries, snapshots and results, the cluster time of each entry, the
// replicated settings with the keys of the receipt handles, the isolation of
// panics, and the digests by which replicas are compared.
//
// An entry is a header (format version, time) and operations, each a command
// with its origin. AppendCommand encodes a command where it is made;
// AppendEntryHeader and AppendOperation put a proposal together; Machine
// decodes and applies it, and hands out one *Applied for each entry:
//
//	command, err := raftfsm.AppendCommand(nil, sqs.SendMessageBatch{…}, bodies)
//	entry := raftfsm.AppendOperation(raftfsm.AppendEntryHeader(nil, t), raftfsm.Origin{}, command)
//	applied := raft.Apply(entry, timeout).Response().(*raftfsm.Applied)
//
// Invariants: the same entries give the same state, results and digests on
// every replica; cluster time never goes back; body numbers rise by one; a
// number in the tables of kinds is never used again for another thing; nothing
// here reads a clock or touches disk or network, and only NewSigningKey, whose key
// travels in a command, draws random numbers.
package raftfsm
