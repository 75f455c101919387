package cluster

import (
	"slices"
	"time"
)

// wallFresh is how old the last word of a peer about its wall clock may be.
const wallFresh = 3 * time.Second

// clockReading is what a node says about time in its answer to a ping.
type clockReading struct {
	Wall     int64  // its wall clock, ns since the epoch
	Elapsed  int64  // its clock without steps, ns since some moment of its machine
	Estimate int64  // its estimate of cluster time, ns since the epoch; 0: it has none
	Term     uint64 // of the leader whose time the estimate goes by
	Leads    bool   // that leader is itself
}

// peerClock is what is known about the clocks of a peer.
type peerClock struct {
	heardAt   time.Duration // own elapsed time when the last answer came
	wallAhead int64         // of own elapsed time, ns
	estimate  int64         // ns; it was at least that when the answer came; 0: none
	pace      peerPace
}

// reading is what to tell a peer that pings.
func (c *clock) reading() clockReading {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := clockReading{Wall: c.wall().UnixNano(), Elapsed: int64(c.elapsed())}
	if c.role != clockUnset {
		r.Estimate, r.Term, r.Leads = c.read(), c.term, c.role == clockLeads
	}
	return r
}

// heard takes in the answer of a peer, by name, to a ping: sent and received are
// what this node's elapsed read at the time.
func (c *clock) heard(peer string, r clockReading, sent, received time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[peer]
	if p == nil {
		p = &peerClock{}
		c.peers[peer] = p
	}
	if received < p.heardAt || received < sent {
		return // overtaken by another answer
	}
	p.heardAt, p.estimate = received, r.Estimate
	p.wallAhead = r.Wall - int64(sent+(received-sent)/2)
	p.pace.measure(time.Duration(r.Elapsed), sent, received)
	c.correctPace(received)
	if r.Leads && r.Estimate != 0 {
		c.follow(r, sent, received)
	}
}

// follow goes by the time that a leader told, unless a later one is known.
//
// The leader read its clock somewhere between sent and received. Taking it to
// be received makes the estimate late rather than early; it stays as it was
// while that is possible, so that slow answers do not make it later.
func (c *clock) follow(r clockReading, sent, received time.Duration) {
	known := c.role != clockUnset
	if known && (r.Term < c.term || r.Term == c.term && c.role == clockLeads) {
		return
	}
	if known && r.Term == c.term {
		if t := c.at(received); t >= r.Estimate && t <= r.Estimate+int64(received-sent) {
			return
		}
	}
	c.role, c.term = clockFollows, r.Term
	c.base, c.baseAt, c.rate = r.Estimate, received, c.pace
}

// largestEstimate is the largest estimate of cluster time that this node and its
// peers have, as of now on elapsed; false if none has one.
func (c *clock) largestEstimate(now time.Duration) (largest int64, known bool) {
	if c.role != clockUnset {
		largest, known = c.at(now), true
	}
	for _, p := range c.peers {
		if p.estimate != 0 {
			largest, known = max(largest, p.estimate+scale(int64(now-p.heardAt), c.pace)), true
		}
	}
	return largest, known
}

// walls are this node's wall clock and those of the peers that were heard lately,
// as of now on elapsed, in ns, the smallest first.
func (c *clock) walls(now time.Duration) []int64 {
	walls := make([]int64, 1, 8) // on the stack: this is called a hundred times a second
	walls[0] = c.wall().UnixNano()
	for _, p := range c.peers {
		if now-p.heardAt <= wallFresh {
			walls = append(walls, p.wallAhead+int64(now))
		}
	}
	slices.Sort(walls)
	return walls
}

// peerOffset is how far the wall clock of a peer is ahead of cluster time; false
// if it was not heard lately.
func (c *clock) peerOffset(peer string) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.peers[peer], c.elapsed()
	if p == nil || now-p.heardAt > wallFresh {
		return 0, false
	}
	return time.Duration(p.wallAhead + int64(now) - c.read()), true
}
