package cluster

import (
	"sync"
	"testing"
	"time"
)

// TestPollsOfDeadMemberHoldUpNobody: a member that is cut off, or stands still, has
// left receives in the leader's line, before that of a client that is there. The first
// that gets its turn costs what the leader waits for the member's word; the rest cost
// nothing.
func TestPollsOfDeadMemberHoldUpNobody(t *testing.T) {
	for _, test := range []struct {
		name string
		dead time.Duration // before the message is sent
		want time.Duration
	}{
		{"just died", 0, turnTimeout + pingEvery},
		{"long dead", 2 * time.Second, pingEvery},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *nodes) {
				leader := c.leader()
				dies, lives := c.others(leader)
				var polls sync.WaitGroup
				for range 30 {
					polls.Go(func() { receive(t, c.list[dies], 20*time.Second) })
				}
				time.Sleep(time.Second)
				polled := make(chan Delivery, 1)
				go func() { polled <- receive(t, c.list[lives], 20*time.Second) }()
				time.Sleep(time.Second)
				c.isolate(dies)
				time.Sleep(test.dead)
				send(t, c.list[leader], "m", 0)
				began := time.Now()
				if d := <-polled; len(d.Messages) != 1 || time.Since(began) > test.want {
					t.Errorf("got %d messages after %v, want one within %v", len(d.Messages), time.Since(began), test.want)
				}
				c.heal()
				polls.Wait()
			})
		})
	}
}
