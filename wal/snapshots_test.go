package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

var voters = raft.Configuration{Servers: []raft.Server{
	{ID: "a", Address: "127.0.0.1:1", Suffrage: raft.Voter},
	{ID: "b", Address: "127.0.0.1:2", Suffrage: raft.Nonvoter},
}}

func openSnapshots(t *testing.T, dir string) *Snapshots {
	t.Helper()
	s, err := OpenSnapshots(dir, SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func createSink(t *testing.T, s *Snapshots, index, term uint64) raft.SnapshotSink {
	t.Helper()
	sink, err := s.Create(1, index, term, voters, index-1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

func stateOf(index uint64, size int) []byte { return bodyOf(index, size) }

// take makes a snapshot, written in pieces of many sizes.
func take(s *Snapshots, index, term uint64, size int) (string, error) {
	sink, err := s.Create(1, index, term, voters, index-1, nil)
	if err != nil {
		return "", err
	}
	state := stateOf(index, size)
	for n := 1; len(state) > 0; n = n*3 + 1 {
		n = min(n, len(state))
		if _, err := sink.Write(state[:n]); err != nil {
			return "", errors.Join(err, sink.Cancel())
		}
		state = state[n:]
	}
	return sink.ID(), sink.Close()
}

func mustTake(t *testing.T, s *Snapshots, index, term uint64, size int) string {
	t.Helper()
	id, err := take(s, index, term, size)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func checkList(t *testing.T, s *Snapshots, want ...uint64) {
	t.Helper()
	metas, err := s.List()
	if err != nil {
		t.Error(err)
	}
	var got []uint64
	for _, m := range metas {
		got = append(got, m.Index)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got snapshots %v, want %v", got, want)
	}
}

func checkSnapshot(t *testing.T, s *Snapshots, id string, index, term uint64, size int) {
	t.Helper()
	meta, r, err := s.Open(id)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, stateOf(index, size)) {
		t.Errorf("got %d bytes of state, error %v; want %d", len(got), err, size)
	}
	want := raft.SnapshotMeta{
		Version: 1, ID: id, Index: index, Term: term,
		Configuration: voters, ConfigurationIndex: index - 1, Size: int64(size),
	}
	if !reflect.DeepEqual(*meta, want) {
		t.Errorf("got %+v, want %+v", *meta, want)
	}
}

func TestSnapshotsOverReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	s := openSnapshots(t, dir)
	checkList(t, s)
	sizes := map[uint64]int{10: 0, 20: 100, 30: pieceSize, 40: 3*pieceSize + 17}
	for _, index := range []uint64{10, 20, 30, 40} {
		id := mustTake(t, s, index, 2, sizes[index])
		checkSnapshot(t, s, id, index, 2, sizes[index])
	}
	checkList(t, s, 40)
	s = openSnapshots(t, dir)
	checkList(t, s, 40)
	metas, _ := s.List()
	checkSnapshot(t, s, metas[0].ID, 40, 2, sizes[40])
	if id := mustTake(t, s, 40, 2, 5); id == metas[0].ID {
		t.Errorf("two snapshots have the name %s", id)
	}
	checkList(t, s, 40)
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d directories are there, want 1", len(left))
	}
}

func TestSinkThatIsOlderThanTheNewestSnapshot(t *testing.T) {
	s := openSnapshots(t, filepath.Join(t.TempDir(), "snapshots"))
	slow := createSink(t, s, 10, 1)
	mustTake(t, s, 20, 1, 100)
	if err := slow.Close(); !errors.Is(err, ErrStaleSnapshot) {
		t.Errorf("got %v, want ErrStaleSnapshot", err)
	}
	checkList(t, s, 20)
	if left, _ := os.ReadDir(s.dir); len(left) != 1 {
		t.Errorf("%d directories are there, want 1", len(left))
	}
}

func TestSinkCancelAndSecondClose(t *testing.T) {
	s := openSnapshots(t, filepath.Join(t.TempDir(), "snapshots"))
	sink := createSink(t, s, 10, 1)
	sink.Write(make([]byte, 2*pieceSize))
	if err := sink.Cancel(); err != nil {
		t.Error(err)
	}
	if err := sink.Close(); err == nil {
		t.Error("a cancelled snapshot can be closed")
	}
	checkList(t, s)
	if left, _ := os.ReadDir(s.dir); len(left) != 0 {
		t.Errorf("%d directories are left", len(left))
	}
	sink = createSink(t, s, 11, 1)
	if err := errors.Join(sink.Close(), sink.Close(), sink.Cancel()); err != nil {
		t.Errorf("raft closes a sink that its FSM has closed: %v", err)
	}
	checkList(t, s, 11)
}

func TestReaderOutlivesItsSnapshot(t *testing.T) {
	s := openSnapshots(t, filepath.Join(t.TempDir(), "snapshots"))
	id := mustTake(t, s, 10, 1, 5000)
	_, r, err := s.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustTake(t, s, 20, 1, 10)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, stateOf(10, 5000)) {
		t.Errorf("got %d bytes, error %v", len(got), err)
	}
	if _, _, err := s.Open(id); err == nil {
		t.Error("a removed snapshot can be opened")
	}
}

// damages are ways in which a snapshot of more than 1,000 bytes can rot.
var damages = []struct {
	name   string
	damage func(dir string) error
}{
	{"flip in the state", func(dir string) error {
		return patch(filepath.Join(dir, stateFile), func(b []byte) []byte { b[777] ^= 4; return b })
	}},
	{"state too short", func(dir string) error {
		return patch(filepath.Join(dir, stateFile), func(b []byte) []byte { return b[:len(b)-1] })
	}},
	{"state too long", func(dir string) error {
		return patch(filepath.Join(dir, stateFile), func(b []byte) []byte { return append(b, 0) })
	}},
	{"no state", func(dir string) error { return os.Remove(filepath.Join(dir, stateFile)) }},
	{"no meta", func(dir string) error { return os.Remove(filepath.Join(dir, metaFile)) }},
	{"meta of another index", func(dir string) error {
		return patch(filepath.Join(dir, metaFile), func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"index": 20`), []byte(`"index": 21`), 1)
		})
	}},
	{"meta with another member", func(dir string) error {
		return patch(filepath.Join(dir, metaFile), func(b []byte) []byte {
			return bytes.Replace(b, []byte("127.0.0.1:1"), []byte("127.0.0.1:3"), 1)
		})
	}},
	{"meta cut", func(dir string) error {
		return patch(filepath.Join(dir, metaFile), func(b []byte) []byte { return b[:len(b)/2] })
	}},
}

func patch(path string, change func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(b), 0o600)
}

func TestDamagedNewestSnapshotIsNotPassedOver(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "snapshots")
			s := openSnapshots(t, dir)
			id := mustTake(t, s, 20, 1, 1000)
			leaveOlder(t, dir)
			if err := tt.damage(filepath.Join(dir, id)); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenSnapshots(dir, SnapshotOptions{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "keep this folder") {
				t.Errorf("open of the store: got %v, want ErrCorrupt with advice", err)
			}
			if strings.Contains(tt.name, "meta") {
				return // a running store read it before
			}
			if _, _, err := s.Open(id); !errors.Is(err, ErrCorrupt) {
				t.Errorf("open of the snapshot: got %v, want ErrCorrupt", err)
			}
			if _, err := s.List(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("list: got %v, want ErrCorrupt", err)
			}
		})
	}
}

// A flipped bit anywhere in a meta file is found, also where JSON reads the same: in
// the name of a member that is 0, or in the case of a letter.
func TestEveryBitOfMetaCounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	id := mustTake(t, openSnapshots(t, dir), 10, 1, 100)
	name := snapshotName{text: id, index: 10, term: 1}
	path := filepath.Join(dir, id, metaFile)
	meta, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readMeta(dir, name); err != nil {
		t.Fatalf("intact: got %v", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i := range meta {
		for bit := range 8 {
			rotten := meta[i] ^ 1<<bit
			if _, err := file.WriteAt([]byte{rotten}, int64(i)); err != nil {
				t.Fatal(err)
			}
			if _, err := readMeta(dir, name); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%q at byte %d became %q: got %v, want ErrCorrupt", meta[i], i, rotten, err)
			}
		}
		if _, err := file.WriteAt(meta[i:i+1], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// leaveOlder puts a snapshot up to entry 10 beside the newer one of dir, as a crash
// does that prevents its removal.
func leaveOlder(t *testing.T, dir string) (id string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "snapshots")
	id = mustTake(t, openSnapshots(t, other), 10, 1, 1000)
	if err := os.Rename(filepath.Join(other, id), filepath.Join(dir, id)); err != nil {
		t.Fatal(err)
	}
	return id
}

// A start removes older snapshots, whether they are damaged or not.
func TestStartRemovesOlderSnapshots(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "snapshots")
		id := mustTake(t, openSnapshots(t, dir), 20, 1, 1000)
		if older := leaveOlder(t, dir); damaged {
			if err := os.Remove(filepath.Join(dir, older, stateFile)); err != nil {
				t.Fatal(err)
			}
		}
		checkList(t, openSnapshots(t, dir), 20)
		if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != id {
			t.Errorf("older one damaged: %v: got %v, want %s alone", damaged, left, id)
		}
	}
}

// TestPowerCutDuringSnapshot cuts the power after each call that a second
// snapshot makes: the next start finds it whole, or else the one before it.
func TestPowerCutDuringSnapshot(t *testing.T) {
	const size = 2*pieceSize + 5
	var withNew, without int
	for calls := 0; ; calls++ {
		dir := filepath.Join(t.TempDir(), "snapshots")
		f := newFaultyFiles(-1)
		s, err := OpenSnapshots(dir, SnapshotOptions{files: f})
		if err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, 20, 1, 200)
		f.count, f.calls = 0, calls
		_, err = take(s, 30, 1, size)
		if cutErr := f.cut(); cutErr != nil {
			t.Fatal(cutErr)
		}
		s = openSnapshots(t, dir)
		metas, _ := s.List()
		switch metas[0].Index {
		case 30:
			withNew++
			checkSnapshot(t, s, metas[0].ID, 30, 1, size)
		default:
			without++
			checkList(t, s, 20)
			checkSnapshot(t, s, metas[0].ID, 20, 1, 200)
			if err == nil {
				t.Errorf("power cut after %d calls: the sink was closed, and the snapshot is lost", calls)
			}
		}
		if t.Failed() {
			t.Fatalf("power cut after %d calls", calls)
		}
		if calls > f.count {
			break
		}
	}
	if withNew < 2 || without < 8 {
		t.Errorf("%d power cuts left the snapshot, %d did not; want some of both", withNew, without)
	}
}
