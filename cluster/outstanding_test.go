package cluster

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
)

// applyGate holds up the machine of a node at its next command.
type applyGate struct {
	node   *Node
	opened chan struct{}
}

func closeGate(n *Node) *applyGate {
	g := &applyGate{n, make(chan struct{})}
	n.machine.Watch(func(raftfsm.Step) { <-g.opened })
	return g
}

func (g *applyGate) open() {
	close(g.opened)
	g.node.machine.Watch(nil)
}

// until lets others run until done, or for so many turns; the bubble's time stands
// still meanwhile.
func until(turns int, done func() bool) bool {
	for ; turns > 0 && !done(); turns-- {
		runtime.Gosched()
	}
	return done()
}

// TestRaftThatEndsHasAnsweredAll: two entries are on their way, one in the machine
// and one before it, and so is a barrier, while raft is opened anew. Each gets an
// answer. A lane or a leader that waited for a lost one would wait for ever.
func TestRaftThatEndsHasAnsweredAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, bubbleConfig())
		createQueue(t, n)
		if err := n.group.raft.Load().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			before := n.group.raft.Load()
			first := before.LastIndex()
			gate := closeGate(n)
			var asked sync.WaitGroup
			for i := range uint64(2) {
				asked.Go(func() { send(t, n, "m", 0) })
				if !until(1<<20, func() bool { return before.AppliedIndex() > first+i }) {
					t.Fatalf("entry %d is not applied", i+1)
				}
			}
			asked.Go(func() { _ = n.group.asked.await(func() raft.Future { return before.Barrier(0) }) })
			until(1<<20, func() bool { return before.AppliedIndex() == first+3 })
			reopened := make(chan error, 1)
			go func() { reopened <- n.group.reopen(func() error { return nil }) }()
			until(1<<14, func() bool { return before.State() == raft.Shutdown })
			gate.open()
			if err := <-reopened; err != nil {
				t.Fatal(err)
			}
			asked.Wait()
			createQueue(t, n)
		}
	})
}
