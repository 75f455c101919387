package wal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

func TestBodiesOverSnapshotsAndRestarts(t *testing.T) {
	dir := t.TempDir()
	n := mustOpenNode(t, dir)
	n.append(200, 100)
	n.append(3, 0)
	n.append(1, 20_000)
	if got := n.Pending(); got != 200*100+20_000 {
		t.Errorf("got %d bytes pending", got)
	}
	n.kill(every(3, 1))
	mustSnapshot(t, n)
	mustCheck(t, n)
	if got := n.Pending(); got != 0 {
		t.Errorf("got %d bytes pending after a snapshot", got)
	}
	n.append(10, 100) // in no snapshot
	mustCheck(t, n)
	n.Close()

	n = mustOpenNode(t, dir)
	if n.machine.Next != 205 {
		t.Fatalf("next is %d, want 205", n.machine.Next)
	}
	mustCheck(t, n)
	n.append(50, 100)
	n.kill(between(1, 180))
	mustSnapshot(t, n)
	mustCheck(t, n)
	mustCheck(t, mustOpenNode(t, dir))
}

// A restart reads footers, not bodies: the files keep their names.
func TestRestartCopiesNothing(t *testing.T) {
	dir := t.TempDir()
	n := mustOpenNode(t, dir)
	n.append(500, 100)
	mustSnapshot(t, n)
	before := readDir(t, n.dir)
	n.Close()
	n = mustOpenNode(t, dir)
	if after := readDir(t, n.dir); !slices.Equal(before, after) {
		t.Errorf("files %v became %v", before, after)
	}
	if got, want := n.Stats(), (SegmentStats{Segments: len(before), Bodies: 500, Bytes: sizesOf(t, n.dir)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func readDir(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

func sizesOf(t *testing.T, dir string) int64 {
	t.Helper()
	var sum int64
	for _, name := range readDir(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// What is pinned is read after its file was removed, and after everything was
// replaced.
func TestPinOutlivesFilesAndGenerations(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 300)
	mustSnapshot(t, n)
	var pinned []func() ([]byte, error)
	for number := range uint64(100) {
		read, found := n.Pin(number + 1)
		if !found {
			t.Fatalf("body %d is gone", number+1)
		}
		pinned = append(pinned, read)
	}
	n.kill(between(1, 90))
	n.append(1, 10)
	mustSnapshot(t, n)
	mustCheck(t, n)
	n.kill(between(1, 100))
	mustSnapshot(t, n)
	if err := n.restore(); err != nil {
		t.Fatal(err)
	}
	for i, read := range pinned {
		if body, err := read(); err != nil || !bytes.Equal(body, bodyOf(uint64(i+1), 300)) {
			t.Fatalf("pinned body %d: %d bytes, error %v", i+1, len(body), err)
		}
	}
	if got := n.Stats().Segments; got != 1 {
		t.Errorf("%d segments for one body", got)
	}
	if got := removedButOpen(t, n.dir); len(got) > 0 {
		t.Errorf("%v are open and keep their place on the disk", got)
	}
	if _, found := n.Pin(5); found {
		t.Error("a number without segment is found")
	}
}

// removedButOpen are the files of dir that this process has open and that have
// no name any more.
func removedButOpen(t *testing.T, dir string) (removed []string) {
	t.Helper()
	for _, fd := range readDir(t, "/proc/self/fd") {
		path, err := os.Readlink(filepath.Join("/proc/self/fd", fd))
		if err == nil && strings.HasPrefix(path, dir) && strings.HasSuffix(path, " (deleted)") {
			removed = append(removed, path)
		}
	}
	return removed
}

// A body in the middle of a segment may be gone; that is an error, not another
// body.
func TestDeadBodyOfALivingSegment(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 10)
	n.kill(every(2, 0))
	mustSnapshot(t, n)
	for number := uint64(1); number < 100; number++ {
		read, found := n.Pin(number)
		if !found {
			if number%2 != 0 {
				t.Errorf("body %d is gone", number)
			}
			continue
		}
		body, err := read()
		if number%2 == 0 && !errors.Is(err, errNotStored) {
			t.Errorf("body %d: got %q, error %v; want none", number, body, err)
		}
		if number%2 == 1 && err != nil {
			t.Error(err)
		}
	}
}

func TestSnapshotThatIsGivenUpChangesNothing(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 100)
	mustSnapshot(t, n)
	n.append(50, 100)
	n.kill(between(1, 60))
	before, pending := readDir(t, n.dir), n.Pending()
	sink, err := n.begin()
	if err != nil {
		t.Fatal(err)
	}
	mustBe := func(what string) {
		t.Helper()
		if err := n.check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n.Pending() != pending {
			t.Errorf("%s: %d bytes pending, want %d", what, n.Pending(), pending)
		}
	}
	mustBe("before the end of the sink")
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	mustBe("after Cancel")
	if after := readDir(t, n.dir); !slices.Equal(before, after) {
		t.Errorf("files %v became %v", before, after)
	}
	mustSnapshot(t, n)
	mustCheck(t, n)
}

func TestStaleSnapshotChangesNothing(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 100)
	slow, err := n.begin()
	if err != nil {
		t.Fatal(err)
	}
	n.append(30, 100)
	n.kill(between(1, 100))
	mustSnapshot(t, n)
	if err := slow.Close(); !errors.Is(err, ErrStaleSnapshot) {
		t.Errorf("got %v, want ErrStaleSnapshot", err)
	}
	mustCheck(t, n)
}

func TestStopEndsASnapshot(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(10, 100)
	n.Stop()
	if err := n.snapshot(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := n.check(); err != nil {
		t.Error(err)
	}
	state, err := n.snapshots.Create(1, 100, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Write(make([]byte, pieceSize)); !errors.Is(err, ErrClosed) {
		t.Errorf("within the state: got %v, want ErrClosed", err)
	}
	if err := state.Cancel(); err != nil {
		t.Error(err)
	}
}

// transfer sends the newest snapshot of one node to another.
func transfer(t *testing.T, from, to *bodyNode) {
	t.Helper()
	list, err := from.snapshots.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d snapshots, error %v", len(list), err)
	}
	meta, r, err := from.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sink, err := to.snapshots.Create(1, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	from.kill(between(1, from.machine.Next)) // what is open is held
	mustSnapshot(t, from)
	size, err := io.CopyBuffer(struct{ io.Writer }{sink}, struct{ io.Reader }{r}, make([]byte, 777))
	if err != nil || size != meta.Size {
		t.Fatalf("%d bytes were sent, want %d; error %v", size, meta.Size, err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := to.restore(); err != nil {
		t.Fatal(err)
	}
}

func TestTransferToAnotherNode(t *testing.T) {
	from, dir := mustOpenNode(t, t.TempDir()), t.TempDir()
	from.append(300, 120)
	from.kill(every(5, 1, 2))
	mustSnapshot(t, from)
	from.kill(every(7, 3))
	mustSnapshot(t, from)
	live := len(from.machine.Live)
	to := mustOpenNode(t, dir)
	to.append(40, 10)
	mustSnapshot(t, to)
	to.index = 0
	pinned, _ := to.Pin(3)
	transfer(t, from, to)
	if len(to.machine.Live) != live {
		t.Fatalf("%d bodies are live, want %d", len(to.machine.Live), live)
	}
	if err := to.check(); err != nil { // of the files, those from before go with the next snapshot
		t.Fatal(err)
	}
	mustCheck(t, from)
	if body, err := pinned(); err != nil || !bytes.Equal(body, bodyOf(3, 10)) {
		t.Errorf("pinned body of the generation before: %v", err)
	}
	to.append(10, 100)
	mustSnapshot(t, to)
	mustCheck(t, to)
	mustCheck(t, mustOpenNode(t, dir))
}

// Whatever is cut off or flipped on the way, the other node is as it was.
func TestDamagedTransferIsRefused(t *testing.T) {
	from := mustOpenNode(t, t.TempDir())
	from.append(20, 50)
	mustSnapshot(t, from)
	list, _ := from.snapshots.List()
	_, r, err := from.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	to := mustOpenNode(t, t.TempDir())
	to.append(100, 60)
	mustSnapshot(t, to)
	to.index = 0
	bodies := len(whole) - 20*(frameHeader+50) - (frameHeader + 8)
	refused := func(what string, at int, stream []byte) {
		t.Helper()
		sink, err := to.snapshots.Create(1, 10, 1, voters, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = sink.Write(stream)
		if err = errors.Join(err, sink.Close()); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s %d: got %v, want ErrCorrupt", what, at, err)
		}
		mustCheck(t, to)
	}
	for at := len(transferMagic); at < len(whole); at += 3 {
		refused("cut at", at, whole[:at])
	}
	for at := len(transferMagic); at < len(whole); at += 5 {
		if at >= bodies && at < len(whole)-frameHeader-8 {
			continue // in the frame of a body, which is then damaged
		}
		flipped := slices.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		refused("flip at", at, flipped)
	}
	refused("longer by", 1, append(slices.Clone(whole), 0))
}

// A stream that a newer program sends is no state, and not stored as one.
func TestTransferOfAnotherVersionIsRefused(t *testing.T) {
	to := mustOpenNode(t, t.TempDir())
	to.append(100, 60)
	mustSnapshot(t, to)
	sink, err := to.snapshots.Create(1, to.index+10, 1, voters, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sink.Write([]byte(transferName + "\x02, and then what nobody knows"))
	if err := errors.Join(err, sink.Close()); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want %v", err, ErrFormat)
	}
	mustCheck(t, to)
}

// One rotten body at the sender does not keep all others: it is damaged at the
// receiver, too, which gets it from a third node.
func TestDamagedBodyTravelsAsItIs(t *testing.T) {
	from := rottenNode(t, t.TempDir())
	flip(t, from.list[0].path, segmentHeader+80*19)               // the number of body 20: told by the index
	flip(t, from.list[0].path, segmentHeader+80*29+atFrameLength) // the length of body 30
	to := mustOpenNode(t, t.TempDir())
	transfer(t, from, to)
	read, found := to.Pin(10)
	if !found {
		t.Fatal("body 10 is gone")
	}
	if body, err := read(); !errors.Is(err, ErrDamagedBody) {
		t.Errorf("body 10: got %d bytes, %v, want ErrDamagedBody", len(body), err)
	}
	if kept, err := to.Repair(10, bodyOf(10, 60)); !kept || err != nil {
		t.Errorf("repair: got %v, %v, want it kept", kept, err)
	}
	if len(to.machine.Live) != 100 {
		t.Errorf("got %d bodies, want 100", len(to.machine.Live))
	}
	if err := to.check(); err != nil {
		t.Error(err)
	}
}

// A stream, as a node without a disk has it, becomes segments.
func TestStreamBecomesSegments(t *testing.T) {
	memory := NewBodies()
	for number := uint64(1); number <= 200; number++ {
		memory.Append(number, bodyOf(number, 100))
	}
	memory.CloseChunk()
	var stream bytes.Buffer
	if err := memory.WriteLive(&stream, ranges(1, 50, 70, 100)); err != nil {
		t.Fatal(err)
	}
	n := mustOpenNode(t, t.TempDir())
	n.append(5, 10)
	again := bytes.NewReader(stream.Bytes())
	if _, err := n.OpenGeneration(again, 201); err != nil {
		t.Fatal(err)
	}
	if err := n.check(); err != nil {
		t.Fatalf("before commit: %v", err)
	}
	commit, err := n.OpenGeneration(&stream, 201)
	if err != nil {
		t.Fatal(err)
	}
	commit()
	n.machine = bodyMachine{Next: 201, Live: map[uint64]int{}}
	for number := uint64(1); number <= 200; number++ {
		if number <= 50 || number >= 70 && number < 170 {
			n.machine.Live[number] = 100
		}
	}
	if err := n.check(); err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	n.append(3, 40)
	n.CloseChunk()
	if err := n.WriteLive(&copied, liveOf(n.machine.Live)); err != nil {
		t.Fatal(err)
	}
	restored := NewBodies()
	commit, err = restored.OpenGeneration(&copied, n.machine.Next)
	if err != nil {
		t.Fatal(err)
	}
	commit()
	for number, size := range n.machine.Live {
		checkBody(t, restored, number, size)
	}
}

// TestSegmentsAgainstMap runs random rounds of appending, dying, snapshots that
// succeed or are given up, restarts and transfers.
func TestSegmentsAgainstMap(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3))
		dir := t.TempDir()
		n := mustOpenNode(t, dir)
		for round := range 25 {
			for range random.IntN(5) {
				n.append(random.IntN(60), random.IntN(300))
			}
			die := uint64(random.IntN(5))
			n.kill(func(uint64) bool { return random.Uint64N(6) < die })
			sink, err := n.begin()
			if err != nil {
				t.Fatal(err)
			}
			if random.IntN(5) == 0 {
				err = sink.Cancel()
			} else {
				n.append(random.IntN(20), 20)
				err = sink.Close()
			}
			if err == nil {
				err = n.check()
			}
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			switch random.IntN(6) {
			case 0:
				n.Close()
				n = mustOpenNode(t, dir)
			case 1:
				other, otherDir := mustOpenNode(t, t.TempDir()), dir
				if list, _ := n.snapshots.List(); len(list) > 0 {
					transfer(t, n, other)
					n, dir = other, filepath.Dir(other.dir)
				}
				_ = otherDir
			}
			if err := errors.Join(n.check(), n.checkFiles()); err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
		}
	}
}

// TestSegmentsConcurrently has readers and an appender beside snapshots; it is
// for the race detector, and for bodies that vanish while they move to disk.
func TestSegmentsConcurrently(t *testing.T) {
	const total, keep = 20_000, 7 // every seventh body lives
	n := mustOpenNode(t, t.TempDir())
	var group sync.WaitGroup
	appended := make(chan uint64, 64)
	group.Go(func() {
		defer close(appended)
		for number := range uint64(total) {
			n.Append(number, bodyOf(number, 40))
			if number%keep == 0 {
				appended <- number
			}
		}
	})
	for range 2 {
		group.Go(func() {
			for number := range appended {
				for _, number := range []uint64{number, number / 2 / keep * keep} {
					read, found := n.Pin(number)
					if !found {
						t.Errorf("body %d is gone", number)
						return
					}
					if body, err := read(); err != nil || !bytes.Equal(body, bodyOf(number, 40)) {
						t.Errorf("body %d: %d bytes, error %v", number, len(body), err)
						return
					}
				}
			}
		})
	}
	for index := range uint64(20) {
		n.CloseChunk()
		n.mu.RLock()
		limit := n.open.first
		n.mu.RUnlock()
		sink := createSink(t, n.snapshots, index+1, 1)
		err := n.WriteLive(sink, func(yield func(first, count uint64) bool) {
			for number := uint64(0); number < limit; number += keep {
				if !yield(number, 1) {
					return
				}
			}
		})
		if err = errors.Join(err, sink.Close()); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
}

func TestSegmentsMisuse(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 40)
	n.kill(between(30, 60))
	mustSnapshot(t, n)
	n.append(10, 40)
	n.CloseChunk()
	n.append(1, 40)
	for _, tt := range []struct {
		name string
		live []uint64
	}{
		{"number before all", []uint64{0, 1}},
		{"number of the open chunk", []uint64{110, 2}},
		{"number that goes back", []uint64{5, 1, 4, 1}},
		{"number that goes back in memory", []uint64{105, 1, 104, 1}},
		{"more than there are", []uint64{1, 100}},
	} {
		sink := createSink(t, n.snapshots, 50, 1)
		if err := n.WriteLive(sink, ranges(tt.live...)); err == nil {
			t.Errorf("%s: it was written", tt.name)
		}
		sink.Cancel()
		if err := n.WriteLive(io.Discard, ranges(tt.live...)); err == nil {
			t.Errorf("%s: it was written to a stream", tt.name)
		}
	}
	if err := n.check(); err != nil {
		t.Error(err)
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "number 112 is next") {
			t.Errorf("a number that is skipped: got panic %q", p)
		}
	}()
	n.Append(113, nil)
}

// An open reader holds the files of its snapshot, also for a restore that has
// not happened yet.
func TestOpenReaderHoldsItsFiles(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 100)
	mustSnapshot(t, n)
	first := readDir(t, n.dir)
	list, _ := n.snapshots.List()
	_, r, err := n.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	n.kill(between(1, 100))
	n.append(1, 1)
	mustSnapshot(t, n)
	if now := readDir(t, n.dir); len(now) != len(first)+1 {
		t.Errorf("files %v became %v, want one more", first, now)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, n)
}

// A snapshot that ends after the bodies were replaced must not bring its own
// back.
func TestGenerationChangesDuringASnapshot(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 100)
	mustSnapshot(t, n)
	n.append(30, 100)
	n.kill(between(1, 90))
	sink, err := n.begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.restore(); err != nil {
		t.Fatal(err)
	}
	n.append(10, 50)
	if err := errors.Join(sink.Close(), n.check()); err != nil {
		t.Fatal(err)
	}
	n.index = 5
	mustSnapshot(t, n)
	mustCheck(t, n)
}

func TestSnapshotWithMoreBodiesThanItsStateIsRefused(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, 100)
	mustSnapshot(t, n)
	list, _ := n.snapshots.List()
	_, r, err := n.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	own := r.(interface{ StateReader() io.ReadCloser }).StateReader()
	if _, err := n.OpenGeneration(own, 100); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	mustCheck(t, n)
}
