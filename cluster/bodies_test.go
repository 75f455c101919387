package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestDamagedBodyKeepsBackNoOther(t *testing.T) {
	c := diskConfig(t)
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	n := sendToDisk(t, c)
	path := segmentsOf(t, c)[0]
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, []byte("message 3"))
	if at < 0 {
		t.Fatal("message 3 is not on disk")
	}
	file[at] = 'M'
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	all := sqs.ReceiveMessage{Queue: queue, MaxMessages: 10, VisibilityTimeout: time.Minute}
	d, err := n.Receive(t.Context(), all, 0, nil)
	if err != nil || len(d.Messages) != 9 {
		t.Fatalf("got %d messages, error %v; want all but one", len(d.Messages), err)
	}
	for i, m := range d.Messages {
		if i >= 3 {
			i++
		}
		if got := bodyOf(t, m); got != longBody(i) {
			t.Errorf("got %q, want message %d", got, i)
		}
	}
	if !strings.Contains(log.String(), "damaged") {
		t.Errorf("got log %q, want the damage in it", log.String())
	}
}
