package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/sqs"
)

// switchLeaders has every node lead in turn, some times.
func (s *clockSim) switchLeaders(times int) {
	for range times {
		for _, m := range s.nodes {
			s.elect(m)
			s.pass(10 * time.Second)
		}
	}
}

func TestClusterTimeGoesOnFromLeaderToLeader(t *testing.T) {
	s := newClockSim(t, 1)
	s.switchLeaders(40)
	s.expect(50 * time.Millisecond)
}

// One wall clock is wrong by an hour from some moment on: nobody notices.
func TestClusterTimeWithOneWrongWall(t *testing.T) {
	for i := range 3 {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(fmt.Sprintf("n%d by %v", i+1, step), func(t *testing.T) {
				s := newClockSim(t, 2)
				s.elect(s.nodes[0])
				s.pass(time.Minute)
				s.nodes[i].wall.step(step)
				s.pass(time.Minute)
				s.switchLeaders(5)
				s.nodes[i].wall.step(-step)
				s.switchLeaders(2)
				s.expect(300 * time.Millisecond)
			})
		}
	}
}

// The wall of one node is wrong, and another node is down: time follows the
// lower of the walls that are left, slowly.
func TestClusterTimeWithOneWrongWallAndOneNodeDown(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			s := newClockSim(t, 3)
			s.elect(s.nodes[0])
			s.pass(time.Minute)
			s.nodes[2].cut = true
			s.nodes[1].wall.step(step)
			s.pass(10 * time.Minute)
			s.elect(s.nodes[1])
			s.pass(10 * time.Minute)
			s.expect(20 * time.Minute * maxRate / 1_000_000 * 11 / 10)
			if s.off() > 10*time.Millisecond {
				t.Errorf("cluster time is %v ahead of the lower wall", s.off())
			}
		})
	}
}

// All clocks of one node run at a wrong rate, and it leads from time to time. It
// takes the others two spans to be sure.
func TestClusterTimeWithOneWrongRate(t *testing.T) {
	for i := range 3 {
		for _, ppm := range []int64{100_000, -100_000} {
			t.Run(fmt.Sprintf("n%d by %d ppm", i+1, ppm), func(t *testing.T) {
				s := newClockSim(t, 4)
				s.elect(s.nodes[0])
				s.pass(time.Minute)
				s.nodes[i].wall.setRate(ppm)
				s.nodes[i].elapsed.setRate(ppm)
				s.pass(time.Minute)
				before := s.off()
				s.windows, s.early, s.late = nil, 0, 0
				s.switchLeaders(3)
				if before < -1500*time.Millisecond || before > time.Second {
					t.Errorf("cluster time ran %v ahead until the fault was found", before)
				}
				s.expect(1500 * time.Millisecond)
			})
		}
	}
}

// A machine is suspended while it leads, and leads again when it is back. Its
// clocks count the time, or not.
func TestClusterTimeAfterAPausedMachine(t *testing.T) {
	for _, counts := range []bool{true, false} {
		t.Run(fmt.Sprintf("its clocks count: %t", counts), func(t *testing.T) {
			s := newClockSim(t, 5)
			for range 5 {
				for i, m := range s.nodes {
					s.elect(m)
					s.pass(5 * time.Second)
					m.frozen = true
					if !counts {
						m.wall.setRate(stopped)
						m.elapsed.setRate(stopped)
					}
					s.elect(s.nodes[(i+1)%3])
					s.pass(time.Minute)
					m.frozen = false
					m.wall.setRate(0)
					m.elapsed.setRate(0)
					s.elect(m) // at once
					s.pass(5 * time.Second)
					m.wall.step(s.real - m.wall.read()) // NTP comes back
				}
			}
			s.expect(50 * time.Millisecond)
		})
	}
}

