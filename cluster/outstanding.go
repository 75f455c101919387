package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// outstanding counts what raft was asked and has not answered. Raft v1.8.0 that is
// shut down drops what it has queued for the machine and never answers it, and who
// waits for that would wait for ever. So nobody asks a raft that is about to end,
// and it ends when it has answered all.
type outstanding struct {
	mu     sync.Mutex
	ending bool
	asked  sync.WaitGroup
}

// ask reports whether raft may be asked; then answered has to follow.
func (o *outstanding) ask() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending {
		return false
	}
	o.asked.Add(1)
	return true
}

func (o *outstanding) answered() { o.asked.Done() }

// end refuses what is asked from now on, and waits for the answers to the rest.
// Raft gives them in the time of an election at most, since a leader that reaches
// nobody steps down.
func (o *outstanding) end() {
	o.mu.Lock()
	o.ending = true
	o.mu.Unlock()
	o.asked.Wait()
}

// begin is for a raft that was opened anew.
func (o *outstanding) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = false
}

// await asks raft, and waits for the answer.
func (o *outstanding) await(ask func() raft.Future) error {
	if !o.ask() {
		return raft.ErrRaftShutdown
	}
	defer o.answered()
	return ask().Error()
}

// entryFuture is the answer to an entry, of which Error is called once.
type entryFuture struct {
	raft.ApplyFuture
	outstanding *outstanding
}

// Error implements raft.Future.
func (f *entryFuture) Error() error {
	defer f.outstanding.answered()
	return f.ApplyFuture.Error()
}
