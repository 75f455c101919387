package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.internal/raftfsm"
)

// gaugeEvery is how often disk and memory are looked at: less often, and what comes
// between two looks could fill a small disk behind its reserve.
const gaugeEvery = 100 * time.Millisecond

// gauges looks at what the node may be short of, at short intervals, and tells
// admission. Its goroutine may hang with the disk.
type gauges struct {
	dir       string // empty: in memory
	memory    int64  // limit of the live heap in bytes
	reserve   int64  // of the disk in bytes
	admission *admission
	machine   *raftfsm.Machine
	log       *slog.Logger
	// majority reports whether disks are short, given whether this node's is.
	majority func(own bool) bool
	// scarce hears at each look whether this node's disk is below its reserve.
	scarce func(low bool)

	mu     sync.Mutex
	latest reading
	panics uint64 // that were logged
}

// reading is one look.
type reading struct {
	free     int64 // bytes of disk that the node may use
	lowDisk  bool
	broken   bool // the file system does not answer
	heap     int64
	fullHeap bool
}

func (g *gauges) run(ctx context.Context) {
	ticker := time.NewTicker(gaugeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.look()
		}
	}
}

// look takes a reading, and logs what changed.
func (g *gauges) look() {
	r := reading{heap: liveHeap()}
	r.fullHeap = r.heap > g.memory
	if g.dir != "" {
		_, free, err := diskSpace(g.dir)
		r.free, r.broken = free, err != nil
		r.lowDisk = r.broken || free < g.reserve
	}
	g.scarce(r.lowDisk)
	g.admission.observe(g.majority(r.lowDisk), r.fullHeap)

	g.mu.Lock()
	before := g.latest
	g.latest = r
	g.mu.Unlock()
	g.report(before, r)
}

func (g *gauges) report(before, now reading) {
	switch {
	case now.lowDisk && !before.lowDisk:
		g.log.Warn("disk space is below the reserve", "free_bytes", now.free, "reserve_bytes", g.reserve)
	case before.lowDisk && !now.lowDisk:
		g.log.Info("disk space is above the reserve again", "free_bytes", now.free, "reserve_bytes", g.reserve)
	}
	switch {
	case now.fullHeap && !before.fullHeap:
		g.log.Warn("memory is over the limit, sends wait", "heap_bytes", now.heap, "limit_bytes", g.memory)
	case before.fullHeap && !now.fullHeap:
		g.log.Info("memory is below the limit again", "heap_bytes", now.heap, "limit_bytes", g.memory)
	}
	if panics := g.machine.Panics(); panics != g.panics {
		g.panics = panics
		if p, ok := g.machine.LastPanic(); ok {
			g.log.Error("command panicked; its queue is damaged", "index", p.Index, "command", p.Command,
				"account", p.Queue.Account, "queue", p.Queue.Name, "panic", p.Value, "stack", p.Stack)
		}
	}
}

func (g *gauges) read() reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest
}

// diskSpace is how large dir's disk is, and how much may still be written to it,
// in bytes.
func diskSpace(dir string) (size, free int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
}

// liveHeap is what the last garbage collection found alive, in bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// residentMemory is the memory of this process in bytes; 0 if it is not known.
func residentMemory() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
