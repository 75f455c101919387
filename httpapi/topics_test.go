package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestConfirmByLink (C37, C39, C40): the link in a message has neither version nor
// signature, and the topic's name in it does not count (AWS recording
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

// TestAuthenticatedConfirmation (C39): what was confirmed with AuthenticateOnUnsubscribe
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
		{&sns.Error{Code: sns.InternalError, Message: "x"}, 500, "InternalError", "unknown"}, // of a publish that has panicked
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

// TestSpoiltForms: who spoke to SNS is answered by SNS, whatever was wrong with the
// request, and who spoke to SQS by SQS.
func TestSpoiltForms(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{MaxBody: 100_000})
	const sns, sqs = `xmlns="http://sns.amazonaws.com/doc/2010-03-31/"`, `xmlns="http://queue.amazonaws.com/doc/2012-11-05/"`
	signedSQS := strings.Replace(signedSNS, "/sns/", "/sqs/", 1)
	large := "Action=Publish&Message=" + strings.Repeat("x", 100_000)
	for _, c := range []struct {
		form, signature string
		namespace       string
		status          int
		code            string
	}{
		{"Message=%&Action=Publish&Version=2010-03-31", "", sns, 400, "MalformedQueryString"},
		{"Message=%&Action=Publish", "", sns, 400, "MalformedQueryString"},
		{"Message=%FF&Action=AddPermission", signedSNS, sns, 400, "MalformedQueryString"},
		{"Message=%", signedSNS, sns, 400, "MalformedQueryString"},
		{"Action=%", signedSNS, sns, 400, "MalformedQueryString"},
		{"", signedSNS, sns, 400, "MissingAction"},
		{"Action=Bogus", signedSNS, sns, 400, "InvalidAction"},
		{large, signedSNS, sns, 413, "RequestEntityTooLarge"},
		{"Message=%&Action=SendMessage", "", sqs, 400, "MalformedInput"},
		{"Message=%&Version=2012-11-05", signedSNS, sqs, 400, "MalformedInput"},
		{"Message=%", signedSQS, sqs, 400, "MalformedInput"},
		{"Action=Bogus", signedSQS, sqs, 400, "InvalidAction"},
		{large, signedSQS, sqs, 413, "RequestEntityTooLarge"},
	} {
		r := e.query(c.form, "Authorization", c.signature)
		if r.status != c.status || !strings.Contains(r.body, c.namespace) || !strings.Contains(r.body, "<Code>"+c.code+"</Code>") {
			t.Errorf("%.50s: got %d %s, want %d %s", c.form, r.status, r.body, c.status, c.code)
		}
	}
	r := e.query("Action=Publish", "Authorization", signedSNS, "Content-Encoding", "gzip")
	if r.status != 415 || !strings.Contains(r.body, sns) || !strings.Contains(r.body, "<Code>UnsupportedMediaType</Code>") {
		t.Errorf("gzip: got %d %s", r.status, r.body)
	}
}

