package cluster

import (
	"errors"
	"syscall"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// ErrNoLeader says that no leader took the command before the deadline, or that
// the node is closing. Nothing was done, and nothing will be: it is safe to try
// again.
var ErrNoLeader = errors.New("no leader")

// ErrOutcomeUnknown says that the command was handed to raft, here or at another
// member, but that no answer came before the deadline or, for a node that is alone,
// the end of the leadership. It may have been done, may yet be done, or may never
// be.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// ErrOverloaded says that a command that makes the state grow was held back
// until its deadline, because of a limit (proposals waiting, bodies not yet in
// a snapshot, memory, disk reserve). Nothing was done.
var ErrOverloaded = errors.New("overloaded")

// ErrIdentity says that a data directory belongs to another node, or is of another
// format. Nothing in it was changed.
var ErrIdentity = errors.New("wrong data directory")

// ErrRestore says that the newest snapshot could not be restored.
var ErrRestore = errors.New("restore failed")

// lostDataAdvice ends the message of a member that does not start on damaged data.
const lostDataAdvice = "a node that lost its data cannot be taken back yet, while a majority of others goes on"

// Exit codes of `holdfast serve` for what ends a node. 0 is a clean end and 2 a
// usage error.
const (
	ExitCorrupt  = 3 // the log or a snapshot is damaged: refuses to start
	ExitLogError = 4 // a write or fsync of the log, or of the vote, failed
	ExitStall    = 5 // a write of the log, or of the vote, hangs
	ExitNoSpace  = 6 // the disk is full
	ExitIdentity = 7 // another node's data directory, or another version's format
	ExitDigest   = 8 // this node's state differs from all others'
	ExitRestore  = 9 // a snapshot could not be restored
)

// ExitCode is the exit code for an error of Start, and 1 for one without a code
// of its own.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, wal.ErrCorrupt):
		return ExitCorrupt
	case errors.Is(err, ErrIdentity), errors.Is(err, wal.ErrFormat), errors.Is(err, raftfsm.ErrFormat):
		return ExitIdentity
	case errors.Is(err, syscall.EIO):
		return ExitLogError
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ExitNoSpace
	case errors.Is(err, ErrRestore):
		return ExitRestore
	}
	return 1
}

// logErrorCode is the exit code for an error of the log or of another write without
// which the node cannot go on.
func logErrorCode(err error) int {
	if code := ExitCode(err); code != 1 {
		return code
	}
	return ExitLogError
}

// notApplied reports whether err, of a proposal, proves that the command is not
// and will not be in the log. Every other error of raft leaves that open: the
// bytes may be on disk and be committed later.
func notApplied(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) ||
		errors.Is(err, raft.ErrLeadershipTransferInProgress) ||
		errors.Is(err, raft.ErrEnqueueTimeout) ||
		errors.Is(err, raft.ErrAbortedByRestore)
}
