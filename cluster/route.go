package cluster

import (
	"log/slog"
	"time"

	"holdfast.internal/cluster/peer"
)

// deafAfter is how long the leader that raft knows may leave pings unanswered
// before this node looks for another way to it.
const deafAfter = 2 * time.Second

// route is how this node reaches the leader.
type route struct {
	leader peer.Target
	via    peer.Target // the member that passes requests on; zero if the leader is asked itself
	here   bool        // the leader is this node
	known  bool        // there is a leader
}

// to is the member that is asked.
func (r route) to() peer.Target {
	if r.via.Name != "" {
		return r.via
	}
	return r.leader
}

// route finds the way to the leader.
func (g *gateway) route() route {
	leader, term, known := g.leader()
	if known && leader.Name == g.node {
		return route{leader: leader, here: true, known: true}
	}
	return g.members.route(leader.Name, term, known)
}

// route finds the way to another member that leads, if one is known by raft in this
// term. A node whose link to the leader is cut, in one direction or both, cannot
// replace it while the others hear it; then one of them passes its requests on.
func (m *members) route(leader string, term uint64, known bool) route {
	target, err := m.target(leader)
	direct := route{leader: target, known: known && err == nil}
	if direct.known && !m.isDeaf(leader) {
		return direct
	}
	told, ok := m.led(term)
	if !ok || direct.known && told.Leader != leader {
		return direct
	}
	to, err := m.target(told.Leader)
	by, byErr := m.target(told.Name)
	switch {
	case err != nil || byErr != nil:
		return direct
	case to == by:
		return route{leader: to, known: true}
	}
	return route{leader: to, via: by, known: true}
}

// isDeaf reports whether a member that has answered before has not done so for
// deafAfter.
func (m *members) isDeaf(name string) bool {
	r, ok := m.newest(name)
	return ok && m.elapsed()-r.at > deafAfter
}

// led is what the member that is up and knows another member as the leader of the
// newest term says, if that term is not before the given one. What a leader said
// itself comes first: an election is over before its word has grown old, so requests
// go a longer way only if a link is cut.
func (m *members) led(term uint64) (newest pong, ok bool) {
	for _, p := range m.up() {
		if p.Leader == "" || p.Leader == m.self.Name || p.Term < term {
			continue
		}
		if !ok || p.Term > newest.Term || p.Term == newest.Term && p.Leads {
			newest, ok = p, true
		}
	}
	return newest, ok
}

// detourNotice is how long requests go through another member before it is logged: one
// that has just started may hear of the leader before it hears the leader.
const detourNotice = time.Second

// detour logs that requests go another way than straight to the leader.
type detour struct {
	log      *slog.Logger
	straight time.Duration // when they did not, last
	told     bool
}

// note takes in the way of requests at a time.
func (d *detour) note(r route, now time.Duration) {
	if r.via.Name == "" {
		d.straight = now
		if d.told && r.known {
			d.told = false
			d.log.Info("leader is reached", "leader", r.leader.Name)
		}
		return
	}
	if !d.told && now-d.straight >= detourNotice {
		d.told = true
		d.log.Warn("leader is not reached; another member passes requests on", "leader", r.leader.Name, "through", r.via.Name)
	}
}
