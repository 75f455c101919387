package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// openWith opens a node with limits of its own.
func openWith(t testing.TB, dir string, limits segmentLimits) *bodyNode {
	t.Helper()
	n, err := openNode(dir, quickFiles{}, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// bodies60 have frames of 80 bytes, 50 to a segment of 4,000.
const bodies60 = 60

func counts(n *bodyNode) string {
	var all []uint64
	for _, s := range n.list {
		all = append(all, s.Count)
	}
	return fmt.Sprint(all)
}

// TestWhatIsMerged begins with five full segments of 50 bodies (1 to 50, …,
// 201 to 250). Small is less than 1,000 bytes of 4,000: 12 bodies.
func TestWhatIsMerged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		dead   [][2]uint64
		add    int
		merge  int64
		want   string
		rotten bool
	}{
		{name: "nothing dead", want: "[50 50 50 50 50]"},
		{name: "half dead", dead: [][2]uint64{{1, 25}, {101, 125}}, want: "[50 50 50 50 50]"},
		{name: "all dead", dead: [][2]uint64{{1, 50}, {101, 150}}, want: "[50 50 50]"},
		{name: "everything dead", dead: [][2]uint64{{1, 250}}, want: "[]"},
		{name: "one sparse", dead: [][2]uint64{{51, 90}}, want: "[50 10 50 50 50]"},
		{name: "sparse neighbours", dead: [][2]uint64{{51, 90}, {101, 140}}, want: "[50 20 50 50]"},
		{name: "neighbours once what is between is dead", dead: [][2]uint64{{51, 90}, {101, 150}, {151, 190}}, want: "[50 20 50]"},
		{name: "sparse, but no neighbours", dead: [][2]uint64{{1, 40}, {101, 140}, {201, 240}}, want: "[10 50 10 50 10]"},
		{name: "more than may be merged", dead: [][2]uint64{{1, 40}, {51, 90}, {101, 140}, {151, 190}}, merge: 1700, want: "[20 50 50 50]"},
		{name: "new bodies", add: 20, want: "[50 50 50 50 50 20]"},
		{name: "new bodies behind a small one", dead: [][2]uint64{{201, 240}}, add: 20, want: "[50 50 50 50 30]"},
		{name: "damaged index", dead: [][2]uint64{{51, 90}, {101, 140}}, rotten: true, want: "[50 50 50 50 50]"},
		{name: "damaged index before new bodies", dead: [][2]uint64{{51, 90}, {201, 240}}, add: 5, rotten: true, want: "[50 50 50 50 15]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := segmentLimits{bytes: 4000, bodies: 1000, small: 1000, merge: 1 << 20}
			if tt.merge > 0 {
				limits.merge = tt.merge
			}
			dir := t.TempDir()
			n := openWith(t, dir, limits)
			n.append(250, bodies60)
			mustSnapshot(t, n)
			if tt.rotten {
				flip(t, n.list[1].path, n.list[1].end+30)
			}
			for _, dead := range tt.dead {
				n.kill(between(dead[0], dead[1]))
			}
			n.append(tt.add, bodies60)
			for range 2 {
				mustSnapshot(t, n)
				if got := counts(n); got != tt.want {
					t.Errorf("got segments of %s bodies, want %s", got, tt.want)
				}
				if tt.rotten {
					n.kill(between(51, 100)) // cannot be read
				}
				if err := errors.Join(n.check(), n.checkFiles()); err != nil {
					t.Error(err)
				}
				if tt.rotten || tt.merge > 0 {
					return
				}
			}
			mustCheck(t, openWith(t, dir, limits))
		})
	}
}

func flip(t testing.TB, path string, at int64) {
	t.Helper()
	if err := patch(path, func(b []byte) []byte { b[at] ^= 8; return b }); err != nil {
		t.Fatal(err)
	}
}

// A damaged body is copied as it is: after a merge it is damaged, and alone.
func TestDamagedBodyIsMergedAsItIs(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(100, bodies60)
	mustSnapshot(t, n)
	flip(t, n.list[0].path, segmentHeader+80*9+frameHeader+20) // body 10
	n.kill(every(5, 1, 2, 3, 4))
	before := n.list[0].name()
	mustSnapshot(t, n)
	if n.list[0].name() == before {
		t.Fatal("nothing was merged")
	}
	read, found := n.Pin(10)
	if !found {
		t.Fatal("body 10 is gone")
	}
	if body, err := read(); !errors.Is(err, ErrDamagedBody) {
		t.Errorf("got %d bytes, error %v; want ErrDamagedBody", len(body), err)
	}
	delete(n.machine.Live, 10)
	mustCheck(t, n)
}

// TestFilesOfADay takes 200 snapshots of queues of which half are read: the
// files stay few, and what they take stays near to what is live.
func TestFilesOfADay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	limits := segmentLimits{bytes: 64 << 10, bodies: 1 << 20, small: 8 << 10, merge: 64 << 10}
	n := openWith(t, t.TempDir(), limits)
	for range 200 {
		first := n.machine.Next
		n.append(100+random.IntN(300), bodies60)
		n.kill(func(number uint64) bool { return number >= first && number%2 == 0 || random.IntN(300) == 0 })
		mustSnapshot(t, n)
	}
	mustCheck(t, n)
	live := int64(len(n.machine.Live)) * 80
	if s := n.Stats(); s.Segments > int(live/limits.small)+5 || s.Bytes > 2*live {
		t.Errorf("%+v for %d bytes of live bodies", s, live)
	}
}

// Segments of tiny bodies end by count.
func TestSegmentOfManyBodies(t *testing.T) {
	n := mustOpenNode(t, t.TempDir())
	n.append(120, 0)
	mustSnapshot(t, n)
	if got := counts(n); got != "[50 50 20]" {
		t.Errorf("got segments of %s bodies, want [50 50 20]", got)
	}
	mustCheck(t, n)
}

// Numbers that are far apart do not fit in one index.
func TestSegmentOfFarNumbers(t *testing.T) {
	store, err := OpenSegments(filepath.Join(t.TempDir(), SegmentDir), SegmentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	out := &segmentRoll{store: store}
	numbers := []uint64{1, 1 + maxPageNumber, 2 + maxPageNumber, 1 << 60}
	for _, number := range numbers {
		if err := out.add(number, bodyOf(number, 9)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := out.end()
	if err != nil || len(made) != 3 {
		t.Fatalf("%d segments, error %v; want 3", len(made), err)
	}
	for i, s := range []*bodySegment{made[0], made[0], made[1], made[2]} {
		if _, err := s.body(numbers[i]); err != nil {
			t.Error(err)
		}
	}
	out.drop()
	if left, _ := os.ReadDir(store.dir); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}
