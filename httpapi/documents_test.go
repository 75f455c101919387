package httpapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// setAttribute sets an attribute of queue q and returns the answer, and the
// attribute as the state was told.
func (e *endpoint) setAttribute(name sqs.AttributeName, value string) (response, sqs.Attribute) {
	e.t.Helper()
	body, err := json.Marshal(map[string]any{"QueueUrl": "q", "Attributes": map[string]string{string(name): value}})
	if err != nil {
		e.t.Fatal(err)
	}
	r := e.json("SetQueueAttributes", string(body))
	if c, ok := e.broker.last().(sqs.SetQueueAttributes); ok && len(c.Attributes) == 1 {
		return r, c.Attributes[0]
	}
	return r, sqs.Attribute{}
}

// errorText is the code and message of a JSON error.
func (r response) errorText(t *testing.T) string {
	t.Helper()
	if r.status == 200 {
		return ""
	}
	var e struct{ Message string }
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatal(err)
	}
	code, _, _ := strings.Cut(r.header["x-amzn-query-error"], ";")
	return code + ": " + e.Message
}

func TestRedrivePolicy(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	e.json("CreateQueue", `{"QueueName":"dlq"}`)
	const target = `"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq"`
	refused := func(document, reason string) string {
		return "InvalidParameterValue: Value " + document + " for parameter RedrivePolicy is invalid. Reason: " + reason
	}
	const noMap = "InvalidParameterValue: Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a valid JSON map."
	const badCount = ", valid values are from 1 to 1000 both inclusive."
	long := `{"maxReceiveCount":1,"deadLetterTargetArn":"arn:` + strings.Repeat("x", 33) + `:sqs:us-east-1:000000000000:dlq"}`
	for document, want := range map[string]string{
		`{` + target + `,"maxReceiveCount":42}`:                     "",
		`{"maxReceiveCount": "42", ` + target + `}`:                 "",
		`{"maxReceiveCount":1,"maxReceiveCount":42,` + target + `}`: "",
		`{}`:                    refused(`{}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
		`{` + target + `}`:      refused(`{`+target+`}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
		`{"maxReceiveCount":1}`: refused(`{"maxReceiveCount":1}`, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."),
		`{"maxReceiveCount":"invalid",` + target + `}`: refused(`{"maxReceiveCount":"invalid",`+target+`}`, "Invalid value for maxReceiveCount: invalid"+badCount),
		`{"maxReceiveCount":0,` + target + `}`:         refused(`{"maxReceiveCount":0,`+target+`}`, "Invalid value for maxReceiveCount: 0"+badCount),
		`{"maxReceiveCount":1001,` + target + `}`:      refused(`{"maxReceiveCount":1001,`+target+`}`, "Invalid value for maxReceiveCount: 1001"+badCount),
		`{"maxReceiveCount":1.5,` + target + `}`:       refused(`{"maxReceiveCount":1.5,`+target+`}`, "Invalid value for maxReceiveCount: 1.5"+badCount),
		`{"maxReceiveCount":1,` + target + `,"x":1}`:   refused(`{"maxReceiveCount":1,`+target+`,"x":1}`, "Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn]."),
		long: refused(long, "Dead-letter target ARN should be fully qualified ARN."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":"dlq"}`:                                     refused(`{"maxReceiveCount":1,"deadLetterTargetArn":"dlq"}`, "Dead-letter target ARN should be fully qualified ARN."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":5}`:                                         refused(`{"maxReceiveCount":1,"deadLetterTargetArn":5}`, "Dead-letter target ARN should be fully qualified ARN."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sns:us-east-1:000000000000:dlq"}`:  refused(`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sns:us-east-1:000000000000:dlq"}`, "Only SQS queues are valid resources for deadLetterTargetArn."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sqs:us-east-1:111111111111:dlq"}`:  refused(`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sqs:us-east-1:111111111111:dlq"}`, "Dead-letter target owner should be same as the source."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:dlq"}`:  refused(`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:dlq"}`, "Dead-letter target owner should be same as the source."),
		`{"maxReceiveCount":1,"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none"}`: refused(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none","maxReceiveCount":1}`, "Dead letter target does not exist."),
		`[]`: noMap, `"x"`: noMap, `{`: noMap, `null`: noMap,
	} {
		r, set := e.setAttribute(sqs.RedrivePolicyAttribute, document)
		if got := r.errorText(t); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", document, got, want)
		}
		if want != "" {
			continue
		}
		if want := (sqs.Attribute{
			Name: sqs.RedrivePolicyAttribute, Value: `{` + target + `,"maxReceiveCount":42}`,
			Redrive: &sqs.RedrivePolicy{Target: sqs.QueueKey{Account: "000000000000", Name: "dlq"}, MaxReceiveCount: 42},
		}); !reflect.DeepEqual(set, want) {
			t.Errorf("%s: got %+v, want %+v", document, set, want)
		}
	}
}

func TestRedriveAllowPolicy(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	const one = `"arn:aws:sqs:us-east-1:000000000000:a"`
	const cannot = "Amazon SQS can't create the redrive allow policy"
	const malformed = "InvalidParameterValue: Invalid value for the parameter RedriveAllowPolicy. Reason: " + cannot + ", as it’s in an unsupported format."
	refused := func(document, reason string) string {
		return "InvalidParameterValue: Value " + document + " for parameter RedriveAllowPolicy is invalid. Reason: " + cannot + ". " + reason
	}
	source := func(arn string) string { return `{"redrivePermission":"byQueue","sourceQueueArns":["` + arn + `"]}` }
	eleven := `{"redrivePermission":"byQueue","sourceQueueArns":[` + strings.Repeat(one+",", 10) + one + `]}`
	for document, want := range map[string]string{
		`{"redrivePermission":"byQueue"}`:                                  refused(`{"redrivePermission":"byQueue"}`, "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values."),
		`{"redrivePermission":"byQueue","sourceQueueArns":[]}`:             refused(`{"redrivePermission":"byQueue","sourceQueueArns":[]}`, "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values."),
		`{"redrivePermission":"allowAll","sourceQueueArns":[` + one + `]}`: refused(`{"redrivePermission":"allowAll","sourceQueueArns":[`+one+`]}`, "To specify one or more source queue ARNs, you must set redrivePermission to byQueue."),
		eleven:                              refused(eleven, "The maximum number of source queue ARNs you can specify is 10."),
		`{"redrivePermission":"other"}`:     malformed,
		`{"sourceQueueArns":[` + one + `]}`: malformed,
		`{"redrivePermission":"byQueue","sourceQueueArns":"x"}`:   malformed,
		`{"redrivePermission":"byQueue","sourceQueueArns":["x"]}`: malformed,
		`{"redrivePermission":"denyAll","x":1}`:                   malformed,
		`{"redrivePermission":"denyAll","x":null}`:                malformed,
		`[]`: malformed,
		source("arn:aws:sqs:us-east-1:000000000000:" + strings.Repeat("a", 81)):             malformed,
		source("arn:aws:sqs:us-east-1:000000000000:a/b"):                                    malformed,
		source("arn:aws:sqs:us-east-1:" + strings.Repeat("0", 13) + ":a"):                   malformed,
		source("arn:aws:sqs:" + strings.Repeat("a", 33) + ":000000000000:a"):                malformed,
		source("arn:" + strings.Repeat("a", 33) + ":sqs:us-east-1:000000000000:a"):          malformed,
		source("arn:aws:sqs:us-east-1:000000000000:" + strings.Repeat("a", 76) + ".fifo:b"): malformed,
	} {
		r, _ := e.setAttribute(sqs.RedriveAllowPolicyAttribute, document)
		if got := r.errorText(t); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", document, got, want)
		}
	}
	for document, want := range map[string]sqs.Attribute{
		`{ "redrivePermission": "denyAll" }`: {Value: `{"redrivePermission":"denyAll"}`, RedriveAllow: &sqs.RedriveAllowPolicy{Permission: sqs.DenyAll}},
		`{"redrivePermission":"allowAll"}`:   {Value: `{"redrivePermission":"allowAll"}`, RedriveAllow: &sqs.RedriveAllowPolicy{Permission: sqs.AllowAll}},
		`{"redrivePermission":"allowAll","sourceQueueArns":[]}`: {
			Value: `{"redrivePermission":"allowAll","sourceQueueArns":[]}`, RedriveAllow: &sqs.RedriveAllowPolicy{Permission: sqs.AllowAll},
		},
		`{"redrivePermission":"allowAll", "sourceQueueArns":null}`: {
			Value: `{"redrivePermission":"allowAll","sourceQueueArns":null}`, RedriveAllow: &sqs.RedriveAllowPolicy{Permission: sqs.AllowAll},
		},
		`{"sourceQueueArns":[` + one + `, "arn:aws:sqs:eu-west-1:000000000000:b"],"redrivePermission":"byQueue"}`: {
			Value: `{"redrivePermission":"byQueue","sourceQueueArns":[` + one + `,"arn:aws:sqs:eu-west-1:000000000000:b"]}`,
			RedriveAllow: &sqs.RedriveAllowPolicy{
				Permission: sqs.ByQueue, Sources: []sqs.QueueKey{{Account: "000000000000", Name: "a"}},
			},
		},
	} {
		want.Name = sqs.RedriveAllowPolicyAttribute
		r, set := e.setAttribute(sqs.RedriveAllowPolicyAttribute, document)
		if r.status != 200 || !reflect.DeepEqual(set, want) {
			t.Errorf("%s: got %s, %+v, want %+v", document, r.body, set, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	const statement = `{"Effect":"Allow","Principal":"*","Action":"SQS:SendMessage"}`
	for document, want := range map[string]bool{
		`{"Statement":` + statement + `}`:                                   true,
		`{"Statement":[` + statement + `,` + statement + `]}`:               true,
		`{"Version":"2008-10-17","Id":"x","Statement":[` + statement + `]}`: true,
		`{"Version":"2012-10-17","Statement":[{"Sid":"a","Effect":"Deny","NotPrincipal":{"AWS":"*"},"NotAction":"SQS:x","NotResource":"*","Condition":{}}]}`: true,
		`{"Version":"2012","Statement":` + statement + `}`:                                 false,
		`{"Version":5,"Statement":` + statement + `}`:                                      false,
		`{"Statement":` + statement + `,"Other":1}`:                                        false,
		`{"Version":"2012-10-17"}`:                                                         false,
		`{"Statement":[]}`:                                                                 false,
		`{"Statement":"x"}`:                                                                false,
		`{"Statement":[` + strings.Repeat(statement+",", 19) + statement + `]}`:            true,
		`{"Statement":[` + strings.Repeat(statement+",", 20) + statement + `]}`:            false,
		`{"Statement":{"Effect":"Maybe","Principal":"*","Action":"*"}}`:                    false,
		`{"Statement":{"Principal":"*","Action":"*"}}`:                                     false,
		`{"Statement":{"Effect":"Allow","Action":"*"}}`:                                    false,
		`{"Statement":{"Effect":"Allow","Principal":"*"}}`:                                 false,
		`{"Statement":{"Effect":"Allow","NotPrincipal":"*","Action":"*"}}`:                 false,
		`{"Statement":{"Effect":"Allow","Principal":"*","NotPrincipal":"*","Action":"*"}}`: false,
		`{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Other":1}}`:          false,
		`{"Id":"` + strings.Repeat("x", 8192) + `","Statement":` + statement + `}`:         false,
		`[]`: false, `x`: false, `5`: false, `null`: false,

		`{"Statement":` + statement + `,"Statement":` + statement + `,"Id":"x","Version":"2012-10-17"}`:     false,
		`{"Id":5,"Statement":` + statement + `}`:                                                            false,
		grammar(`"Sid":5`):                                                                                  false,
		grammar(`"Effect":"Allow"`, `"Action":[]`):                                                          false,
		grammar(`"Action":["SQS:SendMessage","sqs:*","*"]`):                                                 true,
		grammar(`"Action":"sns:Publish"`):                                                                   false,
		grammar(`"Action":["sqs:Send*",5]`):                                                                 false,
		grammar(`"Action":"sqs:CreateQueue"`):                                                               false,
		grammar(`"Action":"sqs:createqueue","Effect":"Deny"`):                                               true,
		grammar(`"Action":"sqs:CreateQueue"`, ours):                                                         true,
		grammar(`"Action":"sqs:CreateQueue"`, `"Principal":{"AWS":["000000000000","111111111111"]}`):        false,
		grammar(`"Resource":"arn:aws:sqs:us-east-1:000000000000:q"`):                                        true,
		grammar(`"Resource":["*","arn:aws:sqs:*"]`):                                                         true,
		grammar(`"Resource":5`):                                                                             false,
		grammar(`"Resource":"*","NotResource":"*"`):                                                         false,
		grammar(`"Principal":{"AWS":"111111111111"}`):                                                       true,
		grammar(`"Principal":{"AWS":"arn:aws:iam::111111111111:root"}`):                                     true,
		grammar(`"Principal":{"AWS":["*","arn:aws:sts::111111111111:assumed-role/a/b"]}`):                   true,
		grammar(`"Principal":{"Service":"sns.amazonaws.com","Federated":["x"]}`):                            true,
		grammar(`"Principal":{"AWS":"11111111111"}`):                                                        false,
		grammar(`"Principal":{"AWS":"arn:aws:s3:::bucket"}`):                                                false,
		grammar(`"Principal":{"AWS":[]}`):                                                                   false,
		grammar(`"Principal":{"Other":"x"}`):                                                                false,
		grammar(`"Principal":{}`):                                                                           false,
		grammar(`"Principal":"somebody"`):                                                                   false,
		grammar(`"Principal":{"Service":["` + strings.Repeat(`a","`, 49) + `a"]}`):                          true,
		grammar(`"Principal":{"Service":["` + strings.Repeat(`a","`, 50) + `a"]}`):                          false,
		grammar(`"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:sns:us-east-1:000000000000:t"}}`):       true,
		grammar(`"Condition":{"ForAnyValue:StringLikeIfExists":{"aws:PrincipalTag/x":["a","b"]}}`):          true,
		grammar(`"Condition":{"Bool":{"aws:SecureTransport":false},"NumericLessThan":{"aws:EpochTime":5}}`): true,
		grammar(`"Condition":{"Equals":{"aws:SourceArn":"x"}}`):                                             false,
		grammar(`"Condition":{"Bool":{"aws:SecureTransport":{}}}`):                                          false,
		grammar(`"Condition":{"Bool":{"aws:SecureTransport":[]}}`):                                          false,
		grammar(`"Condition":{"Bool":{"SecureTransport":true}}`):                                            false,
		grammar(`"Condition":{"Bool":true}`):                                                                false,
		grammar(`"Condition":[]`):                                                                           false,
		grammar(`"Condition":{"Bool":{` + conditions(10) + `}}`):                                            true,
		grammar(`"Condition":{"Bool":{` + conditions(11) + `}}`):                                            false,
	} {
		r, set := e.setAttribute(sqs.Policy, document)
		if got := r.status == 200; got != want {
			t.Errorf("%.100s: got %s, want valid %v", document, r.body, want)
		}
		if got := r.errorText(t); !want && got != "InvalidAttributeValue: Invalid value for the parameter Policy." {
			t.Errorf("%.100s: got %s", document, got)
		}
		if want && set.Value != document {
			t.Errorf("%.100s: got %s", document, set.Value)
		}
	}
}

const ours = `"Principal":{"AWS":"arn:aws:iam::000000000000:user/x"}`

// grammar is a policy of one statement with the given members, and with others
// that it needs.
func grammar(members ...string) string {
	text := strings.Join(members, ",")
	for _, needed := range []string{`"Effect":"Allow"`, `"Principal":"*"`, `"Action":"SQS:SendMessage"`} {
		if name, _, _ := strings.Cut(needed, ":"); !strings.Contains(text, name+":") {
			text += "," + needed
		}
	}
	return `{"Statement":[{` + text + `}]}`
}

func conditions(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"aws:RequestTag/%d":"x"`, i))
	}
	return strings.Join(members, ",")
}
