// Package cluster runs a node among nodes. It owns everything that is uncertain
// (time, disk, identity, who leads) and hands it to the replicated state machine
// as data.
//
// The face is Node: Start opens the data directory, the raft group and its
// stores; Do proposes one command and returns its outcome; Receive is the long
// poll; Close drains and stops. A Node only delegates to its parts:
//
//	group        the raft group: set-up, leadership, proposals and their retries
//	coalescer    packs the commands that wait into few log entries
//	admission    holds back commands that make the state grow, before the log
//	line         receivers who wait for messages, first come, first served
//	clock        cluster time, which every entry is stamped with
//	pulse        proposes work that is due without anybody asking
//	snapshotter  decides when a snapshot is due
//	watchdog     ends the process when its disk fails or stalls
//	gauges       disk space and memory, looked at ten times a second
//
// and, as a member of a cluster, to
//
//	gateway      carries commands and receives to the leader, until they are answered,
//	             and those of a member that does not reach the leader
//	formation    turns blank nodes into a cluster, once
//	port         the peer port (package peer), for raft and for requests
//	pings        ask the other members how they are
//	members      what they said: who is up, what the log must keep, whose disk is low
//	readiness    whether this node keeps up with the leader
//
// No part holds a *Node; each gets what it needs when it is made.
//
// Invariants:
//
//   - An outcome is returned only after its entry was fsynced by a majority and
//     applied by the leader; here it may be applied a moment later.
//   - A command of a member's client is executed at most once, however often the
//     gateway has to send it.
//   - ErrNoLeader and ErrOverloaded mean that nothing was and nothing will be
//     done. ErrOutcomeUnknown means that the command may yet be applied.
//   - For a queue with k available messages at most k receives are proposed at
//     the same time. A waiter whose client has left proposes nothing.
//   - Cluster time never goes back, and runs within 500 ppm of real time except
//     for a logged step forward.
//   - After the first failed write to the log nothing is acknowledged.
//
// A node without Config.Members is alone: the only voter of its group, over raft's
// in-memory transport, without a peer port.
package cluster
