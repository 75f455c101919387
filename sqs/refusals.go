package sqs

import (
	"fmt"
	"strings"
	"time"
)

// The refusals that depend on the state, in the words of AWS.

const (
	entryInvalid   = "One or more parameters cannot be validated."
	messageInvalid = "One or more parameters are invalid."
	tooLong        = " Reason: Message must be shorter than %d bytes."
)

// EntryTooLong refuses an entry of a SendMessageBatch that counts more than limit
// bytes (AWS recording test_send_batch_message_size).
func EntryTooLong(limit int) *Error { return Invalidf(entryInvalid+tooLong, limit) }

// MessageTooLong refuses the message of a SendMessage that counts more than limit
// bytes (AWS recording test_send_oversized_message).
func MessageTooLong(limit int) *Error { return Invalidf(messageInvalid+tooLong, limit) }

// AsSendMessage rewords the refusal of the one entry of a SendMessageBatch as
// SendMessage words it.
func AsSendMessage(e *Error) *Error {
	if reason, ok := strings.CutPrefix(e.Message, entryInvalid); ok {
		return &Error{Code: e.Code, Message: messageInvalid + reason}
	}
	return e
}

// handleExpired is why a FIFO handle is refused whose lease has ended.
const handleExpired = "The receipt handle has expired"

// expiredHandle refuses it in a DeleteMessage (AWS recording
// test_fifo_delete_after_visibility_timeout).
func expiredHandle() *Error {
	return Invalidf("Value %s for parameter ReceiptHandle is invalid. Reason: %s.", HandleMark, handleExpired)
}

// AsBatchEntry rewords the refusal of a handle as an entry of a batch has it: an
// expired one has another code and a shorter text there. Nil stays nil.
func AsBatchEntry(e *Error) *Error {
	if e != nil && e.Message == expiredHandle().Message {
		return &Error{Code: ReceiptHandleIsInvalid, Message: handleExpired}
	}
	return e
}

func queueExists(name AttributeName) *Error {
	return &Error{Code: QueueNameExists, Message: "A queue already exists with the same name and a different value for attribute " + string(name)}
}

func deletedRecently(wait time.Duration) *Error {
	return &Error{Code: QueueDeletedRecently, Message: fmt.Sprintf(
		"You must wait %d seconds after deleting a queue before you can create another with the same name.", int(wait.Seconds()))}
}

func purgeInProgress(name string, wait time.Duration) *Error {
	return &Error{Code: PurgeQueueInProgress, Message: fmt.Sprintf(
		"Only one PurgeQueue operation on %s is allowed every %d seconds.", name, int(wait.Seconds()))}
}

func windowFull(limit int) *Error {
	return &Error{Code: OverLimit, Message: fmt.Sprintf("The queue has the maximum number of messages in flight, %d.", limit)}
}

func foreignHandle() *Error {
	return &Error{Code: ReceiptHandleIsInvalid, Message: `The input receipt handle "` + HandleMark + `" is not a valid receipt handle.`}
}

func messageGone() *Error {
	return Invalidf("Value %s for parameter ReceiptHandle is invalid. "+
		"Reason: Message does not exist or is not available for visibility timeout change.", HandleMark)
}

func hiddenTooLong(timeout time.Duration) *Error {
	return Invalidf("Value %d for parameter VisibilityTimeout is invalid. "+
		"Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", int(timeout.Seconds()))
}

func badRedrivePolicy(value, reason string) *Error {
	return Invalidf("Value %s for parameter RedrivePolicy is invalid. Reason: %s", value, reason)
}

func tooManyTags(queue string) *Error { return Invalidf("Too many tags added for queue %s.", queue) }

func damagedQueue() *Error {
	return &Error{Code: InternalFailure, Message: "The queue was damaged by an internal error and can only be inspected and deleted."}
}

// NeedsDeduplicationID refuses a send to a FIFO queue without content-based
// deduplication that gives no id (AWS recordings
// test_posting_to_fifo_requires_deduplicationid_group_id,
// test_send_batch_missing_deduplication_id_for_fifo_queue).
func NeedsDeduplicationID() *Error {
	return Invalidf("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
}

func fixedType() *Error {
	return &Error{Code: InvalidAttributeValue, Message: "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."}
}

// NoTaskSource is the answer to a SourceArn of a move task that names no queue
// (AWS recording test_cancel_with_invalid_source_arn_in_task_handle).
func NoTaskSource() *Error { return noResource("SourceArn") }

func noResource(parameter string) *Error {
	return &Error{
		Code:    ResourceNotFoundException,
		Message: "The resource that you specified for the " + parameter + " parameter doesn't exist.",
	}
}

// noTaskID refuses a task with the zero id, which the records of redriven messages
// use for "none".
func noTaskID() *Error { return Invalidf("A move task needs an id.") }

// The refusals of RedriveMessage, in words of our own.

func notThere() *Error {
	return &Error{Code: ResourceNotFoundException, Message: "The message is not in the queue any more."}
}

func notVisible(state string) *Error {
	return Invalidf("The message is %s: only a visible one can be moved.", state)
}

func farBehind() *Error {
	return Invalidf("Many messages that were never received lie before this one. Some are out of the way now: try again.")
}

func noWayBack(reason Code) *Error {
	switch reason {
	case CouldNotDetermineMessageSource:
		return Invalidf("The message did not come here as a dead letter of another queue: name a destination.")
	case QueueDoesNotExist:
		return Invalidf("The queue that the message came from does not exist any more: name a destination.")
	}
	return damagedQueue()
}

// NoSuchTask is the answer to the handle of a move task that is not known (AWS
// recording test_cancel_with_invalid_task_id_in_task_handle).
func NoSuchTask() *Error {
	return &Error{Code: ResourceNotFoundException, Message: "Task does not exist."}
}
