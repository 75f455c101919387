package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var (
	systemAttributeNames  = wire.List{JSON: "MessageSystemAttributeNames", Query: "MessageSystemAttributeName"}
	messageAttributeNames = wire.List{JSON: "MessageAttributeNames", Query: "MessageAttributeName"}
	receivedMessages      = wire.List{JSON: "Messages", Query: "Message"}
)

const maxWait = int64(sqs.MaxWaitTime / time.Second)

// systemAttribute is a set of message system attributes.
type systemAttribute uint16

const (
	senderID systemAttribute = 1 << iota
	sentTimestamp
	receiveCountShown
	firstReceiveTimestamp
	sequenceNumber
	deduplicationID
	groupID
	awsTraceHeader
	deadLetterSource
	allSystemAttributes = 1<<iota - 1
)

// systemAttributeBits are the names of message system attributes.
var systemAttributeBits = map[string]systemAttribute{
	"All":                              allSystemAttributes,
	"SenderId":                         senderID,
	"SentTimestamp":                    sentTimestamp,
	"ApproximateReceiveCount":          receiveCountShown,
	"ApproximateFirstReceiveTimestamp": firstReceiveTimestamp,
	"SequenceNumber":                   sequenceNumber,
	"MessageDeduplicationId":           deduplicationID,
	"MessageGroupId":                   groupID,
	"AWSTraceHeader":                   awsTraceHeader,
	"DeadLetterQueueSourceArn":         deadLetterSource,
}

// receive is a ReceiveMessage as it was read.
type receive struct {
	most, timeout, wait         int64
	hasMost, hasTimeout, waited bool
	attempt                     string
	tried                       bool // an attempt id was given
	systemNames, otherNames     []string
	filter                      []string
}

func (r *request) readReceive() (c receive) {
	c.most, c.hasMost = r.in.Int("MaxNumberOfMessages")
	c.timeout, c.hasTimeout = r.in.Int("VisibilityTimeout")
	c.wait, c.waited = r.in.Int("WaitTimeSeconds")
	c.attempt, c.tried = r.in.Text("ReceiveRequestAttemptId")
	c.otherNames, _ = r.in.Texts(attributeNames)
	c.systemNames, _ = r.in.Texts(systemAttributeNames)
	if r.protocol == queryProtocol && len(c.otherNames) > 0 {
		// The newer list is no part of this protocol; it counts only where the
		// older one is not there (AWS recording
		// test_message_system_attribute_names_with_attribute_names).
		c.systemNames = nil
	}
	c.filter, _ = r.in.Texts(messageAttributeNames)
	return c
}

// validate checks the parameters and returns the system attributes asked for.
func (c *receive) validate(fifo bool) (systemAttribute, *sqs.Error) {
	if c.hasMost {
		if err := sqs.ValidateRange("MaxNumberOfMessages", c.most, 1, sqs.MaxReceivedMessages, "Must be between 1 and 10, if provided."); err != nil {
			return 0, err
		}
	}
	if c.hasTimeout {
		if err := sqs.ValidateRange("VisibilityTimeout", c.timeout, 0, maxVisibility, "Must be >= 0 and <= 43200, if provided."); err != nil {
			return 0, err
		}
	}
	if c.waited {
		if err := sqs.ValidateRange("WaitTimeSeconds", c.wait, 0, maxWait, "Must be >= 0 and <= 20, if provided."); err != nil {
			return 0, err
		}
	}
	if c.tried && fifo {
		if err := sqs.ValidateID("ReceiveRequestAttemptId", c.attempt); err != nil {
			return 0, err
		}
	}
	var asked systemAttribute
	for _, names := range [...][]string{c.otherNames, c.systemNames} {
		for _, name := range names {
			bit, ok := systemAttributeBits[name]
			if !ok && !sqs.KnownAttribute(name) { // those of queues are let pass
				return 0, sqs.UnknownAttribute(name)
			}
			asked |= bit
		}
	}
	return asked, nil
}

// command returns what is to be carried out and how long it may wait.
func (c *receive) command(queue sqs.QueueKey) (sqs.ReceiveMessage, time.Duration) {
	command := sqs.ReceiveMessage{Queue: queue, MaxMessages: 1, VisibilityTimeout: sqs.QueueDefault}
	if c.hasMost {
		command.MaxMessages = int(c.most)
	}
	if c.hasTimeout {
		command.VisibilityTimeout = time.Duration(c.timeout) * time.Second
	}
	if sqs.IsFIFO(queue.Name) {
		command.AttemptID = c.attempt
	}
	if !c.waited {
		return command, -1
	}
	command.Short = c.wait == 0
	return command, time.Duration(c.wait) * time.Second
}

func receiveMessage(r *request) error {
	queue := r.queue()
	c := r.readReceive()
	if err := r.check(queue); err != nil {
		return err
	}
	asked, invalid := c.validate(sqs.IsFIFO(queue.Name))
	if invalid != nil {
		return r.invalid(queue, invalid)
	}
	command, wait := c.command(queue)
	delivery, err := r.server.broker.Receive(r.server.context, command, wait, aliveFunc(r.http.Conn()))
	r.index = delivery.Index
	if err != nil || len(delivery.Messages) == 0 {
		return err
	}
	r.out.OpenList(receivedMessages)
	for i := range delivery.Messages {
		if err := r.writeMessage(&delivery.Messages[i], queue, asked, c.filter); err != nil {
			return err
		}
	}
	r.out.CloseList(receivedMessages)
	return nil
}

