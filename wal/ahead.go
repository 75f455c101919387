package wal

import (
	"errors"
	"fmt"
	"os"
)

const (
	// aheadChunk is how many zeros are written at a time, in bytes: one commit of the
	// file system's journal serves that many bytes of records.
	aheadChunk = 1 << 20

	// aheadLow is how many zeros are left, in bytes, when more are written.
	aheadLow = 512 << 10
)

// zeros are written again and again, and never changed.
var zeros [64 << 10]byte

// ahead keeps zeros behind the records of the segment that is written, and syncs
// it. A record that replaces zeros changes neither the length of the file nor
// where it lies, so that its sync is one of data alone; behind the end of a file
// each sync is a commit of the file system's journal as well, and nodes that share
// a disk wait for each other's.
//
// It opens the file for itself: tidwall keeps its own descriptor, and writes at
// its own position. Zeros never reach behind limit, where tidwall begins the next
// segment, so that a complete segment has none. Its methods are called by one
// goroutine at a time.
type ahead struct {
	file  *os.File
	limit int64
	end   int64         // the length of the file, if no record is behind it
	next  int64         // where the zeros begin that are being written
	done  chan struct{} // closed when they are on the disk; nil if none are written
	err   error         // of the sync of zeros, once done is closed
	full  bool          // zeros could not be written: the file grows with its records
}

// openAhead opens the segment at path.
func openAhead(path string, limit int64) (*ahead, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, filePermissions)
	if err != nil {
		return nil, fmt.Errorf("open segment to sync it: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read size of segment: %w", err), f.Close())
	}
	return &ahead{file: f, limit: limit, end: info.Size()}, nil
}

// makeWay waits, if need be, until records may be written up to size: zeros that
// are on their way must not come later.
func (a *ahead) makeWay(size int64) error {
	if a.done == nil || size <= a.next {
		return nil
	}
	return a.wait()
}

// wait waits until no zeros are written any more, and says what became of them.
func (a *ahead) wait() error {
	if a.done == nil {
		return nil
	}
	<-a.done
	a.done = nil
	return a.err
}

// sync makes durable what is in the file, of which size bytes are records, and has
// more zeros written if few are left.
func (a *ahead) sync(size int64) error {
	if err := syncData(a.file); err != nil {
		return err
	}
	select {
	case <-a.done:
		if err := a.wait(); err != nil {
			return err
		}
	default:
	}
	if a.done == nil && !a.full && a.end-size < aheadLow {
		a.extend(max(a.end, size))
	}
	return nil
}

// extend begins to write a chunk of zeros from an offset on.
func (a *ahead) extend(from int64) {
	to := min(from+aheadChunk, a.limit)
	if from >= to {
		return
	}
	a.next, a.end = from, to
	done := make(chan struct{})
	a.done = done
	go func() {
		defer close(done)
		a.full, a.err = writeZeros(a.file.Name(), from, to)
	}()
}

// writeZeros writes zeros and syncs them. full says that there is no room for
// them, or no descriptor, which is no error: records may have more luck. The
// descriptor is a new one, because the kernel tells an error of the disk to each
// descriptor once, and that of sync must not miss it.
func writeZeros(path string, from, to int64) (full bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, filePermissions)
	if err != nil {
		return true, nil //nolint:nilerr // nothing was written, and records need no zeros
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for from < to {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return true, nil //nolint:nilerr // the next record meets what is not about room
		}
		from += int64(n)
	}
	if err := syncData(f); err != nil {
		return false, fmt.Errorf("sync zeros: %w", err)
	}
	return false, nil
}

// leave forgets a segment that is complete.
func (a *ahead) leave() error {
	if err := a.wait(); err != nil {
		return err
	}
	return a.file.Close()
}

// close takes the zeros behind size off the file, and forgets it.
func (a *ahead) close(size int64) error {
	err := a.wait()
	if err == nil {
		err = a.file.Truncate(size)
	}
	return errors.Join(err, a.file.Close())
}
