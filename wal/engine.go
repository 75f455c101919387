package wal

// engine is what Log needs of the thing that keeps records in files. One stands
// behind it, tidwall/wal, and tests fail its calls. Calls are serialised by Log,
// but for remove. After an error of any call but read the engine is in no state to
// be used again, but for rest.
type engine interface {
	// bounds gives the indexes of the oldest and newest record; last is
	// first-1 if there is none, and first is then the next index.
	bounds() (first, last uint64)

	// stage adds a record to the batch. It copies the record.
	stage(index uint64, record []byte)
	// flush writes the batch, whose first index is last+1.
	flush() error
	// sync makes all that was flushed durable, names of files included.
	sync() error

	// read returns the record at index, which is within bounds. The caller
	// may keep it.
	read(index uint64) ([]byte, error)

	// forget takes whole segments with no entry above limit off the front, as
	// long as retain bytes of whole segments with no entry above target stay.
	// Their files are left to remove, which may run beside the other calls.
	forget(limit, target uint64, retain int64) ([]segment, error)
	remove(forgotten []segment) error

	// truncateBack removes the records after last, which is within bounds,
	// and makes that durable.
	truncateBack(last uint64) error

	// size is what the segments occupy, in bytes.
	size() int64

	// rest waits until nothing is written beside the calls. It stands for close
	// after an error.
	rest()
	close() error
}

// segment is a file of consecutive records.
type segment struct {
	name  string // in the log's directory
	first uint64 // index of its first record
	size  int64  // bytes
}
