package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// DeleteRange removes the entries from min to max, both included; indexes that
// are not there are ignored.
//
// At the front it moves FirstIndex at once, and removes files only as whole
// segments, only beyond RetainBytes, and not what is Needed; after a restart the
// entries that are still on disk are there again. At the back it is exact and durable on return.
// A range that covers the whole log empties it, and the next entry may have any
// index. A range in the middle is refused.
//
// raft calls it at the front beside a running StoreLogs.
func (l *Log) DeleteRange(from, to uint64) error {
	return l.takeOff(func(n Needed) ([]segment, error) { return l.deleteRange(from, to, n) })
}

// Trim removes the files of what DeleteRange has taken off the front, as far as it
// is not needed any more: Needed is asked again.
func (l *Log) Trim() error { return l.takeOff(l.trim) }

// takeOff calls forget, and removes the files of the segments that it returns.
func (l *Log) takeOff(forget func(Needed) ([]segment, error)) error {
	l.truncating.Lock()
	l.deleting.start(l.sinceOpened())
	forgotten, err := forget(l.options.Needed())
	if err == nil {
		err = l.remove(forgotten)
	}
	l.deleting.stop()
	l.truncating.Unlock()
	if err != nil {
		l.raise()
	}
	return err
}

func (l *Log) trim(needed Needed) ([]segment, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return nil, l.failed
	}
	if l.first <= 1 {
		return nil, nil
	}
	return l.deleteFront(l.first-1, needed)
}

// deleteRange does all but remove the files that it returns.
func (l *Log) deleteRange(from, to uint64, needed Needed) ([]segment, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return nil, l.failed
	}
	first, last := l.first, l.last // only changed under writing
	switch {
	case last == 0 || from > to || to < first || from > last:
		return nil, nil
	case from <= first && to >= last:
		return nil, l.reset(last + 1)
	case from <= first:
		return l.deleteFront(to, needed)
	case to >= last:
		return nil, l.deleteBack(from - 1)
	}
	return nil, fmt.Errorf("delete entries %d to %d from the middle of %d to %d", from, to, first, last)
}

// deleteFront hides the entries up to target and forgets the segments that
// need not be retained. The caller holds writing.
func (l *Log) deleteFront(target uint64, needed Needed) ([]segment, error) {
	l.reading.Lock()
	l.first = target + 1
	l.reading.Unlock()
	limit := before(needed.Pinned)
	unwanted, err := l.engine.forget(min(limit, before(needed.Wanted)), target, int64(l.options.RetainBytes))
	if err != nil {
		return nil, l.fail(err)
	}
	excess, err := l.engine.forget(limit, target, int64(max(l.options.RetainBytes, l.options.RetainLimit)))
	if err != nil {
		return nil, l.fail(err)
	}
	l.measure()
	return slices.Concat(unwanted, excess), nil
}

// before is the index before one, 0 for 0.
func before(index uint64) uint64 { return max(index, 1) - 1 }

// removeAtOnce is how many files are removed before the stopwatch starts anew: a disk
// that is busy with a thousand of them for seconds does not hang.
const removeAtOnce = 16

// remove deletes the files of forgotten segments, without holding up a
// StoreLogs. Such a StoreLogs may reset the log and so replace the directory,
// but only by one that begins after the newest entry, so that no file of a
// forgotten name is in it.
func (l *Log) remove(forgotten []segment) error {
	l.writing.Lock()
	e := l.engine
	l.writing.Unlock()
	for some := range slices.Chunk(forgotten, removeAtOnce) {
		l.deleting.start(l.sinceOpened())
		if err := e.remove(some); err != nil {
			l.writing.Lock()
			defer l.writing.Unlock()
			return l.fail(err)
		}
	}
	return nil
}

// deleteBack removes the entries after last. Readers lose them first. The
// caller holds writing.
func (l *Log) deleteBack(last uint64) error {
	l.reading.Lock()
	l.ring.truncate(last)
	l.last = last
	l.reading.Unlock()
	if err := l.engine.truncateBack(last); err != nil {
		return l.fail(err)
	}
	l.measure()
	return nil
}

// reset replaces the log by an empty one whose next index is next. The caller
// holds writing.
func (l *Log) reset(next uint64) error {
	l.reading.Lock()
	l.ring.clear()
	l.first, l.last = 0, 0
	l.reading.Unlock()
	if err := l.replace(next); err != nil {
		return l.fail(fmt.Errorf("reset log to begin with entry %d: %w", next, err))
	}
	l.measure()
	return nil
}

// replace builds an empty log aside and moves it into place. finishReset
// explains every state that a crash can leave.
func (l *Log) replace(next uint64) error {
	f, replacement, old := l.options.files, l.dir+newSuffix, l.dir+oldSuffix
	if err := l.engine.close(); err != nil {
		return err
	}
	seed := segment{name: segmentName(next), first: next}
	if err := buildEmpty(f, replacement, seed); err != nil {
		return err
	}
	parent := filepath.Dir(l.dir)
	if err := f.rename(l.dir, old); err != nil {
		return err
	}
	if err := f.syncDir(parent); err != nil {
		return err
	}
	if err := f.rename(replacement, l.dir); err != nil {
		return err
	}
	if err := f.syncDir(parent); err != nil {
		return err
	}
	if err := f.removeAll(old); err != nil {
		return err
	}
	e, err := l.options.engine(l.dir, []segment{seed}, next-1, l.options.SegmentSize, f)
	if err != nil {
		return err
	}
	l.engine = e
	return nil
}

// buildEmpty makes a durable log directory with one empty segment.
func buildEmpty(f files, dir string, seed segment) error {
	if err := f.mkdir(dir); err != nil {
		return err
	}
	s, err := f.create(filepath.Join(dir, seed.name))
	if err != nil {
		return err
	}
	if err := errors.Join(s.Sync(), s.Close()); err != nil {
		return err
	}
	if err := markFormat(f, dir); err != nil { // which makes the segment's name durable as well
		return err
	}
	return f.syncDir(filepath.Dir(dir))
}
