package sqs

import "time"

// The limits of Amazon SQS (SQS developer guide, "Amazon SQS quotas").
const (
	// MaxMessageSize is the most bytes that a message may count: its body and
	// the names, types and values of its attributes. It is also the most that
	// all messages of a batch may count together, whatever the queue's
	// MaximumMessageSize (AWS recording
	// test_send_message_batch_with_oversized_contents_with_updated_maximum_message_size).
	MaxMessageSize = 1 << 20
	// MaxBatchEntries is the most entries of one batch request.
	MaxBatchEntries = 10
	// MaxReceivedMessages is the most messages of one receive.
	MaxReceivedMessages = 10
	// MaxMessageAttributes is the most attributes of one message.
	MaxMessageAttributes = 10
	// MaxMessageAttributeName is the longest name or type of a message
	// attribute, in bytes.
	MaxMessageAttributeName = 256
	// MaxQueueName is the longest queue name, in characters, with the suffix
	// of a FIFO queue.
	MaxQueueName = 80
	// MaxBatchEntryID is the longest id of a batch entry, in characters.
	MaxBatchEntryID = 80
	// MaxIDLength is the longest MessageGroupId, MessageDeduplicationId and
	// ReceiveRequestAttemptId, in characters.
	MaxIDLength = 128
	// MaxTags is the most tags of a queue.
	MaxTags = 50
	// MaxTagKey is the longest key of a tag, in characters.
	MaxTagKey = 128
	// MaxTagValue is the longest value of a tag, in characters.
	MaxTagValue = 256
	// MaxPageSize is the most names that one page of a list holds.
	MaxPageSize = 1000
	// MaxPolicySize is the largest access policy, in bytes.
	MaxPolicySize = 8192
	// MaxRedriveSources is the most queues that a RedriveAllowPolicy may list.
	MaxRedriveSources = 10
	// MaxRedriveCount is the largest maxReceiveCount of a RedrivePolicy.
	MaxRedriveCount = 1000

	// MaxMoveRate is the largest MaxNumberOfMessagesPerSecond of a move task.
	MaxMoveRate = 500
	// MaxListedTasks is the most move tasks that are kept for a queue.
	MaxListedTasks = 10
	// MaxActiveTasks is the most move tasks of an account that are active at a
	// time.
	MaxActiveTasks = 100
	// MaxMoveTaskTime is the longest that a move task runs.
	MaxMoveTaskTime = 36 * time.Hour

	// MaxDelay is the longest delay of a message.
	MaxDelay = 15 * time.Minute
	// MaxVisibilityTimeout is the longest that one delivery of a message may
	// be hidden in all.
	MaxVisibilityTimeout = 12 * time.Hour
	// MaxWaitTime is the longest wait of a receive.
	MaxWaitTime = 20 * time.Second

	// FIFOSuffix ends the name of every FIFO queue, and of no other.
	FIFOSuffix = ".fifo"
)
