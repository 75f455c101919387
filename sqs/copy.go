package sqs

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Copy tells the messages apart that share one content: which of its receivers a
// message is for, and how it is to be shown. State only keeps it; the zero value is
// that of a message that has its content for itself.
type Copy struct {
	Receiver [16]byte // of a publish: the id of the subscription
	Shape    uint8    // how the message is made of the content; not 0
	// Generation tells deliveries of one content to one receiver apart; 0 for the
	// first.
	Generation uint32
}

func (c Copy) none() bool { return c.Shape == 0 }

func (c Copy) compare(d Copy) int {
	return cmp.Or(
		slices.Compare(c.Receiver[:], d.Receiver[:]), cmp.Compare(c.Shape, d.Shape), cmp.Compare(c.Generation, d.Generation),
	)
}

func (c Copy) append(dst []byte) []byte {
	dst = append(dst, c.Receiver[:]...)
	return binary.BigEndian.AppendUint32(dst, c.Generation)
}

// MessageID is the id of a copy of the content with that number: the same in the
// queue that it is for and in the dead-letter queue that takes its place.
func (c Copy) MessageID(body uint64) MessageID {
	var room [maxSeed]byte
	return derivedID(binary.BigEndian.AppendUint64(c.append(room[:0]), body))
}

// CopyEntry is a message to send whose content is stored already, under a number
// that other messages may have, too.
type CopyEntry struct {
	Queue   QueueKey
	Copy    Copy
	Body    uint64
	Size    int    // bytes that it counts in Counters.SentBytes
	GroupID string // required on FIFO queues, optional on standard ones
	// DeduplicationID is required on FIFO queues, and empty on standard ones.
	DeduplicationID string
}

// SendCopy sends a message as SendMessageBatch does, without its checks of size:
// they are for whoever stored the content. A duplicate is no error. Whoever waits
// for messages of the queue is to be told.
func (s *State) SendCopy(at Moment, c CopyEntry) *Error {
	s.tick(&at)
	q, err := s.sound(c.Queue)
	if err != nil {
		return err
	}
	e := SendEntry{Size: c.Size, Delay: QueueDefault, GroupID: c.GroupID, DeduplicationID: c.DeduplicationID}
	if q.fifo != nil {
		e.MessageID = c.Copy.MessageID(c.Body)
		if q.sendFIFO(at, &e, c.Body, origin{copy: c.Copy}).Body == 0 {
			return nil
		}
	} else {
		q.sendStandard(at, &e, c.Body, origin{copy: c.Copy})
	}
	s.expectSent(at, q)
	return nil
}

// Policies yields the access policies of all queues that have one. It only reads.
func (s *State) Policies(yield func(queue QueueKey, text string) bool) {
	for _, q := range s.directory {
		if q.settings.policy != "" && !yield(q.key, q.settings.policy) {
			return
		}
	}
}

// Policy returns the access policy of a queue; empty if it has none, false if
// there is no such queue. It only reads.
func (s *State) Policy(key QueueKey) (string, bool) {
	q := s.queues[key]
	if q == nil {
		return "", false
	}
	return q.settings.policy, true
}
