package cluster

import (
	"log/slog"
	"sync"
	"time"

	"holdfast.internal/sqs"
)

const (
	// maxRate is how much faster or slower than real time cluster time may run
	// while it moves toward the wall clocks. Windows are padded for it
	// (sqs.Time.WindowEnd).
	maxRate = 500 // ppm

	// steerEvery is how often the rate is decided anew. In between cluster time
	// runs at an even rate, so readings never go back.
	steerEvery = 10 * time.Millisecond

	// Wall clocks that are more than stepGap ahead for stepAfter, without a
	// break, were right all the time (the machines were paused, or their clocks
	// were set): cluster time is stepped, once.
	stepGap   = 5 * time.Second
	stepAfter = 10 * time.Second

	// loudGap is the downtime from which a cold start is logged as a warning.
	loudGap = time.Hour
)

// clockRole is what a clock goes by.
type clockRole byte

const (
	clockUnset   clockRole = iota // the wall: it has heard no leader yet
	clockFollows                  // what the leader of term said last
	clockLeads                    // itself; its time is stamped on entries
)

// clock estimates cluster time. That of the leader is cluster time: it advances
// with elapsed, which knows no steps, at a rate that moves it toward the lower
// median of the nodes' wall clocks. Those of the others keep up with it by the
// answers to their pings, so that whoever leads next goes on where it was. It is
// safe for concurrent use.
type clock struct {
	wall    func() time.Time     // may jump, both ways
	elapsed func() time.Duration // since some moment; never goes back
	nodes   int                  // of the cluster
	log     *slog.Logger

	mu        sync.Mutex
	role      clockRole
	term      uint64        // of the leader whose time this is
	base      int64         // cluster time when baseAt was read, ns since the epoch
	baseAt    time.Duration // a reading of elapsed
	rate      int64         // ppm to add to elapsed time since baseAt: pace included
	pace      int64         // ppm to add because elapsed itself runs wrong
	gap       wallGap
	lastRead  int64 // ns; readings of a leader never go below it
	confirmed int64 // cluster time when a leader with a majority was last known, ns
	peers     map[string]*peerClock
	sorted    []int64 // what walls returned
}

// newClock makes a clock for one of so many nodes. Its time is the wall's until
// lead is called or a leader is heard.
func newClock(wall func() time.Time, elapsed func() time.Duration, nodes int, log *slog.Logger) *clock {
	return &clock{wall: wall, elapsed: elapsed, nodes: nodes, log: log, peers: map[string]*peerClock{}}
}

// lead makes this the clock that entries are stamped with, from now on in the
// given term of raft. It is called with the time of the state after all entries
// of earlier terms were applied, and after the peers were asked (consult), before
// anything is stamped.
//
// Cluster time goes on from the largest estimate that this node and its peers
// have. If none has one, every process has ended meanwhile: a cold start. Then
// time goes on from the state, or from the lower median of the wall clocks that
// can be read if that is ahead. The state's time is zero in a cluster that is
// yet to be formed.
func (c *clock) lead(state sqs.Time, term uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	from := int64(state) * int64(time.Millisecond)
	t, known := c.largestEstimate(now)
	if !known {
		t = c.coldStart(from, now)
	}
	c.base, c.baseAt, c.rate = max(t, from), now, c.pace
	c.role, c.term, c.gap = clockLeads, term, wallGap{}
	c.lastRead, c.confirmed = c.base, c.base
}

// coldStart is cluster time when nobody has an estimate. It logs what that does
// to leases, delays and retention.
func (c *clock) coldStart(state int64, now time.Duration) int64 {
	walls := c.walls(now)
	wall := walls[(len(walls)-1)/2]
	gap := time.Duration(wall - state)
	switch {
	case state == 0:
	case gap > loudGap:
		c.log.Warn("cluster time jumps forward at a cold start: leases, delays and retention went on meanwhile",
			"gap", gap, "walls", len(walls))
	case gap < 0:
		c.log.Warn("cluster time is ahead of the wall clocks: it runs slower until they meet", "gap", gap, "walls", len(walls))
	}
	return wall
}

// now is cluster time: while this node leads, what it stamps on an entry, which
// never goes back; otherwise what it estimates.
func (c *clock) now() sqs.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sqs.Time(c.read() / int64(time.Millisecond))
}

// read is now in ns.
func (c *clock) read() int64 {
	if c.role == clockUnset {
		return c.wall().UnixNano()
	}
	at := c.elapsed()
	t := c.at(at)
	if c.role == clockFollows {
		return t
	}
	if at-c.baseAt >= steerEvery {
		t = c.steer(t, at)
	}
	c.lastRead = max(c.lastRead, t)
	return c.lastRead
}

// offset is how far this node's wall clock is ahead of cluster time, and the
// rate in ppm at which cluster time follows the walls.
func (c *clock) offset() (ahead time.Duration, rate int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.wall().UnixNano() - c.read()), c.rate
}

// at is cluster time when elapsed reads e.
func (c *clock) at(e time.Duration) int64 {
	return c.base + scale(int64(e-c.baseAt), c.rate)
}

// scale is d at so many ppm more.
func scale(d, ppm int64) int64 {
	return d + d/1_000_000*ppm + d%1_000_000*ppm/1_000_000
}

// steer makes t, cluster time when elapsed read now, the new base, and decides
// the rate from it on. It returns the time, which it may have stepped.
func (c *clock) steer(t int64, now time.Duration) int64 {
	walls := c.walls(now)
	majority := c.nodes/2 + 1
	gap := time.Duration(0) // without a majority there is nothing to go by
	if len(walls) >= majority {
		gap = time.Duration(walls[(len(walls)-1)/2] - t)
		agreed := time.Duration(walls[len(walls)-majority] - t)
		if step := c.gap.lasts(agreed, now); step > 0 {
			c.log.Warn("cluster time steps forward to the wall clocks", "gap", step, "walls", len(walls))
			t += int64(step)
			gap -= step
		}
		c.confirmed = t
	} else {
		c.gap = wallGap{}
	}
	// A gap of 1 µs is worth 1 ppm: it is closed in about a second, and a gap of
	// half a millisecond or more at the full rate.
	c.base, c.baseAt = t, now
	c.rate = min(max(gap.Microseconds(), -maxRate), maxRate) + c.pace
	return t
}

// wallGap is a forward gap from cluster time to the walls of a majority.
type wallGap struct {
	open  bool
	since time.Duration // reading of elapsed
	least time.Duration // the smallest that it was since then
}

// lasts takes in a gap, and returns by how much to step: zero, unless it was
// larger than stepGap for stepAfter.
func (g *wallGap) lasts(gap, now time.Duration) time.Duration {
	switch {
	case gap <= stepGap:
		*g = wallGap{}
	case !g.open:
		*g = wallGap{open: true, since: now, least: gap}
	default:
		g.least = min(g.least, gap)
		if now-g.since >= stepAfter {
			step := g.least
			*g = wallGap{}
			return step
		}
	}
	return 0
}
