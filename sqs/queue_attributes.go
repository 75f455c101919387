package sqs

import (
	"slices"
	"strconv"
	"strings"
)

// The attributes of a queue that can only be read (SQS API reference,
// GetQueueAttributes).
const (
	ApproximateNumberOfMessages           AttributeName = "ApproximateNumberOfMessages"
	ApproximateNumberOfMessagesDelayed    AttributeName = "ApproximateNumberOfMessagesDelayed"
	ApproximateNumberOfMessagesNotVisible AttributeName = "ApproximateNumberOfMessagesNotVisible"
	CreatedTimestamp                      AttributeName = "CreatedTimestamp"
	LastModifiedTimestamp                 AttributeName = "LastModifiedTimestamp"
	QueueArn                              AttributeName = "QueueArn"
)

// attributeKind says which values an attribute takes.
type attributeKind uint8

const (
	numberAttribute attributeKind = iota + 1
	booleanAttribute
	choiceAttribute
	textAttribute
	documentAttribute // parsed by httpapi
)

// attributeRule is what one settable attribute may be.
type attributeRule struct {
	name        AttributeName
	kind        attributeKind
	fifo        bool // of FIFO queues only
	least, most int64
	choices     [2]string
}

// attributeRules has all settable attributes, sorted by name.
var attributeRules = [...]attributeRule{
	{name: ContentBasedDeduplication, kind: booleanAttribute, fifo: true},
	{name: DeduplicationScope, kind: choiceAttribute, fifo: true, choices: [2]string{"queue", "messageGroup"}},
	{name: DelaySeconds, kind: numberAttribute, least: 0, most: 900},
	{name: FifoQueue, kind: booleanAttribute, fifo: true},
	{name: FifoThroughputLimit, kind: choiceAttribute, fifo: true, choices: [2]string{"perQueue", "perMessageGroupId"}},
	{name: KmsDataKeyReusePeriodSeconds, kind: numberAttribute, least: 60, most: 86_400},
	{name: KmsMasterKeyID, kind: textAttribute},
	{name: MaximumMessageSize, kind: numberAttribute, least: 1024, most: MaxMessageSize},
	{name: MessageRetentionPeriod, kind: numberAttribute, least: 60, most: 1_209_600},
	{name: Policy, kind: documentAttribute},
	{name: ReceiveMessageWaitTimeSeconds, kind: numberAttribute, least: 0, most: 20},
	{name: RedriveAllowPolicyAttribute, kind: documentAttribute},
	{name: RedrivePolicyAttribute, kind: documentAttribute},
	{name: SqsManagedSseEnabled, kind: booleanAttribute},
	{name: VisibilityTimeout, kind: numberAttribute, least: 0, most: 43_200},
}

func ruleOf(name AttributeName) (attributeRule, bool) {
	i, ok := slices.BinarySearchFunc(attributeRules[:], name, func(r attributeRule, n AttributeName) int {
		return strings.Compare(string(r.name), string(n))
	})
	if !ok {
		return attributeRule{}, false
	}
	return attributeRules[i], true
}

// KnownAttribute reports whether GetQueueAttributes takes the name; All is
// known too.
func KnownAttribute(name string) bool {
	switch AttributeName(name) {
	case "All", ApproximateNumberOfMessages, ApproximateNumberOfMessagesDelayed,
		ApproximateNumberOfMessagesNotVisible, CreatedTimestamp, LastModifiedTimestamp, QueueArn:
		return true
	}
	_, ok := ruleOf(AttributeName(name))
	return ok
}

// UnknownAttribute is the answer to an attribute name that does not exist, or
// not for this type of queue.
func UnknownAttribute(name string) *Error {
	return &Error{Code: InvalidAttributeName, Message: "Unknown Attribute " + name + "."}
}

// InvalidValue is the answer to a value that the attribute cannot have.
func InvalidValue(name AttributeName) *Error {
	return &Error{Code: InvalidAttributeValue, Message: "Invalid value for the parameter " + string(name) + "."}
}

