package sns

import (
	"encoding/binary"
	"errors"
)

// MessageAttribute is one attribute of a publish.
type MessageAttribute struct {
	Name     string
	DataType string // String, Number or Binary, and perhaps "." and a label; String.Array
	Value    []byte // the text, or the bytes of a Binary
	Binary   bool   // the type is Binary
}

// Message is the content of a publish, as its sender gave it.
type Message struct {
	ID         MessageID
	TopicARN   string
	Subject    string // empty: none
	Text       []byte // of a message with MessageStructure json, its default
	Texts      []ProtocolText
	Attributes []MessageAttribute // sorted by name, unlike AWS, which has no order
	GroupID    string             // MessageGroupId; empty: none

	// DeduplicationID is that of a publish to a FIFO topic: explicit, or the
	// SHA-256 of the message in hex.
	DeduplicationID string
	TraceHeader     string // X-Amzn-Trace-Id of the request; empty: none

	// Unfit says that the text for SQS has characters that a message of a queue may
	// not have (SQS API reference, SendMessage), so that it cannot be delivered raw.
	Unfit bool
}

// ProtocolText is what a message with MessageStructure json says to the
// subscriptions of one protocol.
type ProtocolText struct {
	Protocol Protocol
	Text     []byte
}

// TextFor is what the message says to a protocol.
func (m *Message) TextFor(p Protocol) []byte {
	for i := range m.Texts {
		if m.Texts[i].Protocol == p {
			return m.Texts[i].Text
		}
	}
	return m.Text
}

// contentVersion opens the content of a message, unfitVersion that of an Unfit one,
// and storedVersion a record, which differs from the first byte of what package sqs
// stores.
const (
	contentVersion = 1
	unfitVersion   = 2
	storedVersion  = 0x53
)

var errContent = errors.New("sns: malformed record of a publish")

// AppendMessage appends the content of a publish: what travels beside a
// PublishEntry.
func AppendMessage(dst []byte, m *Message) []byte {
	version := byte(contentVersion)
	if m.Unfit {
		version = unfitVersion
	}
	dst = append(dst, version)
	dst = append(dst, m.ID[:]...)
	for _, text := range [...]string{m.TopicARN, m.Subject, m.GroupID, m.DeduplicationID, m.TraceHeader} {
		dst = appendSized(dst, text)
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Attributes)))
	for i := range m.Attributes {
		a := &m.Attributes[i]
		dst = appendBool(dst, a.Binary)
		dst = appendSized(dst, a.Name)
		dst = appendSized(dst, a.DataType)
		dst = appendSized(dst, a.Value)
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Texts)))
	for i := range m.Texts {
		dst = append(dst, byte(m.Texts[i].Protocol))
		dst = appendSized(dst, m.Texts[i].Text)
	}
	return append(dst, m.Text...)
}

// ParseMessage reads what AppendMessage wrote. Texts and values are parts of b,
// not copies.
func ParseMessage(b []byte) (m Message, err error) {
	d := decoder{data: b}
	switch d.byte() {
	case contentVersion:
	case unfitVersion:
		m.Unfit = true
	default:
		return m, errContent
	}
	d.fixed(m.ID[:])
	for _, text := range []*string{&m.TopicARN, &m.Subject, &m.GroupID, &m.DeduplicationID, &m.TraceHeader} {
		*text = d.text()
	}
	if n := d.count(); n > 0 {
		m.Attributes = make([]MessageAttribute, 0, n)
		for ; n > 0 && d.err == nil; n-- {
			m.Attributes = append(m.Attributes, MessageAttribute{Binary: d.bool(), Name: d.text(), DataType: d.text(), Value: d.bytes()})
		}
	}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		m.Texts = append(m.Texts, ProtocolText{Protocol: Protocol(d.byte()), Text: d.bytes()})
	}
	m.Text = d.data
	if d.err != nil {
		return Message{}, errContent
	}
	return m, nil
}

// Stored is what is kept of a publish under one number, however many copies refer
// to it.
type Stored struct {
	At             Time   // of the publish
	SequenceNumber uint64 // of a FIFO topic; else 0
	// SignatureVersion is the topic's at the publish; 0 on a FIFO topic, whose
	// messages are not signed.
	SignatureVersion byte
	Message          Message
}

// appendStored appends the record of a publish whose content is encoded already.
func appendStored(dst []byte, s *Stored, content []byte) []byte {
	dst = append(dst, storedVersion, s.SignatureVersion)
	dst = binary.AppendUvarint(dst, uint64(s.At))
	dst = binary.AppendUvarint(dst, s.SequenceNumber)
	return append(dst, content...)
}

// ParseStored reads the record of a publish (Outlet.Store). Texts and values are
// parts of b, not copies.
func ParseStored(b []byte) (s Stored, err error) {
	d := decoder{data: b}
	if d.byte() != storedVersion {
		return s, errContent
	}
	s.SignatureVersion = d.byte()
	s.At = d.time()
	s.SequenceNumber = d.number(1 << 63)
	if d.err != nil {
		return Stored{}, errContent
	}
	s.Message, err = ParseMessage(d.data)
	return s, err
}

func appendSized[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Size is what a message counts against the topic's MaximumMessageSize: its text,
// and the names, types and values of its attributes. The subject does not count
// (AWS recording test_publish_too_long_message). whole is the parameter Message:
// with MessageStructure json that is the whole document.
func Size(whole []byte, attributes []MessageAttribute) int {
	n := len(whole)
	for i := range attributes {
		a := &attributes[i]
		n += len(a.Name) + len(a.DataType) + len(a.Value)
	}
	return n
}
