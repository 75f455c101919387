package httpapi

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

const (
	sendEntryName = "SendMessageBatchRequestEntry"
	traceHeader   = "AWSTraceHeader"
	maxTrace      = 1024 // bytes of a trace header; AWS names no limit
)

var (
	messageAttributes = wire.Map{JSON: "MessageAttributes", Query: "MessageAttribute", Key: "Name", Value: "Value"}
	systemAttributes  = wire.Map{JSON: "MessageSystemAttributes", Query: "MessageSystemAttribute", Key: "Name", Value: "Value"}
	stringListValues  = wire.List{JSON: "StringListValues", Query: "StringListValue"}
	binaryListValues  = wire.List{JSON: "BinaryListValues", Query: "BinaryListValue"}
	sendEntries       = wire.List{JSON: "Entries", Query: sendEntryName}
	sentEntries       = wire.List{JSON: "Successful", Query: "SendMessageBatchResultEntry"}
)

// message is a message to send, as it was read: its body is still a part of
// the request.
type message struct {
	content   sqs.Content
	delay     int64  // seconds
	delayed   bool   // a delay was given
	grouped   bool   // a group id was given
	named     bool   // a deduplication id was given
	lists     bool   // an attribute was given a list
	ambiguous string // an attribute that was given both a text and bytes
	system    []sqs.MessageAttribute
	systemMD5 [16]byte
}

// readMessage reads the members that SendMessage and an entry of
// SendMessageBatch have in common.
func readMessage(in wire.Input) (m message) {
	m.content.Body, _ = in.Bytes("MessageBody")
	m.delay, m.delayed = in.Int("DelaySeconds")
	m.content.GroupID, m.grouped = in.Text("MessageGroupId")
	m.content.DeduplicationID, m.named = in.Text("MessageDeduplicationId")
	m.content.Attributes = m.readAttributes(in, messageAttributes)
	m.system = m.readAttributes(in, systemAttributes)
	return m
}

// readAttributes reads a map of attributes, sorted by name.
func (m *message) readAttributes(in wire.Input, of wire.Map) []sqs.MessageAttribute {
	entries, _ := in.StructMap(of)
	if len(entries) == 0 {
		return nil
	}
	attributes := make([]sqs.MessageAttribute, len(entries))
	for i, e := range entries {
		a := &attributes[i]
		a.Name = e.Key
		a.DataType, _ = e.Value.Text("DataType")
		text, isText := e.Value.Bytes("StringValue")
		blob, isBlob := e.Value.Blob("BinaryValue")
		texts, _ := e.Value.Texts(stringListValues)
		blobs, _ := e.Value.Texts(binaryListValues)
		if a.Value, a.Binary = text, isBlob; isBlob {
			a.Value = blob
		}
		m.lists = m.lists || len(texts)+len(blobs) > 0
		if isText && isBlob {
			m.ambiguous = a.Name
		}
	}
	sqs.SortMessageAttributes(attributes)
	return attributes
}

// size returns the bytes that count against MaximumMessageSize. System
// attributes do not.
func (m *message) size() int {
	n := len(m.content.Body)
	for i := range m.content.Attributes {
		n += m.content.Attributes[i].Size()
	}
	return n
}

// validateContent checks what does not depend on the type of the queue.
func (m *message) validateContent() *sqs.Error {
	if err := sqs.ValidateBody(m.content.Body); err != nil {
		return err
	}
	if m.lists {
		return &sqs.Error{Code: sqs.UnsupportedOperation, Message: "Message attribute list values in SendMessage operation are not supported."}
	}
	if m.ambiguous != "" {
		return sqs.Invalidf("Message (user) attribute '%s' must have a single value.", m.ambiguous)
	}
	if err := sqs.ValidateMessageAttributes(m.content.Attributes); err != nil {
		return err
	}
	return m.validateSystem()
}

func (m *message) validateSystem() *sqs.Error {
	for i := range m.system {
		a := &m.system[i]
		switch {
		case a.Name != traceHeader:
			return sqs.Invalidf("Message system attribute name '%s' is invalid.", a.Name)
		case i > 0:
			return sqs.Invalidf("Message system attribute name '%s' already exists.", a.Name)
		case a.DataType != "String" || a.Binary:
			return sqs.Invalidf("The type of message system attribute '%s' is invalid. You must use only the following supported type: String.", a.Name)
		case len(a.Value) == 0 || !sqs.ValidText(a.Value):
			return sqs.Invalidf("Message system attribute '%s' must contain a non-empty value of type 'String'.", a.Name)
		case len(a.Value) > maxTrace: // they are kept, and no part of the message's size
			return sqs.Invalidf("Message system attribute '%s' must not be longer than %d bytes.", a.Name, maxTrace)
		}
	}
	return nil
}

