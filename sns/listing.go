package sns

func (t *topic) listed(sub *subscription) ListedSubscription {
	return ListedSubscription{
		Topic: t.key, Subscription: sub.id, Owner: sub.owner, Protocol: sub.protocol, Endpoint: sub.endpoint, Pending: sub.pending(),
	}
}

// page is a page of a list of subscriptions that is being filled.
type page struct {
	result ListSubscriptionsResult
	limit  int
}

// fill takes the subscriptions of a topic behind a place, and reports whether
// there is room for those of another topic.
func (p *page) fill(t *topic, protocol Protocol, endpoint string) bool {
	after := &subscription{protocol: protocol, endpoint: endpoint}
	for sub := range t.directory.from(after) {
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

func (s *State) listSubscriptions(c ListSubscriptions) (Result, *Error) {
	p := page{limit: c.Limit}
	for t := range s.directory.from(&topic{header: header{key: TopicKey{Account: c.Account, Name: c.After.Topic}}}) {
		if t.key.Account != c.Account {
			break
		}
		if t.directory.count == 0 {
			continue
		}
		var after SubscriptionPlace
		if t.key.Name == c.After.Topic {
			after = c.After
		}
		if !p.fill(t, after.Protocol, after.Endpoint) {
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
	p.fill(t, c.After.Protocol, c.After.Endpoint)
	return p.result, nil
}
