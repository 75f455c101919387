package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// smallLimits make segments of a few kilobytes.
var smallLimits = segmentLimits{bytes: 4000, bodies: 50, small: 1000, merge: 8000}

// bodyNode is Segments and Snapshots as a node has them, and a machine that
// knows the live bodies and their sizes.
type bodyNode struct {
	*Segments
	snapshots *Snapshots
	machine   bodyMachine
	index     uint64
}

// bodyMachine is the state of a bodyNode.
type bodyMachine struct {
	Next uint64
	Live map[uint64]int // number → size
}

// openNode opens a node in dir and restores its newest snapshot.
func openNode(dir string, f files, limits segmentLimits) (*bodyNode, error) {
	segments, err := OpenSegments(filepath.Join(dir, SegmentDir), SegmentOptions{
		Pause: func(time.Duration) {}, files: f, limits: limits,
	})
	if err != nil {
		return nil, err
	}
	snapshots, err := OpenSnapshots(filepath.Join(dir, SnapshotDir), SnapshotOptions{Segments: segments, files: f})
	if err != nil {
		return nil, err
	}
	n := &bodyNode{
		Segments: segments, snapshots: snapshots,
		machine: bodyMachine{Next: 1, Live: map[uint64]int{}},
	}
	return n, n.restore()
}

// quickFiles do not wait for the disk.
type quickFiles struct{ osFiles }

func (f quickFiles) create(path string) (file, error) {
	inner, err := f.osFiles.create(path)
	return quickFile{inner}, err
}

func (quickFiles) syncDir(string) error { return nil }

type quickFile struct{ file }

func (quickFile) Sync() error { return nil }

func mustOpenNode(t testing.TB, dir string) *bodyNode {
	t.Helper()
	n, err := openNode(dir, quickFiles{}, smallLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// restore makes the newest snapshot, if there is one, the node's state.
func (n *bodyNode) restore() error {
	list, err := n.snapshots.List()
	if err != nil || len(list) == 0 {
		return err
	}
	_, r, err := n.snapshots.Open(list[0].ID)
	if err != nil {
		return err
	}
	defer r.Close()
	source := io.Reader(r)
	if own, ok := r.(interface{ StateReader() io.ReadCloser }); ok {
		source = own.StateReader()
	}
	decoder := json.NewDecoder(oneByteReader{source}) // which reads no byte too many
	var m bodyMachine
	if err := decoder.Decode(&m); err != nil {
		return err
	}
	commit, err := n.OpenGeneration(source, m.Next)
	if err != nil {
		return err
	}
	commit()
	n.machine, n.index = m, list[0].Index
	return nil
}

type oneByteReader struct{ io.Reader }

func (r oneByteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// append appends count bodies of a size.
func (n *bodyNode) append(count, size int) {
	for range count {
		n.Append(n.machine.Next, bodyOf(n.machine.Next, size))
		n.machine.Live[n.machine.Next] = size
		n.machine.Next++
	}
}

// kill makes bodies dead for which dead is true.
func (n *bodyNode) kill(dead func(number uint64) bool) {
	maps.DeleteFunc(n.machine.Live, func(number uint64, _ int) bool { return dead(number) })
}

// begin writes a snapshot but for the end of it.
func (n *bodyNode) begin() (raft.SnapshotSink, error) {
	n.index++
	n.CloseChunk()
	sink, err := n.snapshots.Create(1, n.index, 1, voters, 1, nil)
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(n.machine)
	if err == nil {
		_, err = sink.Write(state)
	}
	if err == nil {
		err = n.WriteLive(sink, liveOf(n.machine.Live))
	}
	if err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return sink, nil
}

func (n *bodyNode) snapshot() error {
	sink, err := n.begin()
	if err != nil {
		return err
	}
	return sink.Close()
}

func mustSnapshot(t testing.TB, n *bodyNode) {
	t.Helper()
	if err := n.snapshot(); err != nil {
		t.Fatal(err)
	}
}

// check finds live bodies that cannot be read, and files that should not be
// there.
func (n *bodyNode) check() error {
	for number, size := range n.machine.Live {
		read, found := n.Pin(number)
		if !found {
			return fmt.Errorf("body %d is gone", number)
		}
		if got, err := read(); err != nil || !bytes.Equal(got, bodyOf(number, size)) {
			return fmt.Errorf("body %d: %d bytes, want %d; error %w", number, len(got), size, err)
		}
	}
	if _, found := n.Pin(n.machine.Next); found {
		return fmt.Errorf("body %d is there", n.machine.Next)
	}
	return nil
}

// checkFiles finds files that are not those of the newest snapshot.
func (n *bodyNode) checkFiles() error {
	found, err := os.ReadDir(n.dir)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	want := []string{}
	for _, s := range n.list {
		want = append(want, s.name())
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		return fmt.Errorf("files %v are there, want %v", names, want)
	}
	return nil
}

func mustCheck(t testing.TB, n *bodyNode) {
	t.Helper()
	if err := errors.Join(n.check(), n.checkFiles()); err != nil {
		t.Fatal(err)
	}
}

// every is all numbers of which the rest of a division is in rests.
func every(divisor uint64, rests ...uint64) func(uint64) bool {
	return func(number uint64) bool { return slices.Contains(rests, number%divisor) }
}

func between(first, last uint64) func(uint64) bool {
	return func(number uint64) bool { return number >= first && number <= last }
}