// validate checks the message of a SendMessage: what is required first, then
// in the order of the API's parameters.
func (m *message) validate(fifo bool) *sqs.Error {
	switch {
	case len(m.content.Body) == 0:
		return sqs.MissingParameterError("MessageBody")
	case fifo && !m.grouped:
		return sqs.MissingParameterError("MessageGroupId")
	}
	if m.delayed {
		if err := sqs.ValidateDelay(m.delay, fifo); err != nil {
			return err
		}
	}
	if err := m.validateContent(); err != nil {
		return err
	}
	if m.grouped {
		if err := sqs.ValidateID("MessageGroupId", m.content.GroupID); err != nil {
			return err
		}
	}
	if !m.named {
		return nil
	}
	if !fifo {
		return sqs.Invalidf("Value %s for parameter MessageDeduplicationId is invalid. "+
			"Reason: The request includes a parameter that is not valid for this queue type.", m.content.DeduplicationID)
	}
	return sqs.ValidateID("MessageDeduplicationId", m.content.DeduplicationID)
}

// validateEntry is validate for an entry of a batch, for which AWS has other
// texts.
func (m *message) validateEntry(fifo bool) *sqs.Error {
	if len(m.content.Body) == 0 {
		return sqs.MissingParameterError("MessageBody")
	}
	if m.delayed {
		if err := sqs.ValidateDelay(m.delay, false); err != nil {
			return err
		}
	}
	if err := m.validateContent(); err != nil {
		return err
	}
	if fifo && m.delay > 0 || !fifo && m.named {
		return sqs.Invalidf("The request include parameter that is not valid for this queue type")
	}
	const alphabet = " can only include alphanumeric and punctuation characters. 1 to 128 in length"
	if m.grouped && !sqs.ValidID(m.content.GroupID) {
		return sqs.Invalidf("MessageGroupId%s", alphabet)
	}
	if m.named && !sqs.ValidID(m.content.DeduplicationID) {
		return sqs.Invalidf("MessageDeduplicationId%s", alphabet)
	}
	return nil
}

// seal completes a valid message: its id, its digests, its sender.
func (r *request) seal(m *message, fifo bool) (entry sqs.SendEntry, record []byte) {
	c := &m.content
	c.MessageID = r.server.config.NewID()
	c.SenderID = r.caller.senderID()
	c.BodyMD5 = md5.Sum(c.Body)
	if len(c.Attributes) > 0 {
		c.AttributesMD5 = sqs.AttributesDigest(c.Attributes)
	}
	if len(m.system) > 0 {
		m.systemMD5 = sqs.AttributesDigest(m.system)
		c.TraceHeader = string(m.system[0].Value)
	}
	entry = sqs.SendEntry{
		MessageID: c.MessageID, Size: m.size(), Delay: sqs.QueueDefault, GroupID: c.GroupID, DeduplicationID: c.DeduplicationID,
	}
	if m.delayed && !fifo { // a FIFO queue's own delay applies all the same
		entry.Delay = time.Duration(m.delay) * time.Second
	}
	if fifo && !m.named {
		entry.BodySHA256 = sha256.Sum256(c.Body)
		c.DeduplicationID = hex.EncodeToString(entry.BodySHA256[:])
	}
	return entry, sqs.AppendContent(make([]byte, 0, sqs.ContentSize(c)), c)
}

func sendMessage(r *request) error {
	queue := r.queue()
	m := readMessage(r.in)
	if err := r.check(queue); err != nil {
		return err
	}
	fifo := sqs.IsFIFO(queue.Name)
	if err := m.validate(fifo); err != nil {
		return r.invalid(queue, err)
	}
	if m.size() > sqs.MaxMessageSize {
		return r.tooLong(queue)
	}
	if len(m.system) == 0 {
		m.content.TraceHeader = r.traceHeader()
	}
	entry, record := r.seal(&m, fifo)
	sent, err := ask[sqs.SendMessageBatchResult](r, sqs.SendMessageBatch{Queue: queue, Entries: []sqs.SendEntry{entry}}, record)
	if err != nil {
		return err
	}
	if refused := sent.Entries[0].Err; refused != nil {
		return sqs.AsSendMessage(refused)
	}
	r.writeSent(&m, sent.Entries[0])
	return nil
}

// traceHeader is the request's trace header; empty if it could not be an
// AWSTraceHeader of a message.
func (r *request) traceHeader() string {
	trace := r.http.Request.Header.PeekCanonical(headerTrace)
	if len(trace) > maxTrace || !sqs.ValidText(trace) {
		return ""
	}
	return string(trace)
}

