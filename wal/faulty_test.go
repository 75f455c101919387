package wal

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

var errPower = errors.New("the power is gone")

// faultyFiles is a file system of which the power fails after a number of
// calls: later calls fail, and cut undoes what was not synced.
type faultyFiles struct {
	osFiles
	calls int // that still succeed; negative: all
	count int // made so far
	// undo holds, by directory, what takes back changes of names in it that
	// were not synced; it is given the path that the directory has then.
	undo  map[string][]func(dir string) error
	files []*faultyFile
	// attic, if it is set, is where removed files are until the removal is
	// durable. Else removals take effect at once.
	attic   string
	removed int
	keep    bool // half of what was not synced is there after the cut
}

func newFaultyFiles(calls int) *faultyFiles {
	return &faultyFiles{calls: calls, undo: map[string][]func(dir string) error{}}
}

// next counts a call.
func (f *faultyFiles) next() error {
	f.count++
	if f.calls >= 0 && f.count > f.calls {
		return errPower
	}
	return nil
}

func (f *faultyFiles) change(path string, undo func(dir string) error) {
	dir := filepath.Dir(path)
	f.undo[dir] = append(f.undo[dir], undo)
}

func (f *faultyFiles) made(path string) {
	f.change(path, func(dir string) error { return os.RemoveAll(filepath.Join(dir, filepath.Base(path))) })
}

func (f *faultyFiles) create(path string) (file, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	inner, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	f.made(path)
	file := &faultyFile{files: f, File: inner}
	f.files = append(f.files, file)
	return file, nil
}

func (f *faultyFiles) mkdir(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	f.made(path)
	return f.osFiles.mkdir(path)
}

func (f *faultyFiles) rename(from, to string) error {
	if err := f.next(); err != nil {
		return err
	}
	f.change(to, func(dir string) error {
		return os.Rename(filepath.Join(dir, filepath.Base(to)), filepath.Join(dir, filepath.Base(from)))
	})
	if inside, found := f.undo[from]; found { // a directory
		delete(f.undo, from)
		f.undo[to] = inside
	}
	return f.osFiles.rename(from, to)
}

func (f *faultyFiles) removeAll(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	if f.attic == "" || !exists(path) {
		return f.osFiles.removeAll(path)
	}
	f.removed++
	kept := filepath.Join(f.attic, strconv.Itoa(f.removed))
	f.change(path, func(dir string) error { return os.Rename(kept, filepath.Join(dir, filepath.Base(path))) })
	return os.Rename(path, kept)
}

func (f *faultyFiles) truncate(path string, size int64) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.osFiles.truncate(path, size)
}

func (f *faultyFiles) settle(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.osFiles.settle(path)
}

func (f *faultyFiles) syncDir(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	delete(f.undo, path)
	_, err := os.Stat(path)
	return err
}

// cut is the end of the power: what was not synced is lost.
func (f *faultyFiles) cut() error {
	var errs []error
	for _, file := range f.files {
		if file.synced < file.written {
			left := file.synced
			if f.keep {
				left += (file.written - file.synced) / 2
			}
			errs = append(errs, file.Truncate(left))
		}
		errs = append(errs, file.File.Close())
	}
	inner := func(a, b string) int { return len(b) - len(a) } // before the directory around them
	for _, dir := range slices.SortedFunc(maps.Keys(f.undo), inner) {
		for _, takeBack := range slices.Backward(f.undo[dir]) {
			if err := takeBack(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// faultyFile knows how much of it is durable.
type faultyFile struct {
	*os.File
	files           *faultyFiles
	written, synced int64
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.files.next(); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

func (f *faultyFile) Sync() error {
	if err := f.files.next(); err != nil {
		return err
	}
	f.synced = f.written
	return nil
}

// Close keeps the file open for cut.
func (f *faultyFile) Close() error { return nil }

var errDisk = errors.New("the disk says no")

// faultyEngine fails one of its calls.
type faultyEngine struct {
	engine
	fail string // the call
	hits int    // how often it was made
}

func (e *faultyEngine) check(call string) error {
	if e.fail != call {
		return nil
	}
	e.hits++
	return errDisk
}

func (e *faultyEngine) flush() error { return errors.Join(e.check("flush"), e.engine.flush()) }
func (e *faultyEngine) sync() error  { return errors.Join(e.check("sync"), e.engine.sync()) }

func (e *faultyEngine) read(index uint64) ([]byte, error) {
	if err := e.check("read"); err != nil {
		return nil, err
	}
	return e.engine.read(index)
}

func (e *faultyEngine) truncateBack(last uint64) error {
	return errors.Join(e.check("truncateBack"), e.engine.truncateBack(last))
}

func (e *faultyEngine) remove(forgotten []segment) error {
	return errors.Join(e.check("remove"), e.engine.remove(forgotten))
}

func (e *faultyEngine) close() error { return errors.Join(e.check("close"), e.engine.close()) }
