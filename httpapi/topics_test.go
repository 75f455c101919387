package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi"
	"holdfast.internal/sns"
)

// signedSNS is an Authorization header as SDKs send it to SNS.
const signedSNS = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sns/aws4_request, SignedHeaders=host, Signature=00"

// sns calls an action of SNS.
func (e *endpoint) sns(form string) response {
	e.t.Helper()
	return e.query("Version=2010-03-31&"+form, "Authorization", signedSNS)
}

const (
	ordersARN = "arn:aws:sns:us-east-1:000000000000:orders"
	hook      = "&Protocol=http&Endpoint=http://example.com/hook"
)

// pending makes a topic with a subscription that waits for its confirmation. Its
// token and its ARN are returned, as countedIDs makes them.
func pending(t *testing.T) (e *endpoint, token, subscription string) {
	t.Helper()
	var ids [][16]byte
	next := countedIDs()
	e = serve(t, newStateBroker(), httpapi.Config{NewID: func() [16]byte {
		ids = append(ids, next())
		return ids[len(ids)-1]
	}})
	e.sns("Action=CreateTopic&Name=orders")
	ids = nil
	r := e.sns("Action=Subscribe&ReturnSubscriptionArn=true&TopicArn=" + ordersARN + hook)
	subscription = string(sns.AppendSubscriptionARN(nil, ordersARN, ids[1])) // after that of the request
	if !strings.Contains(r.body, "<SubscriptionArn>"+subscription+"</SubscriptionArn>") {
		t.Fatalf("got %d %s, want %s", r.status, r.body, subscription)
	}
	token = "2336412f37"
	for _, id := range ids[2:10] {
		token += hex.EncodeToString(id[:])
	}
	subscribed, ok := e.broker.last().(sns.Subscribe)
	if !ok || subscribed.Token != sha256.Sum256([]byte(token)) {
		t.Fatalf("got %+v, want the hash of %s", e.broker.last(), token)
	}
	return e, token, subscription
}

// attribute is the value of an attribute of a subscription.
func (e *endpoint) attribute(subscription, name string) string {
	e.t.Helper()
	r := e.sns("Action=GetSubscriptionAttributes&SubscriptionArn=" + subscription)
	_, rest, _ := strings.Cut(r.body, "<key>"+name+"</key><value>")
	value, _, _ := strings.Cut(rest, "</value>")
	return value
}

