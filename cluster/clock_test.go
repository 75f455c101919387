package cluster

import (
	"log/slog"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// fakeTime is a wall clock and an elapsed clock that a test moves.
type fakeTime struct {
	wall time.Time
	run  time.Duration
}

func newFakeTime() *fakeTime {
	return &fakeTime{wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), run: 5 * time.Hour}
}

// pass lets both clocks run for d in steps of 100 ms, and reads c at each.
func (f *fakeTime) pass(t *testing.T, c *clock, d time.Duration) {
	t.Helper()
	const step = 100 * time.Millisecond
	last := c.now()
	for range d / step {
		f.wall, f.run = f.wall.Add(step), f.run+step
		now := c.now()
		if now < last {
			t.Fatalf("cluster time went back from %d to %d", last, now)
		}
		last = now
	}
}

func (f *fakeTime) clock() *clock {
	return newClock(func() time.Time { return f.wall }, func() time.Duration { return f.run }, 1, slog.New(slog.DiscardHandler))
}

func (f *fakeTime) wallTime() sqs.Time { return sqs.Time(f.wall.UnixMilli()) }

func TestClockFollowsWallStepsByRate(t *testing.T) {
	for _, test := range []struct {
		name string
		step time.Duration
		pass time.Duration
		want time.Duration // how far cluster time ran meanwhile
	}{
		{name: "no step", step: 0, pass: time.Hour, want: time.Hour},
		{name: "back by an hour", step: -time.Hour, pass: 100 * time.Second, want: 100*time.Second - 50*time.Millisecond},
		{name: "forward by a second", step: time.Second, pass: 100 * time.Second, want: 100*time.Second + 50*time.Millisecond},
		{name: "forward by a second, caught up", step: time.Second, pass: time.Hour, want: time.Hour + time.Second},
		{name: "forward by an hour, not for long", step: time.Hour, pass: 9 * time.Second, want: 9*time.Second + 4500*time.Microsecond},
		{name: "forward by an hour", step: time.Hour, pass: time.Minute, want: time.Hour + time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeTime()
			c := f.clock()
			c.lead(0, 1)
			begin := c.now()
			f.wall = f.wall.Add(test.step)
			f.pass(t, c, test.pass)
			got := c.now().Sub(begin)
			if diff := got - test.want; diff < -2*time.Millisecond || diff > 2*time.Millisecond {
				t.Errorf("cluster time ran %v in %v, want %v", got, test.pass, test.want)
			}
		})
	}
}

func TestClockStepsOnlyForGapThatLasts(t *testing.T) {
	f := newFakeTime()
	c := f.clock()
	c.lead(0, 1)
	for range 5 { // a wall clock that flaps is not to be trusted
		f.wall = f.wall.Add(time.Hour)
		f.pass(t, c, 8*time.Second)
		f.wall = f.wall.Add(-time.Hour)
		f.pass(t, c, time.Second)
	}
	if ahead := c.now().Sub(f.wallTime()); ahead > 50*time.Millisecond {
		t.Errorf("cluster time is %v ahead of a wall clock that was wrong for 8 s at a time", ahead)
	}
}

// A step takes in what lasted, not where the wall went at the last moment.
func TestClockStepsByTheSmallestGap(t *testing.T) {
	f := newFakeTime()
	c := f.clock()
	c.lead(0, 1)
	begin := c.now()
	f.wall = f.wall.Add(6 * time.Second)
	f.pass(t, c, 9*time.Second)
	f.wall = f.wall.Add(time.Hour)
	f.pass(t, c, 2*time.Second)
	if got := c.now().Sub(begin).Round(time.Second); got != 17*time.Second {
		t.Errorf("cluster time ran %v, want 17s", got)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	f := newFakeTime()
	c := f.clock()
	c.lead(0, 1)
	f.pass(t, c, time.Second)
	before := c.now()
	f.run -= time.Hour // no clock should do that
	if now := c.now(); now < before {
		t.Errorf("went back by %v with its source", before.Sub(now))
	}
}

func TestClockAfterPause(t *testing.T) {
	f := newFakeTime()
	c := f.clock()
	c.lead(0, 1)
	begin := c.now()
	f.wall, f.run = f.wall.Add(time.Hour), f.run+time.Hour // suspended: nobody reads it
	f.pass(t, c, time.Second)
	if got, want := c.now().Sub(begin), time.Hour+time.Second; got < want-2*time.Millisecond || got > want+2*time.Millisecond {
		t.Errorf("cluster time ran %v, want %v", got, want)
	}
}

func TestClockColdStart(t *testing.T) {
	f := newFakeTime()
	for _, test := range []struct {
		name  string
		state sqs.Time
		want  sqs.Time
	}{
		{name: "new cluster", state: 0, want: f.wallTime()},
		{name: "after two hours", state: f.wallTime().Add(-2 * time.Hour), want: f.wallTime()},
		{name: "wall behind the state", state: f.wallTime().Add(time.Hour), want: f.wallTime().Add(time.Hour)},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := f.clock()
			c.lead(test.state, 1)
			if got := c.now(); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestClockOffset(t *testing.T) {
	f := newFakeTime()
	c := f.clock()
	c.lead(0, 1)
	f.wall = f.wall.Add(-time.Minute)
	f.pass(t, c, time.Second)
	s := c.status()
	if s.RatePPM != -maxRate || s.WallOffset.Round(time.Second) != -time.Minute {
		t.Errorf("got rate %d ppm, offset %v; want %d, -1m", s.RatePPM, s.WallOffset, -maxRate)
	}
}

func TestSteadyClockFollowsBootTime(t *testing.T) {
	c := newSteadyClock()
	last := c.elapsed()
	for range 50 {
		time.Sleep(time.Millisecond)
		before, now, after := bootTime(), c.elapsed(), bootTime()
		if now < last {
			t.Fatalf("went back from %v to %v", last, now)
		}
		const slack = time.Second // a busy machine may take its time between two readings
		if now < before-slack || now > after {
			t.Fatalf("got %v, want %v to %v", now, before, after)
		}
		last = now
	}
}

func TestSteadyClockAfterSuspension(t *testing.T) {
	c := newSteadyClock()
	now := c.elapsed()
	c.ahead.Add(-int64(time.Hour)) // as if CLOCK_BOOTTIME had gained an hour since
	time.Sleep(2 * steadyEvery)
	if got := c.elapsed(); got < now {
		t.Errorf("an hour of suspension is missing: got %v after %v", got, now)
	}
}
