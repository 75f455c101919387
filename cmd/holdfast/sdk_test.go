package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The AWS SDK for Go v2, as it comes: it checks the MD5 of every body and
// attribute that it sends and receives.
func TestSDK(t *testing.T) {
	s := serve(t, t.TempDir())
	for name, test := range map[string]func(*testing.T, *served){
		"lifecycle":  testLifecycle,
		"batches":    testBatches,
		"visibility": testVisibility,
		"long poll":  testLongPoll,
		"delay":      testDelay,
		"attributes": testQueueAttributes,
		"tags":       testTags,
		"paging":     testPaging,
		"purge":      testPurge,
		"errors":     testErrors,
		"fifo":       testFIFO,
		"move tasks": testMoveTasks,
		"policy":     testPermissions,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func createQueue(t *testing.T, s *served, name string, attributes map[string]string) string {
	t.Helper()
	out, err := s.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func send(t *testing.T, s *served, queue, body string) {
	t.Helper()
	if _, err := s.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}); err != nil {
		t.Fatal(err)
	}
}

// receive takes what is there now, up to limit, with all that a receive can tell.
func receive(t *testing.T, s *served, queue string, limit int32) []types.Message {
	t.Helper()
	out, err := s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl:                    &queue,
		MaxNumberOfMessages:         limit,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

func getAttributes(t *testing.T, s *served, queue string) map[string]string {
	t.Helper()
	out, err := s.SQS.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes
}

func testLifecycle(t *testing.T, s *served) {
	ctx := t.Context()
	queue := createQueue(t, s, "lifecycle", nil)
	_, err := s.SQS.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:    &queue,
		MessageBody: aws.String("grüße"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"colour":   {DataType: aws.String("String"), StringValue: aws.String("grün")},
			"weight":   {DataType: aws.String("Number.kg"), StringValue: aws.String("12.50")},
			"portrait": {DataType: aws.String("Binary.png"), BinaryValue: []byte{0, 1, 255}},
		},
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	messages := receive(t, s, queue, 10)
	if len(messages) != 1 {
		t.Fatalf("got %d messages, want 1", len(messages))
	}
	m := messages[0]
	if *m.Body != "grüße" || *m.MessageAttributes["colour"].StringValue != "grün" ||
		*m.MessageAttributes["weight"].DataType != "Number.kg" ||
		!slices.Equal(m.MessageAttributes["portrait"].BinaryValue, []byte{0, 1, 255}) {
		t.Errorf("got %s with %v, want what was sent", *m.Body, m.MessageAttributes)
	}
	if got := m.Attributes["ApproximateReceiveCount"]; got != "1" {
		t.Errorf("receive count: got %s, want 1", got)
	}
	if got := m.Attributes["AWSTraceHeader"]; got != "Root=1-5759e988-bd862e3fe1be46a994272793" {
		t.Errorf("trace header: got %q, want the one sent", got)
	}
	if _, err := s.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	if got := getAttributes(t, s, queue)["ApproximateNumberOfMessagesNotVisible"]; got != "0" {
		t.Errorf("in flight after the delete: got %s, want 0", got)
	}
	if _, err := s.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &queue}); err != nil {
		t.Fatal(err)
	}
}

func testBatches(t *testing.T, s *served) {
	ctx := t.Context()
	queue := createQueue(t, s, "batches", map[string]string{"VisibilityTimeout": "600"})
	var entries []types.SendMessageBatchRequestEntry
	for i := range 10 {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(fmt.Sprintf("body %d", i)),
		})
	}
	sent, err := s.SQS.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent.Successful) != 10 || len(sent.Failed) != 0 {
		t.Fatalf("send: got %d sent and %d failed, want 10 and 0", len(sent.Successful), len(sent.Failed))
	}
	messages := receive(t, s, queue, 10)
	if len(messages) != 10 {
		t.Fatalf("got %d messages, want 10", len(messages))
	}
	changes := []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("a"), ReceiptHandle: messages[0].ReceiptHandle, VisibilityTimeout: 0},
		{Id: aws.String("b"), ReceiptHandle: aws.String("no handle"), VisibilityTimeout: 0},
	}
	changed, err := s.SQS.ChangeMessageVisibilityBatch(ctx,
		&sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &queue, Entries: changes})
	if err != nil {
		t.Fatal(err)
	}
	if len(changed.Successful) != 1 || len(changed.Failed) != 1 || *changed.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("change of visibility: got %v and %v, want one of each", changed.Successful, changed.Failed)
	}
	var deletes []types.DeleteMessageBatchRequestEntry
	for i, m := range messages {
		deletes = append(deletes, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	deleted, err := s.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: deletes})
	if err != nil {
		t.Fatal(err)
	}
	if len(deleted.Successful) != 10 {
		t.Errorf("delete: got %d deleted, want 10", len(deleted.Successful))
	}
	if rest := receive(t, s, queue, 10); len(rest) != 0 {
		t.Errorf("got %d messages after the deletes, want none", len(rest))
	}
}

