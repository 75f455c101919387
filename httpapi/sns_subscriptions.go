package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
)

var subscriptionList = wire.List{Query: "Subscriptions", Member: "member"}

func subscribe(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	name, _ := r.in.Text("Protocol")
	endpoint, _ := r.in.Text("Endpoint")
	pairs, _ := r.in.TextMap(topicAttributes)
	returned, _ := r.in.Text("ReturnSubscriptionArn")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	protocol := sns.ParseProtocol(name)
	if protocol == 0 {
		return r.refuseTo(topic, sns.UnknownProtocol(name))
	}
	if refusal := sns.ValidateEndpoint(topic, protocol, endpoint); refusal != nil {
		return r.refuseTo(topic, refusal)
	}
	if refusal := sns.ValidateSubscriptionAttributes(asAttributes(pairs)); refusal != nil {
		return r.refuseTo(topic, refusal)
	}
	c := sns.Subscribe{
		Topic: topic, Subscription: r.server.config.NewID(), Protocol: protocol, Endpoint: endpoint,
		Attributes: asAttributes(pairs), Principal: "arn:aws:iam::" + r.caller.account + ":root", Owner: r.caller.account,
		Token: hashToken(r.newToken()),
	}
	done, err := inquire[sns.SubscribeResult](r, c)
	if err != nil {
		return err
	}
	if done.Pending && !strings.EqualFold(returned, "true") {
		r.out.Text("SubscriptionArn", "pending confirmation")
		return nil
	}
	r.out.Text("SubscriptionArn", r.subscriptionARN(topic, done.Subscription))
	return nil
}

func (r *request) subscriptionARN(topic sns.TopicKey, id sns.SubscriptionID) string {
	return string(sns.AppendSubscriptionARN(nil, sns.TopicARN(r.settings.Region, topic), id))
}

// Confirmation tokens are hexadecimal digits that begin with tokenPrefix, as those
// of AWS do.
const (
	tokenPrefix = "2336412f37"
	tokenIDs    = 8  // of 16 random bytes each
	leastToken  = 64 // characters that every token has
)

func (r *request) newToken() string {
	token := []byte(tokenPrefix)
	for range tokenIDs {
		id := r.server.config.NewID()
		token = hex.AppendEncode(token, id[:])
	}
	return string(token)
}

func hashToken(token string) sns.TokenHash { return sha256.Sum256([]byte(token)) }

// isToken reports whether a text has the shape of a token.
func isToken(text string) bool {
	return len(text) >= leastToken && strings.Trim(text, "0123456789abcdef") == ""
}

// confirmSubscription may come unsigned, from a link. What is no ARN is refused as
// one of another region is (AWS recordings test_sns_confirm_subscription_wrong_token,
// test_subscribe_external_http_endpoint).
func confirmSubscription(r *request) error {
	token, _ := r.in.Text("Token")
	asked, _ := r.in.Text("AuthenticateOnUnsubscribe")
	text, given := r.in.Text("TopicArn")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	topic, ok := r.topicOf(text)
	switch {
	case !given:
		return sns.Invalid("TopicArn Reason: no value for required parameter")
	case !ok:
		return sns.Invalid("Topic")
	case !isToken(token) && r.caller.signed:
		return &sns.Error{Code: sns.InvalidParameter, Message: "Invalid token"}
	case !isToken(token):
		return sns.Invalid("Token")
	}
	done, err := inquire[sns.ConfirmSubscriptionResult](r, sns.ConfirmSubscription{
		Topic: topic, Token: hashToken(token), Signed: r.caller.signed, AuthenticateOnUnsubscribe: strings.EqualFold(asked, "true"),
	})
	if err != nil {
		return err
	}
	r.out.Text("SubscriptionArn", r.subscriptionARN(done.Topic, done.Subscription))
	return nil
}

// unsubscribe may come unsigned, from a link.
func unsubscribe(r *request) error {
	topic, id, err := r.subscriptionParameter()
	if err != nil {
		return err
	}
	_, err = r.tell(sns.Unsubscribe{Topic: topic, Subscription: id, Signed: r.caller.signed})
	return err
}

