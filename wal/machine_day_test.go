package wal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// day is a broker of many queues through a day, with the snapshot that is due
// every ten minutes.
type day struct {
	*machineNode
	index uint64
	now   sqs.Time
	body  []byte
}

func (d *day) do(c raftfsm.Command, bodies ...[]byte) raftfsm.Outcome {
	d.index++
	return applied(d.machine, commandEntry(d.index, d.now, c, bodies))
}

func dayQueue(n int) sqs.QueueKey {
	return sqs.QueueKey{Account: "000000000000", Name: fmt.Sprintf("q%d", n)}
}

// send sends a batch of ten.
func (d *day) send(queue int) {
	c := sqs.SendMessageBatch{Queue: dayQueue(queue), Entries: make([]sqs.SendEntry, 10)}
	bodies := make([][]byte, len(c.Entries))
	for i := range bodies {
		c.Entries[i] = sqs.SendEntry{Size: len(d.body), Delay: sqs.QueueDefault}
		bodies[i] = d.body
	}
	d.do(c, bodies...)
}

// consume receives ten messages and deletes them.
func (d *day) consume(queue int) {
	o := d.do(sqs.ReceiveMessage{Queue: dayQueue(queue), MaxMessages: 10, VisibilityTimeout: time.Minute})
	c := sqs.DeleteMessageBatch{Queue: dayQueue(queue)}
	for _, m := range o.Result.(sqs.ReceiveMessageResult).Messages {
		c.Receipts = append(c.Receipts, m.Receipt)
	}
	d.do(c)
}

// filesBelow counts the files below dir.
func filesBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDayOfManyQueues sends 100 messages to each queue over a day of snapshots.
// Half of the queues are read, ten minutes after each send, when their bodies are
// on disk beside those that nobody reads. Files stay few, and a start is quick.
// HOLDFAST_LONG makes it 10,000 queues and segments of the usual size.
func TestDayOfManyQueues(t *testing.T) {
	const snapshots, batches = 144, 10
	queues := 1000
	limits := segmentLimits{bytes: 256 << 10, bodies: 1 << 20, small: 32 << 10, merge: 256 << 10} // a 256th, as the bodies
	body := make([]byte, 20)
	if os.Getenv("HOLDFAST_LONG") != "" {
		queues, limits, body = 10_000, SegmentOptions{}.withDefaults().limits, make([]byte, 1024)
	}
	dir := t.TempDir()
	n, err := openMachine(dir, quickFiles{}, limits)
	if err != nil {
		t.Fatal(err)
	}
	d := &day{machineNode: n, now: 1_700_000_000_000, body: body}
	d.do(formation())
	for q := range queues {
		d.do(sqs.CreateQueue{Queue: dayQueue(q)})
	}
	most := 0
	var late []int // to be read after the next snapshot
	for i := range snapshots {
		for _, q := range late {
			d.consume(q)
		}
		late = late[:0]
		for b := i * queues * batches / snapshots; b < (i+1)*queues*batches/snapshots; b++ {
			q := b % queues
			d.send(q)
			if q%2 == 0 {
				late = append(late, q)
			}
		}
		d.now = d.now.Add(10 * time.Minute)
		if err := d.snapshot(); err != nil {
			t.Fatal(err)
		}
		most = max(most, filesBelow(t, dir))
	}
	if err := d.segments.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	restored, err := openMachine(dir, quickFiles{}, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.segments.Close()
	ready, stats := time.Since(began), restored.segments.Stats()
	t.Logf("at most %d files; ready after %v with %d segments, %d bodies, %d bytes", most, ready, stats.Segments, stats.Bodies, stats.Bytes)
	if most >= 1000 || ready > 10*time.Second {
		t.Errorf("%d files, ready after %v; want fewer than 1,000, 10 s", most, ready)
	}
	live := int64(queues*batches*10/2+10*len(late)) * int64(len(d.body)+frameHeader)
	if stats.Bytes > 4*live { // a segment is written anew when less than a quarter of it is live
		t.Errorf("the files have %d bytes for %d of live bodies", stats.Bytes, live)
	}
	if got := restored.machine.FullDigest(); got != d.machine.FullDigest() {
		t.Error("the digest is another one after the restart")
	}
}
