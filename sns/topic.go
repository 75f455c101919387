package sns

import (
	"cmp"
	"slices"
	"strings"
)

// topic is a topic and its subscriptions.
type topic struct {
	header
	ids         map[SubscriptionID]*subscription
	directory   sorted[*subscription] // all, by protocol and endpoint
	receivers   sorted[*subscription] // the confirmed ones, by number
	unconfirmed sorted[*subscription] // the others, by the time when they are dropped
	holdings    []*holding            // all, by owner
	filters     int                   // subscriptions that have a filter policy
	dedup       dedup
	fanOuts     []*fanOut // publishes that wait for Pulses, oldest first
	deleted     bool      // it is in no list but holdings, and in State.deleted
	pulseAt     Time      // noted time of the next end of something; 0: none
	place       int       // in State.schedule, while pulseAt is not 0
}

// header is what a topic is without its subscriptions. A copy of it stays good:
// what it refers to is replaced, never changed.
type header struct {
	key            TopicKey
	createdAt      Time
	lastSequence   uint64 // of the publishes of a FIFO topic
	lastNumber     uint64 // of a confirmed subscription
	attributes     attributes
	settings       topicSettings // what the attributes say
	tags           []Tag         // sorted by key
	dataProtection string
	counters       Counters
	damaged        bool
}

// Counters count what has happened to a topic since it was made (SNS developer
// guide, "Monitoring topics using CloudWatch").
type Counters struct {
	Published     uint64 // accepted messages; duplicates are not
	PublishBytes  uint64
	Deduplicated  uint64 // publishes to a FIFO topic that were duplicates
	Delivered     uint64 // copies in the queues of subscriptions
	Failed        uint64 // copies that their queue did not take
	Redriven      uint64 // of those, copies in a dead-letter queue
	RedriveFailed uint64 // and copies that had one which did not take them
	Filtered      uint64 // copies that a filter policy kept back, for any reason
	// Of Filtered, by scope and reason:
	FilteredByAttributes, FilteredByBody            uint64
	FilteredNoAttributes, FilteredInvalidAttributes uint64
	FilteredInvalidBody                             uint64
	Deleted                                         uint64 // subscriptions
	Subscribed                                      uint64 // subscriptions that were made
	Texts                                           uint64 // publishes to subscriptions of sms, which are logged
}

// all are the counters in the order of their encoding.
func (c *Counters) all() [16]*uint64 {
	return [...]*uint64{
		&c.Published, &c.PublishBytes, &c.Deduplicated, &c.Delivered, &c.Failed, &c.Redriven, &c.RedriveFailed, &c.Filtered,
		&c.FilteredByAttributes, &c.FilteredByBody, &c.FilteredNoAttributes, &c.FilteredInvalidAttributes, &c.FilteredInvalidBody,
		&c.Deleted, &c.Subscribed, &c.Texts,
	}
}

// compare orders keys by account, then by name.
func (k TopicKey) compare(l TopicKey) int {
	return cmp.Or(strings.Compare(k.Account, l.Account), strings.Compare(k.Name, l.Name))
}

func newTopic(h header) *topic {
	return &topic{
		header:    h,
		ids:       make(map[SubscriptionID]*subscription),
		directory: sorted[*subscription]{compare: byEndpoint},
		receivers: sorted[*subscription]{compare: func(a, b *subscription) int { return cmp.Compare(a.number, b.number) }},
		unconfirmed: sorted[*subscription]{compare: func(a, b *subscription) int {
			return cmp.Or(cmp.Compare(a.more.expires, b.more.expires), slices.Compare(a.id[:], b.id[:]))
		}},
	}
}

// sound returns a topic that is not damaged.
func (s *State) sound(key TopicKey) (*topic, *Error) {
	t := s.topics[key]
	if t == nil {
		return nil, NoSuchTopic()
	}
	if t.damaged {
		return nil, damagedTopic()
	}
	return t, nil
}

func (s *State) createTopic(at *Moment, c CreateTopic) (Result, *Error) {
	given := attributes(c.Attributes)
	if err := ValidateTopicName(c.Topic.Name, given.value(FifoTopic) == "true"); err != nil {
		return nil, err
	}
	if s.topics[c.Topic] != nil {
		return s.createAgain(c)
	}
	if len(c.Tags) > MaxTags {
		return nil, tooManyTags()
	}
	h := header{key: c.Topic, createdAt: at.Now, tags: slices.Clone(c.Tags), dataProtection: c.DataProtectionPolicy}
	for _, a := range given {
		if a.Name != FifoTopic || a.Value == "true" { // false is as good as not given
			h.attributes = h.attributes.with(a.Name, a.Value)
		}
	}
	h.settings = h.attributes.topicSettings()
	s.insert(newTopic(h))
	return Done{}, nil
}

