package raftfsm

import (
	"crypto/md5"
	"errors"
	"fmt"
	"sync"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

var errNoSigner = errors.New("key was not parsed")

// snsSenderID is the SenderId of every message that SNS has sent.
const snsSenderID = "AIDAHOLDFASTSNS000000"

// withoutGroup marks the shape of a copy in a queue that does not get the
// publish's MessageGroupId: a standard queue of a FIFO topic.
const withoutGroup = 0x40

// shapeOf is how a copy is kept in its queue.
func shapeOf(c *sns.Copy) uint8 {
	shape := uint8(c.Shape)
	if c.GroupID == "" {
		shape |= withoutGroup
	}
	return shape
}

// resolve takes hold of a message's content. That of a copy is rendered when it is
// read, outside of the lock; the settings that it is rendered with do not change
// what comes of it (SigningKey.From, SNSHosts.From).
func (m *Machine) resolve(number uint64, c sqs.Copy) (Fetch, bool) {
	fetch, ok := m.bodies.Pin(number)
	if !ok || c.Shape == 0 {
		return fetch, ok
	}
	settings := m.published.Load()
	return func() ([]byte, error) {
		record, err := fetch()
		if err != nil {
			return nil, err
		}
		return m.render(settings, number, c, record)
	}, true
}

// render makes a message of a queue from the record of a publish: its content, as
// sqs.AppendContent would have written it.
func (m *Machine) render(s *Settings, number uint64, c sqs.Copy, record []byte) ([]byte, error) {
	stored, err := sns.ParseStored(record)
	if err != nil {
		return nil, fmt.Errorf("render copy of body %d: %w", number, err)
	}
	content := sqs.Content{
		MessageID: c.MessageID(number), SenderID: snsSenderID, TraceHeader: stored.Message.TraceHeader,
		DeduplicationID: stored.Message.DeduplicationID,
	}
	if c.Shape&withoutGroup == 0 {
		content.GroupID = stored.Message.GroupID
	}
	if sns.Shape(c.Shape&^withoutGroup) == sns.Raw {
		content.Attributes = queueAttributes(stored.Message.Attributes)
		content.AttributesMD5 = attributesMD5(content.Attributes)
		content.Body = stored.Message.TextFor(sns.SQS)
	} else if content.Body, err = m.envelope(s, number, c, &stored); err != nil {
		return nil, fmt.Errorf("render copy of body %d: %w", number, err)
	}
	content.BodyMD5 = md5.Sum(content.Body)
	return sqs.AppendContent(make([]byte, 0, sqs.ContentSize(&content)), &content), nil
}

func queueAttributes(list []sns.MessageAttribute) []sqs.MessageAttribute {
	attributes := make([]sqs.MessageAttribute, len(list))
	for i := range list {
		attributes[i] = sqs.MessageAttribute(list[i])
	}
	sqs.SortMessageAttributes(attributes)
	return attributes
}

// attributesMD5 is zero without attributes, as in every content.
func attributesMD5(list []sqs.MessageAttribute) (digest [md5.Size]byte) {
	if len(list) == 0 {
		return digest
	}
	return sqs.AttributesDigest(list)
}

func (m *Machine) envelope(s *Settings, number uint64, c sqs.Copy, stored *sns.Stored) ([]byte, error) {
	e := s.envelopeOf(stored, c.Receiver)
	if key := s.signingKeyAt(sqs.Time(stored.At)); key != nil && stored.SignatureVersion != 0 {
		var err error
		e.Signature, err = m.signatures.of(number, func() ([]byte, error) {
			return key.sign(sns.AppendStringToSign(nil, stored, sns.SQS), stored.SignatureVersion)
		})
		if err != nil {
			return nil, err
		}
	}
	size := len(stored.Message.TextFor(sns.SQS))
	return sns.AppendEnvelope(make([]byte, 0, size+size/8+1024), stored, &e), nil
}

// signaturesKept is how many publishes' signatures are remembered: a signature
// takes most of a millisecond, and is the same for all subscriptions.
const signaturesKept = 4096

// signatures remembers the signatures of publishes, by the numbers of their
// records.
type signatures struct {
	mu    sync.Mutex
	known map[uint64]*signature
	order []uint64 // of known, a ring
	next  int
}

type signature struct {
	once sync.Once
	text []byte
	err  error
}

// of returns the signature of a publish. Whoever comes first makes it, and the
// others wait.
func (s *signatures) of(number uint64, sign func() ([]byte, error)) ([]byte, error) {
	known := s.entry(number)
	known.once.Do(func() { known.text, known.err = sign() })
	return known.text, known.err
}

func (s *signatures) entry(number uint64) *signature {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[number]; known != nil {
		return known
	}
	if s.known == nil {
		s.known = make(map[uint64]*signature)
	}
	known := &signature{}
	s.known[number] = known
	if len(s.order) < signaturesKept {
		s.order = append(s.order, number)
		return known
	}
	delete(s.known, s.order[s.next])
	s.order[s.next] = number
	s.next = (s.next + 1) % signaturesKept
	return known
}
