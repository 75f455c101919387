package jepsen_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

// netFault breaks links between the leader and two followers for a while.
type netFault struct {
	name string
	// served says that all nodes serve meanwhile, since every one is reached by
	// another one that reaches the leader.
	served bool
	do     func(n *fault.Network, leader, a, b *fault.Host, hold time.Duration)
}

var cut = fault.Link{Cut: true}

var netFaults = []netFault{
	{"the leader is not heard by one follower", true, func(n *fault.Network, leader, a, _ *fault.Host, hold time.Duration) {
		n.Set(leader, a, cut)
		time.Sleep(hold)
	}},
	{"the leader does not hear one follower", true, func(n *fault.Network, leader, a, _ *fault.Host, hold time.Duration) {
		n.Set(a, leader, cut)
		time.Sleep(hold)
	}},
	{"the leader hears nobody", false, func(n *fault.Network, leader, a, b *fault.Host, hold time.Duration) {
		n.Set(a, leader, cut)
		n.Set(b, leader, cut)
		time.Sleep(hold)
	}},
	{"nobody hears the leader", false, func(n *fault.Network, leader, a, b *fault.Host, hold time.Duration) {
		n.Set(leader, a, cut)
		n.Set(leader, b, cut)
		time.Sleep(hold)
	}},
	{"the followers do not reach each other", true, func(n *fault.Network, _, a, b *fault.Host, hold time.Duration) {
		n.Isolate(a, b)
		time.Sleep(hold)
	}},
	{"a link flaps", false, func(n *fault.Network, leader, a, _ *fault.Host, hold time.Duration) {
		for end := time.Now().Add(hold); time.Now().Before(end); {
			n.Isolate(leader, a)
			time.Sleep(time.Duration(100+rand.IntN(500)) * time.Millisecond)
			n.Heal()
			time.Sleep(time.Duration(50+rand.IntN(300)) * time.Millisecond)
		}
	}},
	{"all links are slow and lose packets", false, func(n *fault.Network, leader, a, b *fault.Host, hold time.Duration) {
		hosts := []*fault.Host{leader, a, b}
		for _, from := range hosts {
			for _, to := range hosts {
				n.Set(from, to, fault.Link{Delay: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.02})
			}
		}
		time.Sleep(hold)
	}},
}

// Links fail one way or both, under load. All nodes serve again soon after, and those
// that reach the leader over another node do so before.
func TestClusterNetworkFaults(t *testing.T) {
	skipUnderRace(t)
	hold := 1500 * time.Millisecond
	if *long {
		hold = 15 * time.Second
	}
	network := newNetwork(t)
	c := startTrioWith(t, fault.ClusterOptions{Network: network, Flags: []string{"--request-timeout", "5s"}})
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	load := c.drive(5 * time.Second)
	for _, f := range netFaults {
		at := slices.Index(c.Nodes(), c.leader())
		t.Logf("%s; n%d leads", f.name, at+1)
		c.recorder.Fault(f.name)
		f.do(network, network.Host(at), network.Host((at+1)%3), network.Host((at+2)%3), hold)
		if f.served {
			c.recover(probed)
		}
		network.Heal()
		c.recorder.Fault("heal")
		c.recover(probed)
		c.awaitCaughtUp()
	}
	load.judge(15 * time.Second)
}
