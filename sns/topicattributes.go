package sns

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// topicRule says which values an attribute of topics may have.
type topicRule struct {
	name AttributeName
	once bool // it is given with CreateTopic and never changes
	fifo bool // only FIFO topics have it
	// canonical returns the text that is stored, or the reason why there is none.
	canonical func(value string) (text, reason string)
}

// topicRules are the attributes that can be set, by name.
var topicRules = []topicRule{
	{name: ArchivePolicy, fifo: true, canonical: noArchive},
	{name: ContentBasedDeduplication, fifo: true, canonical: booleanOf(ContentBasedDeduplication)},
	{name: DeliveryPolicy, canonical: canonicalTopicDeliveryPolicy},
	{name: DisplayName, canonical: canonicalDisplayName},
	{name: FifoThroughputScope, fifo: true, canonical: oneOf(FifoThroughputScope, "Topic", "MessageGroup")},
	{name: FifoTopic, once: true, canonical: booleanOf(FifoTopic)},
	{name: KmsMasterKeyID, canonical: referenceOf(KmsMasterKeyID)},
	{name: MaximumMessageSize, canonical: canonicalMaximumSize},
	{name: Policy, canonical: boundedPolicy},
	{name: SignatureVersion, canonical: oneOf(SignatureVersion, "1", "2")},
	{name: TracingConfig, canonical: oneOf(TracingConfig, "PassThrough", "Active")},
}

// feedbackProtocols and feedbackKinds make up the names of the attributes for
// delivery status logging.
var (
	feedbackProtocols = []string{"Application", "Firehose", "HTTP", "Lambda", "SQS"}
	feedbackKinds     = []string{"SuccessFeedbackRoleArn", "SuccessFeedbackSampleRate", "FailureFeedbackRoleArn"}
)

func topicRuleOf(name AttributeName) (topicRule, bool) {
	for i := range topicRules {
		if topicRules[i].name == name {
			return topicRules[i], true
		}
	}
	for _, p := range feedbackProtocols {
		kind, ok := strings.CutPrefix(string(name), p)
		if !ok || !slices.Contains(feedbackKinds, kind) {
			continue
		}
		if kind == "SuccessFeedbackSampleRate" {
			return topicRule{name: name, canonical: sampleRateOf(name)}, true
		}
		return topicRule{name: name, canonical: referenceOf(name)}, true
	}
	return topicRule{}, false
}

// WantsFIFO reports whether the attributes of a CreateTopic ask for a FIFO topic.
func WantsFIFO(given []Attribute) bool {
	return slices.ContainsFunc(given, func(a Attribute) bool { return a.Name == FifoTopic && strings.EqualFold(a.Value, "true") })
}

// CanonicalTopicAttributes checks the attributes of a CreateTopic and sorts them.
// It returns values in the form in which they are stored.
func CanonicalTopicAttributes(given []Attribute) ([]Attribute, *Error) {
	fifo := WantsFIFO(given)
	list := slices.Clone(given)
	SortAttributes(list)
	for i := range list {
		rule, ok := topicRuleOf(list[i].Name)
		if !ok || rule.fifo && !fifo {
			return nil, creating.refuse(string(list[i].Name))
		}
		text, reason := rule.text(list[i].Value)
		if reason != "" {
			return nil, creating.refuse(reason)
		}
		list[i].Value = text
	}
	return list, nil
}

// CanonicalTopicAttribute does the same for SetTopicAttributes.
func CanonicalTopicAttribute(topic TopicKey, a Attribute) (Attribute, *Error) {
	rule, ok := topicRuleOf(a.Name)
	if !ok || rule.once || rule.fifo && !IsFIFO(topic.Name) {
		return a, Invalid("AttributeName")
	}
	text, reason := rule.text(a.Value)
	if reason != "" {
		return a, setting.refuse(reason)
	}
	a.Value = text
	return a, nil
}

// text is canonical; an empty value resets what has a default, but for the two
// policies (SNS API reference, ArchivePolicy; Terraform sets the default policy in
// place of none).
func (r *topicRule) text(value string) (text, reason string) {
	if value == "" && r.name != ArchivePolicy && r.name != Policy {
		return "", ""
	}
	return r.canonical(value)
}

// referenceOf takes the name of a key or a role, which nobody looks up.
func referenceOf(name AttributeName) func(string) (string, string) {
	return func(value string) (text, reason string) {
		if len(value) > maxReference {
			return "", tooLong(name)
		}
		return value, ""
	}
}

func tooLong(name AttributeName) string {
	return string(name) + ": must be at most " + strconv.Itoa(maxReference) + " characters long"
}

func noArchive(value string) (text, reason string) {
	if value == "{}" {
		return "", ""
	}
	return "", "ArchivePolicy: archiving is not supported by Holdfast"
}

func booleanOf(name AttributeName) func(string) (string, string) {
	return func(value string) (text, reason string) {
		text = strings.ToLower(value)
		if text != "true" && text != "false" {
			return "", string(name) + ": Invalid value [" + value + "]. Must be true or false."
		}
		return text, ""
	}
}