// createAgain compares what the command says, and nothing else, with what holds
// now (AWS recordings test_create_topic_different_attrs,
// test_create_duplicate_topic_check_idempotency).
func (s *State) createAgain(c CreateTopic) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	for _, a := range c.Attributes {
		if t.shown(a.Name) != a.Value {
			return nil, creating.refuse("Topic already exists with different attributes")
		}
	}
	for _, tag := range c.Tags {
		if i, ok := findTag(t.tags, tag.Key); !ok || t.tags[i].Value != tag.Value {
			return nil, Invalid("Tags Reason: Topic already exists with different tags")
		}
	}
	return Done{}, nil
}

// shown is the value of an attribute, with the defaults of those that are always
// there.
func (t *topic) shown(name AttributeName) string {
	value := t.attributes.value(name)
	fifo := IsFIFO(t.key.Name)
	if value == "" && (name == FifoTopic && !fifo || name == ContentBasedDeduplication && fifo) {
		return "false"
	}
	return value
}

func (s *State) insert(t *topic) {
	s.topics[t.key] = t
	s.directory.set(t)
}

func (s *State) deleteTopic(c DeleteTopic) (Result, *Error) {
	t := s.topics[c.Topic]
	if t == nil {
		return Done{}, nil
	}
	s.unschedule(t)
	s.dropFanOuts(t)
	delete(s.topics, t.key)
	s.directory.remove(t)
	s.leave(t)
	return Done{}, nil
}

func (s *State) listTopics(c ListTopics) (Result, *Error) {
	var r ListTopicsResult
	for t := range s.directory.from(&topic{header: header{key: TopicKey{Account: c.Account, Name: c.After}}}) {
		switch {
		case t.key.Account != c.Account:
			return r, nil
		case t.key.Name == c.After:
			continue
		case len(r.Names) >= c.Limit:
			r.More = true
			return r, nil
		}
		r.Names = append(r.Names, t.key.Name)
	}
	return r, nil
}

func (s *State) getTopicAttributes(c GetTopicAttributes) (Result, *Error) {
	t := s.topics[c.Topic]
	if t == nil {
		return nil, NoSuchTopic()
	}
	return GetTopicAttributesResult{
		Attributes: slices.Clone(t.attributes),
		Confirmed:  t.receivers.count,
		Pending:    t.unconfirmed.count,
		Deleted:    int(t.counters.Deleted),
	}, nil
}

func (s *State) setTopicAttributes(c SetTopicAttributes) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	changed := t.attributes.with(c.Attribute.Name, c.Attribute.Value)
	settings := changed.topicSettings()
	if settings.maxSize > MaxMessageSize && !t.takesLarge() {
		return nil, Invalid("MaximumMessageSize Reason: above 262144, at most 100 subscriptions of sqs, lambda and firehose are allowed")
	}
	t.attributes, t.settings = changed, settings
	return Done{}, nil
}

// takesLarge reports whether the topic may have a MaximumMessageSize above
// MaxMessageSize.
func (t *topic) takesLarge() bool {
	if t.directory.count > MaxFIFOSubscriptions {
		return false
	}
	for sub := range t.directory.all {
		if !sub.protocol.takesLarge() {
			return false
		}
	}
	return true
}

func (p Protocol) takesLarge() bool { return p == SQS || p == Lambda || p == Firehose }

func (s *State) replaceTopicPolicy(c ReplaceTopicPolicy) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	current := t.attributes.value(Policy)
	if current != c.Old {
		return ReplaceTopicPolicyResult{Policy: current}, nil
	}
	t.attributes = t.attributes.with(Policy, c.New)
	return ReplaceTopicPolicyResult{Replaced: true, Policy: c.New}, nil
}

func (s *State) putDataProtectionPolicy(c PutDataProtectionPolicy) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	t.dataProtection = c.Policy
	return Done{}, nil
}

func (s *State) getDataProtectionPolicy(c GetDataProtectionPolicy) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	return GetDataProtectionPolicyResult{Policy: t.dataProtection}, nil
}
