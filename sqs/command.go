package sqs

import "time"

// Command is a change to State, or a question that must be answered from a
// committed state. The set is closed: State.Apply knows all of them.
//
//sumtype:decl
type Command interface {
	sqsCommand()
	// Target is the queue that the command is about. Its Name is empty for a
	// command about an account.
	Target() QueueKey
}

// QueueKey identifies a queue. A cluster is one region, so account and name
// suffice.
type QueueKey struct {
	Account string // 12 digits
	Name    string // with the .fifo suffix of a FIFO queue
}

// MessageID is the UUID that a client knows a message by, in binary. It is
// minted by whoever makes the command, so that State needs no randomness.
type MessageID [16]byte

// QueueDefault, as a timeout or a delay, stands for the queue's own attribute.
const QueueDefault time.Duration = -1

type (
	// CreateQueue makes a queue, or finds the one of that name. Attributes are
	// canonical (see Attribute), sorted by name, each name once.
	CreateQueue struct {
		Queue      QueueKey
		Attributes []Attribute
		Tags       []Tag // sorted by key
	}
	// DeleteQueue removes a queue and all its messages.
	DeleteQueue struct{ Queue QueueKey }
	// GetQueueUrl asks whether a queue exists.
	GetQueueUrl struct{ Queue QueueKey } //nolint:revive // the action's own name
	// ListQueues asks for the names of an account's queues, in order.
	ListQueues struct {
		Account string
		Prefix  string // of the name; empty for all
		After   string // only names greater than this; empty from the start
		Limit   int    // at most so many names; 1–1,000
	}
	// GetQueueAttributes asks for all attributes of a queue.
	GetQueueAttributes struct{ Queue QueueKey }
	// SetQueueAttributes changes the given attributes, all or none. Attributes
	// are as in CreateQueue; an empty Value clears.
	SetQueueAttributes struct {
		Queue      QueueKey
		Attributes []Attribute
	}
	// TagQueue adds tags, or overwrites those of equal key.
	TagQueue struct {
		Queue QueueKey
		Tags  []Tag // sorted by key
	}
	// UntagQueue removes tags; unknown keys are ignored.
	UntagQueue struct {
		Queue QueueKey
		Keys  []string
	}
	// ListQueueTags asks for a queue's tags.
	ListQueueTags struct{ Queue QueueKey }
	// ListDeadLetterSourceQueues asks for the queues, in order of their keys,
	// whose RedrivePolicy names Queue now.
	ListDeadLetterSourceQueues struct {
		Queue QueueKey
		After QueueKey // only keys greater than this
		Limit int      // 1–1,000
	}
	// PurgeQueue removes every message sent before it.
	PurgeQueue struct{ Queue QueueKey }
	// MarkMessageDamaged gives up a message that was received at least once and
	// whose content is damaged on every node: it is never handed out again. (Not in
	// AWS.)
	MarkMessageDamaged struct {
		Queue    QueueKey
		Sequence uint64 // of the message in the queue
		Body     uint64 // number of its content; tells it from one of a queue made anew
	}
)

type (
	// SendMessageBatch adds up to ten messages to a queue.
	SendMessageBatch struct {
		Queue   QueueKey
		Entries []SendEntry
	}
	// SendEntry is one message to send. Its content travels beside the command
	// (raftfsm.AppendCommand) and gets its number when the entry is stored.
	SendEntry struct {
		MessageID MessageID
		Size      int           // bytes that count against MaximumMessageSize
		Delay     time.Duration // QueueDefault, or 0–15 min
		GroupID   string        // required on FIFO queues, optional on standard ones

		// DeduplicationID is empty on a standard queue. On a FIFO queue it is
		// the explicit id; empty means the hash of the body, BodySHA256.
		DeduplicationID string
		BodySHA256      [32]byte // FIFO without DeduplicationID only
	}
)

type (
	// ReceiveMessage hides up to MaxMessages available messages from other
	// receivers and returns them.
	ReceiveMessage struct {
		Queue             QueueKey
		MaxMessages       int           // 1–10
		VisibilityTimeout time.Duration // QueueDefault, or 0–12 h
		// Short says that the client does not wait: only then is a full
		// in-flight window an error (OverLimit) rather than an empty answer.
		Short bool
		// AttemptID is the ReceiveRequestAttemptId of a FIFO receive.
		AttemptID string
	}
	// DeleteMessageBatch removes messages for good.
	DeleteMessageBatch struct {
		Queue    QueueKey
		Receipts []Receipt
	}
	// ChangeMessageVisibilityBatch sets new ends for leases.
	ChangeMessageVisibilityBatch struct {
		Queue   QueueKey
		Entries []VisibilityEntry
	}
	// VisibilityEntry hides the message of Receipt for Timeout from now on.
	VisibilityEntry struct {
		Receipt Receipt
		Timeout time.Duration // 0–12 h
	}
	// Receipt identifies one delivery of one message. Clients hold it as an
	// opaque, signed receipt handle (raftfsm.Settings.MintHandle).
	Receipt struct {
		Incarnation   uint64 // of the queue: a queue made anew under its old name has another
		Sequence      uint64 // of the message in the queue
		ReceiveNumber uint32 // of the delivery; 1 for the first
		ReceivedAt    Time   // where the 12-hour rule counts from
	}
)

