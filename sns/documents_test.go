package sns_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// TestHugeDocuments: what a subscription may be given is read while a log entry is
// applied, so neither its length nor the number of its members is the sender's choice.
func TestHugeDocuments(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":0,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	queue := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:d"`
	s, at := sns.New(), sns.Moment{Now: start, Outlet: &queues{}}
	_, _, _ = s.Apply(at, sns.CreateTopic{Topic: key("t")})
	for name, c := range map[string]struct {
		protocol        sns.Protocol
		attribute       sns.AttributeName
		text, wantError string
	}{
		"long":           {sns.SQS, sns.RedrivePolicy, queue + strings.Repeat(" ", 30_720) + "}", "RedrivePolicy: must be at most 30720 bytes long"},
		"as long as may": {sns.SQS, sns.RedrivePolicy, queue + strings.Repeat(" ", 30_719-len(queue)) + "}", ""},
		"members":        {sns.SQS, sns.RedrivePolicy, many(65), "RedrivePolicy: invalid JSON."},
		"one unknown":    {sns.SQS, sns.RedrivePolicy, many(64), "RedrivePolicy: invalid JSON. Attribute 0 is unknown."},
		"retries":        {sns.HTTP, sns.DeliveryPolicy, many(65), "DeliveryPolicy: failed to parse JSON."},
		"long retries": {
			sns.HTTP, sns.DeliveryPolicy, `{"requestPolicy":{"headerContentType":"` + strings.Repeat("x", 30_720) + `"}}`,
			"DeliveryPolicy: failed to parse JSON.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := "arn:aws:sqs:us-east-1:000000000000:q"
			if c.protocol == sns.HTTP {
				endpoint = "http://h/"
			}
			_, _, err := s.Apply(at, sns.Subscribe{
				Topic: key("t"), Protocol: c.protocol, Endpoint: endpoint, Attributes: []sns.Attribute{{Name: c.attribute, Value: c.text}},
			})
			want := "Invalid parameter: Attributes Reason: " + c.wantError
			if err == nil != (c.wantError == "") || err != nil && err.Message != want {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
