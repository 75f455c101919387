package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
)

const (
	// upFor is how long a member counts as up after its last answer.
	upFor = time.Second

	// appliedFor is how long the index that a member said it has applied counts
	// for what the log must keep.
	appliedFor = 10 * time.Minute
)

// members is what this node knows of the other members, from their answers to
// its pings. It is safe for concurrent use.
type members struct {
	self    peer.Target
	others  []peer.Target // by name
	elapsed func() time.Duration

	mu    sync.Mutex
	heard map[string]report        // the newest of each; by name
	fails map[string]error         // why those do not answer that did not the last time; by name
	calls map[string]time.Duration // when each has called this node last, or when that was to be expected
	term  uint64                   // of the newest leader that was heard
}

// report is a pong and when it came, by elapsed.
type report struct {
	pong
	at  time.Duration
	lag uint64 // entries that this node had applied when it asked, and the member had not
}

func newMembers(self string, all []peer.Target, elapsed func() time.Duration) *members {
	m := &members{self: peer.Target{Name: self}, elapsed: elapsed, heard: map[string]report{}, calls: map[string]time.Duration{}, fails: map[string]error{}}
	for _, t := range all {
		if t.Name == self {
			m.self = t
			continue
		}
		m.others = append(m.others, t)
	}
	slices.SortFunc(m.others, func(a, b peer.Target) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// target is where a member is, by what this node was told at its start.
func (m *members) target(name string) (peer.Target, error) {
	if name == m.self.Name {
		return m.self, nil
	}
	for _, t := range m.others {
		if t.Name == name {
			return t, nil
		}
	}
	return peer.Target{}, fmt.Errorf("find member %q: not in --cluster", name)
}

// agree checks that the members by raft's configuration are those that this node was
// told of. Majorities are counted by the latter, so a list that is too short would
// take too few followers for one.
func (m *members) agree(servers []raft.Server) error {
	told := []string{m.self.Name}
	for _, t := range m.others {
		told = append(told, t.Name)
	}
	var have []string
	for _, s := range servers {
		have = append(have, nameOf(s.ID))
	}
	slices.Sort(told)
	slices.Sort(have)
	if !slices.Equal(told, have) {
		return fmt.Errorf("%w: --cluster names %s, but the members of its cluster are %s",
			ErrIdentity, strings.Join(told, ", "), strings.Join(have, ", "))
	}
	return nil
}

// alone reports whether there are no others.
func (m *members) alone() bool { return len(m.others) == 0 }

// record takes in an answer. Applied is what this node had applied when it asked. After
// a time without answers, in which this node may have stood still, the member's own
// calls are to be expected from now on.
func (m *members) record(p pong, applied uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.elapsed()
	if before, ok := m.heard[p.Name]; !ok || now-before.at > upFor {
		m.calls[p.Name] = now
	}
	delete(m.fails, p.Name)
	m.heard[p.Name] = report{pong: p, at: now, lag: applied - min(applied, p.Applied)}
}

// fail notes that a member did not answer.
func (m *members) fail(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails[name] = err
}

// silent is why a member did not answer the last time; nil if it did.
func (m *members) silent(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fails[name]
}

// called notes that a member has reached this node.
func (m *members) called(by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[by] = m.elapsed()
}

// isUnreachedBy reports whether a member, which answers this node, has not reached it
// for deafAfter.
func (m *members) isUnreachedBy(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.elapsed()-m.calls[name] > deafAfter
}

// isNewLeader reports whether p is the first pong of a leader in its term.
func (m *members) isNewLeader(p pong) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !p.Leads || p.Term <= m.term {
		return false
	}
	m.term = p.Term
	return true
}

// newest is the newest answer of a member; false if it has never answered.
func (m *members) newest(name string) (report, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.heard[name]
	return r, ok
}

// isUp reports whether a member answered within upFor.
func (m *members) isUp(name string) bool {
	r, ok := m.newest(name)
	return ok && m.elapsed()-r.at <= upFor
}

// up are the newest answers of the members that answered within upFor, by name.
func (m *members) up() []pong { return m.within(upFor) }

// within are the newest answers that are no older than age, by name.
func (m *members) within(age time.Duration) []pong {
	m.mu.Lock()
	defer m.mu.Unlock()
	var pongs []pong
	for _, t := range m.others {
		if r, ok := m.heard[t.Name]; ok && m.elapsed()-r.at <= age {
			pongs = append(pongs, r.pong)
		}
	}
	return pongs
}

// hasMajority reports whether so many of the others and this node are more than
// half of all.
func (m *members) hasMajority(others int) bool { return 2*(others+1) > len(m.others)+1 }

// lowestApplied is the lowest index that another member said it has applied in
// the last ten minutes, and own if that is lower: from there on the log is needed.
func (m *members) lowestApplied(own uint64) uint64 {
	for _, p := range m.within(appliedFor) {
		own = min(own, p.Applied)
	}
	return own
}

// successor is the member that is to take over the leadership: of those that are up
// and not draining the one whose log reaches furthest.
func (m *members) successor() (pong, bool) {
	pongs := slices.DeleteFunc(m.up(), func(p pong) bool { return p.Draining || p.RaftID == "" })
	if len(pongs) == 0 {
		return pong{}, false
	}
	return slices.MaxFunc(pongs, func(a, b pong) int { return cmp.Compare(a.Last, b.Last) }), true
}

// lowDisk reports whether the disks of a majority, this node's included, are below
// their reserves: then what grows is refused. One that is alone low ends when it
// is full, and the others go on.
func (m *members) lowDisk(own bool) bool {
	low := 0
	for _, p := range m.up() {
		if p.LowDisk {
			low++
		}
	}
	if own {
		low++
	}
	return 2*low > len(m.others)+1
}
