package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// segmentsOf are the paths of a node's segments.
func segmentsOf(t *testing.T, c Config) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.DataDir, wal.SegmentDir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d segments, error %v", len(paths), err)
	}
	return paths
}

func longBody(n int) string { return strings.Repeat(fmt.Sprintf("message %d. ", n), 20) }

// sendToDisk starts a node with ten messages, of which the bodies are in a
// segment.
func sendToDisk(t *testing.T, c Config) *Node {
	t.Helper()
	n := start(t, c)
	createQueue(t, n)
	for i := range 10 {
		send(t, n, longBody(i), 0)
	}
	if err := n.group.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBodiesAreReadFromDisk(t *testing.T) {
	c := diskConfig(t)
	n := sendToDisk(t, c)
	s := n.Status()
	if s.Disk.Segments != 1 || s.Disk.SegmentBytes < 10*200 || s.Groups[0].PendingBytes != 0 {
		t.Errorf("got %d segments of %d bytes, %d bytes pending; want one with all", s.Disk.Segments, s.Disk.SegmentBytes, s.Groups[0].PendingBytes)
	}
	for i := range 5 {
		if d := receive(t, n, 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != longBody(i) {
			t.Fatalf("message %d: got %+v", i, d.Messages)
		}
	}
	before := segmentsOf(t, c)
	stop(t, n)
	n = start(t, c)
	for i := 5; i < 10; i++ {
		if d := receive(t, n, 0); len(d.Messages) != 1 || bodyOf(t, d.Messages[0]) != longBody(i) {
			t.Fatalf("after a restart, message %d: got %+v", i, d.Messages)
		}
	}
	if after := segmentsOf(t, c); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("segments %v became %v", before, after)
	}
}

// spoil damages message i on the disk of a node.
func spoil(t *testing.T, c Config, i int) {
	t.Helper()
	for _, path := range segmentsOf(t, c) {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(file, []byte(fmt.Sprintf("message %d", i)))
		if at < 0 {
			continue
		}
		file[at] = 'M'
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("message %d is not on disk", i)
}

// receiveAll receives the messages of sendToDisk, of which some are missing.
func receiveAll(t *testing.T, n *Node, missing ...int) {
	t.Helper()
	all := sqs.ReceiveMessage{Queue: queue, MaxMessages: 10, VisibilityTimeout: time.Minute}
	d, err := n.Receive(t.Context(), all, 0, nil)
	if err != nil || len(d.Messages) != 10-len(missing) {
		t.Fatalf("got %d messages, %v, want all but %v", len(d.Messages), err, missing)
	}
	i := 0
	for _, m := range d.Messages {
		for slices.Contains(missing, i) {
			i++
		}
		if got := bodyOf(t, m); got != longBody(i) {
			t.Errorf("got %q, want message %d", got, i)
		}
		i++
	}
}

func TestDamagedBodyKeepsBackNoOther(t *testing.T) {
	c := diskConfig(t)
	var log logBuffer
	c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	n := sendToDisk(t, c)
	spoil(t, c, 3)
	receiveAll(t, n, 3)
	if !strings.Contains(log.String(), "damaged") {
		t.Errorf("got log %q, want the damage in it", log.String())
	}
	d, _ := n.Queue(queue)
	if d.Lost != 1 || d.InFlight != 9 || n.Status().Totals.Lost != 1 {
		t.Errorf("got %d lost, %d in flight, want 1 and 9: nobody else can have it", d.Lost, d.InFlight)
	}
}

// startWithBodies starts three nodes with ten messages, whose bodies are in segments
// of all of them.
func startWithBodies(t *testing.T) *nodes {
	t.Helper()
	c := startDiskNodes(t)
	leader := c.list[c.awaitLeader()]
	createQueue(t, leader)
	for i := range 10 {
		send(t, leader, longBody(i), 0)
	}
	c.awaitApplied()
	for _, n := range c.list {
		if err := n.group.raft.Load().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A body that is damaged at the leader comes from another node, and is repaired.
func TestDamagedBodyComesFromAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithBodies(t)
		leader := c.leader()
		spoil(t, c.configs[leader], 3)
		spoil(t, c.configs[(leader+1)%3], 3)
		receiveAll(t, c.list[(leader+1)%3]) // by way of the leader
		c.isolate(leader)                   // nobody can be asked any more
		c.heal()
		if state, _ := c.list[leader].damage.own(4); state != bodyIntact {
			t.Errorf("body 4 at the leader: got state %d, want it repaired", state)
		}
		if d, _ := c.list[leader].Queue(queue); d.Lost != 0 {
			t.Errorf("lost: got %d, want none", d.Lost)
		}
	})
}

// A body that is damaged on all nodes is lost once all of them say so.
func TestBodyThatNobodyHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithBodies(t)
		leader := c.leader()
		away := (leader + 1) % 3
		for i := range c.list {
			spoil(t, c.configs[i], 3)
		}
		c.isolate(away)
		receiveAll(t, c.list[leader], 3)
		if d, _ := c.list[leader].Queue(queue); d.Lost != 0 || d.InFlight != 10 {
			t.Errorf("while a node does not answer: got %d lost, %d in flight, want 0 and 10", d.Lost, d.InFlight)
		}
		c.heal()
		c.awaitReady()
		time.Sleep(2 * time.Minute)
		receiveAll(t, c.list[(leader+2)%3], 3)
		if d, _ := c.list[leader].Queue(queue); d.Lost != 1 || d.InFlight != 9 {
			t.Errorf("got %d lost, %d in flight, want 1 and 9", d.Lost, d.InFlight)
		}
		c.sameState()
	})
}

// What a node says of bodies that it does not have.
func TestOwnBodies(t *testing.T) {
	n := sendToDisk(t, diskConfig(t))
	send(t, n, "in memory", 0)
	for number, want := range map[uint64]bodyState{0: bodyDamaged, 1: bodyIntact, 11: bodyIntact, 12: bodyUnknown} {
		if got, _ := n.damage.own(number); got != want {
			t.Errorf("body %d: got %d, want %d", number, got, want)
		}
	}
	for _, request := range []string{"", "x", "\x02abcdefgh"} {
		if got := n.damage.answer(t.Context(), "n2", []byte(request)); string(got) != "\x00" {
			t.Errorf("request %q: got %q, want unknown", request, got)
		}
	}
}
