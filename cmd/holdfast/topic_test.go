package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// snsCall calls an action of SNS, which must succeed.
func snsCall(t *testing.T, s *served, action string, pairs ...string) string {
	t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.API, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sns/aws4_request, SignedHeaders=host, Signature=0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", action, response.Status, err, answer)
	}
	return string(answer)
}

const testTopicARN = "arn:aws:sns:us-east-1:000000000000:orders"

func testQueueARN(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

// A queue whose policy no longer lets the topic send: every copy is in the
// subscription's dead-letter queue, and metric, command line and log tell so.
func TestTopicCommand(t *testing.T) {
	s := serve(t, t.TempDir(), "--queue-policies", "enforce", "--sns-cert-url", "https://sns.example.com")
	allow := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",` +
		`"Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"` + testTopicARN + `"}}}]}`
	for _, queue := range []string{"work", "dead"} {
		createQueue(t, s, queue, map[string]string{"Policy": allow})
	}
	snsCall(t, s, "CreateTopic", "Name", "orders")
	snsCall(t, s, "Subscribe", "TopicArn", testTopicARN, "Protocol", "sqs", "Endpoint", testQueueARN("work"),
		"Attributes.entry.1.key", "RedrivePolicy", "Attributes.entry.1.value", `{"deadLetterTargetArn":"`+testQueueARN("dead")+`"}`)
	snsCall(t, s, "Publish", "TopicArn", testTopicARN, "Message", "first")
	if got := receive(t, s, "work", 10); len(got) != 1 || !strings.Contains(*got[0].Body, `"SigningCertURL" : "https://sns.example.com/Simple`) {
		t.Fatalf("got %d messages: %+v", len(got), got)
	}

	work := "work"
	if _, err := s.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &work, Attributes: map[string]string{"Policy": strings.ReplaceAll(allow, "sns.amazonaws.com", "other.amazonaws.com")},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		snsCall(t, s, "Publish", "TopicArn", testTopicARN, "Message", fmt.Sprint("refused ", i))
	}
	if got := drain(t, s, "dead"); got != 20 {
		t.Errorf("got %d messages in the dead-letter queue, want 20", got)
	}
	if got := drain(t, s, "work"); got != 0 {
		t.Errorf("got %d messages more in the queue, want none", got)
	}
	metrics := get(t, http.DefaultClient, s.Admin+"/metrics", http.StatusOK)
	want := `holdfast_sns_number_of_notifications_redriven_to_dlq_total{account="000000000000",protocol="sqs",topic="orders"} 20`
	if !strings.Contains(metrics, want+"\n") {
		t.Errorf("got no line %s", want)
	}
	waitForLog(t, s, "publishes go to the dead-letter queue of a subscription")
	if n := strings.Count(s.log.String(), "publishes go to the dead-letter queue"); n != 1 {
		t.Errorf("got %d warnings, want 1", n)
	}

	list := command(t, 0, "topic", "list", "--admin", s.Admin)
	if got := strings.Join(strings.Fields(list), " "); !strings.HasSuffix(got, "000000000000 orders 1 0 21 1 0 20 20") {
		t.Errorf("got %s", list)
	}
	subscriptions := command(t, 0, "topic", "subscriptions", "orders", "--admin", s.Admin)
	if got := strings.Join(strings.Fields(subscriptions), " "); !strings.Contains(got, "sqs "+testQueueARN("work")+" confirmed "+testTopicARN+":") {
		t.Errorf("got %s", subscriptions)
	}
	if got := command(t, 0, "topic", "subscriptions", testTopicARN, "--admin", s.Admin); got != subscriptions {
		t.Errorf("by its ARN: got %s, want %s", got, subscriptions)
	}
	if got := command(t, 0, "topic", "rotate-key", "--admin", s.Admin); !strings.Contains(got, "SimpleNotificationService-") {
		t.Errorf("got %s", got)
	}
	if got := command(t, 1, "topic", "subscriptions", "none", "--admin", s.Admin); !strings.Contains(got, "there is no such topic") {
		t.Errorf("got %s", got)
	}
}

// drain receives until nothing is left, and returns how many messages there were.
func drain(t *testing.T, s *served, queue string) (n int) {
	t.Helper()
	for {
		got := receive(t, s, queue, 10)
		if len(got) == 0 {
			return n
		}
		n += len(got)
	}
}
