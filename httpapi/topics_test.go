package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
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

// TestSubscriptionOfAnotherAccount: who made a subscription to a topic of somebody
// else manages it, and no third account does.
func TestSubscriptionOfAnotherAccount(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	e.sns("Action=AddPermission&Label=L&AWSAccountId.member.1=111122223333&ActionName.member.1=Subscribe&TopicArn=" + ordersARN)
	as := func(account, form string) response {
		return e.query("Version=2010-03-31&"+form, "Authorization", strings.Replace(signedSNS, "any", account, 1))
	}
	const owner, third = "111122223333", "444455556666"
	r := as(owner, "Action=Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:111122223333:q&TopicArn="+ordersARN)
	_, rest, _ := strings.Cut(r.body, "<SubscriptionArn>")
	arn, _, _ := strings.Cut(rest, "<")
	for _, form := range []string{
		"GetSubscriptionAttributes&SubscriptionArn=",
		"SetSubscriptionAttributes&AttributeName=RawMessageDelivery&AttributeValue=true&SubscriptionArn=",
		"Unsubscribe&SubscriptionArn=",
	} {
		if r := as(third, "Action="+form+arn); r.status != 403 || !strings.Contains(r.body, "is not authorized to perform: SNS:") {
			t.Errorf("%.20s of a third account: got %d %s", form, r.status, r.body)
		}
		if r := as(owner, "Action="+form+arn); r.status != 200 {
			t.Errorf("%.20s: got %d %s", form, r.status, r.body)
		}
	}
	if r := as(owner, "Action=Unsubscribe&SubscriptionArn="+arn); r.status != 403 {
		t.Errorf("of one that is gone: got %d %s, want 403", r.status, r.body)
	}
	e.broker.fault = cluster.ErrNoLeader
	if r := as(owner, "Action=Unsubscribe&SubscriptionArn="+arn); r.status != 503 {
		t.Errorf("without a leader: got %d %s, want 503", r.status, r.body)
	}
}

// TestMaskedPassword: the password of an endpoint is told to nobody.
func TestMaskedPassword(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	r := e.sns("Action=Subscribe&ReturnSubscriptionArn=true&Protocol=http&Endpoint=http://me:secret%2540@example.com/a@b&TopicArn=" + ordersARN)
	_, rest, _ := strings.Cut(r.body, "<SubscriptionArn>")
	arn, _, _ := strings.Cut(rest, "<")
	for _, form := range []string{"GetSubscriptionAttributes&SubscriptionArn=" + arn, "ListSubscriptions", "ListSubscriptionsByTopic&TopicArn=" + ordersARN} {
		if r := e.sns("Action=" + form); !strings.Contains(r.body, ">http://me:****@example.com/a@b<") {
			t.Errorf("%.20s: got %s", form, r.body)
		}
	}
}

// TestListSubscriptionsByOwner: the list is of those who have subscribed, not of
// those whose topic it is.
func TestListSubscriptionsByOwner(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	e.sns("Action=AddPermission&Label=L&AWSAccountId.member.1=111122223333&ActionName.member.1=Subscribe&TopicArn=" + ordersARN)
	e.sns("Action=Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:own&TopicArn=" + ordersARN)
	other := strings.Replace(signedSNS, "any", "111122223333", 1)
	as := func(form string) response { return e.query("Version=2010-03-31&"+form, "Authorization", other) }
	as("Action=Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:111122223333:foreign&TopicArn=" + ordersARN)
	const own, foreign = ":own</Endpoint>", ":foreign</Endpoint>"
	if r := e.sns("Action=ListSubscriptions"); !strings.Contains(r.body, own) || strings.Contains(r.body, foreign) {
		t.Errorf("the topic's account: got %s", r.body)
	}
	if r := as("Action=ListSubscriptions"); strings.Contains(r.body, own) || !strings.Contains(r.body, foreign) {
		t.Errorf("the other account: got %s", r.body)
	}
	if r := e.sns("Action=ListSubscriptionsByTopic&TopicArn=" + ordersARN); !strings.Contains(r.body, own) || !strings.Contains(r.body, foreign) {
		t.Errorf("the topic: got %s", r.body)
	}
}

// TestNoPasswordInTokens: a NextToken tells nobody the password of an endpoint.
func TestNoPasswordInTokens(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	const subscriptions = 250
	for i := range subscriptions {
		e.sns(fmt.Sprintf("Action=Subscribe&Protocol=http&Endpoint=http://me:secret%03d@example.com/&TopicArn=%s", i, ordersARN))
	}
	for _, action := range []string{"ListSubscriptions", "ListSubscriptionsByTopic&TopicArn=" + ordersARN} {
		seen := 0
		for token, pages := "", 0; pages == 0 || token != ""; pages++ {
			r := e.sns("Action=" + action + "&NextToken=" + url.QueryEscape(token))
			if r.status != 200 {
				t.Fatalf("%s: got %d %s", action, r.status, r.body)
			}
			seen += strings.Count(r.body, ">http://me:****@example.com/<")
			_, rest, _ := strings.Cut(r.body, "<NextToken>")
			token, _, _ = strings.Cut(rest, "<")
			if text, err := base64.StdEncoding.DecodeString(token); err != nil || strings.Contains(string(text), "secret") {
				t.Errorf("%s: got the token %q, %v", action, text, err)
			}
		}
		if seen != subscriptions {
			t.Errorf("%s: got %d subscriptions, want %d", action, seen, subscriptions)
		}
	}
}

