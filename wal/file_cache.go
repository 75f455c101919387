package wal

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// maxOpenSegments bounds the files that are open for reading, but for those of
// removed segments that are still pinned.
const maxOpenSegments = 200

// fileCache keeps segment files open for reading.
type fileCache struct {
	mu     sync.Mutex
	opened []*bodySegment // oldest first
	closed bool
}

// openFile is a file with a count of those who read it now.
type openFile struct {
	*os.File
	readers int
	evicted bool // the last reader closes it
}

// acquire opens the file of s, if it is not open; release follows.
func (c *fileCache) acquire(s *bodySegment) (*openFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.open(s); err != nil {
		return nil, err
	}
	s.file.readers++
	c.evict()
	return s.file, nil
}

// open opens the file of s, if it is not open. The caller holds mu.
func (c *fileCache) open(s *bodySegment) error {
	if s.file != nil {
		return nil
	}
	if c.closed {
		return ErrClosed
	}
	if s.removed {
		return &os.PathError{Op: "open", Path: s.path, Err: os.ErrNotExist}
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	s.file = &openFile{File: f}
	c.opened = append(c.opened, s)
	return nil
}

// evict closes the file that has been open for longest, if they are too many.
// The caller holds mu.
func (c *fileCache) evict() {
	for len(c.opened) > maxOpenSegments {
		oldest := c.opened[0]
		c.opened = c.opened[1:]
		f := oldest.file
		oldest.file = nil
		if f.evicted = true; f.readers == 0 {
			_ = f.Close() // nothing was written to it
		}
	}
}

func (c *fileCache) release(f *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.readers--; f.readers == 0 && f.evicted {
		_ = f.Close() // nothing was written to it
	}
}

// detach readies s for the removal of its file, which nobody pins any more: it is
// open from now on until the last pin is read. The file of a pin that is dropped
// unread is closed by the garbage collector.
func (c *fileCache) detach(s *bodySegment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.pins.Load() > 0 {
		if err := c.open(s); err != nil {
			return err
		}
	}
	c.opened = slices.DeleteFunc(c.opened, func(other *bodySegment) bool { return other == s })
	s.removed = true
	c.closeUnpinned(s)
	return nil
}

// unpinned closes the file of s if it is removed.
func (c *fileCache) unpinned(s *bodySegment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.removed {
		c.closeUnpinned(s)
	}
}

// closeUnpinned lets go of the file of s, which is removed, unless it is pinned.
// The caller holds mu.
func (c *fileCache) closeUnpinned(s *bodySegment) {
	if s.file == nil || s.pins.Load() > 0 {
		return
	}
	f := s.file
	s.file = nil
	if f.evicted = true; f.readers == 0 {
		_ = f.Close() // nothing was written to it
	}
}

// close closes all files; nothing can be read then.
func (c *fileCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, s := range c.opened {
		f := s.file
		s.file = nil
		if f.evicted = true; f.readers == 0 {
			errs = append(errs, f.Close())
		}
	}
	c.opened = nil
	return errors.Join(errs...)
}
