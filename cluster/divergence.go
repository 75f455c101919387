package cluster

import (
	"fmt"

	"holdfast.internal/raftfsm"
)

// endIfDiverged ends the node if its state, by the digests of its own, differs from
// that of all others: it applied the same entries with another result, so one
// more answer of it is one too many.
func (n *Node) endIfDiverged(own []raftfsm.IndexedDigest) {
	index, alone := diverged(own, n.members.up(), len(n.members.others)+1)
	if !alone {
		return
	}
	n.fatal(ExitDigest, fmt.Errorf("compare digests: at entry %d a majority of the members agree on another state", index))
}

// diverged reports whether more than half of so many members have the same digest
// at an index, and this node another one. It cannot tell who is right when there
// is no such majority.
func diverged(own []raftfsm.IndexedDigest, others []pong, members int) (index uint64, alone bool) {
	for _, d := range own {
		votes := map[uint64]int{}
		for _, p := range others {
			for _, theirs := range p.Digests {
				if theirs.Index == d.Index {
					votes[theirs.Sum]++
				}
			}
		}
		for sum, n := range votes {
			if sum != d.Sum && 2*n > members {
				return d.Index, true
			}
		}
	}
	return 0, false
}
