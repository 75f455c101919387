package policy_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast.internal/raftfsm/policy"
)

const (
	queue = "arn:aws:sqs:us-east-1:000000000000:q"
	topic = "arn:aws:sns:us-east-1:111111111111:t"
)

// statement is a policy of one statement that allows everybody all, but for the
// members given.
func statement(members ...string) string {
	text := strings.Join(members, ",")
	for _, needed := range []string{`"Effect":"Allow"`, `"Principal":"*"`, `"Action":"sqs:*"`} {
		if name, _, _ := strings.Cut(needed, ":"); !strings.Contains(text, name+":") && !strings.Contains(text, `"Not`+name[1:]+":") {
			text += "," + needed
		}
	}
	return `{"Version":"2012-10-17","Statement":[{` + strings.TrimPrefix(text, ",") + `}]}`
}

// condition is a policy that allows if the condition holds.
func condition(text string) string { return statement(`"Condition":{` + text + `}`) }

func parse(t *testing.T, text string) *policy.Document {
	t.Helper()
	d, err := policy.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestEvaluate(t *testing.T) {
	user := policy.Principal{Kind: policy.AWS, Name: "arn:aws:iam::111111111111:user/bob"}
	account := policy.Principal{Kind: policy.AWS, Name: "111111111111"}
	session := policy.Principal{Kind: policy.AWS, Name: "arn:aws:sts::111111111111:assumed-role/r/s"}
	service := policy.Principal{Kind: policy.Service, Name: policy.SNS}
	const allow, deny, none = policy.Allow, policy.Deny, policy.NoMatch
	for _, c := range []struct {
		name, policy string
		by           policy.Principal
		want         policy.Decision
	}{
		{"everybody", statement(), user, allow},
		{"everybody, unknown", statement(), policy.Principal{}, allow},
		{"everybody of AWS", statement(`"Principal":{"AWS":"*"}`), service, allow},
		{"account for its user", statement(`"Principal":{"AWS":"111111111111"}`), user, allow},
		{"root for its user", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:root"}`), user, allow},
		{"root for its account", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:root"}`), account, allow},
		{"another account", statement(`"Principal":{"AWS":["222222222222","arn:aws:iam::222222222222:root"]}`), user, none},
		{"account for nobody", statement(`"Principal":{"AWS":"111111111111"}`), policy.Principal{}, none},
		{"user", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:user/bob"}`), user, allow},
		{"another user", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:user/eve"}`), user, none},
		{"users by wildcard", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:user/b*"}`), user, allow},
		{"role for its session", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:role/r"}`), session, allow},
		{"another role", statement(`"Principal":{"AWS":"arn:aws:iam::111111111111:role/x"}`), session, none},
		{"session", statement(`"Principal":{"AWS":"arn:aws:sts::111111111111:assumed-role/r/s"}`), session, allow},
		{"service", statement(`"Principal":{"Service":"sns.amazonaws.com"}`), service, allow},
		{"one of the services", statement(`"Principal":{"Service":["s3.amazonaws.com","sns.amazonaws.com"]}`), service, allow},
		{"another service", statement(`"Principal":{"Service":"s3.amazonaws.com"}`), service, none},
		{"service is no account", statement(`"Principal":{"Service":"111111111111"}`), account, none},
		{"not the service", statement(`"Effect":"Deny"`, `"NotPrincipal":{"Service":"sns.amazonaws.com"}`), service, none},
		{"not the service, another", statement(`"Effect":"Deny"`, `"NotPrincipal":{"Service":"sns.amazonaws.com"}`), user, deny},
		{"action in any case", statement(`"Action":"SQS:sendmessage"`), user, allow},
		{"action by wildcard", statement(`"Action":["sqs:Get*","sqs:S?nd*"]`), user, allow},
		{"all actions", statement(`"Action":"*"`), user, allow},
		{"another action", statement(`"Action":"sqs:ReceiveMessage"`), user, none},
		{"not the action", statement(`"NotAction":"sqs:SendMessage"`), user, none},
		{"not another action", statement(`"NotAction":"sqs:ReceiveMessage"`), user, allow},
		{"resource", statement(`"Resource":"` + queue + `"`), user, allow},
		{"resource by wildcard", statement(`"Resource":"arn:aws:sqs:*:q"`), user, allow},
		{"another resource", statement(`"Resource":"` + queue + `2"`), user, none},
		{"resource in another case", statement(`"Resource":"` + strings.ToUpper(queue) + `"`), user, none},
		{"not the resource", statement(`"NotResource":["x","` + queue + `"]`), user, none},
		{"not another resource", statement(`"NotResource":"x"`), user, allow},
		{"variable", statement(`"Resource":"arn:aws:sqs:us-east-1:${aws:queue-account}:q"`), user, allow},
		{"variable with a wildcard", statement(`"Resource":"arn:aws:sqs:us-east-1:${aws:star}:q"`), user, none},
		{"variable without a value", statement(`"Resource":"${aws:missing}*"`), user, none},
		{"variable without a value, but a default", statement(`"Resource":"${aws:missing, 'arn'}*"`), user, allow},
		{"deny with a variable without a value", statement(`"Effect":"Deny"`, `"Resource":"${aws:missing}*"`), user, deny},
		{"deny if a variable without a value", statement(`"Effect":"Deny"`, `"Condition":{"StringEquals":{"aws:star":"${aws:missing}"}}`), user, deny},
		{"escaped star", statement(`"Resource":"arn:aws:sqs:us-east-1:${*}:q"`), user, none},
		{"no variables before 2012", `{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"${aws:missing, 'arn'}*"}}`, user, none},
		{
			"deny counts more",
			`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:Send*"},{"Effect":"Allow","Principal":"*","Action":"*"}]}`, user, deny,
		},
		{
			"deny counts more, behind",
			`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*"},{"Effect":"Deny","Principal":"*","Action":"sqs:Send*"}]}`, user, deny,
		},
		{
			"deny of something else",
			`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:Receive*"},{"Effect":"Allow","Principal":"*","Action":"*"}]}`, user, allow,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := policy.Request{
				Principal: c.by, Action: "sqs:SendMessage", Resource: queue,
				Context: policy.Context{{Key: "aws:queue-account", Value: "000000000000"}, {Key: "aws:star", Value: "*"}},
			}
			if got := parse(t, c.policy).Evaluate(r); got != c.want {
				t.Errorf("%s: got %d, want %d", c.policy, got, c.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	context := policy.Context{
		{Key: "aws:SourceArn", Value: topic},
		{Key: "aws:SourceAccount", Value: "111111111111"},
		{Key: "aws:SecureTransport", Value: "true"},
		{Key: "aws:SourceIp", Value: "10.1.2.3"},
		{Key: "aws:CurrentTime", Value: "2026-06-01T12:00:00Z"},
		{Key: "aws:EpochTime", Value: "1780315200"},
		{Key: "aws:MultiFactorAuthAge", Value: "300"},
		{Key: "aws:TagKeys", Value: "a"},
		{Key: "aws:TagKeys", Value: "b"},
		{Key: "aws:Mapped", Value: "::ffff:10.1.2.3"},
		{Key: "aws:V6", Value: "2001:db8::1"},
		{Key: "aws:Star", Value: "a*c"},
	}
	for text, want := range map[string]bool{
		`"StringEquals":{"aws:SourceAccount":"111111111111"}`:                                      true,
		`"StringEquals":{"AWS:sourceaccount":["x","111111111111"]}`:                                true,
		`"StringEquals":{"aws:SourceAccount":"1*"}`:                                                false,
		`"StringEquals":{"aws:Missing":"x"}`:                                                       false,
		`"StringEqualsIfExists":{"aws:Missing":"x"}`:                                               true,
		`"StringEqualsIfExists":{"aws:SourceAccount":"x"}`:                                         false,
		`"StringNotEquals":{"aws:SourceAccount":"x"}`:                                              true,
		`"StringNotEquals":{"aws:SourceAccount":["x","111111111111"]}`:                             false,
		`"StringNotEquals":{"aws:Missing":"x"}`:                                                    true,
		`"StringEqualsIgnoreCase":{"aws:SecureTransport":"TRUE"}`:                                  true,
		`"StringNotEqualsIgnoreCase":{"aws:SecureTransport":"TRUE"}`:                               false,
		`"StringLike":{"aws:SourceArn":"arn:aws:sns:*:t"}`:                                         true,
		`"StringLike":{"aws:SourceArn":"arn:aws:sns:*:?"}`:                                         true,
		`"StringLike":{"aws:SourceArn":"arn:aws:sns:*:tt"}`:                                        false,
		`"StringNotLike":{"aws:SourceArn":"arn:aws:s*"}`:                                           false,
		`"ArnEquals":{"aws:SourceArn":"` + topic + `"}`:                                            true,
		`"ArnEquals":{"aws:SourceArn":"arn:aws:sns:*:*:t"}`:                                        true,
		`"ArnLike":{"aws:SourceArn":"arn:aws:sns:us-east-1:111111111111:*"}`:                       true,
		`"ArnLike":{"aws:SourceArn":"arn:aws:sns:*"}`:                                              false, // the star does not go over a colon
		`"ArnLike":{"aws:SourceArn":"*"}`:                                                          true,
		`"ArnLike":{"aws:SourceAccount":"arn:aws:sns:*:*:*"}`:                                      false,
		`"ArnNotEquals":{"aws:SourceArn":"arn:aws:sns:*:*:x"}`:                                     true,
		`"ArnNotLike":{"aws:Missing":"arn:aws:sns:*:*:x"}`:                                         true,
		`"Bool":{"aws:SecureTransport":"true"}`:                                                    true,
		`"Bool":{"aws:SecureTransport":true}`:                                                      true,
		`"Bool":{"aws:SecureTransport":false}`:                                                     false,
		`"Bool":{"aws:Missing":false}`:                                                             false,
		`"IpAddress":{"aws:SourceIp":"10.1.0.0/16"}`:                                               true,
		`"IpAddress":{"aws:SourceIp":["192.0.2.0/24","10.1.2.3"]}`:                                 true,
		`"IpAddress":{"aws:SourceIp":"10.2.0.0/16"}`:                                               false,
		`"IpAddress":{"aws:Mapped":"10.1.0.7/16"}`:                                                 true,
		`"IpAddress":{"aws:V6":"2001:db8::/32"}`:                                                   true,
		`"IpAddress":{"aws:SourceArn":"0.0.0.0/0"}`:                                                false,
		`"NotIpAddress":{"aws:SourceIp":"10.2.0.0/16"}`:                                            true,
		`"NotIpAddress":{"aws:SourceIp":"10.1.0.0/16"}`:                                            false,
		`"DateGreaterThan":{"aws:CurrentTime":"2026-05-31T23:59:59Z"}`:                             true,
		`"DateGreaterThan":{"aws:CurrentTime":"2026-06-01T14:00:00+02:00"}`:                        false,
		`"DateGreaterThanEquals":{"aws:CurrentTime":"2026-06-01T14:00:00+02:00"}`:                  true,
		`"DateLessThan":{"aws:CurrentTime":"2026-06-02"}`:                                          true,
		`"DateLessThanEquals":{"aws:EpochTime":"2026-06-01T12:00:00Z"}`:                            true,
		`"DateLessThan":{"aws:EpochTime":1780315201}`:                                              true,
		`"DateEquals":{"aws:CurrentTime":"2026-06-01T12:00Z"}`:                                     true,
		`"DateNotEquals":{"aws:CurrentTime":"2026-06-01T12:00Z"}`:                                  false,
		`"DateLessThan":{"aws:CurrentTime":"tomorrow"}`:                                            false,
		`"NumericLessThan":{"aws:MultiFactorAuthAge":"3600"}`:                                      true,
		`"NumericLessThan":{"aws:MultiFactorAuthAge":300}`:                                         false,
		`"NumericLessThanEquals":{"aws:MultiFactorAuthAge":300}`:                                   true,
		`"NumericEquals":{"aws:MultiFactorAuthAge":3e2}`:                                           true,
		`"NumericNotEquals":{"aws:MultiFactorAuthAge":[1,300]}`:                                    false,
		`"NumericGreaterThan":{"aws:MultiFactorAuthAge":-5}`:                                       true,
		`"NumericGreaterThanEquals":{"aws:MultiFactorAuthAge":301}`:                                false,
		`"NumericEquals":{"aws:SourceArn":"0"}`:                                                    false,
		`"Null":{"aws:Missing":"true"}`:                                                            true,
		`"Null":{"aws:Missing":false}`:                                                             false,
		`"Null":{"aws:SourceArn":"false"}`:                                                         true,
		`"Null":{"aws:SourceArn":true}`:                                                            false,
		`"BinaryEquals":{"aws:SourceAccount":"111111111111"}`:                                      true,
		`"ForAnyValue:StringEquals":{"aws:TagKeys":["b","c"]}`:                                     true,
		`"ForAnyValue:StringEquals":{"aws:TagKeys":["c"]}`:                                         false,
		`"ForAnyValue:StringEquals":{"aws:Missing":["c"]}`:                                         false,
		`"ForAnyValue:StringNotEquals":{"aws:TagKeys":["a"]}`:                                      true,
		`"ForAnyValue:StringNotEquals":{"aws:TagKeys":["a","b"]}`:                                  false,
		`"ForAllValues:StringEquals":{"aws:TagKeys":["a","b","c"]}`:                                true,
		`"ForAllValues:StringEquals":{"aws:TagKeys":["a"]}`:                                        false,
		`"ForAllValues:StringEquals":{"aws:Missing":["a"]}`:                                        true,
		`"ForAllValues:StringNotEquals":{"aws:TagKeys":["c"]}`:                                     true,
		`"ForAllValues:StringNotEquals":{"aws:TagKeys":["b","c"]}`:                                 false,
		`"StringEquals":{"aws:TagKeys":["b"]}`:                                                     true,
		`"StringNotEquals":{"aws:TagKeys":["b"]}`:                                                  false,
		`"StringEquals":{"aws:SourceAccount":"111111111111"},"Bool":{"aws:SecureTransport":false}`: false, // all operators
		`"StringEquals":{"aws:SourceAccount":"111111111111","aws:SecureTransport":"true"}`:         true,
		`"StringEquals":{"aws:SourceAccount":"111111111111","aws:SecureTransport":"x"}`:            false, // all keys
		`"StringEquals":{"aws:SourceArn":"arn:aws:sns:us-east-1:${aws:SourceAccount}:t"}`:          true,
		`"StringLike":{"aws:SourceArn":"arn:*:${aws:SourceAccount}:t"}`:                            true,
		`"StringLike":{"aws:SourceArn":"${aws:Star}"}`:                                             false,
		`"StringLike":{"aws:Star":"${aws:Star}"}`:                                                  true,
		`"StringEquals":{"aws:Star":"${aws:Star}"}`:                                                true,
		`"StringNotEquals":{"aws:SourceArn":"${aws:Missing}"}`:                                     false,
		`"StringLike":{"aws:SourceArn":"${aws:TagKeys}*"}`:                                         false, // which of them?
		`"StringEquals":{"aws:SourceArn":"${aws:SourceArn"}`:                                       false,
		`"StringLike":{"aws:SourceArn":"*` + strings.Repeat("a*", 500) + `"}`:                      false,
		`"ForAnyValue:StringLikeIfExists":{"aws:Missing":"x"}`:                                     true,
	} {
		got := parse(t, condition(text)).Evaluate(policy.Request{Action: "sqs:SendMessage", Resource: queue, Context: context})
		if (got == policy.Allow) != want {
			t.Errorf("%s: got %d, want it to hold: %v", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, `x`, `null`, `[]`, `{}`, `{"Statement":[]}`, statement() + " x",
		`{"Version":"2030-01-01","Statement":{"Effect":"Allow","Principal":"*","Action":"*"}}`,
		statement(`"Effect":"allow"`),
		statement(`"Action":[]`),
		statement(`"Action":"*"`, `"NotAction":"*"`),
		statement(`"Effect":"Allow"`, `"Principal":{"AWS":"*"}`, `"Principal":{"AWS":"111111111111"}`),
		statement(`"Effect":"Allow"`, `"NotPrincipal":{"AWS":"111111111111"}`),
		condition(`"StringEqual":{"aws:SourceArn":"x"}`),
		condition(`"ForSomeValue:StringEquals":{"aws:SourceArn":"x"}`),
		condition(`"StringEquals":{"aws:SourceArn":{}}`),
		condition(`"StringEquals":{"aws:SourceArn":[null]}`),
		statement(`"Other":1`),
	} {
		if _, err := policy.Parse(text); !errors.Is(err, policy.ErrMalformed) {
			t.Errorf("%s: got %v, want %v", text, err, policy.ErrMalformed)
		}
	}
}

// TestAllowsSend has the policies that users write for topics.
func TestAllowsSend(t *testing.T) {
	const service = `"Principal":{"Service":"sns.amazonaws.com"}`
	for text, want := range map[string]bool{
		statement(service, `"Condition":{"ArnEquals":{"aws:SourceArn":"`+topic+`"}}`, `"Resource":"`+queue+`"`): true,
		statement(service, `"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:*:t"}}`):                     true,
		statement(service, `"Condition":{"StringEquals":{"aws:SourceAccount":"111111111111"}}`):                 true,
		statement(`"Principal":"*"`, `"Condition":{"StringEquals":{"aws:SourceArn":"`+topic+`"}}`):              true,
		statement(`"Principal":{"AWS":"*"}`, `"Condition":{"StringLike":{"AWS:SourceArn":"arn:aws:sns:*"}}`):    true,
		statement(service, `"Action":"SQS:SendMessage"`):                                                        true,
		statement(service, `"Action":"sqs:ReceiveMessage"`):                                                     false,
		statement(service, `"Condition":{"ArnEquals":{"aws:SourceArn":"`+topic+`2"}}`):                          false,
		statement(service, `"Resource":"`+queue+`2"`):                                                           false,
		statement(service, `"Effect":"Deny"`):                                                                   false,
		statement(`"Principal":{"Service":"s3.amazonaws.com"}`):                                                 false,
		statement(`"Principal":{"AWS":"111111111111"}`):                                                         false,
		statement(service, `"Condition":{"Bool":{"aws:SecureTransport":"false"}}`):                              false,
		statement(service, `"Condition":{"DateGreaterThan":{"aws:CurrentTime":"2026-05-31T00:00:00Z"}}`):        true,
		statement(service, `"Condition":{"DateLessThan":{"aws:CurrentTime":"2026-05-31T00:00:00Z"}}`):           false,
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*"},{"Effect":"Deny","Principal":"*","Action":"*",` +
			`"Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`: true,
	} {
		d := parse(t, text)
		for range 2 {
			if got, _ := d.AllowsSend(queue, topic, "111111111111", 1780315200_000); got != want {
				t.Errorf("%s: got %v, want %v", text, got, want)
			}
		}
	}
}

// TestWork: what users write counts little, and what takes long counts for each of
// its texts.
func TestWork(t *testing.T) {
	many := func(text string) string { return `"` + strings.Repeat(text+`","`, 499) + text + `"` }
	usual := statement(`"Principal":{"Service":"sns.amazonaws.com"}`, `"Action":["SQS:SendMessage"]`, `"Resource":"`+queue+`"`,
		`"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:111111111111:*"},"StringEquals":{"aws:SourceAccount":"111111111111"}}`)
	for _, test := range []struct {
		text        string
		least, most int
	}{
		{usual, 4, 8},
		{statement(`"Action":[` + many("*s*x") + `]`), 500, 600},
		{statement(`"Resource":[` + many("*a*0*x") + `]`), 500, 600},
		{statement(`"Resource":"` + strings.Repeat("a*", 2000) + `"`), 100, 200},
		{statement(`"Principal":{"AWS":[` + many("111111111111") + `]}`), 500, 600},
		{condition(`"ArnLike":{"aws:SourceArn":[` + many("arn:*:*:*:*:*x") + `]}`), 500, 1000},
		{condition(`"StringLike":{"aws:SourceArn":[` + many("${aws:SourceArn}x") + `]}`), 2500, 4000},
	} {
		if _, got := parse(t, test.text).AllowsSend(queue, topic, "111111111111", 0); got < test.least || got > test.most {
			t.Errorf("%.100s: got %d, want %d to %d", test.text, got, test.least, test.most)
		}
	}
}

// TestDependsOnTime: a decision is worked out anew each time only if the time, or a
// variable, has a part in it.
func TestDependsOnTime(t *testing.T) {
	for text, want := range map[string]bool{
		statement(`"Resource":"`+queue+`"`, `"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*"}}`): false,
		condition(`"DateLessThan":{"AWS:currenttime":"2026-05-31T00:00:00Z"}`):                           true,
		condition(`"NumericLessThan":{"aws:EpochTime":"1780315200"}`):                                    true,
		condition(`"StringEquals":{"aws:SourceArn":"\u0024{aws:CurrentTime}"}`):                          true,
		statement(`"Resource":"${aws:EpochTime}"`):                                                       true,
		`{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"${aws:EpochTime}"}}`:    false, // no variables before 2012
	} {
		if got := parse(t, text).DependsOnTime(); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// FuzzPolicy: no text brings the evaluator down, an answer is the same each time,
// and a Deny for everybody put before the statements denies.
func FuzzPolicy(f *testing.F) {
	f.Add(statement(`"Principal":{"AWS":["111111111111"]}`), "sqs:SendMessage", topic)
	f.Add(condition(`"ForAllValues:ArnLike":{"aws:SourceArn":"arn:*:*:*:*:*"},"Null":{"a:b":true}`), "sqs:x", "arn:a:b:c:d:e")
	f.Add(statement(`"Resource":"${aws:SourceArn}"`), "*", "a*b")
	f.Add(condition(`"DateLessThan":{"a:v":"2026"},"NumericEquals":{"a:v":1},"IpAddress":{"a:v":"::/0"}`), "", "::1")
	f.Fuzz(func(t *testing.T, text, action, value string) {
		d, err := policy.Parse(text)
		if err != nil {
			return
		}
		r := policy.Request{
			Principal: policy.Principal{Kind: policy.AWS, Name: value}, Action: action, Resource: value,
			Context: policy.Context{{Key: "aws:SourceArn", Value: value}, {Key: "a:v", Value: value}, {Key: "a:v", Value: action}},
		}
		if first, second := d.Evaluate(r), d.Evaluate(r); first != second {
			t.Errorf("got %d, then %d", first, second)
		}
		d.Statements = append([]policy.Statement{{Deny: true, Principals: []policy.Principal{{Kind: policy.AWS, Name: "*"}}, Actions: []string{"*"}}}, d.Statements...)
		if got := d.Evaluate(r); got != policy.Deny {
			t.Errorf("got %d, want Deny", got)
		}
	})
}

func BenchmarkAllowsSend(b *testing.B) {
	d, err := policy.Parse(statement(`"Principal":{"Service":"sns.amazonaws.com"}`, `"Resource":"`+queue+`"`,
		`"Condition":{"ArnEquals":{"aws:SourceArn":"`+topic+`"}}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if allowed, _ := d.AllowsSend(queue, topic, "111111111111", 1780315200_000); !allowed {
			b.Fatal("denied")
		}
	}
}
