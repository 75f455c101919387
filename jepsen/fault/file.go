package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NewestFile returns the file below dir whose name sorts last, of those that begin with
// a number. Segments of a log are named by their first index, so it is the one that was
// written last.
func NewestFile(dir string) (string, error) {
	newest := ""
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		numbered := entry != nil && entry.Name()[0] >= '0' && entry.Name()[0] <= '9'
		if err == nil && numbered && entry.Type().IsRegular() && path > newest {
			newest = path
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("find newest file: %w", err)
	}
	if newest == "" {
		return "", fmt.Errorf("find newest file in %s: %w", dir, fs.ErrNotExist)
	}
	return newest, nil
}

// Truncate cuts the last bytes off a file: a write that a power failure tore.
func Truncate(path string, bytes int64) error {
	size, err := fileSize(path)
	if err != nil {
		return err
	}
	if bytes < 0 || bytes > size {
		return fmt.Errorf("truncate %s: cannot cut %d of %d bytes", path, bytes, size)
	}
	if err := os.Truncate(path, size-bytes); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	return nil
}

// Append writes bytes after the end of a file: a write that a power failure
// left unfinished.
func Append(path string, bytes []byte) error {
	size, err := fileSize(path)
	if err != nil {
		return err
	}
	return overwrite(path, size, bytes)
}

// ZeroTail fills the last bytes of a file with zeros: blocks that a file system
// allotted and never wrote.
func ZeroTail(path string, bytes int64) error {
	size, err := fileSize(path)
	if err != nil {
		return err
	}
	if bytes < 0 || bytes > size {
		return fmt.Errorf("zero tail of %s: it has no %d bytes", path, bytes)
	}
	return overwrite(path, size-bytes, make([]byte, bytes))
}

// FlipBit changes one bit (0 to 7) of the byte at offset: a bad disk.
func FlipBit(path string, offset int64, bit uint) error {
	b := []byte{0}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("flip bit: %w", err)
	}
	_, err = f.ReadAt(b, offset)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("flip bit of %s at %d: %w", path, offset, err)
	}
	b[0] ^= 1 << (bit % 8)
	return overwrite(path, offset, b)
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("measure file: %w", err)
	}
	return info.Size(), nil
}

func overwrite(path string, offset int64, bytes []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("overwrite: %w", err)
	}
	_, err = f.WriteAt(bytes, offset)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("overwrite %s at %d: %w", path, offset, err)
	}
	return nil
}
