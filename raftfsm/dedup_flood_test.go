package raftfsm

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"holdfast.internal/sqs"
)

var floodIDs = flag.Int("flood.ids", defaultFloodIDs, "deduplication ids that TestDedupFlood sends")

// discardSink keeps nothing of a snapshot.
type discardSink struct{ io.Writer }

func (discardSink) ID() string    { return "snapshot" }
func (discardSink) Close() error  { return nil }
func (discardSink) Cancel() error { return nil }

// TestDedupFlood sends ids at 50,000 a second of cluster time for six minutes, which
// with -flood.ids=18000000 leaves 15 million in the window of five. Memory of the
// process and the pause of snapshots, which go on beside it, are held to what the
// whole broker may take: 1.5 GiB and 50 ms. With fewer ids the bound is as much
// lower, over a base for all the rest.
func TestDedupFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it takes seconds")
	}
	const (
		known  = 5.0 / 6.0  // of the ids, in the end
		base   = 200 << 20  // bytes of a broker without ids
		budget = 1536 << 20 // bytes of one with 15 million
		batch  = 10         // messages of a send
	)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1440 << 20)) // as holdfast serve --memory 960MiB
	m := New(&noBodies{}, nil)
	m.letPanic = true
	f := &flood{Machine: m, t: t, now: testStart}
	f.apply(sqs.CreateQueue{Queue: testQueue("q.fifo"), Attributes: []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}})
	runtime.GC()
	before := memoryUse().HeapAlloc
	step := 360_000 * batch / float64(*floodIDs) // milliseconds between two sends
	for i := 0; i < *floodIDs; i += batch {
		f.now = testStart + sqs.Time(float64(i/batch)*step)
		f.cycle(i, batch)
		if i%(*floodIDs/12) < batch {
			f.snapshot()
		}
	}
	<-f.persisted
	ids := known * float64(*floodIDs)
	runtime.GC()
	each := float64(memoryUse().HeapAlloc-before) / ids
	resident := peakResident()
	t.Logf("%.0f ids, %.1f bytes of heap each, longest pause %v, peak RSS %d MiB", ids, each, f.pause, resident>>20)
	if most := float64(budget-base) / 15e6 / 1.5; each > most {
		t.Errorf("got %.1f bytes an id, want at most %.1f: the collector needs room, too", each, most)
	}
	if f.pause > 50*time.Millisecond {
		t.Errorf("a snapshot paused the machine for %v, want at most 50ms", f.pause)
	}
	if *floodIDs >= 18_000_000 && resident > budget {
		t.Errorf("got %d MiB of RSS, want at most %d", resident>>20, budget>>20)
	}
	runtime.KeepAlive(m)
}

// flood is a machine with one FIFO queue.
type flood struct {
	*Machine
	t         *testing.T
	index     uint64
	now       sqs.Time
	pause     time.Duration // the longest of a snapshot
	persisted chan struct{} // closed when the latest snapshot is written
}

func (f *flood) apply(c Command) Outcome {
	var contents [][]byte
	if send, ok := c.(sqs.SendMessageBatch); ok {
		contents = make([][]byte, len(send.Entries))
		for i := range contents {
			contents[i] = []byte("x")
		}
	}
	command, err := AppendCommand(nil, c, contents)
	if err != nil {
		f.t.Fatal(err)
	}
	f.index++
	entry := AppendOperation(AppendEntryHeader(nil, f.now), Origin{}, command)
	return f.ApplyBatch([]*raft.Log{{Index: f.index, Type: raft.LogCommand, Data: entry}})[0].(*Applied).Outcomes[0]
}

// cycle sends a batch with new ids, receives it and deletes it.
func (f *flood) cycle(first, count int) {
	send := sqs.SendMessageBatch{Queue: testQueue("q.fifo")}
	for i := range count {
		n := uint64(first + i)
		send.Entries = append(send.Entries, sqs.SendEntry{
			MessageID: sqs.MessageID{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, Size: 1, Delay: sqs.QueueDefault,
			GroupID: "g" + strconv.Itoa(int(n%100)), DeduplicationID: strconv.FormatUint(n, 10),
		})
	}
	f.apply(send)
	got := f.apply(sqs.ReceiveMessage{Queue: send.Queue, MaxMessages: 10, VisibilityTimeout: time.Minute}).Result.(sqs.ReceiveMessageResult)
	remove := sqs.DeleteMessageBatch{Queue: send.Queue}
	for i := range got.Messages {
		remove.Receipts = append(remove.Receipts, got.Messages[i].Receipt)
	}
	f.apply(remove)
}

// snapshot takes a snapshot, and writes it while the machine goes on.
func (f *flood) snapshot() {
	if f.persisted != nil {
		<-f.persisted
	}
	runtime.GC() // what it costs is not the machine's pause
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime(f.t)
	s, err := f.Snapshot()
	f.pause = max(f.pause, threadTime(f.t)-start)
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan struct{})
	f.persisted = done
	go func() {
		defer close(done)
		if err := s.Persist(discardSink{io.Discard}); err != nil {
			f.t.Error(err)
		}
		s.Release()
	}()
}

// threadTime is the processor time of this thread: on a busy machine a pause by the
// clock is mostly that of others.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var spec unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec); err != nil {
		t.Fatal(err)
	}
	return time.Duration(spec.Nano())
}

func memoryUse() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// peakResident is the most memory that this process has had, in bytes; 0 if that is
// not known.
func peakResident() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
