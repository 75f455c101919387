package cluster

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/cluster/peer"
)

// TestOrdinaryLifeWarnsOfNothing but of the member that is down: nodes that form a
// cluster at their leisure, lose their leader and take it back.
func TestOrdinaryLifeWarnsOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 3)
		var log logBuffer
		for i := range c.configs {
			c.configs[i].Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		for i := range c.list {
			c.start(i)
			time.Sleep(time.Second)
		}
		c.awaitReady()
		leader := c.leader()
		c.kill(leader)
		c.awaitLeader()
		time.Sleep(time.Minute)
		c.start(leader)
		c.awaitReady()
		time.Sleep(time.Minute)
		warnings := strings.Count(log.String(), `msg="member does not answer"`)
		if lines := strings.Count(log.String(), "\n"); lines != warnings || warnings != 2 {
			t.Errorf("got %d lines, %d of them of the member that was killed; want 2 by the two that live:\n%s", lines, warnings, log.String())
		}
	})
}

// TestLateFormationIsWarnedOf when it is late, and once a minute from then on.
func TestLateFormationIsWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t, 2)
		var log logBuffer
		c.configs[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.start(0)
		for _, want := range []struct {
			after           time.Duration
			infos, warnings int
		}{
			{formGrace - time.Second, 1, 0},
			{2 * time.Second, 1, 1},
			{formRemind, 1, 2},
		} {
			time.Sleep(want.after)
			infos, warnings := 0, 0
			for line := range strings.Lines(log.String()) {
				switch {
				case !strings.Contains(line, "waiting for the cluster to form"):
				case strings.Contains(line, "level=WARN"):
					warnings++
				default:
					infos++
				}
			}
			if infos != want.infos || warnings != want.warnings {
				t.Errorf("got %d lines and %d warnings, want %d and %d:\n%s", infos, warnings, want.infos, want.warnings, log.String())
			}
		}
	})
}

// TestContact: a line for each change, and none for what the next try tells better.
func TestContact(t *testing.T) {
	var log logBuffer
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	c := contact{to: peer.Target{Name: "n2", Address: "n2:1"}, log: slog.New(slog.NewTextHandler(&log, nil))}
	for i, step := range []struct {
		at   time.Duration
		err  error
		want string // in the only new line; empty: there is none
	}{
		{0, errors.New("broken"), ""},
		{1, refused, ""}, // it may yet come up
		{pingGrace, refused, "member does not answer"},
		{pingGrace, refused, ""},
		{pingGrace, nil, "member is up"},
		{pingGrace, nil, ""},
		{pingGrace, errors.New("broken"), ""},
		{pingGrace, errors.New("broken"), "no answer in time"},
		{pingGrace, refused, "refused"},
		{pingGrace, nil, "member is up"},
	} {
		before := log.String()
		c.note(step.err, step.at)
		line := strings.TrimPrefix(log.String(), before)
		if step.want == "" && line != "" || !strings.Contains(line, step.want) || strings.Count(line, "\n") > 1 {
			t.Errorf("step %d: got %q, want a line with %q", i, line, step.want)
		}
	}
}
