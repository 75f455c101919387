package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"holdfast.internal/cluster"
	"holdfast.internal/sqs"
)

// TestFIFOCommands looks at what is made of requests about a FIFO queue, and at
// what is refused before the state is asked.
func TestFIFOCommands(t *testing.T) {
	queue := sqs.QueueKey{Account: "000000000000", Name: "q.fifo"}
	sent := func(change func(*sqs.SendEntry)) sqs.SendMessageBatch {
		e := sqs.SendEntry{MessageID: sqs.MessageID{1}, Size: 4, Delay: sqs.QueueDefault, GroupID: "g", DeduplicationID: "d"}
		change(&e)
		return sqs.SendMessageBatch{Queue: queue, Entries: []sqs.SendEntry{e}}
	}
	hashed := func(e *sqs.SendEntry) { e.DeduplicationID, e.BodySHA256 = "", sha256.Sum256([]byte("same")) }
	for _, tt := range []struct {
		action, body string
		want         any    // the command
		refused      string // or the message
	}{
		{"SendMessage", `"MessageBody":"same","MessageGroupId":"g","MessageDeduplicationId":"d"`, sent(func(*sqs.SendEntry) {}), ""},
		{"SendMessage", `"MessageBody":"same","MessageGroupId":"g"`, sent(hashed), ""},
		{"SendMessage", `"MessageBody":"same","MessageGroupId":"g","DelaySeconds":0`, sent(hashed), ""},
		{"SendMessage", `"MessageBody":"same","MessageGroupId":"g","DelaySeconds":2`, nil, "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."},
		{"SendMessage", `"MessageBody":"same"`, nil, "The request must contain the parameter MessageGroupId."},
		{"SendMessage", `"MessageBody":"same","DelaySeconds":901`, nil, "The request must contain the parameter MessageGroupId."},
		{"SendMessage", `"MessageBody":"same","MessageGroupId":"g","MessageDeduplicationId":""`, nil, "Value  for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
		{"SendMessageBatch", `"Entries":[{"Id":"1","MessageBody":"same","MessageGroupId":"g"}]`, sent(hashed), ""},
		{"SendMessageBatch", `"Entries":[{"Id":"1","MessageBody":"same"}]`, nil, "The request must contain the parameter MessageGroupId."},
		{"SetQueueAttributes", `"Attributes":{"FifoQueue":"TRUE"}`, sqs.SetQueueAttributes{
			Queue: queue, Attributes: []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}},
		}, ""},
		{"ReceiveMessage", `"ReceiveRequestAttemptId":"a b"`, nil, "Value a b for parameter ReceiveRequestAttemptId is invalid. Reason: ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
		{"ReceiveMessage", `"ReceiveRequestAttemptId":"a","WaitTimeSeconds":0`, sqs.ReceiveMessage{Queue: queue, MaxMessages: 1, VisibilityTimeout: sqs.QueueDefault, Short: true, AttemptID: "a"}, ""},
	} {
		broker := &noteBroker{idleBroker: newIdleBroker("")}
		r := handle(t, broker, jsonRequest(tt.action, `{"QueueUrl":"q.fifo",`+tt.body+`}`))
		switch {
		case tt.refused != "":
			if r.StatusCode() != 400 || !strings.Contains(string(r.Body()), `"`+tt.refused+`"`) {
				t.Errorf("%s %s: got %s, want %s", tt.action, tt.body, r.Body(), tt.refused)
			}
		case r.StatusCode() != 200 || len(broker.commands) == 0 || !reflect.DeepEqual(broker.commands[0], tt.want):
			t.Errorf("%s %s: got %s, %+v, want %+v", tt.action, tt.body, r.Body(), broker.commands, tt.want)
		}
	}
}

// TestFIFOAttributes looks at what a received FIFO message shows, before and
// after it was moved to a dead-letter queue.
func TestFIFOAttributes(t *testing.T) {
	sum := sha256.Sum256([]byte("same"))
	c := sqs.Content{MessageID: sqs.MessageID{0xab}, SenderID: "anonymous", GroupID: "g", DeduplicationID: hex.EncodeToString(sum[:]), Body: []byte("same")}
	broker := newIdleBroker("")
	broker.message = cluster.Message{Content: sqs.AppendContent(nil, &c), Received: sqs.Received{SequenceNumber: 7}}
	receive := func() string {
		return string(handle(t, broker, jsonRequest("ReceiveMessage", `{"QueueUrl":"q.fifo","AttributeNames":["All"]}`)).Body())
	}
	if got := receive(); !strings.Contains(got, `"MessageGroupId":"g"`) ||
		!strings.Contains(got, `"SequenceNumber":"10000000000000000007","MessageDeduplicationId":"0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"}`) {
		t.Errorf("got %s", got)
	}
	broker.message.DeadLetterSource = sqs.QueueKey{Account: "000000000000", Name: "source.fifo"}
	if got := receive(); !strings.Contains(got,
		`"MessageDeduplicationId":"ab000000-0000-0000-0000-000000000000","DeadLetterQueueSourceArn":"arn:aws:sqs:us-east-1:000000000000:source.fifo"}`) {
		t.Errorf("moved: got %s", got)
	}
}
