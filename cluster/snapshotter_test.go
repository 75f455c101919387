package cluster

import (
	"cmp"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestSnapshotTriggers(t *testing.T) {
	// The last snapshot ended a minute ago, took two seconds, and stands at entry
	// 100, 1,000 bytes and 2 million messages.
	last := snapshotMark{applied: 100, written: 1_000, messages: 2 << 20, at: time.Hour, duration: 2 * time.Second}
	for _, test := range []struct {
		name    string
		applied uint64
		written uint64
		pending int64
		bodies  int64  // that make one due; 0: as many as with much memory
		gone    uint64 // messages
		after   time.Duration
		entries uint64
		peak    uint64 // of live messages
		disk    uint64 // bytes of bodies
		free    int64  // of a disk below its reserve; 0: there is enough
		full    bool   // of memory
		want    bool
	}{
		{name: "little was written", applied: 200, written: 1_000 + 10<<20, after: time.Minute},
		{name: "much was written", applied: 200, written: 1_000 + 64<<20, after: time.Minute, want: true},
		{name: "much was written at once", applied: 200, written: 1_000 + 64<<20, after: 7 * time.Second},
		{name: "many bodies", applied: 200, pending: 96 << 20, written: 1_000, after: time.Second, want: true},
		{name: "many bodies for a small memory", applied: 200, pending: 16 << 20, bodies: 16 << 20, written: 1_000, after: time.Second, want: true},
		{name: "fewer", applied: 200, pending: 16<<20 - 1, bodies: 16 << 20, written: 1_000, after: time.Second},
		{name: "ten minutes with a change", applied: 101, written: 1_100, after: 10 * time.Minute, want: true},
		{name: "ten minutes without changes", applied: 100, written: 1_000, after: time.Hour},
		{name: "a GiB of bodies is gone", applied: 101, written: 1_100, gone: 1 << 20, after: time.Second, want: true},
		{name: "less is gone", applied: 101, written: 1_100, gone: 1<<20 - 1, after: time.Minute},
		{name: "half of what is on disk is gone", applied: 101, written: 1_100, gone: 64 << 10, disk: 128 << 20, after: 8 * time.Second, want: true},
		{name: "less than half of it", applied: 101, written: 1_100, gone: 64 << 10, disk: 129 << 20, after: time.Minute},
		{name: "half of little", applied: 101, written: 1_100, gone: 64<<10 - 1, disk: 64 << 20, after: time.Minute},
		{name: "half of it, at once", applied: 101, written: 1_100, gone: 64 << 10, disk: 128 << 20, after: 7 * time.Second},
		{name: "half is gone", applied: 101, written: 1_100, gone: 1 << 19, peak: 3 << 20, after: 8 * time.Second},
		{name: "half is gone and the disk is low", applied: 101, written: 1_100, gone: 1 << 19, peak: 3 << 20, pending: 8, free: 4, after: 8 * time.Second, want: true},
		{name: "half is gone and there is no room", applied: 101, written: 1_100, gone: 1 << 19, peak: 3 << 20, pending: 8, free: 3, after: 8 * time.Second},
		{name: "three quarters are gone and there is room for the rest", applied: 101, written: 1_100, gone: 1 << 19, peak: 6 << 20, pending: 8, free: 2, after: 8 * time.Second, want: true},
		{name: "three quarters are gone and there is none", applied: 101, written: 1_100, gone: 1 << 19, peak: 6 << 20, pending: 8, free: 1, after: 8 * time.Second},
		{name: "less is gone and the disk is low", applied: 101, written: 1_000 + 1<<20, gone: 1 << 19, peak: 3<<20 - 1, free: 4, after: 8 * time.Second},
		{name: "memory is full", applied: 200, written: 1_000 + 1<<20, full: true, after: 8 * time.Second, want: true},
		{name: "memory is full, at once", applied: 200, written: 1_000 + 1<<20, full: true, after: 7 * time.Second},
		{name: "memory is full, and nearly nothing was written", applied: 200, written: 1_000 + 1<<20 - 1, full: true, after: time.Minute},
		{name: "entries", applied: 110, written: 1_000, after: time.Second, entries: 10, want: true},
		{name: "fewer entries", applied: 109, written: 1_000, after: time.Second, entries: 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &snapshotter{
				ending:  func() bool { return false },
				applied: func() uint64 { return test.applied },
				written: func() uint64 { return test.written },
				pending: func() int64 { return test.pending },
				bodies:  cmp.Or(test.bodies, snapshotBodyBytes),
				live: func() liveBodies {
					return liveBodies{messages: last.messages - test.gone, size: 1024, disk: cmp.Or(test.disk, 4<<30)}
				},
				disk:    func() (int64, bool) { return test.free, test.free > 0 },
				full:    func() bool { return test.full },
				peak:    test.peak,
				elapsed: func() time.Duration { return last.at + test.after },
				entries: test.entries, last: last,
			}
			if got := s.due(); got != test.want {
				t.Errorf("got due %v, want %v", got, test.want)
			}
		})
	}
}

func TestSnapshotThatFailsIsTriedAgainLater(t *testing.T) {
	now := time.Duration(0)
	s := &snapshotter{
		ending:  func() bool { return false },
		take:    func() error { return errors.New("no space") },
		applied: func() uint64 { return 10 },
		written: func() uint64 { return 0 },
		pending: func() int64 { return 0 },
		bodies:  snapshotBodyBytes,
		live:    func() liveBodies { return liveBodies{} },
		disk:    func() (int64, bool) { return 0, false },
		full:    func() bool { return false },
		elapsed: func() time.Duration { return now },
		entries: 1, machine: &raftMachine{}, log: slog.New(slog.DiscardHandler),
	}
	s.snapshot(t.Context())
	if now = snapshotRetry - 1; s.due() {
		t.Error("due again at once")
	}
	if now = snapshotRetry; !s.due() {
		t.Error("given up")
	}
	s.take = func() error { return nil }
	s.snapshot(t.Context())
	if s.due() || s.taken.Load() != 1 {
		t.Errorf("after a snapshot: due %v, %d taken; want false, 1", s.due(), s.taken.Load())
	}
}
