package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// parseRequest reads a request as a server does and checks its frame.
func parseRequest(t *testing.T, b []byte) (*http.Request, []byte) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(b))
	r, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || in.Buffered() != 0 {
		t.Fatalf("%v, %d bytes too many in\n%s", err, in.Buffered(), b)
	}
	return r, body
}

func fillFor(protocol string, c call) []byte {
	s := shape{protocol: protocol, queueURL: "http://h:1/000000000000/q", topic: "arn:t", body: 40, batch: 3, fifo: true, wait: 7}
	r := newRequest("h:1", protocol, c)
	if c == callDelete || c == callDeleteBatch {
		return s.fillDelete(r, c, [][]byte{[]byte("a+/="), []byte("b-_c")})
	}
	s.fill(r, c)
	r.setStamp(0xabc)
	r.setGroups(4, 6)
	return r.bytes
}

func TestJSONRequests(t *testing.T) {
	stamped := "0000000000000abc"
	message := strings.Repeat("x", 24)
	tests := map[call]string{
		callSend:         `{"QueueUrl":"http://h:1/000000000000/q","MessageBody":"` + stamped + message + `","MessageGroupId":"000004","MessageDeduplicationId":"0000000000000abd"}`,
		callReceive:      `{"QueueUrl":"http://h:1/000000000000/q","MaxNumberOfMessages":1,"WaitTimeSeconds":7}`,
		callReceiveBatch: `{"QueueUrl":"http://h:1/000000000000/q","MaxNumberOfMessages":10,"WaitTimeSeconds":7}`,
		callDelete:       `{"QueueUrl":"http://h:1/000000000000/q","ReceiptHandle":"a+/="}`,
		callDeleteBatch:  `{"QueueUrl":"http://h:1/000000000000/q","Entries":[{"Id":"0","ReceiptHandle":"a+/="},{"Id":"1","ReceiptHandle":"b-_c"}]}`,
	}
	for c, want := range tests {
		r, body := parseRequest(t, fillFor(JSON, c))
		if string(body) != want {
			t.Errorf("%s: got %s\nwant %s", actions[c], body, want)
		}
		if got := r.Header.Get("X-Amz-Target"); got != "AmazonSQS."+actions[c] {
			t.Errorf("%s: target %s", actions[c], got)
		}
	}
	_, body := parseRequest(t, fillFor(JSON, callSendBatch))
	var batch struct {
		Entries []struct{ ID, MessageBody, MessageGroupID, MessageDeduplicationID string }
	}
	if err := json.Unmarshal(body, &batch); err != nil || len(batch.Entries) != 3 {
		t.Fatalf("%v in %s", err, body)
	}
	for i, e := range batch.Entries {
		group := strconv.Itoa((4 + i) % 6)
		body, id := fmt.Sprintf("%016x", 0xabc+2*i)+message, fmt.Sprintf("%016x%d", 0xabc+2*i+1, i)
		if e.MessageBody != body || e.MessageDeduplicationID != id || e.MessageGroupID != "00000"+group {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
}

func TestQueryRequests(t *testing.T) {
	for c := range calls {
		if c < callSend {
			continue
		}
		_, body := parseRequest(t, fillFor(Query, c))
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Fatal(err)
		}
		if form.Get("Action") != actions[c] || c != callPublish && form.Get("QueueUrl") != "http://h:1/000000000000/q" {
			t.Errorf("%s: %v", actions[c], form)
		}
		for name, want := range map[call]map[string]string{
			callSend:        {"MessageGroupId": "000004", "MessageDeduplicationId": "0000000000000abd"},
			callSendBatch:   {"SendMessageBatchRequestEntry.3.Id": "2", "SendMessageBatchRequestEntry.3.MessageGroupId": "000000"},
			callReceive:     {"MaxNumberOfMessages": "1", "WaitTimeSeconds": "7"},
			callDelete:      {"ReceiptHandle": "a+/="},
			callDeleteBatch: {"DeleteMessageBatchRequestEntry.1.ReceiptHandle": "a+/=", "DeleteMessageBatchRequestEntry.2.Id": "1"},
			callPublish:     {"TopicArn": "arn:t", "Message": "0000000000000abc" + strings.Repeat("x", 24), "Version": "2010-03-31"},
		}[c] {
			if got := form.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", actions[c], name, got, want)
			}
		}
	}
}

func TestRequestsOfOneCallHaveOneLength(t *testing.T) {
	s := shape{protocol: JSON, queueURL: "q", body: 100, batch: 1}
	r := newRequest("h", JSON, callSend)
	s.fill(r, callSend)
	before := len(r.bytes)
	r.setStamp(1<<64 - 1)
	if s.fill(r, callSend); len(r.bytes) != before {
		t.Errorf("got %d bytes, want %d", len(r.bytes), before)
	}
	if _, body := parseRequest(t, r.bytes); len(body) != len(`{"QueueUrl":"q","MessageBody":""}`)+100 {
		t.Errorf("body of %d bytes", len(body))
	}
}

func TestAnswersAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		protocol, answer string
	}{
		"JSON":             {JSON, `{"Messages":[{"Body":"00000000000000ffxx","ReceiptHandle":"h1"},{"ReceiptHandle":"h2"}]}`},
		"JSON with spaces": {JSON, `{"Messages": [{"Body": "00000000000000ff", "ReceiptHandle": "h1"}, {"ReceiptHandle": "h2"}]}`},
		"XML":              {Query, `<Message><ReceiptHandle>h1</ReceiptHandle><Body>00000000000000ffx</Body></Message><Message><ReceiptHandle>h2</ReceiptHandle></Message>`},
	} {
		f := fieldsOf(test.protocol)
		if got := f.handles(nil, []byte(test.answer)); len(got) != 2 || string(got[0]) != "h1" || string(got[1]) != "h2" {
			t.Errorf("%s: handles %q", name, got)
		}
		if n, ok := f.stamp([]byte(test.answer)); n != 255 || !ok {
			t.Errorf("%s: stamp %d %v", name, n, ok)
		}
	}
	if got := jsonFields.handles(nil, []byte("{}")); len(got) != 0 {
		t.Errorf("an empty answer has handles %q", got)
	}
	if _, ok := jsonFields.stamp([]byte(`{"Body":"hello"}`)); ok {
		t.Error("a strange body has a stamp")
	}
}
