package sns

import (
	"slices"
	"strings"
)

// AttributeName is the AWS name of an attribute of a topic or a subscription.
type AttributeName string

// The attributes of topics that can be set, the feedback ones left out (SNS API
// reference, CreateTopic and SetTopicAttributes).
const (
	ArchivePolicy             AttributeName = "ArchivePolicy"
	ContentBasedDeduplication AttributeName = "ContentBasedDeduplication"
	DeliveryPolicy            AttributeName = "DeliveryPolicy" // of subscriptions, too
	DisplayName               AttributeName = "DisplayName"
	FifoThroughputScope       AttributeName = "FifoThroughputScope"
	FifoTopic                 AttributeName = "FifoTopic"
	KmsMasterKeyID            AttributeName = "KmsMasterKeyId"
	MaximumMessageSize        AttributeName = "MaximumMessageSize"
	Policy                    AttributeName = "Policy"
	SignatureVersion          AttributeName = "SignatureVersion"
	TracingConfig             AttributeName = "TracingConfig"
)

// The attributes of subscriptions that can be set (SNS API reference,
// Subscribe).
const (
	FilterPolicyAttribute AttributeName = "FilterPolicy"
	FilterPolicyScope     AttributeName = "FilterPolicyScope"
	RawMessageDelivery    AttributeName = "RawMessageDelivery"
	RedrivePolicy         AttributeName = "RedrivePolicy"
	ReplayPolicy          AttributeName = "ReplayPolicy"
	SubscriptionRoleArn   AttributeName = "SubscriptionRoleArn"
)

// Attribute is one attribute with its text.
type Attribute struct {
	Name  AttributeName
	Value string // empty: reset
}

// SortAttributes sorts by name.
func SortAttributes(attributes []Attribute) {
	slices.SortFunc(attributes, func(a, b Attribute) int { return strings.Compare(string(a.Name), string(b.Name)) })
}

// attributes are those of a topic or a subscription that were set, sorted by name.
// The list is replaced, never changed.
type attributes []Attribute

func (a attributes) find(name AttributeName) (int, bool) {
	return slices.BinarySearchFunc(a, name, func(a Attribute, n AttributeName) int { return strings.Compare(string(a.Name), string(n)) })
}

// value is the text of an attribute; empty if it is not set.
func (a attributes) value(name AttributeName) string {
	if i, ok := a.find(name); ok {
		return a[i].Value
	}
	return ""
}

// with is the list in which the attribute has a value; an empty one takes it out.
func (a attributes) with(name AttributeName, value string) attributes {
	i, ok := a.find(name)
	a = slices.Clone(a)
	switch {
	case ok && value == "":
		return slices.Delete(a, i, i+1)
	case ok:
		a[i].Value = value
	case value != "":
		a = slices.Insert(a, i, Attribute{Name: name, Value: value})
	}
	return a
}

// wording says how an error about an attribute begins: the Set actions name only
// the attribute, the actions that take a map of attributes say so first (AWS
// recordings test_topic_delivery_policy_crud, test_create_subscriptions_with_attributes).
type wording string

const (
	setting  wording = ""
	creating wording = "Attributes Reason: "
)

func (w wording) refuse(reason string) *Error { return Invalid(string(w) + reason) }
