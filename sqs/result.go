package sqs

// Result is what a command gives back to the caller who sent it. It holds
// identities and numbers, never the content of a message.
//
//sumtype:decl
type Result interface{ sqsResult() }

type (
	// Done is the result of every command whose action has no output: the
	// queue exists, and what was asked for holds now.
	Done struct{}
	// ListQueuesResult lists names in ascending order.
	ListQueuesResult struct {
		Names []string
		More  bool // there are names after the last one
	}
	// GetQueueAttributesResult is all that a queue has for attributes. Counts
	// leave out messages that have expired.
	GetQueueAttributesResult struct {
		Attributes []Attribute // the settable ones that have a value, canonical, sorted by name
		CreatedAt  Time
		ModifiedAt Time // of the latest change of attributes
		Visible    int
		InFlight   int
		Delayed    int
	}
	// ListQueueTagsResult lists tags sorted by key.
	ListQueueTagsResult struct{ Tags []Tag }
	// ListDeadLetterSourceQueuesResult lists queues in ascending order.
	ListDeadLetterSourceQueuesResult struct {
		Queues []QueueKey
		More   bool
	}
	// SendMessageBatchResult has one outcome for each entry, in their order.
	SendMessageBatchResult struct{ Entries []SendResult }
	// SendResult is the outcome of one SendEntry.
	SendResult struct {
		Err *Error // this entry alone was refused; all else is zero then
		// Body is the number under which the content is to be stored; 0 when
		// there is nothing to store, because it is a duplicate.
		Body           uint64
		MessageID      MessageID // of a duplicate, the original's
		SequenceNumber uint64    // FIFO queues only; counted from 1 in each queue
	}
	// ReceiveMessageResult is empty when no message is available.
	ReceiveMessageResult struct{ Messages []Received }
	// Received is one delivery of one message.
	Received struct {
		Receipt         Receipt
		Body            uint64 // number of its content
		SentAt          Time
		FirstReceivedAt Time
		ReceiveCount    int // ApproximateReceiveCount, this delivery included
		SequenceNumber  uint64
		// DeadLetterSource is the queue from which the message was moved here
		// as a dead letter; zero when it was not.
		DeadLetterSource QueueKey
		// Redriven is the message's id since a move task has made a new message
		// of it; zero when the id is that of the content.
		Redriven MessageID
		// Copy is what the content is to be shown as; zero when it is the message's
		// own.
		Copy Copy
	}
	// BatchResult has one outcome for each entry of a DeleteMessageBatch or
	// ChangeMessageVisibilityBatch, in their order; nil is success.
	BatchResult struct{ Errors []*Error }
	// RedriveMessageResult tells what became of the message.
	RedriveMessageResult struct {
		To        QueueKey
		Sequence  uint64    // of the new message there
		MessageID MessageID // of the new message
	}
	// CancelMessageMoveTaskResult tells how many messages the task has moved
	// until then.
	CancelMessageMoveTaskResult struct{ Moved uint64 }
	// ListMessageMoveTasksResult lists tasks, the latest first.
	ListMessageMoveTasksResult struct{ Tasks []MoveTask }
	// ReplacePolicyResult has the policy that the queue has now.
	ReplacePolicyResult struct {
		Replaced bool
		Policy   string // empty: none
	}
)

// MoveTask is a message move task as it stands.
type MoveTask struct {
	ID            TaskID
	Status        MoveTaskStatus
	Destination   *QueueKey // as in StartMessageMoveTask
	MaxPerSecond  int       // as in StartMessageMoveTask
	ToMove        uint64    // messages visible in the source when the task started, at most its Limit
	Moved         uint64
	FailureReason Code // of TaskFailed only
	StartedAt     Time
}

// MoveTaskStatus is how far a message move task has come.
type MoveTaskStatus uint8

// The statuses of a message move task. Running and cancelling ones are active.
const (
	TaskRunning MoveTaskStatus = iota + 1
	TaskCompleted
	TaskCancelling
	TaskCancelled
	TaskFailed
)

func (s MoveTaskStatus) active() bool { return s == TaskRunning || s == TaskCancelling }

func (Done) sqsResult()                             {}
func (ListQueuesResult) sqsResult()                 {}
func (GetQueueAttributesResult) sqsResult()         {}
func (ListQueueTagsResult) sqsResult()              {}
func (ListDeadLetterSourceQueuesResult) sqsResult() {}
func (SendMessageBatchResult) sqsResult()           {}
func (ReceiveMessageResult) sqsResult()             {}
func (BatchResult) sqsResult()                      {}
func (RedriveMessageResult) sqsResult()             {}
func (CancelMessageMoveTaskResult) sqsResult()      {}
func (ListMessageMoveTasksResult) sqsResult()       {}
func (ReplacePolicyResult) sqsResult()              {}
