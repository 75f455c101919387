package cluster

import (
	"fmt"
	"sync"
	"time"
)

const (
	// leaderGrace is how long a member that has lost its leader still counts as
	// ready. An election takes less, and requests wait for its end: if all members
	// were unready meanwhile, a load balancer would answer errors itself.
	leaderGrace = 3 * time.Second

	// lagGrace is how far a member may be behind its leader, in time.
	lagGrace = 5 * time.Second
)

// readiness tells whether a member keeps up with a leader, from what the leader
// says in its pongs. It is safe for concurrent use.
type readiness struct {
	elapsed func() time.Duration

	mu       sync.Mutex
	seen     bool          // a leader, ever
	leaderAt time.Duration // when it was seen last
	caughtUp bool
	goal     uint64 // index that the leader had applied at goalAt; 0: reached
	goalAt   time.Duration
}

// led notes that this node is the leader, which has applied all that there is.
func (r *readiness) led() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.leaderAt, r.caughtUp, r.goal = true, r.elapsed(), true, 0
}

// heard notes that the leader has said what it has applied, and what this node has
// applied.
func (r *readiness) heard(leader, own uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.elapsed()
	r.seen, r.leaderAt = true, now
	if r.goal != 0 && own >= r.goal {
		// A goal of long ago, such as one from before a snapshot that took minutes,
		// says nothing about now.
		r.caughtUp = r.caughtUp || now-r.goalAt <= lagGrace
		r.goal = 0
	}
	switch {
	case r.goal == 0:
		r.goal, r.goalAt = leader, now
	case now-r.goalAt > lagGrace:
		r.caughtUp = false
	}
}

// diskReason is what a member that is not ready says of a disk that is short: what it
// takes from the leader, such as a snapshot, may not fit. Installed is how the last
// installation of a snapshot ended. It is empty if the disk has room.
func diskReason(r reading, reserve int64, installed error) string {
	if !r.lowDisk {
		return ""
	}
	reason := fmt.Sprintf("the disk has %.1f MiB free, below the reserve of %.1f MiB: give it room", inMiB(r.free), inMiB(reserve))
	if r.broken {
		reason = "the disk does not tell how much is free"
	}
	if installed != nil {
		reason += "; the leader's snapshot could not be stored: " + installed.Error()
	}
	return reason
}

func inMiB(n int64) float64 { return float64(n) / (1 << 20) }

// reasons is why a member that does not lead is not ready.
func (r *readiness) reasons() (why []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen || r.elapsed()-r.leaderAt > leaderGrace {
		why = append(why, "no leader")
	}
	if !r.caughtUp {
		why = append(why, "catching up with the leader")
	}
	return why
}
