package wal

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"holdfast.internal/jepsen/fault"
)

// BenchmarkColdRead receives ten bodies of 1 KiB at a time, after a restart with
// a cold page cache, from a disk on which 100 queues have sent by turns, ten
// messages or one at a time: of one queue after the other, and of all by turns.
func BenchmarkColdRead(b *testing.B) {
	const count = 200_000
	dir := b.TempDir()
	n, err := openNode(dir, osFiles{}, SegmentOptions{}.withDefaults().limits)
	if err != nil {
		b.Fatal(err)
	}
	n.append(count, 1024)
	mustSnapshot(b, n)
	if err := n.Close(); err != nil {
		b.Fatal(err)
	}
	for _, order := range []struct {
		name   string
		number func(i uint64) uint64 // the i-th body that is read, from 0 on
	}{
		{"one queue alone", func(i uint64) uint64 { return i }},
		{"one of 100, sent by tens", func(i uint64) uint64 { return spread(i, count, 10) }},
		{"one of 100, sent one by one", func(i uint64) uint64 { return spread(i, count, 1) }},
		{"all 100 by turns", func(i uint64) uint64 {
			queue, round := i/10%100, i/1000
			return round*1000 + i%10*100 + queue
		}},
	} {
		b.Run(order.name, func(b *testing.B) {
			restarted, err := openNode(dir, osFiles{}, SegmentOptions{}.withDefaults().limits)
			if err != nil {
				b.Fatal(err)
			}
			defer restarted.Close()
			if err := fault.DropCache(filepath.Join(dir, SegmentDir)); err != nil {
				b.Fatal(err)
			}
			bytesBefore, readsBefore := ownReads(b)
			i := uint64(0)
			for b.Loop() {
				for range 10 {
					read, found := restarted.Pin(order.number(i%count) + 1)
					if !found {
						b.Fatal("a body is gone")
					}
					if _, err := read(); err != nil {
						b.Fatal(err)
					}
					i++
				}
			}
			bytesAfter, readsAfter := ownReads(b)
			b.ReportMetric(float64(readsAfter-readsBefore)/float64(b.N), "reads/op")
			b.ReportMetric(float64(bytesAfter-bytesBefore)/float64(b.N)/1024, "disk-KiB/op")
		})
	}
}

// spread is the i-th of so many bodies when queue after queue of 100 is read that
// have sent so many messages at a time by turns.
func spread(i, count, batch uint64) uint64 {
	each := count / 100
	queue, at := i/each, i%each
	return at/batch*batch*100 + queue*batch + at%batch
}

// ownReads is what this process has read from disks, and the number of its calls.
func ownReads(b *testing.B) (size, calls int64) {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		n, _ := strconv.ParseInt(string(value), 10, 64)
		switch string(name) {
		case "read_bytes":
			size = n
		case "syscr":
			calls = n
		}
	}
	return size, calls
}
