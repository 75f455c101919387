package main

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func sendFIFO(t *testing.T, s *served, queue, group, id, body string) *sqs.SendMessageOutput {
	t.Helper()
	out, err := s.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func bodiesOf(messages []types.Message) string {
	var bodies []string
	for _, m := range messages {
		bodies = append(bodies, *m.Body)
	}
	return fmt.Sprint(bodies)
}

func testFIFO(t *testing.T, s *served) {
	ctx := t.Context()
	queue := createQueue(t, s, "orders.fifo", map[string]string{
		"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "600",
	})
	var entries []types.SendMessageBatchRequestEntry
	for i, body := range []string{"a1", "b1", "a2", "a1"} {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body), MessageGroupId: aws.String(body[:1]),
		})
	}
	sent, err := s.SQS.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent.Successful) != 4 || *sent.Successful[3].MessageId != *sent.Successful[0].MessageId {
		t.Fatalf("got %v, want four sent, the last one as a duplicate of the first", sent.Successful)
	}
	first := receive(t, s, queue, 10)
	if got := bodiesOf(first); got != "[a1 a2 b1]" {
		t.Fatalf("got %s, want a1, a2, b1", got)
	}
	if got, want := first[1].Attributes["SequenceNumber"], *sent.Successful[2].SequenceNumber; got != want || len(got) != 20 {
		t.Errorf("sequence number: got %s, want %s", got, want)
	}
	sendFIFO(t, s, queue, "a", "3", "a3")
	if got := bodiesOf(receive(t, s, queue, 10)); got != "[]" {
		t.Errorf("got %s from locked groups", got)
	}
	for _, m := range first[:2] {
		if _, err := s.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
	if got := bodiesOf(receive(t, s, queue, 10)); got != "[a3]" {
		t.Errorf("got %s, want a3", got)
	}
}

// TestFIFORestart stops a node while a group is locked, ids are known and a
// receive may be repeated, once with and once without a snapshot.
func TestFIFORestart(t *testing.T) {
	for _, args := range [][]string{nil, {"--test-mode", "--test-snapshot-entries", "1"}} {
		data := t.TempDir()
		attempt := func(s *served, queue string) []types.Message {
			t.Helper()
			out, err := s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
				QueueUrl: &queue, ReceiveRequestAttemptId: aws.String("attempt"), VisibilityTimeout: 600,
			})
			if err != nil {
				t.Fatal(err)
			}
			return out.Messages
		}
		before := serve(t, data, args...)
		queue := createQueue(t, before, "orders.fifo", map[string]string{"FifoQueue": "true"})
		sent := sendFIFO(t, before, queue, "g", "1", "first")
		sendFIFO(t, before, queue, "g", "2", "second")
		held := attempt(before, queue)
		if code := before.stop(); code != 0 {
			t.Fatalf("stop: got exit %d, want 0", code)
		}

		after := serve(t, data, args...)
		queue = after.API + "/000000000000/orders.fifo"
		if got := bodiesOf(receive(t, after, queue, 10)); got != "[]" {
			t.Errorf("got %s from a locked group", got)
		}
		again := sendFIFO(t, after, queue, "h", "1", "duplicate")
		if *again.MessageId != *sent.MessageId || *again.SequenceNumber != *sent.SequenceNumber {
			t.Errorf("duplicate: got %s %s, want %s %s", *again.MessageId, *again.SequenceNumber, *sent.MessageId, *sent.SequenceNumber)
		}
		repeated := attempt(after, queue)
		if len(repeated) != 1 || *repeated[0].ReceiptHandle != *held[0].ReceiptHandle {
			t.Fatalf("repeated receive: got %v, want %v", repeated, held)
		}
		_, err := after.SQS.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: held[0].ReceiptHandle})
		if err != nil {
			t.Fatal(err)
		}
		if got := bodiesOf(receive(t, after, queue, 10)); got != "[second]" {
			t.Errorf("got %s, want second", got)
		}
	}
}
