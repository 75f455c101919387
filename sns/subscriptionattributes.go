package sns

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// The values of FilterPolicyScope.
const (
	scopeAttributes = "MessageAttributes"
	scopeBody       = "MessageBody"
)

// subscriptionNames are the attributes that a subscription may be given.
var subscriptionNames = []AttributeName{
	DeliveryPolicy, FilterPolicyAttribute, FilterPolicyScope, RawMessageDelivery, RedrivePolicy, ReplayPolicy, SubscriptionRoleArn,
}

// ValidateSubscriptionAttributes refuses attributes that no subscription has. Which
// values the others may have is for the state to say.
func ValidateSubscriptionAttributes(given []Attribute) *Error {
	for _, a := range given {
		if !slices.Contains(subscriptionNames, a.Name) {
			return creating.refuse(string(a.Name))
		}
	}
	return nil
}

// changeAll sets the attributes of a new subscription. The scope of a filter policy
// comes before the policy, wherever it stands in the request.
func (s *subscription) changeAll(t *topic, given []Attribute) *Error {
	for _, first := range []bool{true, false} {
		for _, a := range given {
			if (a.Name == FilterPolicyScope) != first {
				continue
			}
			if err := s.change(t, a, creating); err != nil {
				return err
			}
		}
	}
	return nil
}

// change sets one attribute of a subscription that is in no list. After an error
// it is of no use any more.
func (s *subscription) change(t *topic, a Attribute, w wording) *Error {
	switch a.Name {
	case RawMessageDelivery:
		return s.changeRaw(a.Value, w)
	case FilterPolicyScope:
		return s.changeScope(a.Value, w)
	case FilterPolicyAttribute:
		return s.changeFilter(a.Value, s.value(FilterPolicyScope), w)
	case RedrivePolicy:
		return s.changeRedrive(t, a.Value, w)
	case DeliveryPolicy:
		return s.changeDeliveryPolicy(a.Value, w)
	case ReplayPolicy:
		if isEmptyDocument(a.Value) {
			return nil
		}
		return w.refuse("ReplayPolicy: replay is not supported by Holdfast")
	case SubscriptionRoleArn:
		if len(a.Value) > maxReference {
			return w.refuse(tooLong(a.Name))
		}
		s.put(a.Name, a.Value)
		return nil
	}
	if w == setting {
		return Invalid("AttributeName")
	}
	return w.refuse(string(a.Name))
}

// resetValue is the value that makes an attribute as in a new subscription. Most
// take an empty one for that, but not all: Terraform removes a RedrivePolicy by
// giving no value, because AWS refuses an empty one.
func resetValue(name AttributeName) string {
	switch name {
	case RawMessageDelivery:
		return "false"
	case FilterPolicyScope:
		return scopeAttributes
	case RedrivePolicy, ReplayPolicy:
		return emptyDocument
	}
	return ""
}

// put keeps the text of an attribute.
func (s *subscription) put(name AttributeName, value string) {
	m := s.extra()
	m.attributes = m.attributes.with(name, value)
	s.more = &m
}

func (s *subscription) changeRaw(value string, w wording) *Error {
	lower := strings.ToLower(value)
	switch {
	case lower != "true" && lower != "false":
		return w.refuse("RawMessageDelivery: Invalid value [" + value + "]. Must be true or false.")
	case lower == "true" && !s.protocol.raw():
		return w.refuse("Delivery protocol [" + s.protocol.String() + "] does not support raw message delivery.")
	}
	s.raw = lower == "true"
	return nil
}

func (s *subscription) changeScope(value string, w wording) *Error {
	if value != scopeAttributes && value != scopeBody {
		return w.refuse("FilterPolicyScope: Invalid value [" + value + "]. Please use either MessageBody or MessageAttributes")
	}
	if policy := s.value(FilterPolicyAttribute); policy != "" {
		if err := s.changeFilter(policy, value, w); err != nil {
			return err
		}
	}
	s.put(FilterPolicyScope, value)
	return nil
}

// changeFilter sets the filter policy. An empty one is none (AWS recording
// test_set_subscription_filter_policy_scope).
func (s *subscription) changeFilter(value, scope string, w wording) *Error {
	m := s.extra()
	m.filter = nil
	if EmptyFilterPolicy(value) {
		value = ""
	}
	if value != "" {
		var err error
		if m.filter, err = ParseFilterPolicy(value, scopeOf(scope)); err != nil {
			return w.refuseFilter(err)
		}
	}
	m.attributes = m.attributes.with(FilterPolicyAttribute, value)
	s.more = &m
	return nil
}

