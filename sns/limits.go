package sns

import "time"

// The limits of Amazon SNS (SNS endpoints and quotas; API reference), and our
// own.
const (
	// MaxMessageSize is the most bytes that a message may count unless the topic
	// has a MaximumMessageSize, and all messages of a batch together.
	MaxMessageSize = 262_144
	// MaxLargeMessageSize is the largest MaximumMessageSize.
	MaxLargeMessageSize = 1 << 20
	// minMaximumMessageSize is the smallest.
	minMaximumMessageSize = 1024
	// MaxBatchEntries is the most entries of a PublishBatch.
	MaxBatchEntries = 10
	// MaxBatchEntryID is the longest id of a batch entry, in characters.
	MaxBatchEntryID = 80
	// MaxTopicName is the longest topic name, with the suffix of a FIFO topic.
	MaxTopicName = 256
	// MaxIDLength is the longest MessageGroupId and MessageDeduplicationId.
	MaxIDLength = 128
	// MaxTags is the most tags of a topic.
	MaxTags = 50
	// MaxPage is the number of items of one page of a list.
	MaxPage = 100
	// MaxPolicySize is the largest access or data protection policy, in bytes.
	MaxPolicySize = 30_720
	// MaxFIFOSubscriptions is the most subscriptions of a FIFO topic, and of one
	// whose MaximumMessageSize is above MaxMessageSize.
	MaxFIFOSubscriptions = 100
	// MaxQueueAttributes is the most message attributes that a message of a queue
	// may have, so that a raw delivery cannot have more.
	MaxQueueAttributes = 10

	// TokenLife is how long a confirmation token is good for.
	TokenLife = 48 * time.Hour
	// pendingLife is how long a subscription waits for its confirmation.
	pendingLife = 72 * time.Hour

	// maxReference is the longest name of a key or a role, in bytes (AWS KMS and IAM
	// API references: 2048).
	maxReference = 2048
	// maxURL is the longest endpoint of http and https, in bytes. It is our own: a
	// page of a list has a hundred of them.
	maxURL = 8192
	// maxQueueName is the longest name of a queue (SQS API reference, CreateQueue).
	maxQueueName = 80
	maxQueueARN  = 256 // with room for long names of partitions and regions

	// FIFOSuffix ends the name of every FIFO topic and FIFO queue, and of no
	// other.
	FIFOSuffix = ".fifo"

	// MaxSteps is how much work the publishes and Pulses of one log entry may do
	// together: a step is one subscription of one publish, or as much work of a filter
	// policy or an Outlet. What is left over waits for the next Pulse.
	MaxSteps = 1000

	// PulseSteps is how many of them a Pulse takes for publishes, and the beginning
	// of a publish to more subscriptions than MaxSteps: one that goes from queue to
	// queue finds none of them in the processor's caches.
	PulseSteps = MaxSteps * 7 / 10

	// maxUnfinished is the most publishes of one topic that wait for Pulses, and
	// maxUnfinishedBytes what their records may take in all topics. Above,
	// publishes are throttled.
	maxUnfinished      = 1000
	maxUnfinishedBytes = 64 << 20
)
