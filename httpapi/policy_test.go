package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// brokenPolicies are statements that no policy may have: they would permit nothing,
// or something else than they say.
var brokenPolicies = []string{
	``,
	`{}`,
	`{"Effect":"Maybe","Principal":"*","Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":{},"Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":{"AWS":[]},"Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":"me","Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":"*","Action":[],"Resource":"*"}`,
	`{"Effect":"Allow","Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","NotPrincipal":{"AWS":"111122223333"},"Action":"*","Resource":"*"}`,
	`{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringEqual":{"aws:SourceArn":"x"}}}`,
	`{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:SourceArn":{}}}}`,
	`{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringEquals":{"SourceArn":"x"}}}`,
	`{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","When":"now"}`,
}

func policyOf(statements string) string {
	return `{"Version":"2012-10-17","Statement":[` + statements + "]}"
}

// TestBrokenPolicies: what could not be evaluated is refused when it is set, for
// queues and for topics alike.
func TestBrokenPolicies(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	e.sns("Action=CreateTopic&Name=orders")
	texts := []string{"x", "[]", `{"Version":"2012-10-17","Statement":[]}`, `{"Version":"2012-10-17"}`, `{"Version":"2030-01-01","Statement":{"Effect":"Allow","Principal":"*","Action":"*"}}`}
	for _, statement := range brokenPolicies {
		texts = append(texts, policyOf(statement))
	}
	for _, text := range texts {
		if r, _ := e.setAttribute(sqs.Policy, text); r.errorText(t) != "InvalidAttributeValue: Invalid value for the parameter Policy." {
			t.Errorf("queue: %s: got %d %s", text, r.status, r.body)
		}
		value := url.QueryEscape(text)
		const null = "Policy Error: null</Message>"
		r := e.sns("Action=SetTopicAttributes&AttributeName=Policy&AttributeValue=" + value + "&TopicArn=" + ordersARN)
		if r.status != 400 || !strings.Contains(r.body, "<Message>Invalid parameter: "+null) {
			t.Errorf("topic: %s: got %d %s", text, r.status, r.body)
		}
		r = e.sns("Action=CreateTopic&Name=other&Attributes.entry.1.key=Policy&Attributes.entry.1.value=" + value)
		if r.status != 400 || !strings.Contains(r.body, "<Message>Invalid parameter: Attributes Reason: "+null) {
			t.Errorf("new topic: %s: got %d %s", text, r.status, r.body)
		}
	}
}

// TestTopicPolicies: what else AWS says of the policy of a topic.
func TestTopicPolicies(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.sns("Action=CreateTopic&Name=orders")
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	accounts := func(n int) string {
		return `{"Effect":"Allow","Principal":{"AWS":[` + many(n, `"111122223333"`) + `]},"Action":"SNS:Publish"}`
	}
	const publish = `{"Effect":"Allow","Principal":"*","Action":"SNS:Publish"}`
	for statements, reason := range map[string]string{
		`{"Effect":"Allow","Principal":{"AWS":"nobody"},"Action":"SNS:Publish","Resource":"*"}`: "Policy Error: PrincipalNotFound",
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sqs:SendMessage","Resource":"*"}`:  "Policy statement action out of service scope!",
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["SNS:Publishx"],"Resource":"*"}`:   "Policy statement action out of service scope!",
		many(101, publish): "Policy Error: policy has more than 100 statements",
		accounts(201):      "Policy Error: policy has more than 200 principals",
		many(100, publish): "",
		accounts(200):      "",
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["SNS:Pub*","sns:subscribe"],"Resource":"*"}`:                            "",
		`{"Effect":"Deny","Principal":"*","NotAction":["SNS:Publish"],"Resource":"*"}`:                                               "",
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"*","Condition":{"ArnLikeIfExists":{"aws:SourceArn":"arn:aws:s3:::b"}}}`: "",
	} {
		r := e.sns("Action=SetTopicAttributes&AttributeName=Policy&TopicArn=" + ordersARN + "&AttributeValue=" + url.QueryEscape(policyOf(statements)))
		if reason == "" && r.status != 200 || reason != "" && !strings.Contains(r.body, "<Message>Invalid parameter: "+reason+"</Message>") {
			t.Errorf("%.200s: got %d %s, want %q", statements, r.status, r.body, reason)
		}
	}
}

// TestPermissionLimits: no permission makes a policy that could not be set.
func TestPermissionLimits(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	e.sns("Action=CreateTopic&Name=orders")
	var queueAccounts, topicAccounts strings.Builder
	for i := range 40 {
		fmt.Fprintf(&queueAccounts, `,"%012d"`, i)
		fmt.Fprintf(&topicAccounts, "&AWSAccountId.member.%d=%012d", i+1, i)
	}
	permitQueue := func(label string) string {
		r := e.json("AddPermission", `{"QueueUrl":"q","Label":"`+label+`","AWSAccountIds":[`+queueAccounts.String()[1:]+`],"Actions":["SendMessage"]}`)
		if r.status == 200 {
			return ""
		}
		return r.errorText(t)
	}
	if got := permitQueue("a"); got != "" {
		t.Errorf("40 principals of a queue: got %s", got)
	}
	if got, want := permitQueue("b"), "OverLimit: 80 Principals were found, maximum allowed is 50."; got != want {
		t.Errorf("80 principals of a queue: got %s, want %s", got, want)
	}
	for i := range 5 { // the default policy has a principal, too
		r := e.sns(fmt.Sprint("Action=AddPermission&ActionName.member.1=Publish&Label=", i, topicAccounts.String(), "&TopicArn=", ordersARN))
		if full := i == 4; (r.status == 200) == full || full && !strings.Contains(r.body, "policy has more than 200 principals") {
			t.Errorf("label %d: got %d %s", i, r.status, r.body)
		}
	}
	for i := range 6 { // the last one that goes leaves a policy without statements
		if r := e.sns(fmt.Sprint("Action=RemovePermission&Label=", i, "&TopicArn=", ordersARN)); r.status != 200 {
			t.Errorf("label %d: got %d %s", i, r.status, r.body)
		}
	}
	if r := e.sns("Action=RemovePermission&Label=__default_statement_ID&TopicArn=" + ordersARN); r.status != 200 {
		t.Errorf("the last statement: got %d %s", r.status, r.body)
	}
	if r := e.sns("Action=GetTopicAttributes&TopicArn=" + ordersARN); !strings.Contains(r.body, "&quot;Statement&quot;:[]") {
		t.Errorf("got %s", r.body)
	}
}
