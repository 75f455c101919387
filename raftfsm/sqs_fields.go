package raftfsm

import (
	"holdfast.internal/sqs"
)

// The most items that a list of a command or result may have. They are at
// least what a valid request can hold; they bound what a decoder allocates.
const (
	maxBatchEntries = 10     // AWS: of SendMessageBatch and the other batches
	maxReceived     = 10     // AWS: MaxNumberOfMessages
	maxAttributes   = 64     // AWS knows 15 that can be set
	maxTags         = 1_024  // AWS: 50 on a queue; a JSON request may have so many
	maxTagKeys      = 16_384 // unknown ones are ignored, so that AWS has no limit
	maxSources      = 10     // AWS: sourceQueueArns of a RedriveAllowPolicy
	maxNames        = 1_000  // AWS: MaxResults of the list actions
	maxTasks        = 10     // AWS: of ListMessageMoveTasks
)

// The fields of what the commands share.

func queueKeyFields(f *fields, q sqs.QueueKey) sqs.QueueKey {
	q.Account = f.name(q.Account)
	q.Name = f.name(q.Name)
	return q
}

func stringFields(f *fields, s string) string { return f.str(s) }

func attributeFields(f *fields, a sqs.Attribute) sqs.Attribute {
	a.Name = sqs.AttributeName(f.name(string(a.Name)))
	a.Value = f.str(a.Value)
	a.Redrive = optional(f, a.Redrive, redrivePolicyFields)
	a.RedriveAllow = optional(f, a.RedriveAllow, redriveAllowPolicyFields)
	return a
}

func redrivePolicyFields(f *fields, p sqs.RedrivePolicy) sqs.RedrivePolicy {
	p.Target = queueKeyFields(f, p.Target)
	p.MaxReceiveCount = f.int(p.MaxReceiveCount)
	return p
}

func redriveAllowPolicyFields(f *fields, p sqs.RedriveAllowPolicy) sqs.RedriveAllowPolicy {
	p.Permission = sqs.RedrivePermission(f.byte(byte(p.Permission)))
	p.Sources = list(f, p.Sources, maxSources, queueKeyFields)
	return p
}

func tagFields(f *fields, t sqs.Tag) sqs.Tag {
	t.Key = f.str(t.Key)
	t.Value = f.str(t.Value)
	return t
}

func receiptFields(f *fields, r sqs.Receipt) sqs.Receipt {
	r.Incarnation = f.u64(r.Incarnation)
	r.Sequence = f.u64(r.Sequence)
	r.ReceiveNumber = f.u32(r.ReceiveNumber)
	r.ReceivedAt = f.time(r.ReceivedAt)
	return r
}

func errorFields(f *fields, e sqs.Error) sqs.Error {
	e.Code = sqs.Code(f.name(string(e.Code)))
	e.Message = f.str(e.Message)
	return e
}

func optionalErrorFields(f *fields, e *sqs.Error) *sqs.Error {
	return optional(f, e, errorFields)
}

// Commands about queues.

func createQueueFields(f *fields, c sqs.CreateQueue) sqs.CreateQueue {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Attributes = list(f, c.Attributes, maxAttributes, attributeFields)
	c.Tags = list(f, c.Tags, maxTags, tagFields)
	return c
}

func deleteQueueFields(f *fields, c sqs.DeleteQueue) sqs.DeleteQueue {
	c.Queue = queueKeyFields(f, c.Queue)
	return c
}

func getQueueURLFields(f *fields, c sqs.GetQueueUrl) sqs.GetQueueUrl {
	c.Queue = queueKeyFields(f, c.Queue)
	return c
}

func listQueuesFields(f *fields, c sqs.ListQueues) sqs.ListQueues {
	c.Account = f.name(c.Account)
	c.Prefix = f.str(c.Prefix)
	c.After = f.str(c.After)
	c.Limit = f.int(c.Limit)
	return c
}

func getQueueAttributesFields(f *fields, c sqs.GetQueueAttributes) sqs.GetQueueAttributes {
	c.Queue = queueKeyFields(f, c.Queue)
	return c
}

func setQueueAttributesFields(f *fields, c sqs.SetQueueAttributes) sqs.SetQueueAttributes {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Attributes = list(f, c.Attributes, maxAttributes, attributeFields)
	return c
}

func tagQueueFields(f *fields, c sqs.TagQueue) sqs.TagQueue {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Tags = list(f, c.Tags, maxTags, tagFields)
	return c
}

func untagQueueFields(f *fields, c sqs.UntagQueue) sqs.UntagQueue {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Keys = list(f, c.Keys, maxTagKeys, stringFields)
	return c
}

