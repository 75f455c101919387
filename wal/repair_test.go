package wal

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// rottenNode is a node with 100 bodies in a segment, of which body 10 is damaged.
func rottenNode(t *testing.T, dir string) *bodyNode {
	t.Helper()
	n, err := openNode(dir, quickFiles{}, segmentLimits{bytes: 1 << 20, bodies: 1000, small: 1, merge: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	n.append(100, 60)
	mustSnapshot(t, n)
	flip(t, n.list[0].path, segmentHeader+80*9+frameHeader+20)
	if err := n.check(); !errors.Is(err, ErrDamagedBody) {
		t.Fatalf("body 10: got %v, want ErrDamagedBody", err)
	}
	return n
}

// A repaired body is there at once, and for good with the next snapshot.
func TestRepair(t *testing.T) {
	dir := t.TempDir()
	n := rottenNode(t, dir)
	if kept, err := n.Repair(10, bodyOf(10, 60)); !kept || err != nil {
		t.Fatalf("repair: got %v, %v, want it kept", kept, err)
	}
	mustCheck(t, n)
	before := n.list[0].name()
	mustSnapshot(t, n)
	if n.list[0].name() == before || n.repaired.bytes != 0 || len(n.repaired.bodies) != 0 {
		t.Errorf("after a snapshot: got %+v in memory and segment %s, want nothing and a new one", n.repaired, n.list[0].name())
	}
	mustCheck(t, n)
	before = n.list[0].name()
	mustSnapshot(t, n)
	if n.list[0].name() != before {
		t.Error("the next snapshot: got the segment written once more")
	}
	n.Close()
	mustCheck(t, mustOpenNode(t, dir))
}

func TestRepairRefusals(t *testing.T) {
	n := rottenNode(t, t.TempDir())
	n.append(1, 60)
	if _, err := n.Repair(10, bodyOf(10, 61)); !errors.Is(err, ErrDamagedBody) {
		t.Errorf("another size: got %v, want ErrDamagedBody", err)
	}
	for _, number := range []uint64{0, 101, 5000} {
		if _, err := n.Repair(number, bodyOf(10, 60)); !errors.Is(err, errNotStored) {
			t.Errorf("body %d: got %v, want errNotStored", number, err)
		}
	}
	n.repaired.bytes = maxRepaired - 59
	if kept, err := n.Repair(10, bodyOf(10, 60)); kept || err != nil {
		t.Errorf("beyond the limit: got %v, %v, want it not kept", kept, err)
	}
}

// What is repaired while a snapshot is being written, and what dies, is not
// forgotten too early or kept for ever.
func TestRepairDuringSnapshot(t *testing.T) {
	n := rottenNode(t, t.TempDir())
	n.kill(every(5, 1, 2, 3, 4)) // so that the segment is merged
	sink, err := n.begin()
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := n.Repair(10, bodyOf(10, 60)); !kept || err != nil {
		t.Fatalf("repair: got %v, %v, want it kept", kept, err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	read, _ := n.Pin(10)
	if body, err := read(); err != nil || !bytes.Equal(body, bodyOf(10, 60)) {
		t.Errorf("after the snapshot: got %d bytes, %v, want the repaired body", len(body), err)
	}
	n.kill(func(uint64) bool { return true })
	mustSnapshot(t, n)
	if n.repaired.bytes != 0 || len(n.repaired.bodies) != 0 {
		t.Errorf("after its death: got %+v, want nothing", n.repaired)
	}
}

// A sector that the disk cannot read is damage, too: it is that of one body, it keeps
// back neither the next snapshot nor one for another node, and it can be repaired.
func TestUnreadableBody(t *testing.T) {
	n := rottenNode(t, t.TempDir())
	n.kill(func(number uint64) bool { return number > 10 }) // so that the segment is merged
	unreadable(t, n)
	read, _ := n.Pin(5)
	if body, err := read(); !errors.Is(err, ErrDamagedBody) {
		t.Errorf("got %d bytes, %v, want %v", len(body), err, ErrDamagedBody)
	}
	before := n.list[0].name()
	mustSnapshot(t, n)
	if n.list[0].name() != before {
		t.Error("the segment was written anew, without what could not be read")
	}
	for number := uint64(1); number <= 10; number++ {
		if kept, err := n.Repair(number, bodyOf(number, 60)); !kept || err != nil {
			t.Fatalf("repair: got %v, %v, want it kept", kept, err)
		}
	}
	mustSnapshot(t, n)
	if n.list[0].name() == before {
		t.Error("the repaired segment was not written anew")
	}
	mustCheck(t, n)

	from, to := rottenNode(t, t.TempDir()), mustOpenNode(t, t.TempDir())
	unreadable(t, from)
	transfer(t, from, to)
	read, _ = to.Pin(5)
	if body, err := read(); !errors.Is(err, ErrDamagedBody) {
		t.Errorf("sent to another node: got %d bytes, %v, want %v", len(body), err, ErrDamagedBody)
	}
}

// unreadable makes every read of the first segment fail, but for its index pages, which
// are in the cache then.
func unreadable(t *testing.T, n *bodyNode) {
	t.Helper()
	s := n.list[0]
	for i := range s.pages {
		if _, err := s.page(i); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	s.file.File = f
}
