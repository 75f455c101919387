package jepsen_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// The leader is killed again and again while a topic has publishes, and more
// subscriptions than one entry may serve: each queue gets each publish once.
func TestClusterKillDuringPublish(t *testing.T) {
	queues, kills := 1200, 2
	switch {
	case *long:
		queues, kills = 2000, 20
	case raceEnabled || testing.Short():
		queues, kills = 40, 2
	}
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "500")
	b := caller{"http://cluster", &http.Client{Transport: c.balanced(), Timeout: 30 * time.Second}}
	topic := makeFanOut(t, b, queues)
	answered, stop := publishAlways(t, b, topic, 200*time.Millisecond)
	for i := 0; i < kills || i < 4*kills && count(answered) < fanOutLeast; i++ { // less happens on a slow machine
		time.Sleep(700 * time.Millisecond)
		leader := c.leader()
		c.kill(leader)
		c.restart(leader)
	}
	stop()
	c.kill(c.leader()) // the rest is for another leader
	b.client.Timeout = time.Minute
	c.awaitFanOut()
	checkFanOut(t, b, queues, fanOutLeast, answered)
}

// A topic has 20,000 subscriptions, and the leader dies while a publish is on its
// way to them: each queue gets it once.
func TestClusterManySubscribers(t *testing.T) {
	if !*long {
		t.Skip("takes minutes: HOLDFAST_LONG=1")
	}
	const queues = 20_000
	c := startTrio(t, "--test-mode", "--test-snapshot-entries", "5000")
	b := caller{"http://cluster", &http.Client{Transport: c.balanced(), Timeout: time.Minute}}
	topic := makeFanOut(t, b, queues)
	answered, stop := publishAlways(t, b, topic, time.Second)
	time.Sleep(1500 * time.Millisecond)
	leader := c.leader()
	c.kill(leader)
	c.restart(leader)
	stop()
	c.awaitFanOut()
	checkFanOut(t, b, queues, 5, answered)
}

// awaitFanOut returns when no publish is on its way any more.
func (c *trio) awaitFanOut() {
	c.t.Helper()
	awaitTrue(c.t, "the end of all publishes", func() bool {
		response, err := http.Get(c.leader().Admin() + "/topics")
		if err != nil {
			c.t.Fatal(err)
		}
		defer response.Body.Close()
		var topics []struct{ Waiting int }
		err = json.NewDecoder(response.Body).Decode(&topics)
		return err == nil && len(topics) == 1 && topics[0].Waiting == 0
	})
}