// TestConfirmByLink: the link in a message has neither version nor signature, and
// the topic's name in it does not count (AWS recording
// test_sns_confirm_subscription_wrong_token).
func TestConfirmByLink(t *testing.T) {
	e, token, subscription := pending(t)
	if got := e.attribute(subscription, "PendingConfirmation"); got != "true" {
		t.Errorf("got pending %q, want true", got)
	}
	for range 2 { // twice is no error
		r := e.do("GET", "/?Action=ConfirmSubscription&TopicArn="+ordersARN+"-other&Token="+token, nil)
		if r.status != 200 || !strings.Contains(r.body, subscription) {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	if got := e.attribute(subscription, "PendingConfirmation") + e.attribute(subscription, "ConfirmationWasAuthenticated"); got != "falsefalse" {
		t.Errorf("got pending and authenticated %s, want neither", got)
	}
	if r := e.do("GET", "/?Action=Unsubscribe&SubscriptionArn="+subscription, nil); r.status != 200 {
		t.Errorf("unsubscribe: got %d %s", r.status, r.body)
	}
	if r := e.sns("Action=GetSubscriptionAttributes&SubscriptionArn=" + subscription); r.status != 404 {
		t.Errorf("got %d %s, want no subscription", r.status, r.body)
	}
}

// TestAuthenticatedConfirmation: what was confirmed with AuthenticateOnUnsubscribe
// cannot be confirmed or ended by a link.
func TestAuthenticatedConfirmation(t *testing.T) {
	e, token, subscription := pending(t)
	r := e.sns("Action=ConfirmSubscription&AuthenticateOnUnsubscribe=true&TopicArn=" + ordersARN + "&Token=" + token)
	if r.status != 200 || e.attribute(subscription, "ConfirmationWasAuthenticated") != "true" {
		t.Errorf("got %d %s", r.status, r.body)
	}
	for _, link := range []string{"ConfirmSubscription&TopicArn=" + ordersARN + "&Token=" + token, "Unsubscribe&SubscriptionArn=" + subscription} {
		if r := e.do("GET", "/?Action="+link, nil); r.status != 403 || !strings.Contains(r.body, "<Code>AuthorizationError</Code>") {
			t.Errorf("%.20s: got %d %s, want AuthorizationError", link, r.status, r.body)
		}
	}
	if r := e.sns("Action=Unsubscribe&SubscriptionArn=" + subscription); r.status != 200 {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// TestOtherAccounts: a topic belongs to its account, and its policy may let others
// in.
func TestOtherAccounts(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	other := strings.Replace(signedSNS, "any", "111122223333", 1)
	publish := func() response {
		return e.query("Version=2010-03-31&Action=Publish&Message=m&TopicArn="+ordersARN, "Authorization", other)
	}
	const refusal = "User: arn:aws:iam::111122223333:root is not authorized to perform: SNS:Publish on resource: " + ordersARN
	if r := publish(); r.status != 403 || !strings.Contains(r.body, refusal) {
		t.Errorf("got %d %s, want %s", r.status, r.body, refusal)
	}
	e.sns("Action=AddPermission&Label=L&AWSAccountId.member.1=111122223333&ActionName.member.1=Publish&TopicArn=" + ordersARN)
	if r := publish(); r.status != 200 {
		t.Errorf("with permission: got %d %s", r.status, r.body)
	}
	e.sns("Action=RemovePermission&Label=L&TopicArn=" + ordersARN)
	if r := publish(); r.status != 403 {
		t.Errorf("without permission: got %d %s", r.status, r.body)
	}
	if r := e.query("Version=2010-03-31&Action=ListTopics", "Authorization", other); strings.Contains(r.body, "orders") {
		t.Errorf("got %s, want no topic", r.body)
	}
	if r := e.query("Version=2010-03-31&Action=ListTagsForResource&ResourceArn="+ordersARN, "Authorization", other); r.status != 403 {
		t.Errorf("tags: got %d %s, want 403", r.status, r.body)
	}
}

// TestSNSFaults: what is not the client's fault, in the form of SNS, with what is
// known of the outcome.
func TestSNSFaults(t *testing.T) {
	broker := newStateBroker()
	e := serve(t, broker, httpapi.Config{})
	for _, c := range []struct {
		fault   error
		status  int
		code    string
		outcome string
	}{
		{cluster.ErrNoLeader, 503, "ServiceUnavailable", "not-applied"},
		{cluster.ErrOutcomeUnknown, 503, "ServiceUnavailable", "unknown"},
		{cluster.ErrOverloaded, 400, "Throttling", "not-applied"},
		{fmt.Errorf("disk on fire"), 500, "InternalError", "unknown"},
	} {
		broker.fault = c.fault
		r := e.sns("Action=CreateTopic&Name=orders")
		party := "Receiver"
		if c.status < 500 {
			party = "Sender"
		}
		want := `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>` + party + `</Type><Code>` + c.code + `</Code>`
		if r.status != c.status || !strings.Contains(r.body, want) || r.header["x-holdfast-outcome"] != c.outcome {
			t.Errorf("%v: got %d %q %s, want %d %q %s", c.fault, r.status, r.header["x-holdfast-outcome"], r.body, c.status, c.outcome, want)
		}
		if strings.Contains(r.body, "disk") {
			t.Errorf("the client is told %s", r.body)
		}
	}
}

// TestUnreadableSNS: a form that cannot be read is no panic, and no success.
func TestUnreadableSNS(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	for form, code := range map[string]string{
		"Action=Publish&TopicArn.1=x":              "MalformedQueryString",
		"Action=CreateTopic&Name.member.1=x":       "MalformedQueryString",
		"Action=UntagResource&TagKeys.member.1.x=": "",
		"Action=Publish&Message=m&TopicArn=" + ordersARN +
			"&MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=Binary&MessageAttributes.entry.1.Value.BinaryValue=%3F": "MalformedQueryString",
	} {
		if r := e.sns(form); r.status != 400 || !strings.Contains(r.body, "<Code>"+code) {
			t.Errorf("%s: got %d %s, want %s", form, r.status, r.body, code)
		}
	}
}