func listQueueTagsFields(f *fields, c sqs.ListQueueTags) sqs.ListQueueTags {
	c.Queue = queueKeyFields(f, c.Queue)
	return c
}

func listDeadLetterSourceQueuesFields(f *fields, c sqs.ListDeadLetterSourceQueues) sqs.ListDeadLetterSourceQueues {
	c.Queue = queueKeyFields(f, c.Queue)
	c.After = queueKeyFields(f, c.After)
	c.Limit = f.int(c.Limit)
	return c
}

func purgeQueueFields(f *fields, c sqs.PurgeQueue) sqs.PurgeQueue {
	c.Queue = queueKeyFields(f, c.Queue)
	return c
}

func replacePolicyFields(f *fields, c sqs.ReplacePolicy) sqs.ReplacePolicy {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Old = f.str(c.Old)
	c.New = f.str(c.New)
	return c
}

// Commands about move tasks.

func startMessageMoveTaskFields(f *fields, c sqs.StartMessageMoveTask) sqs.StartMessageMoveTask {
	c.Source = queueKeyFields(f, c.Source)
	f.fixed(c.Task[:])
	c.Destination = optional(f, c.Destination, queueKeyFields)
	c.MaxPerSecond = f.int(c.MaxPerSecond)
	c.Limit = f.u64(c.Limit)
	return c
}

func redriveMessageFields(f *fields, c sqs.RedriveMessage) sqs.RedriveMessage {
	c.Source = queueKeyFields(f, c.Source)
	c.Sequence = f.u64(c.Sequence)
	c.Body = f.u64(c.Body)
	f.fixed(c.Task[:])
	c.Destination = optional(f, c.Destination, queueKeyFields)
	return c
}

func markMessageDamagedFields(f *fields, c sqs.MarkMessageDamaged) sqs.MarkMessageDamaged {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Sequence = f.u64(c.Sequence)
	c.Body = f.u64(c.Body)
	return c
}

func cancelMessageMoveTaskFields(f *fields, c sqs.CancelMessageMoveTask) sqs.CancelMessageMoveTask {
	c.Source = queueKeyFields(f, c.Source)
	f.fixed(c.Task[:])
	return c
}

func listMessageMoveTasksFields(f *fields, c sqs.ListMessageMoveTasks) sqs.ListMessageMoveTasks {
	c.Source = queueKeyFields(f, c.Source)
	c.Limit = f.int(c.Limit)
	return c
}

// Commands about messages.

func sendMessageBatchFields(f *fields, c sqs.SendMessageBatch) sqs.SendMessageBatch {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Entries = list(f, c.Entries, maxBatchEntries, sendEntryFields)
	return c
}

func sendEntryFields(f *fields, e sqs.SendEntry) sqs.SendEntry {
	f.fixed(e.MessageID[:])
	e.Size = f.int(e.Size)
	e.Delay = f.dur(e.Delay)
	e.GroupID = f.name(e.GroupID)
	e.DeduplicationID = f.str(e.DeduplicationID)
	if f.bool(e.BodySHA256 != [32]byte{}) {
		f.fixed(e.BodySHA256[:])
	}
	return e
}

func receiveMessageFields(f *fields, c sqs.ReceiveMessage) sqs.ReceiveMessage {
	c.Queue = queueKeyFields(f, c.Queue)
	c.MaxMessages = f.int(c.MaxMessages)
	c.VisibilityTimeout = f.dur(c.VisibilityTimeout)
	c.Short = f.bool(c.Short)
	c.AttemptID = f.str(c.AttemptID)
	return c
}

func deleteMessageBatchFields(f *fields, c sqs.DeleteMessageBatch) sqs.DeleteMessageBatch {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Receipts = list(f, c.Receipts, maxBatchEntries, receiptFields)
	return c
}

func changeMessageVisibilityBatchFields(f *fields, c sqs.ChangeMessageVisibilityBatch) sqs.ChangeMessageVisibilityBatch {
	c.Queue = queueKeyFields(f, c.Queue)
	c.Entries = list(f, c.Entries, maxBatchEntries, visibilityEntryFields)
	return c
}

func visibilityEntryFields(f *fields, e sqs.VisibilityEntry) sqs.VisibilityEntry {
	e.Receipt = receiptFields(f, e.Receipt)
	e.Timeout = f.dur(e.Timeout)
	return e
}

// Results.

func doneFields(_ *fields, r sqs.Done) sqs.Done { return r }

