package wal

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkLogFsync measures an append of 40 KiB to the log, alone and beside
// snapshots that write without end.
func BenchmarkLogFsync(b *testing.B) {
	for _, beside := range []bool{false, true} {
		name := "alone"
		if beside {
			name = "beside a snapshot"
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			l, err := OpenLog(filepath.Join(dir, LogDir), LogOptions{Fatal: func(err error) { b.Error(err) }})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var group sync.WaitGroup
			stop := make(chan struct{})
			var written int64
			if beside {
				group.Go(func() { written = writeSnapshots(b, dir, stop) })
			}
			var took []time.Duration
			index := uint64(1)
			began := time.Now()
			for b.Loop() {
				start := time.Now()
				if err := l.StoreLogs(entries(index, index, 1, 40<<10)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				index++
			}
			seconds := time.Since(began).Seconds()
			close(stop)
			group.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
			if beside {
				b.ReportMetric(float64(written)/seconds/1e6, "snapshot-MB/s")
			}
		})
	}
}

// writeSnapshots takes snapshots with 64 MiB of new bodies until stop, and
// returns how many bytes of bodies it wrote.
func writeSnapshots(b *testing.B, dir string, stop <-chan struct{}) (written int64) {
	n, err := openNode(dir, osFiles{}, segmentLimits{})
	if err != nil {
		b.Error(err)
		return 0
	}
	n.options.Pause = time.Sleep
	body := make([]byte, 1024)
	for {
		for range 64 << 10 {
			n.Append(n.machine.Next, body)
			n.machine.Next++
		}
		first := n.machine.Next - 64<<10
		n.index++
		n.CloseChunk()
		sink, err := n.snapshots.Create(1, n.index, 1, voters, 1, nil)
		if err == nil {
			go func() { // stops in the middle
				<-stop
				n.Stop()
			}()
			err = n.WriteLive(sink, ranges(first, 64<<10))
		}
		select {
		case <-stop:
			return written
		default:
		}
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			b.Error(err)
			return written
		}
		written += 64 << 20
	}
}
