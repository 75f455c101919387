package sqs

// Event is what a command means for anyone else than its caller.
type Event struct {
	Kind  EventKind
	Queue QueueKey
}

// EventKind says what happened to the queue of an Event.
type EventKind uint8

const (
	// MessagesAvailable says that a waiting receiver may find a message now,
	// or will at a time earlier than known before (State.NextAvailable).
	MessagesAvailable EventKind = iota + 1
	// QueueDeleted says that the queue is gone.
	QueueDeleted
)
