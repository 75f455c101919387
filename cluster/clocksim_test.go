package cluster

import (
	"container/heap"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// clockSim runs the clocks of a cluster in virtual time, with pings between them,
// and holds what its leaders stamp against real time.
type clockSim struct {
	t      *testing.T
	random *rand.Rand
	log    strings.Builder
	trip   time.Duration // the longest time that a packet takes

	real   time.Duration // real time since epoch
	events simEvents
	nodes  []*simMachine
	leader *simMachine // nil: none
	term   uint64

	state      sqs.Time      // time of the last entry that was applied
	stampedAt  time.Duration // when that was, in real time
	leaderless time.Duration // in all
	quiet      bool          // no windows begin
	windows    []simWindow
	early      time.Duration // the most that a window ended early
	late       time.Duration // the most that a window was late, beyond what is promised
	steps      int           // forward by more than a second beyond real time
}

// entryEvery is the time from entry to entry.
const entryEvery = 50 * time.Millisecond

var simEpoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// simWindow is a lease or the like of some length.
type simWindow struct {
	length     time.Duration
	began      time.Duration // real time
	end        sqs.Time
	leaderless time.Duration // in all until it began
}

type simEvent struct {
	at  time.Duration
	run func()
}

type simEvents []simEvent

func (e simEvents) Len() int           { return len(e) }
func (e simEvents) Less(i, j int) bool { return e[i].at < e[j].at }
func (e simEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *simEvents) Push(x any)        { *e = append(*e, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simClock is one clock of a machine, that may be set, run at a wrong rate, and
// stop.
type simClock struct {
	sim  *clockSim
	base time.Duration
	from time.Duration // real time
	ppm  int64         // -1,000,000 is a clock that stands still
}

func (c *simClock) read() time.Duration {
	return c.base + time.Duration(scale(int64(c.sim.real-c.from), c.ppm))
}

func (c *simClock) setRate(ppm int64) { c.base, c.from, c.ppm = c.read(), c.sim.real, ppm }

func (c *simClock) step(d time.Duration) { c.base += d }

const stopped = -1_000_000

// simMachine is a node: it pings the others while it runs.
type simMachine struct {
	sim     *clockSim
	name    string
	wall    simClock
	elapsed simClock
	clock   *clock
	frozen  bool // nothing of it runs
	cut     bool // nobody can be reached
	life    int  // of its process
}

func newClockSim(t *testing.T, seed uint64) *clockSim {
	t.Helper()
	s := &clockSim{t: t, random: rand.New(rand.NewPCG(seed, 5)), trip: 2 * time.Millisecond}
	for i := range 3 {
		m := &simMachine{sim: s, name: fmt.Sprint("n", i+1)}
		m.wall.sim, m.elapsed.sim = s, s
		m.elapsed.base = time.Duration(i+1) * 1000 * time.Hour
		s.nodes = append(s.nodes, m)
		m.start()
	}
	s.every(entryEvery, s.lead)
	return s
}

// start begins a new life of the process, which knows nothing.
func (m *simMachine) start() {
	m.life++
	life := m.life
	m.clock = newClock(
		func() time.Time { return simEpoch.Add(m.wall.read()) },
		m.elapsed.read, 3, slog.New(slog.NewTextHandler(&m.sim.log, nil)))
	var beat func()
	beat = func() {
		if m.life != life {
			return
		}
		for _, peer := range m.sim.nodes {
			m.ping(peer)
		}
		if !m.frozen {
			m.clock.now() // as the watchdog does
		}
		m.sim.after(250*time.Millisecond, beat)
	}
	m.sim.after(time.Duration(m.sim.random.Int64N(int64(250*time.Millisecond))), beat)
}

// ping asks a peer what time it is.
func (m *simMachine) ping(peer *simMachine) {
	s := m.sim
	if peer == m || !m.reaches(peer) {
		return
	}
	sent, life := m.elapsed.read(), m.life
	there := time.Duration(s.random.Int64N(int64(s.trip)))
	back := time.Duration(s.random.Int64N(int64(s.trip)))
	s.after(there, func() {
		if !m.reaches(peer) {
			return
		}
		r := peer.clock.reading()
		s.after(back, func() {
			if m.reaches(peer) && m.life == life {
				m.clock.heard(peer.name, r, sent, m.elapsed.read())
			}
		})
	})
}

func (m *simMachine) reaches(peer *simMachine) bool {
	return !m.frozen && !peer.frozen && !m.cut && !peer.cut
}

func (s *clockSim) after(d time.Duration, run func()) {
	heap.Push(&s.events, simEvent{s.real + d, run})
}

func (s *clockSim) every(d time.Duration, run func()) {
	s.after(d, func() {
		run()
		s.every(d, run)
	})
}

// pass lets d of real time pass.
func (s *clockSim) pass(d time.Duration) {
	end := s.real + d
	for len(s.events) > 0 && s.events[0].at <= end {
		e := heap.Pop(&s.events).(simEvent)
		s.real = e.at
		e.run()
	}
	s.real = end
}

// elect makes m the leader, after a second without one.
func (s *clockSim) elect(m *simMachine) {
	s.leader = nil
	s.pass(time.Second)
	s.promote(m)
}

// promote makes m the leader: it asks its peers first.
func (s *clockSim) promote(m *simMachine) {
	for _, peer := range s.nodes {
		m.ping(peer)
	}
	s.pass(2 * s.trip)
	s.term++
	m.clock.lead(s.state, s.term)
	s.leader = m
}

// lead is the work of the leader: an entry, which may begin a window.
func (s *clockSim) lead() {
	m := s.leader
	if m == nil || m.frozen || m.cut {
		s.leaderless += entryEvery
		return
	}
	now := m.clock.now()
	if now < s.state {
		s.t.Fatalf("real time %v: %s stamped %v less than the state has", s.real, m.name, s.state.Sub(now))
	}
	if s.state != 0 && now.Sub(s.state)-(s.real-s.stampedAt) > time.Second {
		s.steps++
	}
	s.state, s.stampedAt = now, s.real
	s.expire()
	if !s.quiet && s.random.IntN(4) == 0 {
		lengths := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute}
		v := lengths[s.random.IntN(len(lengths))]
		s.windows = append(s.windows, simWindow{length: v, began: s.real, end: now.WindowEnd(v), leaderless: s.leaderless})
	}
}

// expire ends the windows whose time has come.
func (s *clockSim) expire() {
	kept := s.windows[:0]
	for _, w := range s.windows {
		if w.end > s.state {
			kept = append(kept, w)
			continue
		}
		took := s.real - w.began
		s.early = max(s.early, w.length-took+s.state.Sub(w.end)) // entries come now and then
		promised := w.length + w.length/500 + time.Second + s.leaderless - w.leaderless
		s.late = max(s.late, took-promised)
	}
	s.windows = kept
}

// off is how far cluster time is ahead of real time.
func (s *clockSim) off() time.Duration {
	return s.state.Sub(sqs.Time(simEpoch.Add(s.real).UnixMilli()))
}

// expect checks that no window ended early, or later than is promised, and that
// cluster time is as far from real time as it may be.
func (s *clockSim) expect(off time.Duration) {
	s.t.Helper()
	if s.early > 0 {
		s.t.Errorf("a window ended %v early", s.early)
	}
	if s.late > 0 {
		s.t.Errorf("a window was %v later than promised", s.late)
	}
	if got := s.off(); got < -off || got > off {
		s.t.Errorf("cluster time is %v off real time, want at most %v", got, off)
	}
	if s.steps > 0 {
		s.t.Errorf("cluster time jumped %d times", s.steps)
	}
}