// tooLong answers a message larger than any queue takes, with the limit of
// this one.
func (r *request) tooLong(queue sqs.QueueKey) error {
	found, err := ask[sqs.GetQueueAttributesResult](r, sqs.GetQueueAttributes{Queue: queue})
	if err != nil {
		return err
	}
	limit := sqs.MaxMessageSize
	for _, a := range found.Attributes {
		if a.Name != sqs.MaximumMessageSize {
			continue
		}
		if limit, err = strconv.Atoi(a.Value); err != nil {
			return fmt.Errorf("read %s of queue %s: %w", a.Name, queue.Name, err)
		}
	}
	return sqs.MessageTooLong(limit)
}

// writeSent answers for one message that was sent. The digests are those of
// what was submitted, also if it was a duplicate: clients compare them.
func (r *request) writeSent(m *message, sent sqs.SendResult) {
	r.out.UUID("MessageId", sent.MessageID)
	r.out.Hex("MD5OfMessageBody", m.content.BodyMD5)
	if len(m.content.Attributes) > 0 {
		r.out.Hex("MD5OfMessageAttributes", m.content.AttributesMD5)
	}
	if len(m.system) > 0 {
		r.out.Hex("MD5OfMessageSystemAttributes", m.systemMD5)
	}
	if sent.SequenceNumber != 0 {
		r.out.Text("SequenceNumber", sequenceText(sent.SequenceNumber))
	}
}

// firstSequence is added to a sequence number, so that it has 20 digits without
// leading zeros as at AWS. What State counts stays below 2^63.
const firstSequence = 10_000_000_000_000_000_000

// sequenceText is a sequence number as AWS writes it: 20 digits, which compare as
// texts and as numbers.
func sequenceText(n uint64) string { return strconv.FormatUint(firstSequence+n, 10) }

func sendMessageBatch(r *request) error {
	queue := r.queue()
	b := r.readBatch(sendEntries)
	messages := make([]message, len(b.entries))
	for i, in := range b.entries {
		messages[i] = readMessage(in)
	}
	if err := r.check(queue); err != nil {
		return err
	}
	if err := r.validateBatch(queue, &b); err != nil {
		return err
	}
	fifo := sqs.IsFIFO(queue.Name)
	if err := validateMessages(messages, fifo); err != nil {
		return r.invalid(queue, err)
	}
	c := sqs.SendMessageBatch{Queue: queue}
	var records [][]byte
	unnamed := false // an entry without deduplication id that the state does not see
	for i := range messages {
		if b.errors[i] = messages[i].validateEntry(fifo); b.errors[i] != nil {
			unnamed = unnamed || fifo && !messages[i].named
			continue
		}
		entry, record := r.seal(&messages[i], fifo)
		c.Entries, records = append(c.Entries, entry), append(records, record)
	}
	if unnamed {
		if err := r.checkContentBased(queue); err != nil {
			return err
		}
	}
	if len(c.Entries) == 0 {
		return r.answerFailed(queue, &b)
	}
	sent, err := ask[sqs.SendMessageBatchResult](r, c, records...)
	if err != nil {
		return err
	}
	results := b.spread(len(sent.Entries), func(i, n int) { b.errors[i] = sent.Entries[n].Err })
	r.writeBatch(&b, sentEntries, func(i int) { r.writeSent(&messages[i], sent.Entries[results[i]]) })
	return nil
}

// checkContentBased refuses a batch to a FIFO queue that needs deduplication ids. It
// is for entries that have failed already: those that have not, the state checks.
func (r *request) checkContentBased(queue sqs.QueueKey) error {
	found, err := ask[sqs.GetQueueAttributesResult](r, sqs.GetQueueAttributes{Queue: queue})
	if err != nil {
		return err
	}
	if !slices.Contains(found.Attributes, sqs.Attribute{Name: sqs.ContentBasedDeduplication, Value: "true"}) {
		return sqs.NeedsDeduplicationID()
	}
	return nil
}

// validateMessages checks what fails a batch as a whole.
func validateMessages(messages []message, fifo bool) *sqs.Error {
	size := 0
	for i := range messages {
		size += messages[i].size()
	}
	if size > sqs.MaxMessageSize {
		return sqs.BatchTooLong(size)
	}
	for i := range messages {
		if fifo && !messages[i].grouped {
			// Not MissingParameter, as in SendMessage (AWS recording
			// test_send_batch_missing_message_group_id_for_fifo_queue).
			return sqs.Invalidf("The request must contain the parameter MessageGroupId.")
		}
	}
	return nil
}
