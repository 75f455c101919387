package sns

import (
	"cmp"
	"slices"
	"strings"
)

// subscription is one receiver of a topic. It never changes: whoever changes one
// makes a copy and puts it in place (State.replace), so that a Frozen may refer to
// it. A million of them should fit into a small machine, so what few have is in
// more.
type subscription struct {
	id            SubscriptionID
	number        uint64 // order among the receivers of the topic; 0 while it is unconfirmed
	endpoint      string
	principal     string // ARN of whoever subscribed
	owner         string // account
	more          *more  // nil: nothing of it
	protocol      Protocol
	raw           bool // RawMessageDelivery
	authenticated bool // ConfirmationWasAuthenticated
}

// more is what few subscriptions have. It never changes either.
type more struct {
	attributes attributes // that were set, RawMessageDelivery left out
	filter     *FilterPolicy
	redrive    QueueARN            // of the RedrivePolicy; zero: none
	tokens     []confirmationToken // of an unconfirmed one, and of one that was
	expires    Time                // when an unconfirmed one is dropped
}

// confirmationToken is one that may confirm the subscription.
type confirmationToken struct {
	hash  TokenHash
	until Time
}

// byEndpoint is the order of lists (AWS recording test_list_subscriptions).
func byEndpoint(a, b *subscription) int {
	return cmp.Or(cmp.Compare(a.protocol, b.protocol), strings.Compare(a.endpoint, b.endpoint))
}

func (s *subscription) pending() bool { return s.number == 0 }

// extra is a copy of what is in more, for a change.
func (s *subscription) extra() more {
	if s.more == nil {
		return more{}
	}
	return *s.more
}

// value is the canonical text of an attribute, with the default of those that have
// one.
func (s *subscription) value(name AttributeName) string {
	if name == RawMessageDelivery {
		if s.raw {
			return "true"
		}
		return "false"
	}
	value := s.extra().attributes.value(name)
	if name == FilterPolicyScope && value == "" {
		return scopeAttributes
	}
	return value
}

// add puts a subscription of a topic into all lists.
func (s *State) add(t *topic, sub *subscription) {
	s.hold(t, sub)
	if sub.extra().filter != nil {
		t.filters++
	}
	t.ids[sub.id] = sub
	t.directory.set(sub)
	if sub.pending() {
		t.unconfirmed.set(sub)
	} else {
		t.receivers.set(sub)
	}
}

// remove takes a subscription out of them.
func (s *State) remove(t *topic, sub *subscription) {
	s.letGo(t, sub)
	if sub.extra().filter != nil {
		t.filters--
	}
	delete(t.ids, sub.id)
	t.directory.remove(sub)
	if sub.pending() {
		t.unconfirmed.remove(sub)
	} else {
		t.receivers.remove(sub)
	}
}

// replace puts a changed copy in the place of a subscription.
func (s *State) replace(t *topic, sub, changed *subscription) {
	s.remove(t, sub)
	s.add(t, changed)
}

// found returns a subscription of a topic.
func (s *State) found(key TopicKey, id SubscriptionID) (*topic, *subscription, *Error) {
	t := s.topics[key]
	if t == nil || t.ids[id] == nil {
		return nil, nil, NoSuchSubscription()
	}
	if t.damaged {
		return nil, nil, damagedTopic()
	}
	return t, t.ids[id], nil
}

func (s *State) subscribe(at *Moment, c Subscribe) (Result, *Error) {
	t, err := s.sound(c.Topic)
	if err != nil {
		return nil, err
	}
	fresh := &subscription{
		id: c.Subscription, protocol: c.Protocol, endpoint: c.Endpoint,
		principal: s.intern(c.Principal), owner: s.intern(c.Owner), authenticated: !c.Protocol.confirms(),
	}
	if err := fresh.changeAll(t, c.Attributes); err != nil {
		return nil, err
	}
	if known, ok := t.directory.find(fresh); ok {
		return s.subscribeAgain(at, t, known, fresh, c)
	}
	if err := s.checkRoom(t, fresh); err != nil {
		return nil, err
	}
	t.counters.Subscribed++
	if c.Protocol.confirms() {
		s.await(at, t, fresh, c.Token)
	} else {
		t.lastNumber++
		fresh.number = t.lastNumber
	}
	s.add(t, fresh)
	return SubscribeResult{Subscription: fresh.id, Pending: fresh.pending()}, nil
}

// await makes a subscription one that can be confirmed with a token. It is not in
// the lists of the topic.
func (s *State) await(at *Moment, t *topic, sub *subscription, hash TokenHash) {
	m := sub.extra()
	known := confirmationToken{hash: hash, until: at.Now.WindowEnd(TokenLife)}
	m.tokens = append(slices.Clone(m.tokens), known)
	m.expires = at.Now.WindowEnd(pendingLife)
	sub.more = &m
	s.tokens[hash] = confirmation{topic: t.key, subscription: sub.id, until: known.until}
	s.due(t, m.expires)
}