func oneOf(name AttributeName, choices ...string) func(string) (string, string) {
	return func(value string) (text, reason string) {
		if !slices.Contains(choices, value) {
			return "", string(name) + ": Invalid value [" + value + "]. Must be " + strings.Join(choices, " or ") + "."
		}
		return value, ""
	}
}

func sampleRateOf(name AttributeName) func(string) (string, string) {
	return func(value string) (text, reason string) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > 100 {
			return "", string(name) + ": " + value + " value provided is not an integer between 0-100"
		}
		return strconv.Itoa(n), ""
	}
}

func canonicalDisplayName(value string) (text, reason string) {
	if utf8.RuneCountInString(value) > 100 {
		return "", "DisplayName: must be at most 100 characters long"
	}
	return value, ""
}

func canonicalMaximumSize(value string) (text, reason string) {
	n, err := strconv.Atoi(value)
	if err != nil || n < minMaximumMessageSize || n > MaxLargeMessageSize {
		return "", "MaximumMessageSize: must be an integer between 1024 and 1048576"
	}
	return strconv.Itoa(n), ""
}

// boundedPolicy takes an access policy as it was given: whoever makes the command
// has checked it. There is always one, so it cannot be reset to none.
func boundedPolicy(value string) (text, reason string) {
	switch {
	case value == "":
		return "", "Policy Error: null"
	case len(value) > MaxPolicySize:
		return "", "Policy Error: policy is longer than " + strconv.Itoa(MaxPolicySize) + " bytes"
	}
	return value, ""
}

// CanonicalDataProtectionPolicy checks the outline of a data protection policy,
// which is stored and returned as it was given, and not enforced. A FIFO topic has
// none (SNS developer guide, "Message data protection").
func CanonicalDataProtectionPolicy(topic TopicKey, value string) (string, *Error) {
	switch {
	case value == "":
		return "", nil
	case IsFIFO(topic.Name):
		return "", Invalid("DataProtectionPolicy Reason: Only standard topics have data protection policies")
	}
	document, _ := parseMembers(value)
	statements, ok := elements(document.value("Statement"))
	if len(value) > MaxPolicySize || !ok || len(statements) == 0 || document.value("Name") == "" {
		return "", Invalid("DataProtectionPolicy Reason: Policy is not valid")
	}
	for _, text := range statements {
		s, _ := parseMembers(text)
		if direction, _ := plain(s.value("DataDirection")); direction != "Inbound" && direction != "Outbound" {
			return "", Invalid("DataProtectionPolicy Reason: Statement DataDirection must be either Inbound or Outbound")
		}
	}
	return value, nil
}

// topicSettings is what a topic's attributes mean to a publish.
type topicSettings struct {
	contentBased bool
	byGroup      bool // FifoThroughputScope is MessageGroup
	version      byte // of the signature
	maxSize      int32
}

func (a attributes) topicSettings() topicSettings {
	s := topicSettings{
		contentBased: a.value(ContentBasedDeduplication) == "true",
		byGroup:      a.value(FifoThroughputScope) == "MessageGroup",
		version:      1,
		maxSize:      MaxMessageSize,
	}
	if a.value(SignatureVersion) == "2" {
		s.version = 2
	}
	if n, err := strconv.Atoi(a.value(MaximumMessageSize)); err == nil {
		s.maxSize = int32(n)
	}
	return s
}

// TopicAttributes is the map of GetTopicAttributes, sorted by name, for a topic
// of the region.
func TopicAttributes(region string, topic TopicKey, r GetTopicAttributesResult) []Attribute {
	set := attributes(r.Attributes)
	arn := TopicARN(region, topic)
	for _, a := range []Attribute{
		{"TopicArn", arn},
		{"Owner", topic.Account},
		{"SubscriptionsConfirmed", strconv.Itoa(r.Confirmed)},
		{"SubscriptionsPending", strconv.Itoa(r.Pending)},
		{"SubscriptionsDeleted", strconv.Itoa(r.Deleted)},
		{"EffectiveDeliveryPolicy", effectiveTopicDeliveryPolicy(set.value(DeliveryPolicy))},
	} {
		set = set.with(a.Name, a.Value)
	}
	if set.value(Policy) == "" {
		set = set.with(Policy, DefaultPolicy(region, topic))
	}
	if IsFIFO(topic.Name) && set.value(ContentBasedDeduplication) == "" {
		set = set.with(ContentBasedDeduplication, "false")
	}
	if i, ok := set.find(DisplayName); !ok { // shown when empty, too
		set = slices.Insert(slices.Clone(set), i, Attribute{Name: DisplayName})
	}
	return set
}

// DefaultPolicy is the access policy of a topic that was given none (AWS recording
// test_create_topic_with_attributes).
func DefaultPolicy(region string, topic TopicKey) string {
	return `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[{"Sid":"__default_statement_ID","Effect":"Allow",` +
		`"Principal":{"AWS":"*"},"Action":["SNS:GetTopicAttributes","SNS:SetTopicAttributes","SNS:AddPermission",` +
		`"SNS:RemovePermission","SNS:DeleteTopic","SNS:Subscribe","SNS:ListSubscriptionsByTopic","SNS:Publish"],` +
		`"Resource":"` + TopicARN(region, topic) + `","Condition":{"StringEquals":{"AWS:SourceOwner":"` + topic.Account + `"}}}]}`
}
