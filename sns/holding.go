package sns

import (
	"cmp"
	"slices"
	"strings"
)

// holding is what one account has subscribed to one topic. There is none without
// subscriptions.
type holding struct {
	account       string
	topic         *topic
	subscriptions sorted[*subscription] // by protocol and endpoint
}

// byHolder is the order of State.holdings.
func byHolder(a, b *holding) int {
	return cmp.Or(strings.Compare(a.account, b.account), a.topic.key.compare(b.topic.key))
}

// holding returns what an account has in a topic. Its place among the topic's
// holdings is found, too.
func (t *topic) holding(account string) (h *holding, i int, found bool) {
	i, found = slices.BinarySearchFunc(t.holdings, account, func(h *holding, account string) int {
		return strings.Compare(h.account, account)
	})
	if !found {
		return nil, i, false
	}
	return t.holdings[i], i, true
}

// hold puts a subscription into the holding of its owner.
func (s *State) hold(t *topic, sub *subscription) {
	h, i, found := t.holding(sub.owner)
	if !found {
		h = &holding{account: sub.owner, topic: t, subscriptions: sorted[*subscription]{compare: byEndpoint}}
		t.holdings = slices.Insert(t.holdings, i, h)
		s.holdings.set(h)
	}
	h.subscriptions.set(sub)
}

// letGo takes a subscription out of the holding of its owner.
func (s *State) letGo(t *topic, sub *subscription) {
	h, i, found := t.holding(sub.owner)
	if !found {
		return
	}
	if h.subscriptions.remove(sub); h.subscriptions.count == 0 {
		s.holdings.remove(h)
		t.holdings = slices.Delete(t.holdings, i, i+1)
	}
}

// dropHoldings forgets who has subscriptions of a topic.
func (s *State) dropHoldings(t *topic) {
	for _, h := range t.holdings {
		s.dropHolding(h)
	}
	t.holdings = nil
}

// dropHolding takes a holding out of the list of all, unless the one of a newer
// topic of the same name has its place.
func (s *State) dropHolding(h *holding) {
	if listed, ok := s.holdings.find(h); ok && listed == h {
		s.holdings.remove(h)
	}
}
