package jepsen_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
	"holdfast.internal/jepsen/history"
)

// startTrioOnDisks runs three nodes on a disk of its own each.
func startTrioOnDisks(t *testing.T, flags ...string) (*trio, []*fault.Disk) {
	t.Helper()
	return startTrioOnDisksOf(t, 128<<20, flags...)
}

// startTrioOnDisksOf is startTrioOnDisks with disks of the given size in bytes.
func startTrioOnDisksOf(t *testing.T, size int64, flags ...string) (*trio, []*fault.Disk) {
	t.Helper()
	var disks []*fault.Disk
	var data []string
	for range 3 {
		disk := newDisk(t, size)
		disks = append(disks, disk)
		data = append(data, filepath.Join(disk.Path(), "data"))
	}
	flags = append(flags, "--disk-reserve", strconv.FormatInt(max(32<<20, size/12), 10)) // as large as what comes in a second
	return startTrioWith(t, fault.ClusterOptions{Data: data, Flags: flags}), disks
}

// expectReplaced checks how long clients of the other nodes waited when the disk of
// the leader failed: a stall is one after five seconds.
func expectReplaced(t *testing.T, what string, took time.Duration) {
	t.Helper()
	t.Logf("disk of the leader %s: first success after %v", what, took)
	if limit := bar(7*time.Second, patience); took > limit {
		t.Errorf("first success after %v, want less than %v", took, limit)
	}
}

// The disk of the leader hangs, and later fails: another node leads. The old leader
// has closed all connections by then, although the kernel does not let it end.
func TestClusterDiskOfTheLeaderFails(t *testing.T) {
	skipUnderRace(t)
	// Sends wait for as long as it takes to notice a stall, and to elect.
	c, disks := startTrioOnDisks(t, "--request-timeout", "14s")
	probed := createQueue(t, c.client(c.leader()), "probed", "30")
	load := c.drive(patience)
	time.Sleep(time.Second) // of load

	leader := c.leader()
	disk := disks[slices.Index(c.Nodes(), leader)]
	c.recorder.Fault("freeze disk of leader")
	took := c.outage(probed, c.Others(leader), func() {
		if err := disk.Freeze(); err != nil {
			t.Fatal(err)
		}
	})
	expectReplaced(t, "hangs", took)
	awaitTrue(t, "the end of the old leader's port", func() bool { return !listens(leader) })
	if err := disk.Thaw(); err != nil {
		t.Fatal(err)
	}
	expectExit(t, leader, 5, bar(10*time.Second, 30*time.Second))
	c.restart(leader)

	leader = c.leader()
	disk = disks[slices.Index(c.Nodes(), leader)]
	c.recorder.Fault("break disk of leader")
	took = c.outage(probed, c.Others(leader), func() {
		if err := disk.Break(); err != nil {
			t.Fatal(err)
		}
	})
	expectReplaced(t, "fails", took)
	expectExit(t, leader, 4, bar(10*time.Second, 30*time.Second))
	if err := disk.Remount(); err != nil {
		t.Fatal(err)
	}
	c.restart(leader)
	load.judge(10 * time.Second)
	// A receive waits five seconds for a leader, about as long as a stall takes to
	// be noticed.
	expectNoErrors(t, slices.DeleteFunc(c.recorder.Operations(), func(o history.Operation) bool { return o.Kind == history.Receive }))
}

// The power of all nodes fails at once, under load.
func TestClusterPowerFails(t *testing.T) {
	skipUnderRace(t)
	failures := 2
	if *long {
		failures = 20
	}
	c, disks := startTrioOnDisks(t, "--test-mode", "--test-snapshot-entries", "500")
	load := c.drive(patience)
	for range failures {
		time.Sleep(2 * time.Second)   // of load
		for _, n := range c.Nodes() { // all at once, and no sync under way (Disk.Break)
			if err := n.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		for _, disk := range disks {
			if err := disk.Break(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		c.recorder.Fault("power failure")
		for _, disk := range disks {
			if err := disk.Remount(); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
	}
	load.judge(15 * time.Second)
}