// maxTokens is how many confirmations of one subscription are good at a time.
const maxTokens = 10

// subscribeAgain compares what the command says, and nothing else, with the
// subscription of the same endpoint (AWS recording test_subscribe_idempotency). One
// that is unconfirmed gets one more token.
func (s *State) subscribeAgain(at *Moment, t *topic, known, fresh *subscription, c Subscribe) (Result, *Error) {
	for _, a := range c.Attributes {
		if known.value(a.Name) != fresh.value(a.Name) {
			return nil, creating.refuse("Subscription already exists with different attributes")
		}
	}
	if known.pending() {
		again := *known
		if m := again.extra(); len(m.tokens) == maxTokens {
			delete(s.tokens, m.tokens[0].hash)
			m.tokens = m.tokens[1:]
			again.more = &m
		}
		s.remove(t, known)
		s.await(at, t, &again, c.Token)
		s.add(t, &again)
	}
	return SubscribeResult{Subscription: known.id, Pending: known.pending()}, nil
}

// checkRoom checks the quotas of a topic before one more subscription.
func (s *State) checkRoom(t *topic, fresh *subscription) *Error {
	switch {
	case IsFIFO(t.key.Name) && t.directory.count >= MaxFIFOSubscriptions:
		return &Error{Code: SubscriptionLimitExceeded, Message: "Subscription limit exceeded"}
	case t.settings.maxSize > MaxMessageSize && (!fresh.protocol.takesLarge() || t.directory.count >= MaxFIFOSubscriptions):
		return Invalid("Endpoint Reason: the topic's MaximumMessageSize allows at most 100 subscriptions of sqs, lambda and firehose")
	}
	return s.checkFilters(t, nil, fresh)
}

// checkFilters checks the quota of filter policies before fresh takes the place of
// known, which may be nil.
func (s *State) checkFilters(t *topic, known, fresh *subscription) *Error {
	limit := s.rules.FilterLimit
	if limit == 0 || fresh.extra().filter == nil || known != nil && known.extra().filter != nil {
		return nil
	}
	if t.filters >= limit {
		return &Error{Code: FilterPolicyLimitExceeded, Message: "Filter policy limit exceeded for topic"}
	}
	return nil
}

func (s *State) unsubscribe(c Unsubscribe) (Result, *Error) {
	t, sub, err := s.found(c.Topic, c.Subscription)
	if err != nil {
		if err.Code == NotFound {
			return Done{}, nil
		}
		return nil, err
	}
	switch {
	case sub.pending():
		return nil, Invalid("SubscriptionArn Reason: Cannot unsubscribe a subscription that is pending confirmation")
	case !c.Signed && sub.authenticated:
		return nil, &Error{Code: AuthorizationError, Message: "Unsubscribe requires authentication"}
	}
	s.drop(t, sub)
	return Done{}, nil
}

// drop removes a subscription for good.
func (s *State) drop(t *topic, sub *subscription) {
	s.remove(t, sub)
	s.forgetTokens(sub)
	t.counters.Deleted++
}

// dropUnconfirmed drops the subscriptions that nobody confirmed in time.
func (s *State) dropUnconfirmed(t *topic, left *int) {
	for *left > 0 && t.unconfirmed.count > 0 {
		sub := t.unconfirmed.pages[0][0]
		if sub.more.expires > s.now {
			return
		}
		*left--
		s.remove(t, sub)
		s.forgetTokens(sub)
	}
}

func (s *State) getSubscriptionAttributes(c GetSubscriptionAttributes) (Result, *Error) {
	t, sub, err := s.found(c.Topic, c.Subscription)
	if err != nil {
		return nil, err
	}
	r := GetSubscriptionAttributesResult{
		ListedSubscription: t.listed(sub), Principal: sub.principal, Authenticated: sub.authenticated,
		Attributes: sub.extra().attributes.with(RawMessageDelivery, sub.value(RawMessageDelivery)),
	}
	if sub.protocol == HTTP || sub.protocol == HTTPS {
		r.TopicPolicy = t.attributes.value(DeliveryPolicy)
	}
	return r, nil
}

func (s *State) setSubscriptionAttributes(c SetSubscriptionAttributes) (Result, *Error) {
	t, sub, err := s.found(c.Topic, c.Subscription)
	if err != nil {
		return nil, err
	}
	changed := *sub
	if c.Reset {
		c.Attribute.Value = resetValue(c.Attribute.Name)
	}
	if err := changed.change(t, c.Attribute, setting); err != nil {
		return nil, err
	}
	if err := s.checkFilters(t, sub, &changed); err != nil {
		return nil, err
	}
	s.replace(t, sub, &changed)
	return Done{}, nil
}
