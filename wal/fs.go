package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// files is every change that this room makes to a file system by itself;
// reading goes to os directly. Tests put a file system behind it that loses
// what was not synced and fails where it is told to.
type files interface {
	// create makes a new file; one of that name must not exist.
	create(path string) (file, error)
	mkdir(path string) error
	rename(from, to string) error
	// removeAll removes a file or a tree; a missing one is no error.
	removeAll(path string) error
	// truncate cuts a file to size and syncs it.
	truncate(path string, size int64) error
	// settle makes what is in a file durable, so that what is read from it
	// afterwards was on the disk.
	settle(path string) error
	// syncDir makes the names in a directory durable.
	syncDir(path string) error
}

// file is a file being written.
type file interface {
	io.WriteCloser
	Sync() error
}

// Data is for the node alone: entries hold messages, settings hold keys.
const (
	filePermissions = 0o600
	dirPermissions  = 0o700
)

type osFiles struct{}

func (osFiles) create(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePermissions)
}

func (osFiles) mkdir(path string) error { return os.Mkdir(path, dirPermissions) }

func (osFiles) rename(from, to string) error { return os.Rename(from, to) }

func (osFiles) removeAll(path string) error { return os.RemoveAll(path) }

func (osFiles) truncate(path string, size int64) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, filePermissions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

func (osFiles) settle(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return err
	}
	dropPages(f)
	return nil
}

func (osFiles) syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}

// makeDir makes dir if it is missing, and its name durable.
func makeDir(f files, dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a directory", dir)
	case !os.IsNotExist(err):
		return err
	}
	if err := f.mkdir(dir); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(dir))
}
