package cluster

import (
	"fmt"
	"io"
	"sync/atomic"

	"holdfast.internal/raftfsm"
)

// restorer is the machine as raft has it. Raft goes on after a snapshot that it
// installed and could not restore, with a state that is not that of its log; this
// one ends the process instead.
type restorer struct {
	*raftfsm.Machine
	running atomic.Bool // an error before is one of the start, which raft returns
	fatal   func(code int, err error)
}

// Restore implements raft.FSM.
func (r *restorer) Restore(source io.ReadCloser) error {
	err := r.Machine.Restore(source)
	if err != nil && r.running.Load() {
		r.fatal(ExitRestore, fmt.Errorf("%w: %w", ErrRestore, err))
	}
	return err
}
