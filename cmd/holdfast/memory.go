package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// limitHeap has the garbage collector run earlier rather than let garbage fill
// the machine: left alone, it waits until the heap is twice what is alive, which
// with memory in use is all of the RAM by default. At 1.5 times, a node that was
// filled up to --memory took as much CPU and a sixth less RAM. GOMEMLIMIT, if
// it is set, holds instead.
func limitHeap(memory byteSize) error {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	if memory == 0 {
		var info syscall.Sysinfo_t
		if err := syscall.Sysinfo(&info); err != nil {
			return fmt.Errorf("read size of memory: %w", err)
		}
		memory = byteSize(info.Totalram) * byteSize(info.Unit) / 2 // as cluster.Config does
	}
	debug.SetMemoryLimit(int64(memory + memory/2))
	return nil
}

const (
	// maxGarbage is about how much garbage there may be beside a large live heap. It
	// is what keeps a node with millions of received messages, 64 bytes each, below
	// a GiB; to mark them costs little, for they have no pointers.
	maxGarbage = 192 << 20

	// minGCPercent bounds what that may cost.
	minGCPercent = 20

	garbageLook = time.Second
)

// limitGarbage has the garbage collector run the earlier, in proportion, the more
// is alive, until ctx is done. GOGC, if it is set, holds instead.
func limitGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(garbageLook)
	defer ticker.Stop()
	percent := 100
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64()); p != percent {
			debug.SetGCPercent(p)
			percent = p
		}
	}
}

// gcPercent is the GOGC for a live heap of so many bytes, in steps of ten, since
// to set it stops the world.
func gcPercent(live uint64) int {
	if live <= maxGarbage {
		return 100
	}
	return max(int(10*maxGarbage/live)*10, minGCPercent)
}
