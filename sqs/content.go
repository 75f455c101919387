package sqs

import (
	"encoding/binary"
	"errors"
)

// contentVersion opens every record; another version is refused.
const contentVersion = 1

// contentDigests is where the variable part of a record begins: after the
// version, the message id and the two digests.
const contentDigests = 1 + 3*16

// errContent says that bytes are no record of AppendContent.
var errContent = errors.New("sqs: malformed content record")

// Content is all of a message that State never looks at: what its sender gave
// and what can be computed from that once, at the send. A receive answers from
// it and from the Received that State gives.
type Content struct {
	MessageID       MessageID
	SenderID        string
	TraceHeader     string // AWSTraceHeader; empty if none was sent
	GroupID         string // MessageGroupId; empty if none was sent
	DeduplicationID string // FIFO: the explicit id, else the SHA-256 of the body in hex
	Body            []byte
	BodyMD5         [16]byte
	AttributesMD5   [16]byte           // of all Attributes; zero without any
	Attributes      []MessageAttribute // sorted by name
}

// IDNow is the MessageId that a message of this content shows: the one that it was
// sent under, until a move task makes a new message of it. redriven is that of
// Received or Peeked.
func (c *Content) IDNow(redriven MessageID) MessageID {
	if redriven != (MessageID{}) {
		return redriven
	}
	return c.MessageID
}

// DeduplicationIDNow is the message id that a FIFO message shows as its
// MessageDeduplicationId since it was moved: in a dead-letter queue its own (SQS
// developer guide, dead-letter queues), after a redrive the one that it was sent
// under. It is false for a message that was not moved, which shows DeduplicationID.
// deadLetterSource and redriven are those of Received or Peeked.
func (c *Content) DeduplicationIDNow(deadLetterSource QueueKey, redriven MessageID) (id MessageID, moved bool) {
	if deadLetterSource != (QueueKey{}) {
		return c.IDNow(redriven), true
	}
	return c.MessageID, redriven != MessageID{}
}

// ContentSize returns how many bytes AppendContent appends for c.
func ContentSize(c *Content) int {
	n := contentDigests + len(c.Body)
	for _, s := range [...]string{c.SenderID, c.TraceHeader, c.GroupID, c.DeduplicationID} {
		n += sizedLen(len(s))
	}
	n += uvarintLen(uint64(len(c.Attributes)))
	for i := range c.Attributes {
		a := &c.Attributes[i]
		n += 1 + sizedLen(len(a.Name)) + sizedLen(len(a.DataType)) + sizedLen(len(a.Value))
	}
	return n
}

// AppendContent appends the record of c to dst: what is stored as the body of
// a message. The body stands at the end, as it is.
func AppendContent(dst []byte, c *Content) []byte {
	dst = append(dst, contentVersion)
	dst = append(dst, c.MessageID[:]...)
	dst = append(dst, c.BodyMD5[:]...)
	dst = append(dst, c.AttributesMD5[:]...)
	for _, s := range [...]string{c.SenderID, c.TraceHeader, c.GroupID, c.DeduplicationID} {
		dst = appendSized(dst, s)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Attributes)))
	for i := range c.Attributes {
		a := &c.Attributes[i]
		kind := byte(0)
		if a.Binary {
			kind = 1
		}
		dst = append(dst, kind)
		dst = appendSized(dst, a.Name)
		dst = appendSized(dst, a.DataType)
		dst = appendSized(dst, a.Value)
	}
	return append(dst, c.Body...)
}

// ParseContent reads a record of AppendContent. The body and the values of the
// attributes are parts of b, not copies.
func ParseContent(b []byte) (Content, error) {
	if len(b) < contentDigests || b[0] != contentVersion {
		return Content{}, errContent
	}
	r := contentReader{b: b, at: contentDigests}
	var spans [4]span
	for i := range spans {
		spans[i] = r.sized()
	}
	fields, count := r.attributes()
	if r.bad {
		return Content{}, errContent
	}
	// One conversion serves all strings of the record.
	head := string(b[contentDigests:r.at])
	cut := func(s span) string { return head[s.from-contentDigests : s.to-contentDigests] }
	c := Content{
		SenderID:        cut(spans[0]),
		TraceHeader:     cut(spans[1]),
		GroupID:         cut(spans[2]),
		DeduplicationID: cut(spans[3]),
		Body:            b[r.at:],
	}
	copy(c.MessageID[:], b[1:])
	copy(c.BodyMD5[:], b[17:])
	copy(c.AttributesMD5[:], b[33:])
	if count > 0 {
		c.Attributes = make([]MessageAttribute, count)
	}
	for i := range c.Attributes {
		f := &fields[i]
		c.Attributes[i] = MessageAttribute{
			Name: cut(f.name), DataType: cut(f.dataType), Value: b[f.value.from:f.value.to:f.value.to], Binary: f.binary,
		}
	}
	return c, nil
}

// span is a part of a record, from its first byte to the one after its last.
type span struct{ from, to int }

// attributeSpans are the parts of one attribute of a record.
type attributeSpans struct {
	name, dataType, value span
	binary                bool
}

// contentReader walks a record. Once bad it yields nothing more.
type contentReader struct {
	b   []byte
	at  int
	bad bool
}

func (r *contentReader) uvarint() uint64 {
	if r.bad {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 || n != uvarintLen(v) {
		r.bad = true
		return 0
	}
	r.at += n
	return v
}

func (r *contentReader) sized() span {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)-r.at) {
		r.bad = true
		return span{r.at, r.at}
	}
	s := span{r.at, r.at + int(n)}
	r.at = s.to
	return s
}

func (r *contentReader) attributes() (fields [MaxMessageAttributes]attributeSpans, count int) {
	n := r.uvarint()
	if n > MaxMessageAttributes {
		r.bad = true
	}
	for ; !r.bad && count < int(n); count++ {
		if r.at == len(r.b) || r.b[r.at] > 1 {
			r.bad = true
			break
		}
		f := &fields[count]
		f.binary = r.b[r.at] == 1
		r.at++
		f.name, f.dataType, f.value = r.sized(), r.sized(), r.sized()
	}
	return fields, count
}

func appendSized[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func sizedLen(n int) int { return uvarintLen(uint64(n)) + n }

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
