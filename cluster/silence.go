package cluster

import (
	"cmp"
	"fmt"

	"holdfast.internal/cluster/peer"
)

// strangerAdvice is what the operator of nodes of two clusters must know. None of them
// can tell which one is in the wrong place.
const strangerAdvice = "stop the node that was started with a wrong --data or --cluster, and start it with its own"

// silence says why a member does not answer, in words that stay the same from try to
// try. Own is the cluster of this node.
func silence(err error, own string) string {
	switch data, theirs := otherData(err); {
	case theirs:
		return fmt.Sprintf("it %s, and this node that of cluster %s: %s", data, own, strangerAdvice)
	case data != "":
		return "it " + data + ": its own status says what to do"
	}
	return cmp.Or(peer.Reason(err), "no answer in time")
}

// otherData says which data a node has that does not answer because it is not of this
// node's cluster; empty if that is not why. The other answer is whether it is that of
// another cluster.
func otherData(err error) (data string, theirs bool) {
	id, other := peer.OtherCluster(err)
	switch {
	case !other:
		return "", false
	case id == "":
		return "has no data of this cluster", false
	}
	return "has the data of cluster " + id, true
}

// strangers says which members are not of this node's cluster, and what is to be done.
func (n *Node) strangers() (reasons []string) {
	advise := false
	for _, t := range n.members.others {
		data, theirs := otherData(n.members.silent(t.Name))
		if data != "" {
			reasons = append(reasons, t.Name+" "+data)
		}
		advise = advise || theirs
	}
	if advise {
		reasons = append(reasons, fmt.Sprintf("this node has that of cluster %s: %s", n.clusterID(), strangerAdvice))
	}
	return reasons
}
