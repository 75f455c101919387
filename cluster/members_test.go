package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestThreeNodesFailOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startNodes(t, 3)
		leader := c.awaitLeader()
		createQueue(t, c.list[leader])
		send(t, c.list[leader], "kept", 0)
		c.awaitApplied()

		began := time.Now()
		c.kill(leader)
		next := c.awaitLeader()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the others took %v to elect a leader, want less than 2s", took)
		}
		if d := receive(t, c.list[next], 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != "kept" {
			t.Errorf("got %+v from the new leader, want the message that the old one has acknowledged", d.Messages)
		}
		c.start(leader)
		c.awaitReady()
		c.awaitApplied()
		if got, _, ok := c.list[leader].group.leader(); !ok || got != c.configs[0].Members[next] {
			t.Errorf("the old leader takes %v, %v for the leader, want %v", got, ok, c.configs[0].Members[next])
		}
	})
}
