package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// lease tells how long ago a majority was certainly behind this leader. Raft's own
// lease does not tell: it counts answers that sat in a socket while the process
// was stopped. Here time counts from when the question was sent: a committed entry
// proves the leadership at the time of its proposal, and so does the pong of a
// follower at the time of its ping.
type lease struct {
	elapsed  func() time.Duration
	majority func(others int) bool

	mu       sync.Mutex
	followed map[string]time.Duration // by member: when it certainly followed
	proven   atomic.Int64             // the newest proof, ns by elapsed
}

// leaseLength is how old a proof may be for an empty answer that is not in the log, and
// so how old the answer may be: at the time of the proof this leader knew of all that
// was committed, though another one may lead a moment later.
const leaseLength = raftTimeout

func newLease(elapsed func() time.Duration, majority func(others int) bool) *lease {
	l := &lease{elapsed: elapsed, majority: majority, followed: map[string]time.Duration{}}
	l.proven.Store(int64(-time.Hour))
	return l
}

// holds reports whether the proof is fresh. A nil lease, of a node that is alone,
// always holds.
func (l *lease) holds() bool {
	return l == nil || int64(l.elapsed())-l.proven.Load() < int64(leaseLength)
}

// prove notes that this node led at a time.
func (l *lease) prove(at time.Duration) {
	for known := l.proven.Load(); int64(at) > known; known = l.proven.Load() {
		if l.proven.CompareAndSwap(known, int64(at)) {
			return
		}
	}
}

// follows notes that a member followed this leader at a time.
func (l *lease) follows(member string, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followed[member] = max(at, l.followed[member])
	for _, t := range l.followed {
		if t <= at && l.majority(l.since(t)) {
			l.prove(t)
		}
	}
}

// since counts the members that followed at t or later. The caller holds mu.
func (l *lease) since(t time.Duration) (n int) {
	for _, at := range l.followed {
		if at >= t {
			n++
		}
	}
	return n
}

// begin forgets who followed in earlier terms.
func (l *lease) begin() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.followed)
}

// watch has an entry that is proposed now prove the leadership when it is
// committed.
func (l *lease) watch(future raft.ApplyFuture, proposed time.Duration) raft.ApplyFuture {
	return &proof{future, l, proposed}
}

type proof struct {
	raft.ApplyFuture
	lease    *lease
	proposed time.Duration
}

// Error implements raft.Future.
func (p *proof) Error() error {
	err := p.ApplyFuture.Error()
	if err == nil {
		p.lease.prove(p.proposed)
	}
	return err
}
