package sns

func (t *topic) listed(sub *subscription) ListedSubscription {
	return ListedSubscription{
		Topic: t.key, Subscription: sub.id, Owner: sub.owner, Protocol: sub.protocol, Endpoint: sub.endpoint, Pending: sub.pending(),
	}
}

// PlaceOf is the place of a subscription that was listed, for the list to go on
// behind it.
func PlaceOf(sub ListedSubscription) SubscriptionPlace {
	p := SubscriptionPlace{Topic: sub.Topic, Protocol: sub.Protocol, Endpoint: sub.Endpoint, Subscription: sub.Subscription}
	if from, _, ok := password(sub.Protocol, sub.Endpoint); ok {
		p.Endpoint = sub.Endpoint[:from]
	}
	return p
}

// page is a page of a list of subscriptions that is being filled.
type page struct {
	result ListSubscriptionsResult
	limit  int
}

// fill takes the subscriptions of a topic that are in list, behind a place, and
// reports whether there is room for those of another topic. If the subscription at
// the place is gone, those that differ from it in the password alone may be listed
// twice.
func (p *page) fill(t *topic, list *sorted[*subscription], place SubscriptionPlace) bool {
	after := &subscription{protocol: place.Protocol, endpoint: place.Endpoint}
	if known := t.ids[place.Subscription]; known != nil {
		after = known
	}
	for sub := range list.from(after) {
		if byEndpoint(sub, after) == 0 {
			continue
		}
		if len(p.result.Subscriptions) >= p.limit {
			p.result.More = true
			return false
		}
		p.result.Subscriptions = append(p.result.Subscriptions, t.listed(sub))
	}
	return true
}

// listSubscriptions goes by who has subscribed, not by whose topic it is (SNS API
// reference, ListSubscriptions: "the requester's subscriptions").
func (s *State) listSubscriptions(c ListSubscriptions) (Result, *Error) {
	p := page{limit: c.Limit}
	first := &holding{account: c.Account, topic: &topic{header: header{key: c.After.Topic}}}
	for h := range s.holdings.from(first) {
		if h.account != c.Account {
			break
		}
		if h.topic.deleted {
			continue
		}
		var after SubscriptionPlace
		if h.topic.key == c.After.Topic {
			after = c.After
		}
		if !p.fill(h.topic, &h.subscriptions, after) {
			break
		}
	}
	return p.result, nil
}

func (s *State) listSubscriptionsByTopic(c ListSubscriptionsByTopic) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	p := page{limit: c.Limit}
	p.fill(t, &t.directory, c.After)
	return p.result, nil
}
