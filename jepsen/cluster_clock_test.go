package jepsen_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/workload"
)

// clockSlack is how wrong a time may be, next to the hour of a wrong clock.
func clockSlack() time.Duration { return bar(time.Second, 10*time.Second) }

// expectRightTime checks what nodes say about time: in their status, and in the
// Date header, by which clients correct their own clocks.
func (c *trio) expectRightTime(nodes ...*fault.Node) {
	c.t.Helper()
	client := &http.Client{Transport: c.Transport()}
	for _, n := range nodes {
		before := time.Now()
		s := c.status(n)
		c.expectNow(s.Node+": cluster time", time.UnixMilli(s.Time.Cluster), before, clockSlack())
		before = time.Now()
		response, err := client.Get(n.Endpoint() + "/health")
		if err != nil {
			c.t.Fatal(err)
		}
		response.Body.Close()
		date, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil {
			c.t.Fatal(err)
		}
		c.expectNow(s.Node+": the Date header", date, before, time.Second+clockSlack()) // it has whole seconds
	}
}

// expectNow checks that got is a moment between before and now, but for slack.
func (c *trio) expectNow(what string, got, before time.Time, slack time.Duration) {
	c.t.Helper()
	if early, late := time.Until(got), before.Sub(got); early > slack || late > slack {
		c.t.Errorf("%s is wrong: %v ahead of now, %v behind the question", what, early, late)
	}
}

// The wall clock of one node is wrong by an hour, the leader's or another's, and
// then the leader dies: no lease and no delay is early, or late by more than a
// second beyond the time without a leader.
func TestClusterWithOneWrongClock(t *testing.T) {
	skipUnderRace(t)
	rounds := 1
	if *long {
		rounds = 10
	}
	c := startTrio(t)
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	load := c.drive(patience)
	for range rounds {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			for _, leads := range []bool{true, false} {
				c.skewAndKill(probed, by, leads)
			}
		}
	}
	load.judge(bar(3*time.Second, 10*time.Second))
	expectNoErrors(t, c.recorder.Operations())
	for _, o := range c.recorder.Operations() {
		for _, m := range o.Messages {
			if ago := time.Since(time.UnixMilli(m.SentAt)); ago < -clockSlack() || ago > time.Hour/2 {
				t.Fatalf("a message was sent %v ago by its timestamp", ago)
			}
		}
	}
}

// skewAndKill sets the clock of a node off, kills the leader and restarts it.
func (c *trio) skewAndKill(probed workload.Queue, by time.Duration, leads bool) {
	c.t.Helper()
	leader := c.leader()
	wrong := leader
	if !leads {
		wrong = c.Others(leader)[rand.IntN(2)]
	}
	if err := wrong.SkewClock(by); errors.Is(err, fault.ErrUnavailable) {
		c.t.Skip(err)
	} else if err != nil {
		c.t.Fatal(err)
	}
	c.recorder.Fault(fmt.Sprint("skew clock by ", by))
	time.Sleep(1500 * time.Millisecond) // of load
	s := c.status(wrong)
	if off := time.Duration(s.Time.WallOffset)*time.Millisecond - by; off.Abs() > clockSlack() {
		c.t.Fatalf("the node's clock is off by %d ms, want %v: nothing was tested", s.Time.WallOffset, by)
	}
	c.expectRightTime(c.Nodes()...)
	c.outage(probed, c.Others(leader), func() { c.kill(leader) })
	c.expectRightTime(c.Others(leader)...)
	c.restart(leader)
	c.expectRightTime(c.Nodes()...)
	if err := wrong.SkewClock(0); err != nil {
		c.t.Fatal(err)
	}
}
