package sqs_test

import (
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// A name that was used in between, when names were not held back, is held back from
// its latest delete on: the end of the wait after the first frees nothing.
func TestNameDeletedTwice(t *testing.T) {
	p := newPlayer(t)
	start := p.at.Now
	wait := func(d time.Duration) { p.at.Rules.DeleteWait = d }
	wait(time.Minute)
	p.do(sqs.DeleteQueue{Queue: key("q")})
	wait(0)
	p.do(sqs.CreateQueue{Queue: key("q")})
	p.at.Now = start.Add(30 * time.Second)
	wait(time.Minute)
	p.do(sqs.DeleteQueue{Queue: key("q")})
	for _, seconds := range []int{70, 89} {
		p.at.Now = start.Add(time.Duration(seconds) * time.Second)
		p.state.Pulse(p.at)
		if _, _, err := p.state.Apply(p.at, sqs.CreateQueue{Queue: key("q")}); err == nil || err.Code != sqs.QueueDeletedRecently {
			t.Fatalf("after %d seconds: got %v, want %s", seconds, err, sqs.QueueDeletedRecently)
		}
	}
	p.at.Now = start.Add(90 * time.Second)
	p.do(sqs.CreateQueue{Queue: key("q")})
}
