package admin

import (
	"net/http"
	"strconv"
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
	var after sns.SubscriptionPlace
	if text := r.FormValue("after"); text != "" {
		protocol, rest, _ := strings.Cut(text, " ")
		id, endpoint, _ := strings.Cut(rest, " ")
		after = sns.SubscriptionPlace{Protocol: sns.ParseProtocol(protocol), Endpoint: endpoint}
		after.Subscription, _ = sns.ParseSubscriptionID(id)
	}
	limit := maxSubscriptions
	if n, err := strconv.Atoi(r.FormValue("limit")); err == nil && n > 0 {
		limit = min(n, maxSubscriptions)
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
		last := sns.PlaceOf(page.Subscriptions[len(page.Subscriptions)-1])
		answer.Next = last.Protocol.String() + " " + last.Subscription.String() + " " + last.Endpoint
	}
	s.answer(w, answer)
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
