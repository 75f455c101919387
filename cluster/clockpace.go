package cluster

import (
	"slices"
	"time"
)

const (
	// A clock without steps that is off by more than paceFault, next to those of
	// the other nodes, is broken: crystals are off by 100 ppm at most.
	paceFault = 10_000 // ppm

	// paceSpan is over how long two clocks are compared at least. The round trips
	// at both ends must not take more than a part in paceRoundTrips of it.
	paceSpan       = 4 * time.Second
	paceRoundTrips = 200

	// paceLimit is the most that is believed.
	paceLimit = 500_000 // ppm
)

// peerPace compares how fast the clock without steps of a peer and this node's
// run.
type peerPace struct {
	anchored bool
	peer     time.Duration // the peer's clock at the start of the span
	own      time.Duration // this node's
	trip     time.Duration // how long that answer took

	last, before int64 // ppm by which the peer's ran faster in the last two spans
}

// measure takes in the peer's clock, as read between sent and received on this
// node's.
func (p *peerPace) measure(peer, sent, received time.Duration) {
	trip := received - sent
	own := sent + trip/2
	span, peerSpan := own-p.own, peer-p.peer
	switch {
	case !p.anchored:
	case peerSpan < 0 || span > time.Minute: // another life of its machine; or cut off meanwhile
		p.last, p.before = 0, 0
	case span < paceSpan || (trip+p.trip)*paceRoundTrips > span:
		return
	default:
		p.before, p.last = p.last, int64(peerSpan-span)*1_000_000/int64(span)
	}
	p.anchored, p.peer, p.own, p.trip = true, peer, own, trip
}

// faster is by how many ppm the peer's clock runs faster; negative if slower. Two
// spans must agree: the pause or suspension of a machine spoils one of them.
func (p *peerPace) faster() int64 {
	if d := p.last - p.before; d < -paceFault || d > paceFault {
		return 0
	}
	return p.last
}

// correctPace finds out whether this node's clock runs wrong: by the lower median
// of all clocks that can be compared, its own included. With one other node to
// compare with it may be slowed down, which makes windows late, never early.
func (c *clock) correctPace(now time.Duration) {
	paces := make([]int64, 1, 8) // its own, next to itself
	for _, p := range c.peers {
		if now-p.heardAt <= wallFresh {
			paces = append(paces, p.pace.faster())
		}
	}
	slices.Sort(paces)
	pace := min(max(paces[(len(paces)-1)/2], -paceLimit), paceLimit)
	if pace > -paceFault && pace < paceFault {
		pace = 0
	}
	if pace == c.pace {
		return
	}
	if c.pace == 0 || pace == 0 {
		c.log.Warn("pace of this machine's clock is corrected", "ppm", pace)
	}
	c.base, c.baseAt, c.rate = c.at(now), now, c.rate-c.pace+pace
	c.pace = pace
}
