package jepsen_test

import (
	"context"
	encoding "encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// fill sends messages and returns their bodies.
func fill(t *testing.T, c *workload.Client, q workload.Queue, count int) map[string]bool {
	t.Helper()
	bodies := map[string]bool{}
	for i := range count {
		body := history.Body(history.Name{Run: "f", Process: c.Process, Counter: i}, 2000)
		send(t, c, q, body)
		bodies[body] = true
	}
	return bodies
}

// expectAll receives until every body was seen once.
func expectAll(t *testing.T, c *workload.Client, q workload.Queue, bodies map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for len(seen) < len(bodies) {
		o := succeed(t, c.Receive(t.Context(), q, 10, history.QueueDefault, 0))
		if len(o.Messages) == 0 {
			t.Fatalf("found %d messages, want %d", len(seen), len(bodies))
		}
		for _, m := range o.Messages {
			if !bodies[m.Body] || seen[m.Body] {
				t.Fatalf("got a message that was not sent, or twice: %+v", m)
			}
			seen[m.Body] = true
		}
	}
	receive(t, c, q, 0, 0)
}

func newestSegment(t *testing.T, n *fault.Node) (path string, size int64) {
	t.Helper()
	path, err := fault.NewestFile(filepath.Join(n.DataDir(), "wal"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, info.Size()
}

// expectRefusal starts the node, which must refuse with the exit code of corrupt
// data, name the file and say what to do.
func expectRefusal(t *testing.T, n *fault.Node, path string) {
	t.Helper()
	before := len(n.Output())
	if err := n.Launch(t.Context()); !errors.Is(err, fault.ErrEnded) {
		t.Fatalf("got %v, want a refusal to start", err)
	}
	code, err := n.Wait(t.Context())
	if err != nil || code != 3 {
		t.Errorf("exit code %d %v, want 3", code, err)
	}
	output := n.Output()[before:]
	for _, want := range []string{filepath.Base(path), "corrupt", "keep this folder"} {
		if !strings.Contains(output, want) {
			t.Errorf("the refusal does not say %q:\n%s", want, output)
		}
	}
}

// A flipped bit before intact records may be in what was acknowledged: nothing
// but a refusal is right.
func TestCorruptedDataRefused(t *testing.T) {
	node := startNode(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := fill(t, client, q, 50)
	stop(t, node)
	path, size := newestSegment(t, node)
	if size < 50*2000 {
		t.Fatalf("%s has %d bytes: not the log of 50 messages", path, size)
	}
	random := rand.New(rand.NewPCG(newSeed(t), 0))
	for range 5 {
		offset, bit := size/4+random.Int64N(size/2), uint(random.IntN(8))
		if err := fault.FlipBit(path, offset, bit); err != nil {
			t.Fatal(err)
		}
		t.Logf("bit %d of byte %d of %d", bit, offset, size)
		expectRefusal(t, node, path)
		if err := fault.FlipBit(path, offset, bit); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, node) // the refusals changed nothing
	expectAll(t, client, q, bodies)
}

// stopWithSegment returns a node that was stopped, and the newest segment of the 50
// messages in its queue: the first one may have been merged.
func stopWithSegment(t *testing.T) (node *fault.Node, q workload.Queue, bodies map[string]bool, segment string) {
	t.Helper()
	node = startNode(t, "--test-mode", "--test-snapshot-entries", "10")
	client := newClient(t, node)
	q = createQueue(t, client, "q", "300")
	bodies = fill(t, client, q, 50)
	segments := filepath.Join(node.DataDir(), "segments")
	awaitTrue(t, "a segment", func() bool {
		path, err := fault.NewestFile(segments)
		return err == nil && path != ""
	})
	stop(t, node)
	segment, err := fault.NewestFile(segments)
	if err != nil {
		t.Fatal(err)
	}
	return node, q, bodies, segment
}

// A flipped bit in a file of the snapshot, or in what tells where a segment has
// its bodies, may hide messages: nothing but a refusal is right.
func TestDamagedSnapshotRefused(t *testing.T) {
	node, q, bodies, segment := stopWithSegment(t)
	files, err := filepath.Glob(filepath.Join(node.DataDir(), "snapshots", "*", "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("got the files %v of a snapshot, error %v; want state, meta and manifest", files, err)
	}
	random := rand.New(rand.NewPCG(newSeed(t), 0))
	for _, path := range append(files, segment) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		offset, bit := random.Int64N(info.Size()), uint(random.IntN(8))
		if path == segment {
			offset = info.Size() - 1 - random.Int64N(56) // the footer
		}
		t.Logf("bit %d of byte %d of %d of %s", bit, offset, info.Size(), path)
		if err := fault.FlipBit(path, offset, bit); err != nil {
			t.Fatal(err)
		}
		expectRefusal(t, node, path)
		if err := fault.FlipBit(path, offset, bit); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, node) // the refusals changed nothing
	expectAll(t, newClient(t, node), q, bodies)
}

// One rotten body is never handed out, and keeps nobody else's message back.
func TestDamagedBodyIsWithheld(t *testing.T) {
	node, q, bodies, segment := stopWithSegment(t)
	if err := fault.FlipBit(segment, 500, 3); err != nil { // of the first body there
		t.Fatal(err)
	}
	restart(t, node)
	client := newClient(t, node)
	seen := 0
	for {
		o := succeed(t, client.Receive(t.Context(), q, 10, history.QueueDefault, 0))
		if len(o.Messages) == 0 {
			break
		}
		for _, m := range o.Messages {
			if !bodies[m.Body] {
				t.Fatalf("got a message that was not sent: %+v", m)
			}
			seen++
		}
	}
	if seen != 49 {
		t.Errorf("got %d messages, want all but one of 50", seen)
	}
	if !strings.Contains(node.Output(), "damaged") {
		t.Error("the node does not say that a body is damaged")
	}
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lastRecord returns where the last record of a segment of the log begins and ends;
// zeros may follow it. Each record has its length before it.
func lastRecord(segment []byte) (begin, end int) {
	for {
		length, n := encoding.Uvarint(segment[end:])
		if n <= 0 || length == 0 {
			return begin, end
		}
		begin, end = end, end+n+int(length)
	}
}

// What a power failure leaves of a write that was not acknowledged is cut off.
// The last message of this test plays that write: its record is torn in several
// ways.
func TestTornTailIsRepaired(t *testing.T) {
	node := startNode(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := fill(t, client, q, 20)
	send(t, client, q, history.Body(history.Name{Run: "torn"}, 3000))
	kill(t, node, client.Recorder)
	path, _ := newestSegment(t, node)
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, size := lastRecord(log)
	if size-whole < 3000 {
		t.Fatalf("the last record has %d bytes: not that of the last message", size-whole)
	}
	half := (whole + size) / 2
	zeros := make([]byte, 4096)
	tests := []struct {
		name string
		log  []byte
	}{
		{"one byte", log[:whole+1]},
		{"ten bytes", log[:whole+10]},
		{"half a record", log[:half]},
		{"a record without its last byte", log[:size-1]},
		{"half a record, then zeros", slices.Concat(log[:half], zeros[:size-half])},
		{"zeros", slices.Concat(log[:whole], zeros)},
		{"half a record before the zeros that were there", slices.Concat(log[:half], make([]byte, len(log)-half))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(path, test.log, 0o600); err != nil {
				t.Fatal(err)
			}
			restart(t, node)
			if c := succeed(t, client.Count(t.Context(), q)); c.Visible != len(bodies) {
				t.Errorf("%d visible, want %d", c.Visible, len(bodies))
			}
			kill(t, node, client.Recorder)
		})
	}
	restart(t, node)
	expectAll(t, client, q, bodies)
}

// Two processes on one data folder would ruin it.
func TestSecondProcessOnSameData(t *testing.T) {
	node := startNode(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	send(t, client, q, "before")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	second, err := fault.Start(ctx, fault.Options{Binary: binary, DataDir: node.DataDir()})
	if err == nil {
		_ = second.Kill()
	}
	if !errors.Is(err, fault.ErrEnded) || !strings.Contains(err.Error(), "another process uses this data directory") {
		t.Errorf("got %v, want a refusal that says why", err)
	}
	send(t, client, q, "after")
	receive(t, client, q, 2, 0)
	stop(t, node)
	restart(t, node)
	if c := succeed(t, client.Count(t.Context(), q)); c.InFlight != 2 {
		t.Errorf("%d in flight, want 2", c.InFlight)
	}
}
