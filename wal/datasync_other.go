//go:build !linux

package wal

import "os"

// syncData makes a file durable.
func syncData(f *os.File) error { return f.Sync() }

// dropPages does nothing: a file may be read from memory after a write to the disk
// has failed.
func dropPages(*os.File) {}
