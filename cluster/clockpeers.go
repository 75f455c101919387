package cluster

import (
	"context"
	"slices"
	"time"
)

// wallFresh is how old the last word of a peer about its wall clock may be.
const wallFresh = 3 * time.Second

// confirmedApart is how far the confirmations of two estimates of cluster time
// may lie apart for the larger one to be taken. Meanwhile a leader that slows down
// falls behind an estimate by half a millisecond, for which windows are padded.
const confirmedApart = int64(time.Second)

// clockReading is what a node says about time in its answer to a ping.
type clockReading struct {
	Wall      int64  // its wall clock, ns since the epoch
	Elapsed   int64  // its clock without steps, ns since some moment of its machine
	Estimate  int64  // its estimate of cluster time, ns since the epoch; 0: it has none
	Confirmed int64  // what a leader with a majority last said cluster time was, ns
	Term      uint64 // of the leader whose time the estimate goes by
	Leads     bool   // that leader is itself
}

// peerClock is what is known about the clocks of a peer.
type peerClock struct {
	heardAt   time.Duration // own elapsed time when the last answer came
	wallAhead int64         // of own elapsed time, ns
	estimate  int64         // ns; it was at least that when the answer came; 0: none
	confirmed int64
	pace      peerPace
}

const (
	// consultFor is how long a node that would lead, and has no estimate, tries to
	// read the clocks of a majority.
	consultFor = 3 * time.Second

	// consultEvery is the pause in between: a connection that could not be made is
	// not tried again at once.
	consultEvery = 20 * time.Millisecond
)

// consult has ask ask all peers what time it is, before lead: again and again, if
// nobody has an estimate, until a majority of the wall clocks can be read. After a
// start of all nodes the first leader may have reached the others for its votes and
// not yet for the time; and its own wall clock alone may be the one that is wrong.
func (c *clock) consult(ctx context.Context, ask func(context.Context)) {
	began := c.elapsed()
	for ask(ctx); !c.isInformed() && c.elapsed()-began < consultFor; ask(ctx) {
		select {
		case <-time.After(consultEvery):
		case <-ctx.Done():
			return
		}
	}
}

// isInformed reports whether there is an estimate to go on from, or else a majority of
// wall clocks.
func (c *clock) isInformed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	_, known := c.largestEstimate(now)
	return known || len(c.walls(now)) > c.nodes/2
}

// reading is what to tell a peer that pings.
func (c *clock) reading() clockReading {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := clockReading{Wall: c.wall().UnixNano(), Elapsed: int64(c.elapsed())}
	if c.role != clockUnset {
		r.Estimate, r.Term, r.Leads = c.read(), c.term, c.role == clockLeads
		r.Confirmed = c.confirmed
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
	p.wallAhead = c.placeWall(p, r.Wall, sent, received)
	p.heardAt, p.estimate, p.confirmed = received, r.Estimate, r.Confirmed
	p.pace.measure(time.Duration(r.Elapsed), sent, received)
	c.correctPace(received)
	if r.Leads && r.Estimate != 0 {
		c.follow(r, sent, received)
	}
}

// placeWall is how far the wall clock of a peer is ahead of own elapsed time: it
// read wall somewhere between sent and received. Within these bounds it is taken to
// agree with this node's wall, or else to be where it was before, so that slow
// answers do not make walls differ.
func (c *clock) placeWall(p *peerClock, wall int64, sent, received time.Duration) int64 {
	low, high := wall-int64(received), wall-int64(sent)
	own := c.wall().UnixNano() - int64(c.elapsed())
	switch {
	case own >= low && own <= high:
		return own
	case received-p.heardAt <= wallFresh:
		return min(max(p.wallAhead, low), high)
	}
	return low + (high-low)/2
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
	c.confirmed = r.Confirmed
	if known && r.Term == c.term {
		if t := c.at(received); t >= r.Estimate && t <= r.Estimate+int64(received-sent) {
			return
		}
	}
	c.role, c.term = clockFollows, r.Term
	c.base, c.baseAt, c.rate = r.Estimate, received, c.pace
}

// largestEstimate is the largest estimate of cluster time that this node and its
// peers have, as of now on elapsed; false if none has one. Estimates that were
// confirmed long before another one do not count: the leader may have run slower
// than they did since.
func (c *clock) largestEstimate(now time.Duration) (largest int64, known bool) {
	confirmed := c.confirmed
	for _, p := range c.peers {
		confirmed = max(confirmed, p.confirmed)
	}
	if c.role != clockUnset && c.confirmed >= confirmed-confirmedApart {
		largest, known = c.at(now), true
	}
	for _, p := range c.peers {
		if p.estimate != 0 && p.confirmed >= confirmed-confirmedApart {
			largest, known = max(largest, p.estimate+scale(int64(now-p.heardAt), c.pace)), true
		}
	}
	return largest, known
}

// walls are this node's wall clock and those of the peers that were heard lately,
// as of now on elapsed, in ns, the smallest first. They are valid until the next
// call.
func (c *clock) walls(now time.Duration) []int64 {
	walls := append(c.sorted[:0], c.wall().UnixNano())
	for _, p := range c.peers {
		if now-p.heardAt <= wallFresh {
			walls = append(walls, p.wallAhead+int64(now))
		}
	}
	slices.Sort(walls)
	c.sorted = walls
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