// ValidateAttributeName checks that an attribute can be set on a queue of this
// type (AWS recordings test_create_standard_queue_with_fifo_attribute_raises_error,
// test_set_unsupported_attribute_standard).
func ValidateAttributeName(name AttributeName, fifo bool) *Error {
	rule, ok := ruleOf(name)
	if !ok {
		return UnknownAttribute(string(name))
	}
	if !rule.fifo || fifo {
		return nil
	}
	if rule.kind == choiceAttribute {
		return &Error{Code: InvalidAttributeName, Message: "You can specify the " + string(name) + " only when FifoQueue is set to true."}
	}
	return UnknownAttribute(string(name))
}

// IsDocument reports whether the attribute's value is a JSON document, which
// CanonicalValue does not know.
func IsDocument(name AttributeName) bool {
	rule, ok := ruleOf(name)
	return ok && rule.kind == documentAttribute
}

// CanonicalValue returns the value of an attribute as GetQueueAttributes shows
// it: numbers without leading zeros, booleans in lower case. Documents have no
// canonical value here.
func CanonicalValue(name AttributeName, value string) (string, *Error) {
	rule, ok := ruleOf(name)
	if !ok || rule.kind == documentAttribute {
		return "", UnknownAttribute(string(name))
	}
	switch rule.kind {
	case numberAttribute:
		return canonicalNumber(rule, value)
	case booleanAttribute:
		if strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
			return strings.ToLower(value), nil
		}
		return "", InvalidValue(name)
	case choiceAttribute:
		if slices.Contains(rule.choices[:], value) {
			return value, nil
		}
		return "", InvalidValue(name)
	}
	if len(value) > maxTextValue || !ValidText([]byte(value)) {
		return "", InvalidValue(name)
	}
	return value, nil
}

// maxTextValue is the longest value of a textAttribute, in bytes: that of a KMS
// key's identifier (KMS API reference, DescribeKey).
const maxTextValue = 2048

// canonicalNumber allows digits only: no sign, no space, no point.
func canonicalNumber(rule attributeRule, value string) (string, *Error) {
	for i := 0; i < len(value); i++ {
		if value[i] < '0' || value[i] > '9' {
			return "", InvalidValue(rule.name)
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < rule.least || n > rule.most {
		return "", InvalidValue(rule.name)
	}
	return strconv.FormatInt(n, 10), nil
}

// ValidateTogether checks what canonical attributes of one call may not say
// together. What depends on the queue's other attributes is for State.
func ValidateTogether(attributes []Attribute) *Error {
	value := func(name AttributeName) string {
		for i := range attributes {
			if attributes[i].Name == name {
				return attributes[i].Value
			}
		}
		return ""
	}
	if value(KmsMasterKeyID) != "" && value(SqsManagedSseEnabled) == "true" {
		return &Error{Code: InvalidAttributeName, Message: "You can use one type of server-side encryption (SSE) at one time. " +
			"You can either enable KMS SSE or SQS SSE."}
	}
	if value(FifoThroughputLimit) == "perMessageGroupId" && value(DeduplicationScope) == "queue" {
		return PerGroupLimitNeedsScope()
	}
	return nil
}

// PerGroupLimitNeedsScope is the answer to a FifoThroughputLimit of
// perMessageGroupId on a queue whose DeduplicationScope is not messageGroup.
func PerGroupLimitNeedsScope() *Error {
	return &Error{Code: InvalidAttributeValue, Message: "The perMessageGroupId value is allowed only when the value for " +
		"DeduplicationScope is messageGroup"}
}

// SortAttributes puts attributes into the order that commands have them in.
func SortAttributes(attributes []Attribute) {
	slices.SortFunc(attributes, func(a, b Attribute) int { return strings.Compare(string(a.Name), string(b.Name)) })
}

// SortTags puts tags into the order that commands have them in.
func SortTags(tags []Tag) {
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
}
