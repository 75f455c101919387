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
	for range kills {
		time.Sleep(700 * time.Millisecond)
		leader := c.leader()
		c.kill(leader)
		c.restart(leader)
	}
	stop()
	c.kill(c.leader()) // the rest is for another leader
	b.client.Timeout = time.Minute
	awaitTrue(t, "the end of all publishes", func() bool {
		response, err := http.Get(c.leader().Admin() + "/topics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var topics []struct{ Waiting int }
		err = json.NewDecoder(response.Body).Decode(&topics)
		return err == nil && len(topics) == 1 && topics[0].Waiting == 0
	})
	checkFanOut(t, b, queues, answered)
}