// writeMessage answers one message.
func (r *request) writeMessage(m *cluster.Message, queue sqs.QueueKey, asked systemAttribute, filter []string) error {
	c, err := sqs.ParseContent(m.Content)
	if err != nil {
		return fmt.Errorf("read content of body %d: %w", m.Body, err)
	}
	r.out.OpenStruct(receivedMessages)
	r.out.UUID("MessageId", c.IDNow(m.Redriven))
	r.out.Text("ReceiptHandle", m.Handle)
	r.out.Hex("MD5OfBody", c.BodyMD5)
	r.out.Bytes("Body", c.Body)
	if asked != 0 {
		r.writeSystemAttributes(m, &c, queue, asked)
	}
	if len(filter) > 0 && len(c.Attributes) > 0 {
		r.writeMessageAttributes(&c, filter)
	}
	r.out.CloseStruct(receivedMessages)
	return nil
}

// writeSystemAttributes answers those attributes that were asked for and that
// the message has.
func (r *request) writeSystemAttributes(m *cluster.Message, c *sqs.Content, queue sqs.QueueKey, asked systemAttribute) {
	fifo := sqs.IsFIFO(queue.Name)
	moved := m.DeadLetterSource.Name != ""
	if !fifo {
		asked &^= sequenceNumber | deduplicationID
	}
	if c.GroupID == "" {
		asked &^= groupID
	}
	if c.TraceHeader == "" {
		asked &^= awsTraceHeader
	}
	if !moved {
		asked &^= deadLetterSource
	}
	if asked == 0 {
		return
	}
	text := func(bit systemAttribute, name, value string) {
		if asked&bit != 0 {
			r.out.Pair(attributesMap, name, value)
		}
	}
	number := func(bit systemAttribute, name string, value int64) {
		if asked&bit != 0 {
			r.out.PairInt(attributesMap, name, value)
		}
	}
	r.out.OpenMap(attributesMap)
	text(senderID, "SenderId", c.SenderID)
	number(sentTimestamp, "SentTimestamp", int64(m.SentAt))
	number(receiveCountShown, "ApproximateReceiveCount", int64(m.ReceiveCount))
	number(firstReceiveTimestamp, "ApproximateFirstReceiveTimestamp", int64(m.FirstReceivedAt))
	text(groupID, "MessageGroupId", c.GroupID)
	text(awsTraceHeader, "AWSTraceHeader", c.TraceHeader)
	if asked&sequenceNumber != 0 {
		text(sequenceNumber, "SequenceNumber", sequenceText(m.SequenceNumber))
	}
	if asked&deduplicationID != 0 {
		text(deduplicationID, "MessageDeduplicationId", deduplicationText(m, c))
	}
	if moved {
		text(deadLetterSource, "DeadLetterQueueSourceArn", queueARN(m.DeadLetterSource, r.settings.Region))
	}
	r.out.CloseMap(attributesMap)
}

func deduplicationText(m *cluster.Message, c *sqs.Content) string {
	if id, moved := c.DeduplicationIDNow(m.DeadLetterSource, m.Redriven); moved {
		return string(wire.AppendUUID(nil, id))
	}
	return c.DeduplicationID
}

// writeMessageAttributes answers the attributes that the filter lets through,
// and the digest of just those.
func (r *request) writeMessageAttributes(c *sqs.Content, filter []string) {
	attributes, digest := c.Attributes, c.AttributesMD5
	matched := slices.DeleteFunc(slices.Clone(attributes), func(a sqs.MessageAttribute) bool { return !matchesAny(filter, a.Name) })
	if len(matched) == 0 {
		return
	}
	if len(matched) < len(attributes) {
		attributes, digest = matched, sqs.AttributesDigest(matched)
	}
	r.out.Hex("MD5OfMessageAttributes", digest)
	r.out.OpenMap(messageAttributes)
	for i := range attributes {
		a := &attributes[i]
		r.out.OpenEntry(messageAttributes, a.Name)
		if a.Binary {
			r.out.Blob("BinaryValue", a.Value)
		} else {
			r.out.Bytes("StringValue", a.Value)
		}
		r.out.Text("DataType", a.DataType)
		r.out.CloseEntry(messageAttributes)
	}
	r.out.CloseMap(messageAttributes)
}

// matchesAny reports whether a filter of ReceiveMessage lets an attribute
// through. A prefix is one of the text, dots or not: Hel.* fits Hello (AWS
// recording test_receive_message_message_attribute_names_filters).
func matchesAny(filter []string, name string) bool {
	for _, f := range filter {
		if prefix, ok := strings.CutSuffix(f, ".*"); ok && strings.HasPrefix(name, prefix) || f == "All" || f == "*" || f == name {
			return true
		}
	}
	return false
}
