package cluster

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNodeWithTheDataOfAnotherCluster: it and the others say so, and what to do. The
// others go on without it, and take it back when it comes with its own data.
func TestNodeWithTheDataOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, other := startNodes(t, 3), startNodes(t, 3)
		ours, theirs := c.list[0].clusterID(), other.list[0].clusterID()
		c.stop(2)
		other.stop(2)
		home := c.configs[2].InMemory
		c.configs[2].InMemory = other.configs[2].InMemory
		c.start(2)
		time.Sleep(time.Minute)

		_, reasons := c.list[2].Ready()
		for _, want := range []string{
			"no leader",
			"n1 has the data of cluster " + ours,
			"n2 has the data of cluster " + ours,
			"this node has that of cluster " + theirs + ": " + strangerAdvice,
		} {
			if !slices.Contains(reasons, want) {
				t.Errorf("got %q, want %q among the reasons", reasons, want)
			}
		}
		for i, n := range c.list[:2] {
			if ready, reasons := n.Ready(); !ready {
				t.Errorf("n%d is not ready: %q", i+1, reasons)
			}
			want := "it has the data of cluster " + theirs + ", and this node that of cluster " + ours + ": " + strangerAdvice
			if got := n.Status().Members[2]; got.Up || got.Reason != want {
				t.Errorf("n%d says of n3: %+v, want %q", i+1, got, want)
			}
		}

		c.stop(2)
		c.configs[2].InMemory = home
		c.start(2)
		c.awaitReady()
		time.Sleep(upFor)
		for i, n := range c.list {
			for _, m := range n.Status().Members {
				if !m.Up || m.Reason != "" {
					t.Errorf("n%d says of %s: up %v, %q", i+1, m.Name, m.Up, m.Reason)
				}
			}
		}
	})
}

// TestStatusSaysWhyMembersAreDown: one that is gone, and one that was wiped.
func TestStatusSaysWhyMembersAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		c.stop(1)
		_ = c.lan.listen(c.address(1)).Close() // nobody is there any more
		c.stop(2)
		c.wipe(2)
		c.start(2)
		time.Sleep(time.Minute)
		status := c.list[0].Status()
		if got := status.Members[1]; got.Up || got.Reason != "no answer in time" {
			t.Errorf("got %+v of one that is gone", got)
		}
		const want = "n3 has no data of this cluster"
		if got := status.Members[2]; got.Up || !strings.HasPrefix(got.Reason, "it has no data of this cluster") || got.LastContact == 0 {
			t.Errorf("got %+v of one that was wiped", got)
		}
		if !slices.Contains(status.Reasons, want) || slices.ContainsFunc(status.Reasons, func(r string) bool { return strings.Contains(r, strangerAdvice) }) {
			t.Errorf("got the reasons %q, want %q, and not that a node is of another cluster", status.Reasons, want)
		}
	})
}
