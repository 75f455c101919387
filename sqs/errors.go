package sqs

// Code names an error as the AWS model of SQS does: the local name of the JSON
// protocol's __type. httpapi knows its Query code and HTTP status.
type Code string

// The errors of the SQS API (SQS API reference, "Common errors" and the errors of each action).
const (
	QueueDoesNotExist            Code = "QueueDoesNotExist"
	QueueDeletedRecently         Code = "QueueDeletedRecently"
	QueueNameExists              Code = "QueueNameExists"
	InvalidAttributeName         Code = "InvalidAttributeName"
	InvalidAttributeValue        Code = "InvalidAttributeValue"
	InvalidMessageContents       Code = "InvalidMessageContents"
	ReceiptHandleIsInvalid       Code = "ReceiptHandleIsInvalid"
	PurgeQueueInProgress         Code = "PurgeQueueInProgress"
	OverLimit                    Code = "OverLimit"
	EmptyBatchRequest            Code = "EmptyBatchRequest"
	TooManyEntriesInBatchRequest Code = "TooManyEntriesInBatchRequest"
	BatchEntryIdsNotDistinct     Code = "BatchEntryIdsNotDistinct"
	InvalidBatchEntryId          Code = "InvalidBatchEntryId" //nolint:revive // AWS spells it so
	BatchRequestTooLong          Code = "BatchRequestTooLong"
	UnsupportedOperation         Code = "UnsupportedOperation"
	ResourceNotFoundException    Code = "ResourceNotFoundException"
	RequestThrottled             Code = "RequestThrottled"
	MissingParameter             Code = "MissingRequiredParameterException"
	InvalidParameterValue        Code = "InvalidParameterValueException"
	// InternalFailure answers a command that has panicked, and then every call on the
	// queue, which is damaged, but for DeleteQueue and those that only look at it.
	InternalFailure Code = "InternalFailure"
)

// The reasons of failed move tasks that are no errors of calls.
const (
	// CouldNotDetermineMessageSource says that a message has no queue that it
	// came from as a dead letter, and the task has no destination.
	CouldNotDetermineMessageSource Code = "CouldNotDetermineMessageSource"
	// MoveTaskTimedOut says that the task has not ended in MaxMoveTaskTime.
	MoveTaskTimedOut Code = "MoveTaskTimedOut"
)

// HandleMark stands in an Error's Message for the receipt handle that the
// client sent, which State does not see.
const HandleMark = "\x00handle\x00"

// Error is an answer to the client, not a fault of the broker. It is as much a
// part of the replicated outcome as a Result is.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }
