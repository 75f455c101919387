package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt says that bytes on disk are not those that were written, and
	// that no crash explains it. Nothing was changed. The message names the
	// file and the offset; the node must not be started without its data.
	ErrCorrupt = errors.New("corrupt data on disk")

	// ErrFormat says that data on disk has a format that this program does not read.
	// It is not damaged, and nothing was changed.
	ErrFormat = errors.New("another version's format")

	// ErrDamagedBody says that the body of one message is on disk, but not as it
	// was written. All other bodies are what they were.
	ErrDamagedBody = errors.New("damaged body")

	// ErrNoData says that a directory is not the data directory of a node.
	ErrNoData = errors.New("this is not the data folder of a node")

	// ErrLocked says that the data directory is open in another process.
	// Nothing was changed.
	ErrLocked = errors.New("another process uses this data directory")

	// ErrClosed answers every call after Close. Nothing was done.
	ErrClosed = errors.New("closed")

	// ErrStaleSnapshot is the answer of a sink's Close when a newer snapshot
	// became durable meanwhile. The older one was removed.
	ErrStaleSnapshot = errors.New("a newer snapshot exists")
)

// advice ends every message about corruption: it is what the operator must do.
const advice = "keep this folder as it is"

// corrupt describes damage at a place that an operator can find with a hex
// editor.
func corrupt(path string, offset int64, format string, args ...any) error {
	return fmt.Errorf("%w: %s at offset %d: %s; %s", ErrCorrupt, path, offset, fmt.Sprintf(format, args...), advice)
}
