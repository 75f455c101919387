package sns

import (
	"fmt"
	"strings"
)

// Code names an error as it stands on the wire. httpapi knows its HTTP status.
type Code string

// The errors of the SNS API that State and the validators answer with (SNS API
// reference, "Common error types" and the errors of each action).
const (
	InvalidParameter             Code = "InvalidParameter"
	ParameterValueInvalid        Code = "ParameterValueInvalid"
	ValidationError              Code = "ValidationError"
	NotFound                     Code = "NotFound"
	ResourceNotFound             Code = "ResourceNotFound"
	AuthorizationError           Code = "AuthorizationError"
	InternalError                Code = "InternalError"
	Throttling                   Code = "Throttling"
	FilterPolicyLimitExceeded    Code = "FilterPolicyLimitExceeded"
	SubscriptionLimitExceeded    Code = "SubscriptionLimitExceeded"
	TagLimitExceeded             Code = "TagLimitExceeded"
	BatchEntryIDsNotDistinct     Code = "BatchEntryIdsNotDistinct"
	BatchRequestTooLong          Code = "BatchRequestTooLong"
	EmptyBatchRequest            Code = "EmptyBatchRequest"
	InvalidBatchEntryID          Code = "InvalidBatchEntryId"
	TooManyEntriesInBatchRequest Code = "TooManyEntriesInBatchRequest"
)

// Error is an answer to the client, not a fault of the broker. It is as much a
// part of the replicated outcome as a Result is.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// maxText bounds the text of a refusal, in bytes. It may repeat a value of the
// command, and sessions keep it.
const maxText = 4096

// bounded cuts off the end of a text that is too long.
func (e *Error) bounded() *Error {
	if e != nil && len(e.Message) > maxText {
		return &Error{Code: e.Code, Message: strings.ToValidUTF8(e.Message[:maxText], "")}
	}
	return e
}

// Invalid is the most common error: InvalidParameter, with AWS's words before the
// reason.
func Invalid(reason string) *Error {
	return &Error{Code: InvalidParameter, Message: "Invalid parameter: " + reason}
}

func invalidf(format string, args ...any) *Error { return Invalid(fmt.Sprintf(format, args...)) }

// NoSuchTopic answers what needs a topic that is not there.
func NoSuchTopic() *Error { return &Error{Code: NotFound, Message: "Topic does not exist"} }

// NoSuchSubscription answers what needs a subscription that is not there.
func NoSuchSubscription() *Error {
	return &Error{Code: NotFound, Message: "Subscription does not exist"}
}

// noSuchResource is NoSuchTopic in the actions about tags.
func noSuchResource() *Error {
	return &Error{Code: ResourceNotFound, Message: "Resource does not exist"}
}

func damagedTopic() *Error {
	return &Error{Code: InternalError, Message: "The topic was damaged by an internal error. It can be inspected and deleted."}
}

func throttled() *Error { return &Error{Code: Throttling, Message: "Rate exceeded"} }
