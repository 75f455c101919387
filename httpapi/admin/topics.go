package admin

import (
	"net/http"
	"strings"

	"holdfast.internal/sns"
)

// Topic is an element of GET /topics. Counters run since the topic was made.
type Topic struct {
	Account   string `json:"account"`
	Name      string `json:"name"`
	CreatedMS int64  `json:"created_ms"` // since the Unix epoch
	Confirmed int    `json:"confirmed"`  // subscriptions
	Pending   int    `json:"pending"`    // subscriptions that wait for their confirmation
	Waiting   int    `json:"waiting"`    // publishes that are not at all subscriptions yet
	Published uint64 `json:"published"`
	Delivered uint64 `json:"delivered"` // copies in queues
	Filtered  uint64 `json:"filtered"`  // copies that a filter policy kept back
	Failed    uint64 `json:"failed"`    // copies that their queue did not take
	Redriven  uint64 `json:"redriven"`  // of those, copies in a dead-letter queue
	Damaged   bool   `json:"damaged"`
}

// Subscription is an element of TopicSubscriptions.
type Subscription struct {
	ARN      string `json:"arn"`
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	Owner    string `json:"owner"`
	Pending  bool   `json:"pending"`
}

// TopicSubscriptions is the answer of GET /topics/{account}/{name}/subscriptions.
type TopicSubscriptions struct {
	Topic         Topic          `json:"topic"`
	Subscriptions []Subscription `json:"subscriptions"`
	Next          string         `json:"next"` // ?after= of the next page; empty on the last
}

// getTopics answers with all topics, or with those of ?account= and ?prefix=.
func (s *server) getTopics(w http.ResponseWriter, r *http.Request) {
	account, prefix := r.FormValue("account"), r.FormValue("prefix")
	topics := []Topic{}
	for _, t := range s.Node.Topics() {
		if (account == "" || t.Topic.Account == account) && strings.HasPrefix(t.Topic.Name, prefix) {
			topics = append(topics, newTopic(t))
		}
	}
	s.answer(w, topics)
}

func newTopic(t sns.TopicCensus) Topic {
	return Topic{
		Account: t.Topic.Account, Name: t.Topic.Name, CreatedMS: int64(t.CreatedAt), Confirmed: t.Confirmed, Pending: t.Pending,
		Waiting: t.Waiting, Published: t.Published, Delivered: t.Delivered, Filtered: t.Filtered, Failed: t.Failed,
		Redriven: t.Redriven, Damaged: t.Damaged,
	}
}

// maxSubscriptions is the size of a page of subscriptions.
const maxSubscriptions = 1000

// getSubscriptions answers with a page of a topic's subscriptions, in the order of
// protocol and endpoint.
func (s *server) getSubscriptions(w http.ResponseWriter, r *http.Request) {
	after, err := parsePlace(r.FormValue("after"))
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	limit, err := parseLimit(r, maxSubscriptions, maxSubscriptions)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	key := sns.TopicKey(pathKey(r))
	census, page, ok := s.Node.Topic(key, after, limit)
	if !ok {
		s.refuse(w, http.StatusNotFound, "there is no such topic")
		return
	}
	arn := sns.TopicARN(s.Node.Settings().Region, key)
	answer := TopicSubscriptions{Topic: newTopic(census), Subscriptions: []Subscription{}}
	for _, sub := range page.Subscriptions {
		answer.Subscriptions = append(answer.Subscriptions, Subscription{
			ARN: string(sns.AppendSubscriptionARN(nil, arn, sub.Subscription)), Protocol: sub.Protocol.String(),
			Endpoint: sns.MaskedEndpoint(sub.Protocol, sub.Endpoint), Owner: sub.Owner, Pending: sub.Pending,
		})
	}
	if page.More {
		answer.Next = placeText(sns.PlaceOf(page.Subscriptions[len(page.Subscriptions)-1]))
	}
	s.answer(w, answer)
}

// placeText is what a page of subscriptions goes on behind.
func placeText(p sns.SubscriptionPlace) string {
	return p.Protocol.String() + " " + p.Subscription.String() + " " + p.Endpoint
}

// parsePlace reads what placeText has written; an empty text is the start.
func parsePlace(text string) (p sns.SubscriptionPlace, err error) {
	if text == "" {
		return p, nil
	}
	protocol, rest, _ := strings.Cut(text, " ")
	id, endpoint, _ := strings.Cut(rest, " ")
	p.Protocol, p.Endpoint = sns.ParseProtocol(protocol), endpoint
	var ok bool
	if p.Subscription, ok = sns.ParseSubscriptionID(id); !ok || p.Protocol == 0 {
		return p, badCursor(text)
	}
	return p, nil
}

// postSigningKey makes a new key for SNS messages.
func (s *server) postSigningKey(w http.ResponseWriter, r *http.Request) {
	name, err := s.Node.RotateSigningKey(r.Context())
	if err != nil {
		s.refuseCondition(w, err)
		return
	}
	s.Logger.Info("signing key added", "certificate", name)
	s.answer(w, map[string]string{"certificate": name})
}
