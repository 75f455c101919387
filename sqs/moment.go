package sqs

import "time"

// Moment is all that a command may know of the world while it is applied. It
// comes from the log entry and the replicated settings, so it is the same on
// every replica.
type Moment struct {
	Now      Time
	NextBody uint64 // the number of the next body to be stored
	Rules    Rules
}

// Rules are the replicated settings that change what commands do.
type Rules struct {
	InFlightLimit int           // messages in flight per queue; AWS: 120,000
	PurgeWait     time.Duration // between two purges of a queue; AWS: 60 s
	DeleteWait    time.Duration // before a deleted queue's name is free; AWS: 60 s
	DedupWindow   time.Duration // of a FIFO deduplication id; AWS: 5 min; 0: nothing is a duplicate
}
