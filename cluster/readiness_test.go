package cluster

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDiskReason(t *testing.T) {
	const room = "the disk has 0.5 MiB free, below the reserve of 2.0 MiB: give it room"
	full := fmt.Errorf("write state.bin: %w", syscall.ENOSPC)
	for _, test := range []struct {
		name      string
		look      reading
		installed error
		want      string
	}{
		{"room", reading{free: 3 << 20}, nil, ""},
		{"room again", reading{free: 3 << 20}, full, ""},
		{"low", reading{free: 1 << 19, lowDisk: true}, nil, room},
		{
			"full",
			reading{free: 1 << 19, lowDisk: true},
			full,
			room + "; the leader's snapshot could not be stored: write state.bin: no space left on device",
		},
		{"no answer", reading{lowDisk: true, broken: true}, nil, "the disk does not tell how much is free"},
	} {
		if got := diskReason(test.look, 2<<20, test.installed); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A member with a low disk goes on with the others; when it falls behind, it names its
// disk.
func TestLowDiskIsAReasonOfAMember(t *testing.T) {
	c := newNodes(t, 3)
	c.configs[0].InMemory, c.configs[0].DataDir, c.configs[0].DiskReserve = nil, t.TempDir(), 1<<62
	for i := range 3 {
		c.start(i)
	}
	c.awaitReady()
	c.isolate(0)
	c.await("reasons with the disk", 30*time.Second, func() bool {
		ready, reasons := c.list[0].Ready()
		return !ready && strings.Contains(strings.Join(reasons, ", "), "below the reserve of 4398046511104.0 MiB: give it room")
	})
}

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
