package sqs

// Event is what a command means for anyone else than its caller.
type Event struct {
	Kind  EventKind
	Queue QueueKey
	Move  *Move // of a MessageMoved
}

// Move says which message of Event.Queue went where.
type Move struct {
	Sequence   uint64 // of the message in Event.Queue
	Body       uint64
	Copy       Copy // as in Received
	To         QueueKey
	ToSequence uint64 // of the message in To
}

// EventKind says what happened to the queue of an Event.
type EventKind uint8

const (
	// MessagesAvailable says that a waiting receiver may find a message now,
	// or will at a time earlier than known before (State.NextAvailable).
	MessagesAvailable EventKind = iota + 1
	// QueueDeleted says that the queue is gone.
	QueueDeleted
	// MessageMoved says that one message went from the queue to another one.
	// It concerns only who watches single messages.
	MessageMoved
	// DeadLetterTargetMissing says that messages of the queue were handed out
	// once more because the queue that its RedrivePolicy names does not exist.
	DeadLetterTargetMissing
)
