package httpapi

import (
	"context"
	"errors"
	"strings"

	"holdfast.internal/cluster"
	"holdfast.internal/sqs"
)

// The errors of the protocols themselves, beside those of sqs.
const (
	codeAccessDenied       sqs.Code = "AccessDeniedException"
	codeSerialization      sqs.Code = "SerializationException"
	codeUnknownOperation   sqs.Code = "UnknownOperationException"
	codeServiceUnavailable sqs.Code = "ServiceUnavailableException"
	codeTooLarge           sqs.Code = "RequestEntityTooLargeException"
	codeUnsupportedMedia   sqs.Code = "UnsupportedMediaTypeException"
)

const (
	modeledShapes = "com.amazonaws.sqs#"
	genericShapes = "com.amazon.coral.service#"
)

// errorShape is how a code is said in both protocols.
type errorShape struct {
	kind   string // the JSON protocol's __type
	query  string // the Query protocol's Code, also in x-amzn-query-error
	status int
}

// errorShapes has every code that is answered (Smithy model of SQS; status codes
// also from recordings: the SQS API reference says 400 for some that are not).
var errorShapes = map[sqs.Code]errorShape{
	sqs.QueueDoesNotExist:            modeled("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400),
	sqs.QueueDeletedRecently:         modeled("QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", 400),
	sqs.QueueNameExists:              modeled("QueueNameExists", "QueueAlreadyExists", 400),
	sqs.InvalidAttributeName:         modeled("InvalidAttributeName", "InvalidAttributeName", 400),
	sqs.InvalidAttributeValue:        modeled("InvalidAttributeValue", "InvalidAttributeValue", 400),
	sqs.InvalidMessageContents:       modeled("InvalidMessageContents", "InvalidMessageContents", 400),
	sqs.ReceiptHandleIsInvalid:       modeled("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404),
	sqs.PurgeQueueInProgress:         modeled("PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", 403),
	sqs.OverLimit:                    modeled("OverLimit", "OverLimit", 403),
	sqs.EmptyBatchRequest:            modeled("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", 400),
	sqs.TooManyEntriesInBatchRequest: modeled("TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400),
	sqs.BatchEntryIdsNotDistinct:     modeled("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400),
	sqs.InvalidBatchEntryId:          modeled("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", 400),
	sqs.BatchRequestTooLong:          modeled("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", 400),
	sqs.UnsupportedOperation:         modeled("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", 400),
	sqs.ResourceNotFoundException:    modeled("ResourceNotFoundException", "ResourceNotFoundException", 404),
	sqs.RequestThrottled:             modeled("RequestThrottled", "RequestThrottled", 403),
	sqs.MissingParameter:             generic("MissingRequiredParameterException", "MissingParameter", 400),
	sqs.InvalidParameterValue:        generic("InvalidParameterValueException", "InvalidParameterValue", 400),
	sqs.InternalFailure:              generic("InternalFailure", "InternalFailure", 500),
	codeAccessDenied:                 generic("AccessDeniedException", "AccessDenied", 403),
	codeSerialization:                generic("SerializationException", "MalformedInput", 400),
	codeUnknownOperation:             generic("UnknownOperationException", "InvalidAction", 400),
	codeServiceUnavailable:           generic("ServiceUnavailableException", "ServiceUnavailable", 503),
	codeTooLarge:                     generic("RequestEntityTooLargeException", "RequestEntityTooLarge", 413),
	codeUnsupportedMedia:             generic("UnsupportedMediaTypeException", "UnsupportedMediaType", 415),
}

func modeled(local, query string, status int) errorShape {
	return errorShape{modeledShapes + local, query, status}
}

func generic(local, query string, status int) errorShape {
	return errorShape{genericShapes + local, query, status}
}

// shapeOf returns the shape of a code; of one that is not in the table, that
// of InternalFailure.
func shapeOf(code sqs.Code) errorShape {
	if shape, ok := errorShapes[code]; ok {
		return shape
	}
	return errorShapes[sqs.InternalFailure]
}

// outcome says in a header whether a request that did not succeed was carried
// out.
type outcome string

const (
	outcomeDecided    outcome = "" // a 4xx: the answer says it
	outcomeNotApplied outcome = "not-applied"
	outcomeUnknown    outcome = "unknown"
)

// answerTo returns what the client is told about err, and whether err is a
// fault that the log must have.
func answerTo(err error) (answer *sqs.Error, done outcome, fault bool) {
	switch {
	case errors.As(err, &answer):
		if shapeOf(answer.Code).status >= 500 { // a command that has panicked may be half done
			return answer, outcomeUnknown, false
		}
		return answer, outcomeDecided, false
	case errors.Is(err, cluster.ErrNoLeader):
		return unavailable("No leader could take the request. Try again."), outcomeNotApplied, false
	case errors.Is(err, cluster.ErrOverloaded):
		return &sqs.Error{Code: sqs.RequestThrottled, Message: "The service is over one of its limits. Try again."}, outcomeNotApplied, false
	case errors.Is(err, cluster.ErrOutcomeUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("It is not known whether the request was carried out."), outcomeUnknown, false
	}
	return &sqs.Error{Code: sqs.InternalFailure, Message: unknownError}, outcomeUnknown, !errors.Is(err, errPanicked)
}

// maxErrorText is the longest text of an error, in bytes. Many repeat what was
// wrong in the request, however long that is.
const maxErrorText = 4096

// bounded cuts the middle out of a text that is too long: what is wrong with a
// value is said before or behind it.
func bounded(text string) string {
	const behind = maxErrorText / 4
	if len(text) <= maxErrorText {
		return text
	}
	const ellipsis = "…"
	head, tail := text[:maxErrorText-behind-len(ellipsis)], text[len(text)-behind:]
	return strings.ToValidUTF8(head, "") + ellipsis + strings.ToValidUTF8(tail, "")
}

// unknownError is what clients are told of faults.
const unknownError = "The request failed because of an unknown error."

// errPanicked stands for a panic, which the log has already.
var errPanicked = errors.New("request panicked")

func unavailable(message string) *sqs.Error {
	return &sqs.Error{Code: codeServiceUnavailable, Message: message}
}

// malformed is the answer to a request that cannot be read; err's text is for
// the client.
func malformed(err error) *sqs.Error {
	return &sqs.Error{Code: codeSerialization, Message: err.Error()}
}

// accessDenied refuses to tell an account about the queues of another.
func (r *request) accessDenied() *sqs.Error {
	return &sqs.Error{Code: codeAccessDenied, Message: "Access to the resource " + r.baseURL() + "/ is denied."}
}

// invalidHandle is the answer to a receipt handle that no node has issued.
func invalidHandle(handle string) *sqs.Error {
	return &sqs.Error{
		Code:    sqs.ReceiptHandleIsInvalid,
		Message: `The input receipt handle "` + handle + `" is not a valid receipt handle.`,
	}
}

// withHandle puts the client's handle into a message of State, which never saw
// it.
func withHandle(err *sqs.Error, handle string) *sqs.Error {
	if err == nil || !strings.Contains(err.Message, sqs.HandleMark) {
		return err
	}
	return &sqs.Error{Code: err.Code, Message: strings.ReplaceAll(err.Message, sqs.HandleMark, handle)}
}