// A node that nobody reached for a while, and that led before, has no say.
func TestClusterTimeAfterAnIsolatedLeader(t *testing.T) {
	s := newClockSim(t, 6)
	s.elect(s.nodes[0])
	s.pass(time.Minute)
	isolated := s.nodes[0]
	isolated.cut = true
	isolated.wall.step(time.Hour)
	s.elect(s.nodes[1])
	s.pass(time.Minute)
	if ahead := isolated.clock.now().Sub(s.state); ahead > 50*time.Millisecond || ahead < -50*time.Millisecond {
		t.Errorf("the isolated leader is %v ahead", ahead)
	}
	for _, m := range s.nodes[1:] {
		m.wall.step(-time.Minute) // so that time runs slower without it
	}
	s.pass(20 * time.Minute)
	isolated.cut, s.nodes[1].cut = false, true
	s.promote(isolated) // before it has heard anything
	s.pass(time.Minute)
	s.expect(time.Second)
}

// All machines stand still for ten minutes, their clocks too, and the walls are
// set right afterwards: one step, when they agree for ten seconds. Windows that
// begin in between end early: nobody can know better.
func TestClusterTimeStepsAfterAllMachinesPaused(t *testing.T) {
	s := newClockSim(t, 7)
	s.elect(s.nodes[0])
	s.pass(time.Minute)
	for _, m := range s.nodes {
		m.frozen = true
		m.wall.setRate(stopped)
		m.elapsed.setRate(stopped)
	}
	s.pass(10 * time.Minute)
	for _, m := range s.nodes {
		m.frozen = false
		m.wall.setRate(0)
		m.elapsed.setRate(0)
	}
	s.quiet = true
	s.nodes[1].wall.step(10 * time.Minute)
	s.pass(time.Minute)
	if s.steps != 0 {
		t.Fatalf("stepped to the wall of one node of three")
	}
	s.nodes[1].cut = true
	s.pass(wallFresh)
	s.nodes[2].wall.step(10 * time.Minute)
	s.pass(time.Minute)
	if s.steps != 0 {
		t.Fatalf("stepped to what two nodes have said, one of them long ago")
	}
	s.nodes[1].cut = false
	s.pass(9 * time.Second)
	if s.steps != 0 {
		t.Fatalf("stepped before the walls had agreed for ten seconds")
	}
	s.pass(3 * time.Second)
	if s.steps != 1 || !strings.Contains(s.log.String(), "steps forward") {
		t.Fatalf("%d steps, want one that is logged", s.steps)
	}
	s.quiet = false
	s.switchLeaders(2)
	s.steps--
	s.late = 0 // nobody was there
	s.expect(100 * time.Millisecond)
}

// Walls that a majority sets back are followed slowly.
func TestClusterTimeNeverStepsBack(t *testing.T) {
	s := newClockSim(t, 8)
	s.elect(s.nodes[0])
	s.pass(time.Minute)
	for _, m := range s.nodes {
		m.wall.step(-time.Hour)
	}
	s.switchLeaders(20)
	s.expect(1500 * time.Millisecond)
}

// All processes end. At the cold start one of the walls is wrong.
func TestClusterTimeAtAColdStart(t *testing.T) {
	for i := range 3 {
		for _, step := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
			t.Run(fmt.Sprintf("n%d by %v", i+1, step), func(t *testing.T) {
				s := newClockSim(t, 9)
				s.elect(s.nodes[0])
				s.pass(time.Minute)
				s.leader = nil
				s.pass(90 * time.Minute)
				for _, m := range s.nodes {
					m.start()
				}
				s.nodes[i].wall.step(step)
				s.pass(time.Second)
				s.elect(s.nodes[2])
				s.steps = 0
				s.late = 0 // they were due meanwhile
				s.switchLeaders(2)
				s.steps = max(0, s.steps-1) // over the time that they were down
				s.expect(100 * time.Millisecond)
				if !strings.Contains(s.log.String(), "jumps forward at a cold start") {
					t.Errorf("not logged: %s", s.log.String())
				}
			})
		}
	}
}

