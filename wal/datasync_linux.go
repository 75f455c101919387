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