// TaskID identifies a message move task. It is minted by whoever makes the
// command, and clients see it inside an opaque task handle.
type TaskID [16]byte

type (
	// StartMessageMoveTask has the messages of a dead-letter queue moved, as new
	// ones, to another queue. Pulses do it.
	StartMessageMoveTask struct {
		Source QueueKey
		Task   TaskID
		// Destination is where all messages go. Nil sends each one back to the
		// queue that it came from as a dead letter.
		Destination *QueueKey
		// MaxPerSecond is MaxNumberOfMessagesPerSecond, 1–500; 0 stands for as
		// fast as the broker can.
		MaxPerSecond int
		// Limit is the most messages that the task moves; 0: all. (Not in AWS.)
		Limit uint64
	}
	// RedriveMessage moves one visible message of a dead-letter queue at once, as
	// a move task would. (Not in AWS.)
	RedriveMessage struct {
		Source      QueueKey
		Sequence    uint64    // of the message in the queue
		Body        uint64    // number of its content; tells it from one of a queue made anew
		Task        TaskID    // what the new id is derived from, as of a task; not zero
		Destination *QueueKey // as in StartMessageMoveTask
	}
	// CancelMessageMoveTask ends a task. What it has moved stays moved.
	CancelMessageMoveTask struct {
		Source QueueKey
		Task   TaskID
	}
	// ListMessageMoveTasks asks for the latest tasks of a source queue.
	ListMessageMoveTasks struct {
		Source QueueKey
		Limit  int // 1–10
	}
	// ReplacePolicy gives a queue another access policy, but only while it has
	// the one that the new one was made of. AddPermission and RemovePermission
	// are carried out by it.
	ReplacePolicy struct {
		Queue    QueueKey
		Old, New string // canonical; empty stands for no policy
	}
)

func (CreateQueue) sqsCommand()                  {}
func (DeleteQueue) sqsCommand()                  {}
func (GetQueueUrl) sqsCommand()                  {}
func (ListQueues) sqsCommand()                   {}
func (GetQueueAttributes) sqsCommand()           {}
func (SetQueueAttributes) sqsCommand()           {}
func (TagQueue) sqsCommand()                     {}
func (UntagQueue) sqsCommand()                   {}
func (ListQueueTags) sqsCommand()                {}
func (ListDeadLetterSourceQueues) sqsCommand()   {}
func (PurgeQueue) sqsCommand()                   {}
func (SendMessageBatch) sqsCommand()             {}
func (ReceiveMessage) sqsCommand()               {}
func (DeleteMessageBatch) sqsCommand()           {}
func (ChangeMessageVisibilityBatch) sqsCommand() {}
func (StartMessageMoveTask) sqsCommand()         {}
func (RedriveMessage) sqsCommand()               {}
func (MarkMessageDamaged) sqsCommand()           {}
func (CancelMessageMoveTask) sqsCommand()        {}
func (ListMessageMoveTasks) sqsCommand()         {}
func (ReplacePolicy) sqsCommand()                {}

// Target implements Command.
func (c CreateQueue) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c DeleteQueue) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c GetQueueUrl) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c ListQueues) Target() QueueKey { return QueueKey{Account: c.Account} }

// Target implements Command.
func (c GetQueueAttributes) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c SetQueueAttributes) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c TagQueue) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c UntagQueue) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c ListQueueTags) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c ListDeadLetterSourceQueues) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c PurgeQueue) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c SendMessageBatch) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c ReceiveMessage) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c DeleteMessageBatch) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c ChangeMessageVisibilityBatch) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c StartMessageMoveTask) Target() QueueKey { return c.Source }

// Target implements Command.
func (c RedriveMessage) Target() QueueKey { return c.Source }

// Target implements Command.
func (c MarkMessageDamaged) Target() QueueKey { return c.Queue }

// Target implements Command.
func (c CancelMessageMoveTask) Target() QueueKey { return c.Source }

// Target implements Command.
func (c ListMessageMoveTasks) Target() QueueKey { return c.Source }

// Target implements Command.
func (c ReplacePolicy) Target() QueueKey { return c.Queue }