func testVisibility(t *testing.T, s *served) {
	queue := createQueue(t, s, "visibility", map[string]string{"VisibilityTimeout": "600"})
	send(t, s, queue, "again")
	m := receive(t, s, queue, 1)[0]
	if rest := receive(t, s, queue, 1); len(rest) != 0 {
		t.Error("got a message that is in flight")
	}
	_, err := s.SQS.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	again := receive(t, s, queue, 1)
	if len(again) != 1 || again[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Errorf("got %v, want the message with receive count 2", again)
	}
}

// A send wakes a receiver who is waiting already, long before its wait is over.
func testLongPoll(t *testing.T, s *served) {
	queue := createQueue(t, s, "long-poll", nil)
	received := make(chan string, 1)
	began := time.Now()
	go func() {
		out, err := s.SQS.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20})
		if err != nil || len(out.Messages) != 1 {
			received <- fmt.Sprintf("%v, %v", out, err)
			return
		}
		received <- *out.Messages[0].Body
	}()
	waitForPolls(t, s, 1)
	send(t, s, queue, "at last")
	if got := <-received; got != "at last" {
		t.Errorf("got %s, want the message", got)
	}
	if took := time.Since(began); took >= 20*time.Second {
		t.Errorf("got the message after %v, want it before the wait of 20 s is over", took)
	}
}

func testDelay(t *testing.T, s *served) {
	queue := createQueue(t, s, "delay", nil)
	sent := time.Now()
	_, err := s.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: aws.String("later"), DelaySeconds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20})
	if err != nil || len(out.Messages) != 1 {
		t.Errorf("got %v and error %v, want the message", out, err)
	}
	if took := time.Since(sent); took < time.Second {
		t.Errorf("got the message %v after it was sent, want its delay of 1 s to be over", took)
	}
}

func testQueueAttributes(t *testing.T, s *served) {
	queue := createQueue(t, s, "attributes", map[string]string{"DelaySeconds": "5"})
	_, err := s.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &queue, Attributes: map[string]string{"VisibilityTimeout": "45"},
	})
	if err != nil {
		t.Fatal(err)
	}
	attributes := getAttributes(t, s, queue)
	for name, want := range map[string]string{
		"DelaySeconds":      "5",
		"VisibilityTimeout": "45",
		"QueueArn":          "arn:aws:sqs:us-east-1:000000000000:attributes",
	} {
		if got := attributes[name]; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func testTags(t *testing.T, s *served) {
	ctx := t.Context()
	queue := createQueue(t, s, "tags", nil)
	tags := map[string]string{"team": "billing", "env": "test"}
	if _, err := s.SQS.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &queue, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SQS.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: &queue, TagKeys: []string{"env"}}); err != nil {
		t.Fatal(err)
	}
	out, err := s.SQS.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &queue})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Tags) != 1 || out.Tags["team"] != "billing" {
		t.Errorf("got %v, want team=billing only", out.Tags)
	}
}