func listQueuesResultFields(f *fields, r sqs.ListQueuesResult) sqs.ListQueuesResult {
	r.Names = list(f, r.Names, maxNames, stringFields)
	r.More = f.bool(r.More)
	return r
}

func getQueueAttributesResultFields(f *fields, r sqs.GetQueueAttributesResult) sqs.GetQueueAttributesResult {
	r.Attributes = list(f, r.Attributes, maxAttributes, attributeFields)
	r.CreatedAt = f.time(r.CreatedAt)
	r.ModifiedAt = f.time(r.ModifiedAt)
	r.Visible = f.int(r.Visible)
	r.InFlight = f.int(r.InFlight)
	r.Delayed = f.int(r.Delayed)
	return r
}

func listQueueTagsResultFields(f *fields, r sqs.ListQueueTagsResult) sqs.ListQueueTagsResult {
	r.Tags = list(f, r.Tags, maxTags, tagFields)
	return r
}

func listDeadLetterSourceQueuesResultFields(f *fields, r sqs.ListDeadLetterSourceQueuesResult) sqs.ListDeadLetterSourceQueuesResult {
	r.Queues = list(f, r.Queues, maxNames, queueKeyFields)
	r.More = f.bool(r.More)
	return r
}

func sendMessageBatchResultFields(f *fields, r sqs.SendMessageBatchResult) sqs.SendMessageBatchResult {
	r.Entries = list(f, r.Entries, maxBatchEntries, sendResultFields)
	return r
}

func sendResultFields(f *fields, r sqs.SendResult) sqs.SendResult {
	r.Err = optionalErrorFields(f, r.Err)
	r.Body = f.u64(r.Body)
	f.fixed(r.MessageID[:])
	r.SequenceNumber = f.u64(r.SequenceNumber)
	return r
}

func receiveMessageResultFields(f *fields, r sqs.ReceiveMessageResult) sqs.ReceiveMessageResult {
	r.Messages = list(f, r.Messages, maxReceived, receivedFields)
	return r
}

func receivedFields(f *fields, r sqs.Received) sqs.Received {
	r.Receipt = receiptFields(f, r.Receipt)
	r.Body = f.u64(r.Body)
	r.SentAt = f.time(r.SentAt)
	r.FirstReceivedAt = f.time(r.FirstReceivedAt)
	r.ReceiveCount = f.int(r.ReceiveCount)
	r.SequenceNumber = f.u64(r.SequenceNumber)
	r.DeadLetterSource = queueKeyFields(f, r.DeadLetterSource)
	if f.bool(r.Redriven != sqs.MessageID{}) {
		f.fixed(r.Redriven[:])
	}
	if f.bool(r.Copy != sqs.Copy{}) {
		f.fixed(r.Copy.Receiver[:])
		r.Copy.Shape = f.byte(r.Copy.Shape)
		r.Copy.Generation = f.u32(r.Copy.Generation)
	}
	return r
}

func batchResultFields(f *fields, r sqs.BatchResult) sqs.BatchResult {
	r.Errors = list(f, r.Errors, maxBatchEntries, optionalErrorFields)
	return r
}

func redriveMessageResultFields(f *fields, r sqs.RedriveMessageResult) sqs.RedriveMessageResult {
	r.To = queueKeyFields(f, r.To)
	r.Sequence = f.u64(r.Sequence)
	f.fixed(r.MessageID[:])
	return r
}

func cancelMessageMoveTaskResultFields(f *fields, r sqs.CancelMessageMoveTaskResult) sqs.CancelMessageMoveTaskResult {
	r.Moved = f.u64(r.Moved)
	return r
}

func listMessageMoveTasksResultFields(f *fields, r sqs.ListMessageMoveTasksResult) sqs.ListMessageMoveTasksResult {
	r.Tasks = list(f, r.Tasks, maxTasks, moveTaskFields)
	return r
}

func moveTaskFields(f *fields, t sqs.MoveTask) sqs.MoveTask {
	f.fixed(t.ID[:])
	t.Status = sqs.MoveTaskStatus(f.byte(byte(t.Status)))
	t.Destination = optional(f, t.Destination, queueKeyFields)
	t.MaxPerSecond = f.int(t.MaxPerSecond)
	t.ToMove = f.u64(t.ToMove)
	t.Moved = f.u64(t.Moved)
	t.FailureReason = sqs.Code(f.str(string(t.FailureReason)))
	t.StartedAt = f.time(t.StartedAt)
	return t
}

func replacePolicyResultFields(f *fields, r sqs.ReplacePolicyResult) sqs.ReplacePolicyResult {
	r.Replaced = f.bool(r.Replaced)
	r.Policy = f.str(r.Policy)
	return r
}
