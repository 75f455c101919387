package admin_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/admin"
	"holdfast.internal/sqs"
)

const redrivePath = "/queues/000000000000/orders/redrive"

// redrive posts a body and wants the status; it returns the answer.
func redrive(t *testing.T, node admin.Node, contentType, body string, status int) string {
	t.Helper()
	return post(t, node, redrivePath, contentType, body, status)
}

func post(t *testing.T, node admin.Node, path, contentType, body string, status int) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response := httptest.NewRecorder()
	newHandler(node, 10).ServeHTTP(response, request)
	if response.Code != status {
		t.Errorf("%s %s: got %d, want %d: %s", path, body, response.Code, status, response.Body)
	}
	return response.Body.String()
}

func TestRedriveStartsTask(t *testing.T) {
	node := newOrdersNode()
	node.result = sqs.Done{}
	body := `{"to":"arn:aws:sqs:us-east-1:000000000000:back","rate":5,"limit":6}`
	got := decode[admin.Redriven](t, redrive(t, node, "application/json; charset=utf-8", body, http.StatusOK))
	c := node.done.(sqs.StartMessageMoveTask)
	destination := sqs.QueueKey{Account: account, Name: "back"}
	want := sqs.StartMessageMoveTask{Source: orders, Task: c.Task, Destination: &destination, MaxPerSecond: 5, Limit: 6}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	if id, ok := admin.ParseMessageID(got.TaskID); !ok || id != sqs.MessageID(c.Task) || c.Task == (sqs.TaskID{}) {
		t.Errorf("got task %q, want that of %+v", got.TaskID, c)
	}
	redrive(t, node, "application/json", "{}", http.StatusOK)
	if again := node.done.(sqs.StartMessageMoveTask); again.Destination != nil || again.Task == c.Task {
		t.Errorf("got %+v, want a task of its own without destination", again)
	}
}

// Whatever a page in a browser can send unasked is refused, and nothing is done.
func TestRedriveRefusals(t *testing.T) {
	const isJSON = "application/json"
	for _, test := range []struct {
		contentType, body string
		status            int
		want              string
	}{
		{"", "{}", 415, "application/json"},
		{"text/plain", "{}", 415, "application/json"},
		{"application/x-www-form-urlencoded", "{}", 415, "application/json"},
		{"multipart/form-data; boundary=application/json", "{}", 415, "application/json"},
		{isJSON, "", 400, "decode body"},
		{isJSON, `{"message-id":"x"}`, 400, "unknown field"},
		{isJSON, `{"rate":501}`, 400, "1 to 500"},
		{isJSON, `{"rate":-1}`, 400, "1 to 500"},
		{isJSON, `{"limit":-1}`, 400, "decode body"},
		{isJSON, `{"limit":1,"message_id":"` + messageIDText + `"}`, 400, "neither"},
		{isJSON, `{"rate":1,"message_id":"` + messageIDText + `"}`, 400, "neither"},
		{isJSON, `{"message_id":"x"}`, 400, "MessageId"},
		{isJSON, `{"to":"back"}`, 400, "ARN"},
		{isJSON, `{"to":"arn:aws:sns:us-east-1:000000000000:back"}`, 400, "ARN"},
		{isJSON, `{"to":"arn:aws:sqs:mars:000000000000:back"}`, 400, "region"},
		{isJSON, `{"to":"` + strings.Repeat("x", 16<<10) + `"}`, 400, "too large"},
	} {
		node := newOrdersNode()
		if got := redrive(t, node, test.contentType, test.body, test.status); !strings.Contains(got, test.want) || node.done != nil {
			t.Errorf("%s: got %s and %+v, want %q and no command", test.body, got, node.done, test.want)
		}
	}
	node := newOrdersNode()
	node.refusal = sqs.NoTaskSource()
	redrive(t, node, isJSON, "{}", http.StatusNotFound)
	node.refusal = sqs.Invalidf("not now")
	redrive(t, node, isJSON, "{}", http.StatusConflict)
	node.condition = cluster.ErrNoLeader
	redrive(t, node, isJSON, "{}", http.StatusServiceUnavailable)
	redrive(t, node, isJSON, `{"message_id":"`+messageIDText+`"}`, http.StatusServiceUnavailable)
}

// The message is found by the id that clients know it by now.
func TestRedriveMessage(t *testing.T) {
	content := sqs.AppendContent(nil, &sqs.Content{MessageID: messageID})
	plain := cluster.PeekedMessage{Peeked: sqs.Peeked{Sequence: 3, Body: 4, State: sqs.InFlight}, Content: content}
	redriven := plain
	redriven.Sequence, redriven.Redriven = 2, sqs.MessageID{1}
	node := newOrdersNode()
	node.page = cluster.PeekPage{Messages: []cluster.PeekedMessage{redriven, plain}}
	node.result = sqs.RedriveMessageResult{To: sqs.QueueKey{Account: account, Name: "back"}, Sequence: 5, MessageID: sqs.MessageID{6}}
	for id, sequence := range map[string]uint64{messageIDText: 3, "01000000-0000-0000-0000-000000000000": 2} {
		got := decode[admin.Redriven](t, redrive(t, node, "application/json", `{"message_id":"`+id+`"}`, http.StatusOK))
		want := admin.Redriven{MessageID: "06000000-0000-0000-0000-000000000000", To: "000000000000/back", Sequence: 5}
		c := node.done.(sqs.RedriveMessage)
		if c.Source != orders || c.Sequence != sequence || c.Body != 4 || c.Task == (sqs.TaskID{}) || got != want {
			t.Errorf("%s: got %+v by %+v, want %+v by number %d", id, got, c, want, sequence)
		}
	}
	node.done = nil
	absent := redrive(t, node, "application/json", `{"message_id":"02000000-0000-0000-0000-000000000000"}`, http.StatusNotFound)
	if !strings.Contains(absent, "not in the queue") || node.done != nil {
		t.Errorf("got %s and %+v, want no message and no command", absent, node.done)
	}
	node.page.More = true // for ever
	endless := redrive(t, node, "application/json", `{"message_id":"02000000-0000-0000-0000-000000000000"}`, http.StatusNotFound)
	if !strings.Contains(endless, "oldest 100000") {
		t.Errorf("got %s, want an end", endless)
	}
}

func TestRedriveTasks(t *testing.T) {
	node := newOrdersNode()
	destination := sqs.QueueKey{Account: account, Name: "back"}
	node.result = sqs.ListMessageMoveTasksResult{Tasks: []sqs.MoveTask{
		{ID: sqs.TaskID{1}, Status: sqs.TaskCancelling, Destination: &destination, MaxPerSecond: 2, ToMove: 3, Moved: 4, StartedAt: 5},
		{ID: sqs.TaskID{2}, Status: sqs.TaskFailed, FailureReason: sqs.QueueDoesNotExist},
	}}
	got := decode[[]admin.MoveTask](t, call(t, newHandler(node, 10), http.MethodGet, redrivePath, "", http.StatusOK))
	want := []admin.MoveTask{
		{TaskID: "01000000-0000-0000-0000-000000000000", Status: "cancelling", To: "000000000000/back", Rate: 2, ToMove: 3, Moved: 4, StartedMS: 5},
		{TaskID: "02000000-0000-0000-0000-000000000000", Status: "failed", FailureReason: "QueueDoesNotExist"},
	}
	if !reflect.DeepEqual(got, want) || !got[0].Active() || got[1].Active() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