func testPaging(t *testing.T, s *served) {
	var want []string
	for i := range 5 {
		want = append(want, createQueue(t, s, fmt.Sprintf("page-%d", i), nil))
	}
	var got []string
	pages := sqs.NewListQueuesPaginator(s.SQS, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("page-"), MaxResults: aws.Int32(2)})
	for n := 0; pages.HasMorePages(); n++ {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(page.QueueUrls) > 2 {
			t.Errorf("page %d: got %d queues, want at most 2", n, len(page.QueueUrls))
		}
		got = append(got, page.QueueUrls...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func testPurge(t *testing.T, s *served) {
	ctx := t.Context()
	queue := createQueue(t, s, "purge", nil)
	send(t, s, queue, "gone")
	if _, err := s.SQS.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue}); err != nil {
		t.Fatal(err)
	}
	if rest := receive(t, s, queue, 1); len(rest) != 0 {
		t.Error("got a message that was purged")
	}
	_, err := s.SQS.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue})
	if _, ok := errors.AsType[*types.PurgeQueueInProgress](err); !ok {
		t.Errorf("second purge within 60 s: got %v, want PurgeQueueInProgress", err)
	}
}

// Errors arrive as the exceptions that the SDK has a type for.
func testErrors(t *testing.T, s *served) {
	ctx := t.Context()
	_, err := s.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); !ok {
		t.Errorf("unknown queue: got %v, want QueueDoesNotExist", err)
	}
	queue := createQueue(t, s, "errors", nil)
	_, err = s.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String("errors"), Attributes: map[string]string{"DelaySeconds": "1"},
	})
	if _, ok := errors.AsType[*types.QueueNameExists](err); !ok {
		t.Errorf("other attributes: got %v, want QueueNameExists", err)
	}
	_, err = s.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: aws.String("no handle")})
	if _, ok := errors.AsType[*types.ReceiptHandleIsInvalid](err); !ok {
		t.Errorf("bad handle: got %v, want ReceiptHandleIsInvalid", err)
	}
	_, err = s.SQS.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: aws.String(strings.Repeat("é", 1<<19) + "x"),
	})
	if err == nil || !strings.Contains(err.Error(), "InvalidParameterValue") {
		t.Errorf("a byte too much: got %v, want InvalidParameterValue", err)
	}
}

func testMoveTasks(t *testing.T, s *served) {
	dlq := createQueue(t, s, "tasks-dlq", nil)
	arn := getAttributes(t, s, dlq)["QueueArn"]
	q := createQueue(t, s, "tasks", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, arn), "VisibilityTimeout": "0",
	})
	send(t, s, q, "x")
	first := receive(t, s, q, 1)
	receive(t, s, q, 1)
	started, err := s.SQS.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	for task := (types.ListMessageMoveTasksResultEntry{}); aws.ToString(task.Status) != "COMPLETED"; time.Sleep(10 * time.Millisecond) {
		out, err := s.SQS.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &arn})
		if err != nil || len(out.Results) != 1 || t.Context().Err() != nil {
			t.Fatalf("got %+v, %v", out, err)
		}
		task = out.Results[0]
	}
	again := receive(t, s, q, 1)
	if len(first) != 1 || len(again) != 1 || *again[0].MessageId == *first[0].MessageId || *again[0].Body != "x" {
		t.Errorf("got %+v, then %+v", first, again)
	}
	_, err = s.SQS.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
	if err == nil || !strings.Contains(err.Error(), "Only active tasks can be cancelled.") {
		t.Errorf("cancel of a task that is over: got %v", err)
	}
	nope := arn + "-nope"
	_, err = s.SQS.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &nope})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		t.Errorf("got %v, want ResourceNotFoundException", err)
	}
}

func testPermissions(t *testing.T, s *served) {
	q := createQueue(t, s, "policy", nil)
	if _, err := s.SQS.AddPermission(t.Context(), &sqs.AddPermissionInput{
		QueueUrl: &q, Label: aws.String("l"), AWSAccountIds: []string{"111122223333"}, Actions: []string{"SendMessage"},
	}); err != nil {
		t.Fatal(err)
	}
	if got := getAttributes(t, s, q)["Policy"]; !strings.Contains(got, `"Sid":"l"`) {
		t.Errorf("got policy %q", got)
	}
	if _, err := s.SQS.RemovePermission(t.Context(), &sqs.RemovePermissionInput{QueueUrl: &q, Label: aws.String("l")}); err != nil {
		t.Fatal(err)
	}
	if got, ok := getAttributes(t, s, q)["Policy"]; ok {
		t.Errorf("got policy %q, want none", got)
	}
}