// refuseFilter is refuse for a policy. Some of its errors have no beginning.
func (w wording) refuseFilter(err error) *Error {
	if f, ok := errors.AsType[*FilterError](err); ok && w == creating {
		return Invalid(f.InSubscribe())
	}
	return Invalid(err.Error())
}

func scopeOf(name string) FilterScope {
	if name == scopeBody {
		return MessageBodyScope
	}
	return MessageAttributesScope
}

const emptyDocument = "{}"

// isEmptyDocument reports whether a text is an object without members.
func isEmptyDocument(text string) bool { return text != "" && EmptyFilterPolicy(text) }

// changeRedrive sets the dead-letter queue, which need not exist; an object without
// members removes it.
func (s *subscription) changeRedrive(t *topic, value string, w wording) *Error {
	m := s.extra()
	if isEmptyDocument(value) {
		m.redrive, m.attributes = QueueARN{}, m.attributes.with(RedrivePolicy, "")
		s.more = &m
		return nil
	}
	text, queue, reason := parseRedrivePolicy(value)
	if reason != "" {
		return w.refuse("RedrivePolicy: " + reason)
	}
	own, _ := parseQueueARN(s.endpoint)
	if IsFIFO(t.key.Name) && IsFIFO(own.Name) && !IsFIFO(queue.Name) {
		return w.refuse("RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic.")
	}
	if !IsFIFO(t.key.Name) && IsFIFO(queue.Name) {
		return w.refuse("RedrivePolicy: must use a standard queue as DLQ for a Subscription to a standard Topic.")
	}
	m.redrive, m.attributes = queue, m.attributes.with(RedrivePolicy, text)
	s.more = &m
	return nil
}

// parseRedrivePolicy reads a RedrivePolicy and returns it without white space.
func parseRedrivePolicy(value string) (text string, queue QueueARN, reason string) {
	if len(value) > maxDocument {
		return "", queue, "must be at most " + strconv.Itoa(maxDocument) + " bytes long"
	}
	text, err := compactJSON(value)
	if err != nil {
		where := err.in(value)
		where.Bare = true
		return "", queue, where.Error()
	}
	document, ok := parseMembers(text)
	if !ok {
		return "", queue, "invalid JSON."
	}
	if name, ok := document.unexpected("deadLetterTargetArn"); ok {
		return "", queue, "invalid JSON. Attribute " + name + " is unknown."
	}
	arn, _ := plain(document.value("deadLetterTargetArn")) // what is no text is no ARN either
	if queue, ok = queueOf(arn); !ok {
		return "", queue, "deadLetterTargetArn is an invalid arn"
	}
	return text, queue, ""
}

func (s *subscription) changeDeliveryPolicy(value string, w wording) *Error {
	if value == "" {
		s.put(DeliveryPolicy, "")
		return nil
	}
	if s.protocol != HTTP && s.protocol != HTTPS {
		return w.refuse("DeliveryPolicy: protocol " + s.protocol.String() + " does not support a delivery policy")
	}
	text, reason := canonicalSubscriptionDeliveryPolicy(value)
	if reason != "" {
		return w.refuse(reason)
	}
	s.put(DeliveryPolicy, text)
	return nil
}

// SubscriptionAttributes is the map of GetSubscriptionAttributes, sorted by name,
// for a topic of the region.
func SubscriptionAttributes(region string, r GetSubscriptionAttributesResult) []Attribute {
	set := attributes(r.Attributes)
	arn := TopicARN(region, r.Topic)
	for _, a := range []Attribute{
		{"SubscriptionArn", string(AppendSubscriptionARN(nil, arn, r.Subscription))},
		{"TopicArn", arn},
		{"Protocol", r.Protocol.String()},
		{"Endpoint", MaskedEndpoint(r.Protocol, r.Endpoint)},
		{"Owner", r.Owner},
		{"SubscriptionPrincipal", r.Principal},
		{"PendingConfirmation", boolText(r.Pending)},
		{"ConfirmationWasAuthenticated", boolText(r.Authenticated)},
	} {
		set = set.with(a.Name, a.Value)
	}
	switch {
	case set.value(FilterPolicyAttribute) == "":
		set = set.with(FilterPolicyScope, "")
	case set.value(FilterPolicyScope) == "":
		set = set.with(FilterPolicyScope, scopeAttributes)
	}
	if r.Protocol == HTTP || r.Protocol == HTTPS {
		set = set.with("EffectiveDeliveryPolicy", effectiveSubscriptionDeliveryPolicy(set.value(DeliveryPolicy), r.TopicPolicy))
	}
	return set
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
