package sns

// TopicCensus is what there is to know about one topic at a glance.
type TopicCensus struct {
	Topic              TopicKey
	Damaged            bool
	CreatedAt          Time
	Confirmed, Pending int // subscriptions
	// Waiting counts the publishes that are not at all subscriptions yet.
	Waiting int
	Counters
}

// Totals are the sums over all topics.
type Totals struct {
	Topics, Confirmed, Pending, Waiting int
	Damaged                             int // topics
}

// Census describes all topics, in the order of their keys. It only reads.
func (s *State) Census() []TopicCensus {
	census := make([]TopicCensus, 0, s.directory.count)
	for t := range s.directory.all {
		census = append(census, t.census())
	}
	return census
}

func (t *topic) census() TopicCensus {
	return TopicCensus{
		Topic: t.key, Damaged: t.damaged, CreatedAt: t.createdAt, Confirmed: t.receivers.count, Pending: t.unconfirmed.count,
		Waiting: len(t.fanOuts), Counters: t.counters,
	}
}

// Receivers is the number of confirmed subscriptions of a topic. It only reads.
func (s *State) Receivers(key TopicKey) int {
	if t := s.topics[key]; t != nil {
		return t.receivers.count
	}
	return 0
}

// Totals sums up all topics. It only reads.
func (s *State) Totals() Totals {
	sum := Totals{Topics: s.directory.count}
	for t := range s.directory.all {
		sum.Confirmed += t.receivers.count
		sum.Pending += t.unconfirmed.count
		sum.Waiting += len(t.fanOuts)
		if t.damaged {
			sum.Damaged++
		}
	}
	return sum
}

// Describe lists subscriptions of a topic behind a place, as
// ListSubscriptionsByTopic does, also of one that is damaged; false when there is
// no such topic. It only reads.
func (s *State) Describe(key TopicKey, after SubscriptionPlace, limit int) (TopicCensus, ListSubscriptionsResult, bool) {
	t := s.topics[key]
	if t == nil {
		return TopicCensus{}, ListSubscriptionsResult{}, false
	}
	p := page{limit: limit}
	p.fill(t, &t.directory, after)
	return t.census(), p.result, true
}

// Add adds other counters to these.
func (c *Counters) Add(other Counters) {
	numbers := other.all()
	for i, n := range c.all() {
		*n += *numbers[i]
	}
}