func listSubscriptions(r *request) error {
	after, err := r.readPlace(subscriptionsScope)
	if err != nil {
		return err
	}
	if !r.caller.signed {
		return errUnsigned
	}
	listed, err := inquire[sns.ListSubscriptionsResult](r, sns.ListSubscriptions{Account: r.caller.account, After: after, Limit: sns.MaxPage})
	if err != nil {
		return err
	}
	r.writeSubscriptions(&listed, subscriptionsScope)
	return nil
}

func listSubscriptionsByTopic(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	scope := subscriptionsScope + "\x00" + topic.Account + "\x00" + topic.Name
	after, err := r.readPlace(scope)
	if err != nil {
		return err
	}
	listed, err := inquire[sns.ListSubscriptionsResult](r, sns.ListSubscriptionsByTopic{Topic: topic, After: after, Limit: sns.MaxPage})
	if err != nil {
		return err
	}
	r.writeSubscriptions(&listed, scope)
	return nil
}

// readPlace reads what a list of subscriptions goes on behind.
func (r *request) readPlace(scope string) (sns.SubscriptionPlace, error) {
	text, err := r.readToken(scope)
	if err != nil || text == "" {
		return sns.SubscriptionPlace{}, err
	}
	parts := strings.SplitN(text, "\x00", 5)
	if len(parts) != 5 {
		return sns.SubscriptionPlace{}, sns.Invalid("NextToken")
	}
	id, ok := sns.ParseSubscriptionID(parts[3])
	if !ok {
		return sns.SubscriptionPlace{}, sns.Invalid("NextToken")
	}
	return sns.SubscriptionPlace{
		Topic: sns.TopicKey{Account: parts[0], Name: parts[1]}, Protocol: sns.ParseProtocol(parts[2]), Subscription: id, Endpoint: parts[4],
	}, nil
}

// placeText is what readPlace reads.
func placeText(p sns.SubscriptionPlace) string {
	return strings.Join([]string{p.Topic.Account, p.Topic.Name, p.Protocol.String(), p.Subscription.String(), p.Endpoint}, "\x00")
}

func (r *request) writeSubscriptions(listed *sns.ListSubscriptionsResult, scope string) {
	r.out.OpenList(subscriptionList)
	for _, s := range listed.Subscriptions {
		arn := "PendingConfirmation"
		if !s.Pending {
			arn = r.subscriptionARN(s.Topic, s.Subscription)
		}
		r.out.OpenStruct(subscriptionList)
		r.out.Text("SubscriptionArn", arn)
		r.out.Text("Owner", s.Owner)
		r.out.Text("Protocol", s.Protocol.String())
		r.out.Text("Endpoint", sns.MaskedEndpoint(s.Protocol, s.Endpoint))
		r.out.Text("TopicArn", sns.TopicARN(r.settings.Region, s.Topic))
		r.out.CloseStruct(subscriptionList)
	}
	r.out.CloseList(subscriptionList)
	if listed.More {
		last := listed.Subscriptions[len(listed.Subscriptions)-1]
		r.out.Text("NextToken", pageToken(scope, placeText(sns.PlaceOf(last))))
	}
}

func getSubscriptionAttributes(r *request) error {
	topic, id, err := r.subscriptionParameter()
	if err != nil {
		return err
	}
	found, err := inquire[sns.GetSubscriptionAttributesResult](r, sns.GetSubscriptionAttributes{Topic: topic, Subscription: id})
	if err != nil {
		return err
	}
	r.writeSNSAttributes(sns.SubscriptionAttributes(r.settings.Region, found))
	return nil
}

func setSubscriptionAttributes(r *request) error {
	topic, id, err := r.subscriptionParameter()
	if err != nil {
		return err
	}
	a, given, err := r.readAttribute()
	if err != nil {
		return err
	}
	_, err = r.tell(sns.SetSubscriptionAttributes{Topic: topic, Subscription: id, Attribute: a, Reset: !given})
	return err
}
