package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
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
