package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the bytes of a file durable, and of its metadata what is needed
// to read them, which its times are not.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// dropPages takes a file that was synced out of memory, so that it is read from the
// disk: after a write to the disk has failed, memory holds what the disk does not.
// A kernel without that call keeps the pages, and is trusted.
func dropPages(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
