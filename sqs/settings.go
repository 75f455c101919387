package sqs

import (
	"slices"
	"strconv"
)

// settings are the attributes of a queue that can be set.
type settings struct {
	delay, retention, wait, visibility int32 // seconds
	maxSize                            int32 // bytes
	keyReuse                           int32 // seconds; shown only while there is a key
	managedSSE                         bool
	fifo                               bool // never changes
	contentBased                       bool // FIFO only, as are the next two
	scopedByGroup                      bool // DeduplicationScope is messageGroup
	limitedByGroup                     bool // FifoThroughputLimit is perMessageGroupId
	kmsKey                             string
	policy                             string
	redriveText                        string // empty: no RedrivePolicy
	redrive                            RedrivePolicy
	allowText                          string // empty: no RedriveAllowPolicy
	allow                              RedriveAllowPolicy
}

// defaultKeyReuse is the default of KmsDataKeyReusePeriodSeconds.
const defaultKeyReuse = 300

// defaultSettings are those of a queue that is made without attributes (AWS
// recording test_set_queue_attributes_default_values).
func defaultSettings() settings {
	return settings{
		retention:  345_600,
		visibility: 30,
		maxSize:    MaxMessageSize,
		keyReuse:   defaultKeyReuse,
		managedSSE: true,
	}
}

// change sets the given attributes, which are sorted by name. After an error
// the settings are of no use any more.
func (s *settings) change(attributes []Attribute) *Error {
	if err := ValidateTogether(attributes); err != nil {
		return err
	}
	for i := range attributes {
		if err := s.set(&attributes[i]); err != nil {
			return err
		}
	}
	if s.limitedByGroup && !s.scopedByGroup {
		return PerGroupLimitNeedsScope()
	}
	return nil
}

func (s *settings) set(a *Attribute) *Error {
	if n := s.number(a.Name); n != nil {
		return setNumber(n, a)
	}
	if rule, ok := ruleOf(a.Name); ok && rule.fifo {
		return s.setFIFO(a)
	}
	switch a.Name {
	case KmsMasterKeyID:
		s.setKMSKey(a.Value)
	case Policy:
		s.policy = a.Value
	case RedrivePolicyAttribute:
		return s.setRedrive(a)
	case RedriveAllowPolicyAttribute:
		return s.setRedriveAllow(a)
	case SqsManagedSseEnabled:
		return s.setManagedSSE(a)
	default:
		return UnknownAttribute(string(a.Name))
	}
	return nil
}

// number is where the value of a numeric attribute is kept; nil for others.
func (s *settings) number(name AttributeName) *int32 {
	switch name {
	case DelaySeconds:
		return &s.delay
	case KmsDataKeyReusePeriodSeconds:
		return &s.keyReuse
	case MaximumMessageSize:
		return &s.maxSize
	case MessageRetentionPeriod:
		return &s.retention
	case ReceiveMessageWaitTimeSeconds:
		return &s.wait
	case VisibilityTimeout:
		return &s.visibility
	}
	return nil
}

func setNumber(n *int32, a *Attribute) *Error {
	v, err := strconv.ParseUint(a.Value, 10, 31)
	if err != nil {
		return InvalidValue(a.Name)
	}
	*n = int32(v)
	return nil
}

// setFIFO sets an attribute that only FIFO queues have.
func (s *settings) setFIFO(a *Attribute) *Error {
	if err := ValidateAttributeName(a.Name, s.fifo); err != nil {
		return err
	}
	value, err := CanonicalValue(a.Name, a.Value)
	if err != nil {
		return err
	}
	switch a.Name {
	case FifoQueue:
		if value != "true" {
			return fixedType()
		}
	case ContentBasedDeduplication:
		s.contentBased = value == "true"
	case DeduplicationScope:
		s.scopedByGroup = value == "messageGroup"
	case FifoThroughputLimit:
		s.limitedByGroup = value == "perMessageGroupId"
	}
	return nil
}