// All processes end again and again, and answers take their time. Cluster time goes
// on where the walls are; a change of leaders may have cost the delay of an answer.
func TestClusterTimeOverManyColdStarts(t *testing.T) {
	s := newClockSim(t, 13)
	s.trip = 100 * time.Millisecond
	s.elect(s.nodes[0])
	for range 50 {
		s.restartAll()
	}
	if s.early > 10*time.Millisecond {
		t.Errorf("a window ended %v early", s.early)
	}
	s.steps, s.early = 0, 0
	s.expect(time.Second)
}

// restartAll changes the leader, ends all processes, and has one of them lead.
func (s *clockSim) restartAll() {
	s.pass(time.Duration(s.random.Int64N(int64(20 * time.Second))))
	s.elect(s.nodes[s.random.IntN(3)])
	s.pass(time.Duration(s.random.Int64N(int64(5 * time.Second))))
	s.leader = nil
	for _, m := range s.nodes {
		m.start()
	}
	s.pass(time.Duration(s.random.Int64N(int64(3 * time.Second))))
	s.elect(s.nodes[s.random.IntN(3)])
	s.pass(time.Second)
}

// After a start of all nodes the first leader, whose wall is wrong by an hour, asks the
// others until one has told it what time it is; but not for ever, nor if it has an
// estimate to go on from.
func TestFirstLeaderConsultsTheOthers(t *testing.T) {
	for _, test := range []struct {
		name   string
		hears  int // the question that is answered; 0: none
		leader bool
		asks   int // at least
		took   time.Duration
		ahead  time.Duration
	}{
		{name: "at once", hears: 1, asks: 1},
		{name: "after some time", hears: 5, asks: 5, took: 4 * consultEvery},
		{name: "never", asks: 10, took: consultFor, ahead: time.Hour},
		{name: "it goes on from a leader", leader: true, asks: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				elapsed := func() time.Duration { return time.Since(began) }
				c := newClock(func() time.Time { return time.Now().Add(time.Hour) }, elapsed, 3, slog.New(slog.DiscardHandler))
				hear := func(leads bool) {
					r := clockReading{Wall: time.Now().UnixNano(), Elapsed: int64(elapsed()), Leads: leads}
					if leads {
						r.Estimate = r.Wall
					}
					c.heard("n2", r, elapsed(), elapsed())
				}
				if test.leader {
					hear(true)
					time.Sleep(time.Minute)
				}
				asks, before := 0, time.Now()
				c.consult(t.Context(), func(context.Context) {
					if asks++; asks == test.hears {
						hear(false)
					}
				})
				took := time.Since(before)
				c.lead(0, 1)
				ahead := c.now().Sub(sqs.Time(time.Now().UnixMilli()))
				if asks < test.asks || took < test.took || took > test.took+consultEvery || ahead != test.ahead {
					t.Errorf("after %d questions and %v cluster time is %v ahead, want %d, %v, %v", asks, took, ahead, test.asks, test.took, test.ahead)
				}
			})
		})
	}
}

// One process that lives on knows better than all walls.
func TestClusterTimeWithOneProcessThatLivesOn(t *testing.T) {
	for lives := range 3 {
		t.Run(fmt.Sprint("n", lives+1), func(t *testing.T) {
			s := newClockSim(t, 10)
			s.elect(s.nodes[0])
			s.pass(time.Minute)
			s.leader = nil
			s.pass(10 * time.Second)
			for i, m := range s.nodes {
				m.wall.step(-time.Hour)
				if i != lives {
					m.start()
				}
			}
			s.elect(s.nodes[(lives+1)%3])
			s.pass(time.Minute)
			s.expect(100 * time.Millisecond)
			if strings.Contains(s.log.String(), "cold start") {
				t.Errorf("took it for a cold start: %s", s.log.String())
			}
		})
	}
}

