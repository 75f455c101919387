package jepsen_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// newDisk makes a disk of the given size in bytes, or skips the test where there can
// be none.
func newDisk(t *testing.T, size int64) *fault.Disk {
	t.Helper()
	disk, err := fault.NewDisk(t.TempDir(), size)
	if errors.Is(err, fault.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// startOnDisk runs a node on a disk of its own, whose faults hit nobody else. What it
// cannot do it refuses soon, but not because the machine stood still for seconds.
func startOnDisk(t *testing.T, flags ...string) (*fault.Disk, *fault.Node) {
	t.Helper()
	disk := newDisk(t, 128<<20)
	flags = append(flags, "--disk-reserve", "32MiB", "--request-timeout", "5s")
	node := startNodeIn(t, filepath.Join(disk.Path(), "data"), flags...)
	return disk, node
}

// expectExit waits until the node has ended by itself with the given code.
func expectExit(t *testing.T, n *fault.Node, want int, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	code, err := n.Wait(ctx)
	if err != nil || code != want {
		t.Fatalf("exit code %d %v, want %d", code, err, want)
	}
}

// After a failed write nobody knows what is on the disk: the node acknowledges
// nothing more and ends. What it had acknowledged is there after the power
// failure that is played here.
func TestBrokenDiskEndsTheNode(t *testing.T) {
	disk, node := startOnDisk(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := fill(t, client, q, 50)
	if err := disk.Break(); err != nil {
		t.Fatal(err)
	}
	if o := client.Send(t.Context(), q, "after", history.QueueDefault); o.Outcome == history.OK {
		t.Error("a send to a broken disk was acknowledged")
	}
	expectExit(t, node, 4, time.Minute)
	if err := disk.Remount(); err != nil {
		t.Fatal(err)
	}
	restart(t, node)
	expectAll(t, client, q, bodies)
}

// The power fails under load, at random moments: what was acknowledged is kept,
// and what was acknowledged as deleted does not come back.
func TestPowerLoss(t *testing.T) {
	plan := killPlan{kills: 2, low: time.Second, high: 3 * time.Second, minSent: 100, snapshot: "100"}
	if *long {
		plan.kills, plan.minSent = 10, 1000
	}
	disk, node := startOnDisk(t, "--test-mode", "--test-snapshot-entries", plan.snapshot)
	s := newNodeStorm(t, node, plan)
	s.blow(s.standard(s.clients()), func() {
		if err := disk.Break(); err != nil {
			t.Fatal(err)
		}
		s.recorder.Fault("power")
		expectExit(t, node, 4, time.Minute)
		if err := disk.Remount(); err != nil {
			t.Fatal(err)
		}
		restart(t, node)
	}, standardDemands)
}

// fullDigest is a checksum of all of a node's state.
func fullDigest(t *testing.T, n *fault.Node) string {
	t.Helper()
	answer, err := http.Get(n.Admin() + "/digest")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	digest, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("digest: status %d, %v", answer.StatusCode, err)
	}
	return string(digest)
}

// The power fails while snapshots are written one after the other: no body is
// lost, whether it is in the log only, in a segment, or on its way, and the state
// is what it was, to the last bit.
func TestPowerFailsDuringSnapshots(t *testing.T) {
	disk, node := startOnDisk(t, "--test-mode", "--test-snapshot-entries", "20")
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := map[string]bool{}
	rounds := 4
	if *long {
		rounds = 20
	}
	for round := range rounds {
		// Triggers are looked at every 250 ms; where in a snapshot it fails is chance.
		for start := time.Now(); time.Since(start) < time.Duration(600+70*(round%4))*time.Millisecond; {
			client.Process++ // which is a part of the bodies
			maps.Copy(bodies, fill(t, client, q, 20))
		}
		before := fullDigest(t, node)
		if err := disk.Break(); err != nil {
			t.Fatal(err)
		}
		client.Send(t.Context(), q, "after", history.QueueDefault) // the node notices
		expectExit(t, node, 4, time.Minute)
		if err := disk.Remount(); err != nil {
			t.Fatal(err)
		}
		restart(t, node)
		if after := fullDigest(t, node); after != before {
			t.Errorf("digest %s before the power failed, %s afterwards", before, after)
		}
	}
	if segments, err := filepath.Glob(filepath.Join(node.DataDir(), "segments", "*")); err != nil || len(segments) == 0 {
		t.Errorf("%d segments, error %v: no snapshot was taken", len(segments), err)
	}
	expectAll(t, client, q, bodies)
}

// Below the reserve a node takes nothing that makes it grow, still hands out and
// deletes, and takes messages again when there is space.
func TestLowDiskRefusesGrowthOnly(t *testing.T) {
	disk, node := startOnDisk(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	send(t, client, q, "before")
	if err := disk.Fill(16 << 20); err != nil {
		t.Fatal(err)
	}
	refused := awaitSend(t, client, q, func(o history.Operation) bool { return o.Outcome != history.OK })
	if refused.Outcome != history.Fail || refused.Status != 503 && refused.Status != 403 {
		t.Errorf("send with a low disk: %s, status %d, %s", refused.Outcome, refused.Status, refused.Error)
	}
	m := succeed(t, client.Receive(t.Context(), q, 1, history.QueueDefault, 0)).Messages
	if len(m) != 1 {
		t.Fatalf("received %d messages, want 1", len(m))
	}
	succeed(t, client.Change(t.Context(), q, m[0].Handle, 0))
	succeed(t, client.Delete(t.Context(), q, m[0].Handle))
	if err := disk.Free(); err != nil {
		t.Fatal(err)
	}
	awaitSend(t, client, q, func(o history.Operation) bool { return o.Outcome == history.OK })
}

// A node that its own messages have filled comes back when consumers empty the
// queues, and nobody has to make room for it.
func TestFullDiskHealsWhenQueuesAreEmptied(t *testing.T) {
	disk, node := startOnDisk(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	if err := disk.Fill(76 << 20); err != nil {
		t.Fatal(err)
	}
	body := history.Body(history.Name{Run: "h", Process: client.Process}, 200_000)
	sent := 0
	for client.Send(t.Context(), q, body, history.QueueDefault).Outcome == history.OK {
		sent++
	}
	if sent < 20 {
		t.Fatalf("the disk was full after %d messages", sent)
	}
	for left := sent; left > 0; left-- {
		m := succeed(t, client.Receive(t.Context(), q, 1, history.QueueDefault, 0)).Messages
		if len(m) != 1 {
			t.Fatalf("received %d messages, want 1", len(m))
		}
		succeed(t, client.Delete(t.Context(), q, m[0].Handle))
	}
	awaitSend(t, client, q, func(o history.Operation) bool { return o.Outcome == history.OK })
}

// A disk without any room left ends the node at the first write that fails, and
// all that it had acknowledged is there once there is room.
func TestNoSpaceEndsTheNode(t *testing.T) {
	disk, node := startOnDisk(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := fill(t, client, q, 10)
	if err := disk.Fill(128 << 10); err != nil { // the file system needs some for the ballast itself
		t.Fatal(err)
	}
	writeUntilEnd(t, node, client, q)
	expectExit(t, node, 6, time.Minute)
	if err := disk.Free(); err != nil {
		t.Fatal(err)
	}
	restart(t, node)
	if c := succeed(t, client.Count(t.Context(), q)); c.Visible != len(bodies) {
		t.Errorf("%d visible, want %d", c.Visible, len(bodies))
	}
}

// writeUntilEnd sets a large attribute again and again until the node has ended: of
// what passes when the disk is low it takes the most space in the log, which has some
// ahead.
func writeUntilEnd(t *testing.T, node *fault.Node, c *workload.Client, q workload.Queue) {
	t.Helper()
	arn, err := c.ARN(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Id":%q,"Statement":[{"Effect":"Allow","Principal":"*","Action":"SQS:SendMessage","Resource":%q}]}`,
		strings.Repeat("x", 7900), arn)
	in := map[string]any{"QueueUrl": q.URL, "Attributes": map[string]string{"Policy": policy}}
	for end := time.Now().Add(3 * time.Minute); node.Running() && time.Now().Before(end); {
		err := c.Call(t.Context(), "SetQueueAttributes", in, nil)
		if refused, ok := errors.AsType[*workload.RefusedError](err); ok && refused.Status/100 == 4 {
			t.Fatal(err)
		}
	}
}

// awaitSend sends until an answer is as wanted, which it must be soon.
func awaitSend(t *testing.T, c *workload.Client, q workload.Queue, wanted func(history.Operation) bool) history.Operation {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if o := c.Send(t.Context(), q, "probe", history.QueueDefault); wanted(o) {
			return o
		}
	}
	t.Fatal("no send was answered as wanted within a minute")
	return history.Operation{}
}

// A node whose disk hangs breaks all connections, so that clients turn to
// others, and ends as soon as the kernel lets it.
func TestStalledDiskEndsTheNode(t *testing.T) {
	if !*long {
		t.Skip("takes a quarter of a minute; run with -long")
	}
	disk, node := startOnDisk(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	bodies := fill(t, client, q, 10)
	if err := disk.Freeze(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if o := client.Send(t.Context(), q, "during", history.QueueDefault); o.Outcome == history.OK {
		t.Error("a send to a frozen disk was acknowledged")
	}
	for listens(node) {
		if took := time.Since(start); took > bar(15*time.Second, time.Minute) {
			t.Fatalf("the node listens %v after its disk froze", took)
		}
		time.Sleep(50 * time.Millisecond) // between two looks
	}
	if err := disk.Thaw(); err != nil {
		t.Fatal(err)
	}
	expectExit(t, node, 5, time.Minute)
	restart(t, node)
	if c := succeed(t, client.Count(t.Context(), q)); c.Visible < len(bodies) || c.Visible > len(bodies)+1 {
		t.Errorf("%d visible, want %d, and perhaps the one whose answer was lost", c.Visible, len(bodies))
	}
}

// listens reports whether the API port takes connections.
func listens(n *fault.Node) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.Endpoint(), "http://"))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
