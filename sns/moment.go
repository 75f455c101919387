package sns

import "time"

// Moment is all that a command may know of the world while it is applied. It
// comes from the log entry and the replicated settings, so it is the same on
// every replica.
type Moment struct {
	// Index is that of the log entry, whose commands share MaxSteps; 0 stands for an
	// entry of this command alone.
	Index  uint64
	Now    Time
	Rules  Rules
	Outlet Outlet // where publishes go; nil in a Moment of a command that is none
}

// Rules are the replicated settings that change what commands do.
type Rules struct {
	DedupWindow time.Duration // of a FIFO deduplication id; AWS: 5 min; 0: nothing is a duplicate
	FilterLimit int           // filter policies per topic; AWS: 200; 0: no limit
}

// Outlet is what State does with a publish. Both methods take effect in the log
// entry that is being applied.
type Outlet interface {
	// Store keeps the record of a publish (ParseStored reads it) and gives it a
	// number. The record is not changed afterwards.
	Store(record []byte) (number uint64)
	// Deliver puts a copy into a queue. The copy is valid during the call. steps is
	// what it took beside the one step that each copy does; it must not depend on
	// what the process remembers.
	Deliver(c *Copy) (outcome Outcome, steps int)
}

// Copy is one publish on its way to one queue.
type Copy struct {
	Queue        QueueARN
	Topic        TopicKey // on whose behalf it is sent
	Subscription SubscriptionID
	Shape        Shape
	Body         uint64 // number of the publish's record
	Size         int    // bytes that the publish counts
	GroupID      string // empty: none

	// DeduplicationID is that of the publish: explicit, or the SHA-256 of the
	// message in hex. Empty towards a standard queue.
	DeduplicationID string
}

// QueueARN is where a copy goes. Region and account may be those of no queue
// here.
type QueueARN struct{ Region, Account, Name string }

// Shape says how a copy is handed out.
type Shape uint8

// The shapes of a copy.
const (
	Enveloped Shape = iota + 1
	Raw             // the message as it is, its attributes as those of the queue's message
)

// Outcome says what became of a copy.
type Outcome uint8

// The outcomes of Outlet.Deliver. All but Delivered are client-side errors, which
// are not tried again (SNS developer guide, "Message delivery retries").
const (
	Delivered   Outcome = iota + 1
	QueueGone           // there is no such queue in this cluster
	QueueDenied         // the queue's policy does not let the topic send
	QueueBroken         // the queue is damaged
	Unsuitable          // the message cannot be one of a queue (State decides this)
)

// String names the outcome, in metrics and logs.
func (o Outcome) String() string {
	switch o {
	case Delivered:
		return "delivered"
	case QueueGone:
		return "queue does not exist"
	case QueueDenied:
		return "denied by the queue's policy"
	case QueueBroken:
		return "queue is damaged"
	case Unsuitable:
		return "message cannot be delivered raw"
	}
	return "unknown"
}