// TestLongSNSParameters: what is stored has a limit, and what could not exist is
// refused.
func TestLongSNSParameters(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	long := strings.Repeat("x", 10_000)
	for form, message := range map[string]string{
		"Subscribe&Protocol=http&Endpoint=http://example.com/" + long:                "Invalid parameter: Unreachable Endpoint",
		"Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:" + long: "Invalid parameter: SQS endpoint ARN",
		"SetTopicAttributes&AttributeName=KmsMasterKeyId&AttributeValue=" + long:     "Invalid parameter: KmsMasterKeyId: must be at most 2048 characters long",
		"SetTopicAttributes&AttributeName=SQSFailureFeedbackRoleArn&AttributeValue=" + long: "Invalid parameter: SQSFailureFeedbackRoleArn: " +
			"must be at most 2048 characters long",
		"Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:q&Attributes.entry.1.key=SubscriptionRoleArn&Attributes.entry.1.value=" + long: "Invalid parameter: " +
			"Attributes Reason: SubscriptionRoleArn: must be at most 2048 characters long",
		"Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:q&Attributes.entry.1.key=RedrivePolicy&Attributes.entry.1.value=" +
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + long + `"}`: "Invalid parameter: Attributes Reason: RedrivePolicy: deadLetterTargetArn is an invalid arn",
	} {
		if r := e.sns("Action=" + form + "&TopicArn=" + ordersARN); !strings.Contains(r.body, "<Message>"+message+"</Message>") {
			t.Errorf("%.60s: got %.300s, want %s", form, r.body, message)
		}
	}
}

// TestEmptyTagKey: the framework of AWS refuses it.
func TestEmptyTagKey(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	const want = "1 validation error detected: Value &apos;&apos; at &apos;tags.1.member.key&apos; failed to satisfy constraint: " +
		"Member must have length greater than or equal to 1"
	r := e.sns("Action=CreateTopic&Name=orders&Tags.member.1.Key=&Tags.member.1.Value=v")
	if r.status != 400 || !strings.Contains(strings.ReplaceAll(r.body, "'", "&apos;"), "<Message>"+want+"</Message>") {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// TestConfirmBrokenARN: the topic's ARN need not be right, but an ARN of this
// region it must be (AWS recording test_subscribe_external_http_endpoint).
func TestConfirmBrokenARN(t *testing.T) {
	e, token, _ := pending(t)
	for _, arn := range []string{"x", "arn:aws:sns:us-east-1", "arn:aws:sns:us-west-2:000000000000:orders"} {
		r := e.do("GET", "/?Action=ConfirmSubscription&TopicArn="+arn+"&Token="+token, nil)
		if r.status != 400 || !strings.Contains(r.body, "<Message>Invalid parameter: Topic</Message>") {
			t.Errorf("%s: got %d %s", arn, r.status, r.body)
		}
	}
}

// TestBrokenTopicPolicy: a policy without statements, or one whose statement lacks
// something, permits nothing, and is refused when it is set.
func TestBrokenTopicPolicy(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	set := func(statements string) response {
		return e.sns("Action=SetTopicAttributes&AttributeName=Policy&TopicArn=" + ordersARN +
			`&AttributeValue={"Version":"2012-10-17","Statement":[` + statements + "]}")
	}
	for _, statement := range []string{
		``,
		`{}`,
		`{"Effect":"Maybe","Principal":"*","Action":"SNS:Publish","Resource":"*"}`,
		`{"Effect":"Allow","Principal":{},"Action":"SNS:Publish","Resource":"*"}`,
		`{"Effect":"Allow","Principal":"*","Resource":"*"}`,
		`{"Effect":"Allow","Action":"SNS:Publish","Resource":"*"}`,
	} {
		if r := set(statement); r.status != 400 || !strings.Contains(r.body, "<Message>Invalid parameter: Policy Error: null</Message>") {
			t.Errorf("%s: got %d %s", statement, r.status, r.body)
		}
	}
	for _, statement := range []string{
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"SNS:Publish","Resource":"*"}`,
		`{"Effect":"Deny","Principal":"*","NotAction":["SNS:Publish"],"Resource":"*"}`,
	} {
		if r := set(statement); r.status != 200 {
			t.Errorf("%s: got %d %s", statement, r.status, r.body)
		}
	}
}
