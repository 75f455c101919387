package sqs

// AttributeName is the AWS name of a queue attribute.
type AttributeName string

// The settable attributes of a queue (SQS API reference, SetQueueAttributes).
const (
	ContentBasedDeduplication     AttributeName = "ContentBasedDeduplication"
	DeduplicationScope            AttributeName = "DeduplicationScope"
	DelaySeconds                  AttributeName = "DelaySeconds"
	FifoQueue                     AttributeName = "FifoQueue"
	FifoThroughputLimit           AttributeName = "FifoThroughputLimit"
	KmsDataKeyReusePeriodSeconds  AttributeName = "KmsDataKeyReusePeriodSeconds"
	KmsMasterKeyID                AttributeName = "KmsMasterKeyId"
	MaximumMessageSize            AttributeName = "MaximumMessageSize"
	MessageRetentionPeriod        AttributeName = "MessageRetentionPeriod"
	Policy                        AttributeName = "Policy"
	ReceiveMessageWaitTimeSeconds AttributeName = "ReceiveMessageWaitTimeSeconds"
	RedriveAllowPolicyAttribute   AttributeName = "RedriveAllowPolicy"
	RedrivePolicyAttribute        AttributeName = "RedrivePolicy"
	SqsManagedSseEnabled          AttributeName = "SqsManagedSseEnabled"
	VisibilityTimeout             AttributeName = "VisibilityTimeout"
)

// Attribute is one settable attribute in canonical form: Value is the very
// text that GetQueueAttributes answers (numbers without leading zeros, booleans
// in lower case, JSON compact). Documents are parsed before they get here and
// travel typed beside their text.
type Attribute struct {
	Name         AttributeName
	Value        string              // empty clears the attribute
	Redrive      *RedrivePolicy      // of a RedrivePolicy with a value
	RedriveAllow *RedriveAllowPolicy // of a RedriveAllowPolicy with a value
}

// RedrivePolicy is the parsed attribute of that name.
type RedrivePolicy struct {
	Target          QueueKey
	MaxReceiveCount int // 1–1,000
}

// RedriveAllowPolicy is the parsed attribute of that name.
type RedriveAllowPolicy struct {
	Permission RedrivePermission
	Sources    []QueueKey // of ByQueue, at most 10
}

// RedrivePermission says which queues may name this one as dead-letter target.
type RedrivePermission uint8

// The permissions of a RedriveAllowPolicy.
const (
	AllowAll RedrivePermission = iota + 1
	DenyAll
	ByQueue
)

// Tag is a cost allocation tag of a queue.
type Tag struct {
	Key   string // 1–128 characters
	Value string // 0–256 characters
}