// setKMSKey changes from one encryption to the other. Without a key the queue
// stays as unencrypted as it was with it (AWS recording
// test_set_queue_attributes_default_values).
func (s *settings) setKMSKey(key string) {
	s.kmsKey = key
	if key == "" {
		s.keyReuse = defaultKeyReuse
		return
	}
	s.managedSSE = false
}

func (s *settings) setManagedSSE(a *Attribute) *Error {
	if a.Value != "true" && a.Value != "false" {
		return InvalidValue(a.Name)
	}
	s.managedSSE = a.Value == "true"
	if s.managedSSE && s.kmsKey != "" {
		s.setKMSKey("")
	}
	return nil
}

func (s *settings) setRedrive(a *Attribute) *Error {
	if a.Value != "" && a.Redrive == nil {
		return InvalidValue(a.Name)
	}
	s.redriveText, s.redrive = a.Value, RedrivePolicy{}
	if a.Value != "" {
		s.redrive = *a.Redrive
	}
	return nil
}

func (s *settings) setRedriveAllow(a *Attribute) *Error {
	if a.Value != "" && a.RedriveAllow == nil {
		return InvalidValue(a.Name)
	}
	s.allowText, s.allow = a.Value, RedriveAllowPolicy{}
	if a.Value != "" {
		s.allow = RedriveAllowPolicy{Permission: a.RedriveAllow.Permission, Sources: slices.Clone(a.RedriveAllow.Sources)}
	}
	return nil
}

// value is the canonical text of an attribute; empty when it is unset.
func (s *settings) value(name AttributeName) string {
	if n := s.number(name); n != nil {
		return strconv.Itoa(int(*n))
	}
	if rule, ok := ruleOf(name); ok && rule.fifo {
		return s.valueFIFO(name)
	}
	switch name {
	case KmsMasterKeyID:
		return s.kmsKey
	case Policy:
		return s.policy
	case RedrivePolicyAttribute:
		return s.redriveText
	case RedriveAllowPolicyAttribute:
		return s.allowText
	case SqsManagedSseEnabled:
		return strconv.FormatBool(s.managedSSE)
	}
	return ""
}

// valueFIFO is the value of an attribute that only FIFO queues have.
func (s *settings) valueFIFO(name AttributeName) string {
	if !s.fifo {
		return ""
	}
	choice := func(second bool) string {
		rule, _ := ruleOf(name)
		if second {
			return rule.choices[1]
		}
		return rule.choices[0]
	}
	switch name {
	case ContentBasedDeduplication:
		return strconv.FormatBool(s.contentBased)
	case DeduplicationScope:
		return choice(s.scopedByGroup)
	case FifoThroughputLimit:
		return choice(s.limitedByGroup)
	}
	return "true" // FifoQueue
}

// list returns all attributes that are shown, sorted by name.
func (s *settings) list() []Attribute {
	shown := make([]Attribute, 0, len(attributeRules))
	for i := range attributeRules {
		a := Attribute{Name: attributeRules[i].name}
		a.Value = s.value(a.Name)
		switch {
		case a.Value == "", a.Name == KmsDataKeyReusePeriodSeconds && s.kmsKey == "":
			continue
		case a.Name == RedrivePolicyAttribute:
			a.Redrive = &RedrivePolicy{Target: s.redrive.Target, MaxReceiveCount: s.redrive.MaxReceiveCount}
		case a.Name == RedriveAllowPolicyAttribute:
			a.RedriveAllow = &RedriveAllowPolicy{Permission: s.allow.Permission, Sources: slices.Clone(s.allow.Sources)}
		}
		shown = append(shown, a)
	}
	return shown
}

// differing returns the first of the given attributes that has another value
// here.
func (s *settings) differing(attributes []Attribute) (AttributeName, bool) {
	for i := range attributes {
		if s.value(attributes[i].Name) != attributes[i].Value {
			return attributes[i].Name, true
		}
	}
	return "", false
}
