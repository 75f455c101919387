package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// The AWS SDK for Go v2, as it comes, with topics.
func TestTopicSDK(t *testing.T) {
	s := serve(t, t.TempDir())
	client := sns.New(sns.Options{
		Region: "us-east-1", BaseEndpoint: &s.API, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		RetryMaxAttempts: 1,
	})
	for name, test := range map[string]func(*testing.T, *served, *sns.Client){
		"deliveries": testTopicDeliveries,
		"fifo":       testFIFOTopic,
		"pages":      testTopicPages,
		"errors":     testTopicErrors,
	} {
		t.Run(name, func(t *testing.T) { test(t, s, client) })
	}
}

func createTopic(t *testing.T, client *sns.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := client.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.TopicArn
}

// subscribe makes a queue and subscribes it; the queue's URL is returned.
func subscribe(t *testing.T, s *served, client *sns.Client, topic, queue string, attributes map[string]string) string {
	t.Helper()
	url := createQueue(t, s, queue, nil)
	if _, err := client.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(testQueueARN(queue)), Attributes: attributes,
	}); err != nil {
		t.Fatal(err)
	}
	return url
}

func testTopicDeliveries(t *testing.T, s *served, client *sns.Client) {
	topic := createTopic(t, client, "sdk", nil)
	plain := subscribe(t, s, client, topic, "sdk-plain", nil)
	raw := subscribe(t, s, client, topic, "sdk-raw", map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"kind":["raw"]}`})
	published, err := client.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("héllo <&>"), Subject: aws.String("hello")})
	if err != nil {
		t.Fatal(err)
	}
	got := receive(t, s, plain, 10)
	if len(got) != 1 {
		t.Fatalf("got %d messages, want 1", len(got))
	}
	var envelope struct{ MessageId, Subject, Message, TopicArn string } //nolint:revive // as AWS names them
	if err := json.Unmarshal([]byte(*got[0].Body), &envelope); err != nil {
		t.Fatal(err)
	}
	if envelope.MessageId != *published.MessageId || envelope.Subject != "hello" || envelope.Message != "héllo <&>" || envelope.TopicArn != topic {
		t.Errorf("got %+v", envelope)
	}
	batch, err := client.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
		{Id: aws.String("a"), Message: aws.String("1")},
		{Id: aws.String("b"), Message: aws.String("2"), MessageAttributes: map[string]snstypes.MessageAttributeValue{
			"kind":  {DataType: aws.String("String"), StringValue: aws.String("raw")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		}},
		{Id: aws.String("c"), Message: aws.String("3"), Subject: aws.String("\n")},
	}})
	if err != nil || len(batch.Successful) != 2 || len(batch.Failed) != 1 || *batch.Failed[0].Id != "c" || !batch.Failed[0].SenderFault {
		t.Fatalf("got %+v, %v", batch, err)
	}
	got = receive(t, s, raw, 10)
	if len(got) != 1 || *got[0].Body != "2" || !slices.Equal(got[0].MessageAttributes["bytes"].BinaryValue, []byte{0, 255}) {
		t.Errorf("got %+v", got)
	}
}

func testFIFOTopic(t *testing.T, s *served, client *sns.Client) {
	topic := createTopic(t, client, "sdk.fifo", map[string]string{"FifoTopic": "true", "ContentBasedDeduplication": "true"})
	queue := createQueue(t, s, "sdk.fifo", map[string]string{"FifoQueue": "true"})
	if _, err := client.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(testQueueARN("sdk.fifo")),
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	}); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, message := range []string{"a", "a", "b"} {
		out, err := client.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &message, MessageGroupId: aws.String("g")})
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, *out.SequenceNumber)
	}
	if numbers[0] != numbers[1] || numbers[2] <= numbers[1] {
		t.Errorf("got sequence numbers %v, want the first two equal, the third greater", numbers)
	}
	got := receive(t, s, queue, 10)
	if len(got) != 2 || *got[0].Body != "a" || *got[1].Body != "b" {
		t.Errorf("got %+v, want a and b", got)
	}
}

func testTopicPages(t *testing.T, _ *served, client *sns.Client) {
	want := map[string]bool{}
	for i := range 120 {
		want[createTopic(t, client, fmt.Sprintf("page-%03d", i), nil)] = true
	}
	pages := sns.NewListTopicsPaginator(client, &sns.ListTopicsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range page.Topics {
			delete(want, *topic.TopicArn)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d topics are in no page", len(want))
	}
}

func testTopicErrors(t *testing.T, _ *served, client *sns.Client) {
	missing := aws.String(testTopicARN + "-missing")
	_, err := client.Publish(t.Context(), &sns.PublishInput{TopicArn: missing, Message: aws.String("m")})
	if _, ok := errors.AsType[*snstypes.NotFoundException](err); !ok {
		t.Errorf("no topic: got %v", err)
	}
	_, err = client.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("a b")})
	if _, ok := errors.AsType[*snstypes.InvalidParameterException](err); !ok {
		t.Errorf("topic name: got %v", err)
	}
	_, err = client.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: missing})
	if _, ok := errors.AsType[*snstypes.ResourceNotFoundException](err); !ok {
		t.Errorf("tags of no topic: got %v", err)
	}
	_, err = client.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: missing, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{}})
	if _, ok := errors.AsType[*snstypes.EmptyBatchRequestException](err); !ok {
		t.Errorf("empty batch: got %v", err)
	}
}
