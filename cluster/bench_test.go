package cluster

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

const benchClients = 64

// BenchmarkSend64 is 64 clients that send messages of 1 KiB, on a real disk.
func BenchmarkSend64(b *testing.B) {
	n := start(b, diskConfig(b))
	createQueue(b, n)
	c, content := sendMessage(string(make([]byte, 1024)), 0)
	before := n.Metrics()
	cpu := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, func() error {
		_, err := n.Do(b.Context(), c, content)
		return err
	})
	b.StopTimer()
	m := n.Metrics()
	b.ReportMetric(float64(m.Commands-before.Commands)/float64(m.Entries-before.Entries), "commands/entry")
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

// BenchmarkCycle64 is 64 clients that send, receive and delete.
func BenchmarkCycle64(b *testing.B) {
	n := start(b, diskConfig(b))
	createQueue(b, n)
	c, content := sendMessage(string(make([]byte, 1024)), 0)
	cpu := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, func() error {
		if _, err := n.Do(b.Context(), c, content); err != nil {
			return err
		}
		d, err := n.Receive(b.Context(), receiveOne(sqs.QueueDefault), time.Second, nil)
		if err != nil || len(d.Messages) == 0 {
			return err
		}
		_, err = n.Do(b.Context(), sqs.DeleteMessageBatch{Queue: queue, Receipts: []sqs.Receipt{d.Messages[0].Receipt}})
		return err
	})
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

// BenchmarkWake is the time from the answer of a send to that of a receive that
// waited for it.
func BenchmarkWake(b *testing.B) {
	n := start(b, diskConfig(b))
	createQueue(b, n)
	c, content := sendMessage("wake", 0)
	received := make(chan time.Time)
	var waited time.Duration
	b.ResetTimer()
	for b.Loop() {
		go func() {
			if _, err := n.Receive(b.Context(), receiveOne(time.Hour), 20*time.Second, nil); err != nil {
				b.Error(err)
			}
			received <- time.Now()
		}()
		for n.line.parked.Load() == 0 {
			time.Sleep(50 * time.Microsecond)
		}
		if _, err := n.Do(b.Context(), c, content); err != nil {
			b.Fatal(err)
		}
		sent := time.Now()
		waited += (<-received).Sub(sent)
	}
	b.ReportMetric(float64(waited)/float64(b.N), "wake-ns")
}

// inParallel has benchClients goroutines do b.N operations.
func inParallel(b *testing.B, operation func() error) {
	b.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range benchClients {
		clients.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := operation(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClock is one reading of cluster time.
func BenchmarkClock(b *testing.B) {
	c := newClock(time.Now, newSteadyClock().elapsed, 1, slog.New(slog.DiscardHandler))
	for b.Loop() {
		c.now()
	}
}
