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
//	gauges       disk space and memory, looked at once a second
//
// No part holds a *Node; each gets what it needs when it is made.
//
// Invariants:
//
//   - An outcome is returned only after its entry was applied here, and an entry
//     is applied only after it was fsynced.
//   - ErrNoLeader and ErrOverloaded mean that nothing was and nothing will be
//     done. ErrOutcomeUnknown means that the command may yet be applied.
//   - For a queue with k available messages at most k receives are proposed at
//     the same time. A waiter whose client has left proposes nothing.
//   - Cluster time never goes back, and runs within 500 ppm of real time except
//     for a logged step forward.
//   - After the first failed write to the log nothing is acknowledged.
//
// This version runs one voter, over raft's in-memory transport.
package cluster
