package history

import (
	"cmp"
	"math"
	"time"
)

// Kind says what an operation asked for.
type Kind string

// The operations of a history. The entries of a batch are operations of their
// own, with the interval of the batch.
const (
	Send    Kind = "send"    // one message sent
	Receive Kind = "receive" // one ReceiveMessage, whatever it returned
	Delete  Kind = "delete"  // one message deleted by handle
	Change  Kind = "change"  // one ChangeMessageVisibility
	Count   Kind = "count"   // the three counters of GetQueueAttributes
	Fault   Kind = "fault"   // something that the harness did to the product
)

// Outcome says what is known about the effect of an operation.
type Outcome string

// The outcomes. A timeout, a connection reset after bytes were sent and every
// 5xx without "x-holdfast-outcome: not-applied" are Info: the operation may take
// effect at any later time, or never.
const (
	OK   Outcome = "ok"   // it took effect between Call and Return
	Fail Outcome = "fail" // it never took effect
	Info Outcome = "info" // unknown
)

// Never is the Return of an operation whose outcome is Info.
const Never = time.Duration(math.MaxInt64)

// QueueDefault as a Visibility stands for the queue's own VisibilityTimeout.
const QueueDefault = time.Duration(-1)

// Drain is the Phase of the operations that empty the queues at the end of a
// run, after the last fault, when nothing is sent any more.
const Drain = "drain"

// Operation is one call of one client and its answer.
type Operation struct {
	ID      int64
	Kind    Kind
	Process int    // the client; one operation at a time each
	Queue   string // the queue's name
	Phase   string // "" or Drain
	Call    time.Duration
	Return  time.Duration // Never for Info
	Outcome Outcome
	Status  int    // of the HTTP answer; 0 if there was none
	Error   string // the AWS error code, or what went wrong on the way
	Index   uint64 // x-holdfast-index of the answer; 0 if it had none

	// What was asked.
	Body       string        // Send
	Delay      time.Duration // Send; QueueDefault if the message had no DelaySeconds
	Handle     string        // Delete, Change
	Visibility time.Duration // Receive, Change; QueueDefault if not given
	Max        int           // Receive
	Wait       time.Duration // Receive
	Attempt    string        // Receive from a FIFO queue: ReceiveRequestAttemptId
	Text       string        // Fault: what was done
	Group      string        // Send to a FIFO queue: MessageGroupId
	DedupID    string        // Send to a FIFO queue: MessageDeduplicationId

	// What was answered.
	MessageID string     // Send
	MD5       string     // Send: MD5OfMessageBody
	Sequence  Sequence   // Send to a FIFO queue
	Messages  []Delivery // Receive
	Visible   int        // Count: ApproximateNumberOfMessages
	InFlight  int        // Count: ApproximateNumberOfMessagesNotVisible
	Delayed   int        // Count: ApproximateNumberOfMessagesDelayed
}

// Delivery is one message in the answer to a Receive.
type Delivery struct {
	MessageID string `json:"id"`
	Handle    string `json:"rh"`
	Count     int    `json:"rc"` // ApproximateReceiveCount
	Body      string `json:"body"`
	MD5       string `json:"md5"` // MD5OfBody
	SentAt    int64  `json:"sent,omitempty"`
	FirstAt   int64  `json:"first,omitempty"`

	// Of messages of FIFO queues.
	Group    string   `json:"g,omitempty"`
	DedupID  string   `json:"dd,omitempty"`
	Sequence Sequence `json:"sn,omitempty"`
}

// Sequence is a SequenceNumber: a decimal number of up to 128 bits, "" if there
// is none.
type Sequence string

// Compare returns -1, 0 or 1 as s is below, equal to or above other.
func (s Sequence) Compare(other Sequence) int {
	return cmp.Or(cmp.Compare(len(s), len(other)), cmp.Compare(s, other))
}
