package wal

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// appendsInTurn is how many appends are measured before snapshots go on or stop.
const appendsInTurn = 100

// BenchmarkLogFsync measures appends of 40 KiB to the log, by turns alone and
// beside snapshots that write without end. An operation is a turn of each.
func BenchmarkLogFsync(b *testing.B) {
	dir := b.TempDir()
	l, err := OpenLog(filepath.Join(dir, LogDir), LogOptions{Fatal: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	w, err := newEndlessSnapshots(dir)
	if err != nil {
		b.Fatal(err)
	}
	w.gate.Lock() // alone
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := w.run(); err != nil {
			b.Error(err)
		}
	})
	index := uint64(0)
	turn := func(took []time.Duration) []time.Duration {
		for i := range appendsInTurn + 10 {
			index++
			e := entries(index, index, 1, 40<<10)
			took = appendTimed(b, l, e, took)
			if i < 10 { // the change of turns is not measured
				took = took[:len(took)-1]
			}
		}
		return took
	}
	var alone, beside []time.Duration
	for b.Loop() {
		alone = turn(alone)
		w.gate.Unlock()
		began := time.Now()
		beside = turn(beside)
		w.busy += time.Since(began)
		w.gate.Lock()
	}
	w.node.Stop()
	w.gate.Unlock()
	writing.Wait()
	low, high := quantileOf(alone, 0.99), quantileOf(beside, 0.99)
	b.ReportMetric(float64(quantileOf(alone, 0.5).Microseconds()), "p50-alone-µs")
	b.ReportMetric(float64(quantileOf(beside, 0.5).Microseconds()), "p50-beside-µs")
	b.ReportMetric(float64(low.Microseconds()), "p99-alone-µs")
	b.ReportMetric(float64(high.Microseconds()), "p99-beside-µs")
	b.ReportMetric(float64(high)/float64(low), "p99-ratio")
	b.ReportMetric(float64(w.written)/w.busy.Seconds()/1e6, "snapshot-MB/s")
}

func appendTimed(b *testing.B, l *Log, e []*raft.Log, took []time.Duration) []time.Duration {
	start := time.Now()
	if err := l.StoreLogs(e); err != nil {
		b.Fatal(err)
	}
	return append(took, time.Since(start))
}

func quantileOf(took []time.Duration, q float64) time.Duration {
	slices.Sort(took)
	return took[int(float64(len(took)-1)*q)]
}

// endlessSnapshots takes snapshots with 64 MiB of new bodies, but for while
// somebody has the gate.
type endlessSnapshots struct {
	node    *bodyNode
	gate    sync.Mutex
	busy    time.Duration // with an open gate
	written int64         // bytes of bodies in snapshots
}

func newEndlessSnapshots(dir string) (*endlessSnapshots, error) {
	n, err := openNode(dir, osFiles{}, SegmentOptions{}.withDefaults().limits)
	w := &endlessSnapshots{node: n}
	if err != nil {
		return nil, err
	}
	n.options.Pause = func(d time.Duration) {
		time.Sleep(d)
		w.gate.Lock()
		defer w.gate.Unlock()
	}
	return w, nil
}

// run returns after the store was stopped.
func (w *endlessSnapshots) run() error {
	n, body := w.node, make([]byte, 1024)
	for {
		first := n.machine.Next
		for range 64 << 10 {
			n.Append(n.machine.Next, body)
			n.machine.Next++
		}
		n.index++
		n.CloseChunk()
		sink, err := n.snapshots.Create(1, n.index, 1, voters, 1, nil)
		if err == nil {
			err = n.WriteLive(sink, ranges(first, 64<<10))
		}
		if n.stopped.Load() {
			return nil
		}
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			return err
		}
		w.written += 64 << 20
	}
}