// What a leader says that another one has replaced is not listened to.
func TestClockFollowsTheLatestTermOnly(t *testing.T) {
	s := newClockSim(t, 11)
	c := s.nodes[0].clock
	say := func(term uint64, leads bool, ahead time.Duration) time.Duration {
		now := s.nodes[0].elapsed.read()
		c.heard("n2", clockReading{Wall: 1, Estimate: int64(time.Hour + ahead), Term: term, Leads: leads}, now, now)
		return time.Duration(c.reading().Estimate) - time.Hour
	}
	if got := say(5, false, time.Minute); got != -time.Hour {
		t.Errorf("a follower was followed: %v", got)
	}
	if got := say(5, true, 0); got != 0 {
		t.Errorf("got %v after the first leader", got)
	}
	if got := say(4, true, time.Minute); got != 0 {
		t.Errorf("got %v after a leader of an earlier term", got)
	}
	if got := say(6, true, -time.Second); got != -time.Second {
		t.Errorf("got %v after a leader of a later term", got)
	}
	c.lead(0, 7)
	if got := say(7, true, time.Minute); got > 0 {
		t.Errorf("got %v after another leader of its own term", got)
	}
	if got := say(8, true, 0); got != 0 || c.reading().Leads {
		t.Errorf("got %v after a leader of a later term than its own", got)
	}
}

// Answers that take long make an estimate neither early nor later than it was.
func TestClusterTimeOverSlowConnections(t *testing.T) {
	s := newClockSim(t, 12)
	s.elect(s.nodes[0])
	s.pass(time.Minute)
	s.trip = time.Second
	s.pass(time.Minute)
	for range 20 {
		s.nodes[2].start() // it has to take what it gets
		s.pass(time.Second)
		if late := s.state.Sub(s.nodes[1].clock.now()); late < -entryEvery || late > 10*time.Millisecond {
			t.Errorf("n2 is %v late", late)
		}
		if late := s.state.Sub(s.nodes[2].clock.now()); late < -entryEvery || late > s.trip {
			t.Errorf("n3 is %v late", late)
		}
	}
	for range 600 {
		s.pass(time.Second)
		for _, m := range s.nodes {
			if m.clock.pace != 0 {
				t.Fatalf("%s takes slow connections for a wrong pace, %d ppm", m.name, m.clock.pace)
			}
		}
	}
	s.trip = 2 * time.Millisecond
	s.switchLeaders(2)
	s.expect(100 * time.Millisecond)
}

// Everything at once, one node at a time.
func TestClusterTimeUnderRandomFaults(t *testing.T) {
	seeds := uint64(12)
	if raceEnabled {
		seeds = 3 // the simulation is one goroutine
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newClockSim(t, seed)
			s.elect(s.nodes[s.random.IntN(3)])
			s.pass(time.Minute)
			for range 20 {
				m := s.nodes[s.random.IntN(3)]
				heal := s.fault(m)
				s.pass(time.Duration(s.random.Int64N(int64(40 * time.Second))))
				if s.leader == nil || s.leader.frozen || s.leader.cut || s.random.IntN(2) == 0 {
					s.elect(s.nodes[(s.random.IntN(2)+1+s.index(m))%3])
				}
				s.pass(time.Duration(s.random.Int64N(int64(40 * time.Second))))
				heal()
				if s.random.IntN(2) == 0 {
					s.elect(m)
				}
				s.pass(time.Duration(s.random.Int64N(int64(20 * time.Second))))
			}
			s.expect(2 * time.Second)
		})
	}
}

func (s *clockSim) index(m *simMachine) int {
	for i := range s.nodes {
		if s.nodes[i] == m {
			return i
		}
	}
	return -1
}

// fault breaks something of m, and returns how to heal it.
func (s *clockSim) fault(m *simMachine) (heal func()) {
	switch s.random.IntN(5) {
	case 0:
		step := time.Duration(s.random.Int64N(int64(2*time.Hour))) - time.Hour
		m.wall.step(step)
		return func() { m.wall.step(-step) }
	case 1:
		m.cut = true
		return func() { m.cut = false }
	case 2:
		m.frozen = true
		return func() { m.frozen = false }
	case 3:
		m.frozen = true
		m.elapsed.setRate(stopped)
		return func() {
			m.frozen = false
			m.elapsed.setRate(0)
		}
	}
	if s.leader == m {
		s.leader = nil
	}
	m.start()
	return func() {}
}