// TestDeleteTopicOfOthers: to delete is idempotent in one's own account. In others,
// whether there is such a topic is nobody's business.
func TestDeleteTopicOfOthers(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	other := strings.Replace(signedSNS, "any", "111122223333", 1)
	const refusal = "is not authorized to perform: SNS:DeleteTopic on resource: "
	for _, name := range []string{"orders", "absent"} {
		arn := strings.Replace(ordersARN, "orders", name, 1)
		for who, signature := range map[string]string{"111122223333": other, "anonymous": ""} {
			r := e.query("Version=2010-03-31&Action=DeleteTopic&TopicArn="+arn, "Authorization", signature)
			if r.status != 403 || !strings.Contains(r.body, "<Code>AuthorizationError</Code>") || !strings.Contains(r.body, refusal+arn) {
				t.Errorf("%s by %s: got %d %s", name, who, r.status, r.body)
			}
		}
	}
	for arn, status := range map[string]int{
		strings.Replace(ordersARN, "orders", "absent", 1):         200,
		strings.Replace(ordersARN, "us-east-1", "us-west-2", 1):   400,
		strings.Replace(ordersARN, "000000000000", "11112222", 1): 400,
	} {
		r := e.sns("Action=DeleteTopic&TopicArn=" + arn)
		if r.status != status || status == 400 && !strings.Contains(r.body, "<Message>Invalid parameter: TopicArn</Message>") {
			t.Errorf("%s: got %d %s, want %d", arn, r.status, r.body, status)
		}
	}
	e.sns("Action=AddPermission&Label=L&AWSAccountId.member.1=111122223333&ActionName.member.1=DeleteTopic&TopicArn=" + ordersARN)
	if r := e.query("Version=2010-03-31&Action=DeleteTopic&TopicArn="+ordersARN, "Authorization", other); r.status != 200 {
		t.Errorf("with permission: got %d %s", r.status, r.body)
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
			if text, err := base64.RawURLEncoding.DecodeString(token); err != nil || strings.Contains(string(text), "secret") {
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

// TestLongValuesInErrors: an error says what is wrong, and repeats no more than a
// few kilobytes of it.
func TestLongValuesInErrors(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	e.sns("Action=CreateTopic&Name=orders")
	subscribed := e.sns("Action=Subscribe&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:q&TopicArn=" + ordersARN)
	_, rest, _ := strings.Cut(subscribed.body, "<SubscriptionArn>")
	arn, _, _ := strings.Cut(rest, "<")
	long := strings.Repeat("ä", 50_000)
	check := func(what string, r response, ends ...string) {
		t.Helper()
		if r.status >= 500 || r.status == 200 && !strings.Contains(r.body, "Failed") || len(r.body) > 6000 {
			t.Errorf("%s: got %d and %d bytes", what, r.status, len(r.body))
		}
		for _, end := range ends {
			if !strings.Contains(r.body, end) {
				t.Errorf("%s: got %s, want %s", what, r.body, end)
			}
		}
		if !utf8.ValidString(r.body) {
			t.Errorf("%s: got what is no text", what)
		}
	}
	for form, end := range map[string]string{
		"Subscribe&Protocol=" + long + "&TopicArn=" + ordersARN:                                                                      "does not support this protocol string: ä",
		"Subscribe&Protocol=sms&Endpoint=" + long + "&TopicArn=" + ordersARN:                                                         "Invalid SMS endpoint: ä",
		"SetSubscriptionAttributes&SubscriptionArn=" + arn + "&AttributeName=RawMessageDelivery&AttributeValue=" + long:              "Invalid value [ä",
		"SetSubscriptionAttributes&SubscriptionArn=" + arn + `&AttributeName=FilterPolicy&AttributeValue={"k":[{"` + long + `":1}]}`: "Unrecognized match type ä",
		"Publish&PhoneNumber=" + long:           "ä is not valid to publish to",
		long:                                    "for version 2010-03-31",
		"TagResource&Tags.member.1.Key=" + long: "Member must have length less than or equal to 128",
		"Publish&Message=m&TopicArn=" + ordersARN + "&MessageAttributes.entry.1.Value.DataType=" + long + "&MessageAttributes.entry.1.Name=a":  "supported type prefixes",
		"PublishBatch&TopicArn=" + ordersARN + "&PublishBatchRequestEntries.member.1.Message=m&PublishBatchRequestEntries.member.1.Id=" + long: "impermissible character: ä",
	} {
		check(form[:20], e.sns("Action="+form), end)
	}
	check("handle", e.json("DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":"`+long+`"}`), "The input receipt handle", "is not a valid receipt handle.")
	check("handles", e.json("DeleteMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"a","ReceiptHandle":"`+long+`"}]}`), "is not a valid receipt handle.")
	check("redrive", e.json("SetQueueAttributes", `{"QueueUrl":"q","Attributes":{"RedrivePolicy":"{\"maxReceiveCount\":\"`+long+`\"}"}}`), "deadLetterTargetArn")
	check("action", e.query("Action="+long), "is not valid for this endpoint.")
	// Sessions keep what the state has answered, so it is short there, too.
	set := sns.SetSubscriptionAttributes{Topic: sns.TopicKey{Account: "000000000000", Name: "orders"}}
	set.Subscription, _ = sns.ParseSubscriptionID(arn[len(arn)-36:])
	set.Attribute = sns.Attribute{Name: sns.FilterPolicyScope, Value: long}
	if o, err := e.broker.Do(t.Context(), set); err != nil || o.Err == nil || len(o.Err.Error()) > 5000 {
		t.Errorf("got %v, %d bytes", err, len(fmt.Sprint(o.Err)))
	}
}

// TestManySNSParameters: more of something than there can be is the client's error.
func TestManySNSParameters(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	many := func(pattern string) string {
		var b strings.Builder
		for i := range 300 {
			b.WriteString("&" + strings.ReplaceAll(pattern, "#", fmt.Sprint(i+1)))
		}
		return b.String()
	}
	topic := "&TopicArn=" + ordersARN
	const queue = "&Protocol=sqs&Endpoint=arn:aws:sqs:us-east-1:000000000000:q"
	for form, want := range map[string]string{
		"CreateTopic&Name=other" + many("Tags.member.#.Key=k#&Tags.member.#.Value=v"):                                                                                         "<Code>TagLimitExceeded</Code>",
		"TagResource&ResourceArn=" + ordersARN + many("Tags.member.#.Key=k#&Tags.member.#.Value=v"):                                                                           "<Code>TagLimitExceeded</Code>",
		"UntagResource&ResourceArn=" + ordersARN + many("TagKeys.member.#=k#"):                                                                                                "<UntagResourceResult",
		"CreateTopic&Name=other" + many("Attributes.entry.#.key=k#&Attributes.entry.#.value=v"):                                                                               "<Code>InvalidParameter</Code>",
		"Subscribe" + queue + topic + many("Attributes.entry.#.key=k#&Attributes.entry.#.value=v"):                                                                            "<Code>InvalidParameter</Code>",
		"SetSMSAttributes" + many("attributes.entry.#.key=k#&attributes.entry.#.value=v"):                                                                                     "<Code>InvalidParameter</Code>",
		"PublishBatch" + topic + many("PublishBatchRequestEntries.member.#.Id=#&PublishBatchRequestEntries.member.#.Message=m"):                                               "<Code>TooManyEntriesInBatchRequest</Code>",
		"Publish&Message=m" + topic + many("MessageAttributes.entry.#.Name=k#&MessageAttributes.entry.#.Value.DataType=String&MessageAttributes.entry.#.Value.StringValue=v"): "<MessageId>",
		"SetSMSAttributes&attributes.entry.1.key=UsageReportS3Bucket&attributes.entry.1.value=" + strings.Repeat("x", 3000):                                                   "<Message>UsageReportS3Bucket is invalid</Message>",
		"CreateTopic&Name=" + strings.Repeat("x", 3000):                                                                                                                       "<Message>Invalid parameter: Topic Name</Message>",
		"DeleteTopic&TopicArn=" + ordersARN + strings.Repeat("x", 3000):                                                                                                       "<DeleteTopicResponse",
	} {
		if r := e.sns("Action=" + form); r.status >= 500 || !strings.Contains(r.body, want) {
			t.Errorf("%.60s: got %d %.300s, want %s", form, r.status, r.body, want)
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
