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

// detach opens the file of s, which is about to be removed, for as long as
// anything refers to s: the file is then closed by the garbage collector.
func (c *fileCache) detach(s *bodySegment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.open(s); err != nil {
		return err
	}
	c.opened = slices.DeleteFunc(c.opened, func(other *bodySegment) bool { return other == s })
	return nil
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
