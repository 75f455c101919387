package wal

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// maxDamagedBodies is how many damaged bodies of a segment are told one by one.
const maxDamagedBodies = 10

// verifySegments reads the segments of a snapshot, every body of them, and looks
// for the live ones.
func (r *Report) verifySegments(dir, snapshot string, facts []segmentFacts, live iter.Seq2[uint64, uint64]) error {
	named := map[uint64]bool{}
	wanted := newWantedBodies(live)
	defer wanted.stop()
	whole := true // all segments could be read
	for _, f := range facts {
		named[f.Serial] = true
		r.Segments.Segments++
		r.Segments.Bodies += f.Count
		r.Segments.Bytes += f.Size
		err := r.verifySegment(dir, f, wanted)
		if err != nil && !exists(snapshot) {
			r.note("%s: segments not verified, a newer snapshot took its place meanwhile", snapshot)
			return nil
		}
		whole = whole && err == nil
		if err := r.problem(err); err != nil {
			return err
		}
	}
	if wanted.end(); wanted.missing > 0 && whole {
		r.Segments.Missing = wanted.missing
		r.Problems = append(r.Problems, fmt.Sprintf("%s: no segment has body %d and %d others that the state refers to; %s",
			snapshot, wanted.example, wanted.missing-1, advice))
	}
	if !exists(dir) {
		return nil
	}
	files, err := segmentFiles(dir)
	if err != nil {
		return err
	}
	for serial, name := range files {
		if !named[serial] {
			r.note("%s: no snapshot refers to it; the next start removes it", filepath.Join(dir, name))
		}
	}
	return nil
}

func (r *Report) verifySegment(dir string, f segmentFacts, wanted *wantedBodies) (err error) {
	s, err := openSegment(dir, f)
	if err != nil {
		return err
	}
	s.files, s.index = &fileCache{}, &pageCache{}
	defer func() { err = errors.Join(err, s.files.close()) }()
	var damaged uint64
	err = s.verify(wanted.found, func(_ uint64, err error) {
		if damaged++; damaged <= maxDamagedBodies {
			r.Problems = append(r.Problems, err.Error())
		}
	})
	if damaged > maxDamagedBodies {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %d damaged bodies in all", s.path, damaged))
	}
	r.Segments.Damaged += damaged
	return err
}

// noBodies are those of a state that refers to none.
func noBodies(func(first, count uint64) bool) {}

// decode reads the state of a snapshot with the given function; an error of it is
// a problem.
func (r *Report) decode(path string, decode DecodeState) iter.Seq2[uint64, uint64] {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		r.note("%s: not decoded, a newer snapshot took its place meanwhile", path)
		return noBodies
	}
	live := noBodies
	if err == nil {
		live, err = decode(struct{ io.Reader }{f})
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %v; %s", path, err, advice))
		return noBodies
	}
	return live
}

// wantedBodies goes through the numbers that a state refers to, beside those that
// are there; both ascend.
type wantedBodies struct {
	next    func() (first, count uint64, ok bool)
	stop    func()
	first   uint64 // of the range at hand
	count   uint64 // 0: there is none left
	missing uint64
	example uint64 // one that is missing
}

func newWantedBodies(live iter.Seq2[uint64, uint64]) *wantedBodies {
	w := &wantedBodies{}
	w.next, w.stop = iter.Pull2(live)
	w.advance()
	return w
}

func (w *wantedBodies) advance() { w.first, w.count, _ = w.next() }

// found says that a body is there, and none between it and the one before.
func (w *wantedBodies) found(number uint64) {
	for w.count > 0 && w.first+w.count <= number {
		w.miss(w.count)
		w.advance()
	}
	if w.count == 0 || w.first > number {
		return
	}
	w.miss(number - w.first)
	w.first, w.count = number+1, w.first+w.count-number-1
	if w.count == 0 {
		w.advance()
	}
}

// end says that there are no more bodies.
func (w *wantedBodies) end() {
	for w.count > 0 {
		w.miss(w.count)
		w.advance()
	}
}

func (w *wantedBodies) miss(count uint64) {
	if count > 0 {
		w.example = w.first
		w.missing += count
	}
}
