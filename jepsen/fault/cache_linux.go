package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DropCache has the kernel forget what it has cached of the files below dir, so
// that the next reads are reads of the disk. What was not synced is kept.
func DropCache(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	})
	if err != nil {
		return fmt.Errorf("drop cached files: %w", err)
	}
	return nil
}
