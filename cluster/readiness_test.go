package cluster

import (
	"slices"
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	var now time.Duration
	r := readiness{elapsed: func() time.Duration { return now }}
	const behind, alone = "catching up with the leader", "no leader"
	for i, step := range []struct {
		after       time.Duration
		leader, own uint64 // applied, as of a pong of the leader; 0: none comes
		want        []string
	}{
		{0, 0, 0, []string{alone, behind}},
		{0, 100, 90, []string{behind}},
		{time.Second, 150, 100, nil},              // what the leader had a second ago
		{lagGrace, 150, 140, nil},                 // not yet too late
		{time.Second, 160, 141, []string{behind}}, // it is
		{time.Minute, 900, 500, []string{behind}}, // what it had a minute ago, by a snapshot perhaps
		{time.Second, 950, 899, []string{behind}},
		{time.Second, 980, 900, nil},
		{time.Minute, 0, 980, []string{alone}}, // nobody leads; nothing is missed
		{0, 981, 981, nil},
	} {
		if now += step.after; step.leader > 0 {
			r.heard(step.leader, step.own)
		}
		if got := r.reasons(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	r = readiness{elapsed: func() time.Duration { return now }}
	if r.led(); len(r.reasons()) > 0 {
		t.Errorf("a leader: got %q", r.reasons())
	}
}
