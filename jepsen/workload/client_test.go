package workload_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

var queue = workload.Queue{Name: "q", URL: "http://h/0/q"}

// answering returns a client of a server that answers every call alike, and what
// the calls asked.
func answering(t *testing.T, status int, header http.Header, body string) (*workload.Client, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")+" "+string(b))
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return &workload.Client{Endpoint: server.URL, Recorder: history.NewRecorder(io.Discard), Process: 7}, &asked
}

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   history.Outcome
		code   string
	}{
		{"good", 200, nil, `{"MessageId":"m","MD5OfMessageBody":"x"}`, history.OK, ""},
		{"refused", 400, nil, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"}`, history.Fail, "QueueDoesNotExist"},
		{"fault", 500, nil, `{"__type":"com.amazon.coral.service#InternalFailure"}`, history.Info, "InternalFailure"},
		{"unavailable", 503, http.Header{"X-Holdfast-Outcome": {"unknown"}}, `{}`, history.Info, ""},
		{"unavailable, nothing done", 503, http.Header{"X-Holdfast-Outcome": {"not-applied"}}, `{}`, history.Fail, ""},
		{"proxy", 502, nil, `<html>`, history.Info, "Bad Gateway"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := answering(t, test.status, test.header, test.body)
			o := c.Send(t.Context(), queue, "b", 0)
			if o.Outcome != test.want || o.Error != test.code || o.Status != test.status {
				t.Errorf("got %s, %d %q; want %s, %q", o.Outcome, o.Status, o.Error, test.want, test.code)
			}
		})
	}
}

// Only a call that reached no connection certainly did nothing.
func TestOutcomesWithoutAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 1024))
			conn.Close() // the request arrived
		}
	}()
	c := &workload.Client{Endpoint: "http://" + l.Addr().String(), Recorder: history.NewRecorder(io.Discard)}
	if o := c.Send(t.Context(), queue, "b", 0); o.Outcome != history.Info || o.Error == "" {
		t.Errorf("connection broken: got %s %q", o.Outcome, o.Error)
	}
	l.Close()
	if o := c.Send(t.Context(), queue, "b", 0); o.Outcome != history.Fail || o.Error == "" {
		t.Errorf("connection refused: got %s %q", o.Outcome, o.Error)
	}
}

func TestSlowAnswerIsUnknown(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	c := &workload.Client{Endpoint: server.URL, Recorder: history.NewRecorder(io.Discard), Timeout: 50 * time.Millisecond}
	if o := c.Delete(t.Context(), queue, "h"); o.Outcome != history.Info || o.Return != history.Never {
		t.Errorf("got %s", o.Outcome)
	}
}

func TestBatchEntriesHaveTheirOwnOutcomes(t *testing.T) {
	c, asked := answering(t, 200, http.Header{"X-Holdfast-Index": {"41"}}, `{
		"Successful":[{"Id":"2","MessageId":"m2","MD5OfMessageBody":"x"}],
		"Failed":[{"Id":"0","Code":"InvalidMessageContents","SenderFault":true},{"Id":"1","Code":"InternalError","SenderFault":false}]}`)
	got := c.SendBatch(t.Context(), queue, []string{"a", "b", "c", "d"})
	for i, want := range []history.Outcome{history.Fail, history.Info, history.OK, history.Info} {
		if got[i].Outcome != want {
			t.Errorf("entry %d: %s, want %s", i, got[i].Outcome, want)
		}
	}
	if got[2].MessageID != "m2" || got[2].Index != 41 || got[0].Error != "InvalidMessageContents" {
		t.Errorf("got %+v", got)
	}
	if want := `SendMessageBatch {"Entries":[{"Id":"0","MessageBody":"a"}`; !strings.HasPrefix((*asked)[0], want) {
		t.Errorf("asked %s, want %s", (*asked)[0], want)
	}
}

func TestReceiveKeepsAllThatChecksNeed(t *testing.T) {
	c, asked := answering(t, 200, nil, `{"Messages":[{"MessageId":"m","ReceiptHandle":"h","Body":"b","MD5OfBody":"x",
		"Attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"5","ApproximateFirstReceiveTimestamp":"6"}}]}`)
	o := c.Receive(t.Context(), queue, 10, 4*time.Second, time.Second)
	want := history.Delivery{MessageID: "m", Handle: "h", Body: "b", MD5: "x", Count: 3, SentAt: 5, FirstAt: 6}
	if len(o.Messages) != 1 || o.Messages[0] != want {
		t.Errorf("got %+v, want %+v", o.Messages, want)
	}
	if !strings.Contains((*asked)[0], `"VisibilityTimeout":4,"WaitTimeSeconds":1`) {
		t.Errorf("asked %s", (*asked)[0])
	}
}

func TestCountNeedsAllThreeCounters(t *testing.T) {
	c, _ := answering(t, 200, nil, `{"Attributes":{"ApproximateNumberOfMessages":"1","ApproximateNumberOfMessagesNotVisible":"2","ApproximateNumberOfMessagesDelayed":"3"}}`)
	if o := c.Count(t.Context(), queue); o.Outcome != history.OK || o.Visible != 1 || o.InFlight != 2 || o.Delayed != 3 {
		t.Errorf("got %+v", o)
	}
	c, _ = answering(t, 200, nil, `{"Attributes":{"ApproximateNumberOfMessages":"1"}}`)
	if o := c.Count(t.Context(), queue); o.Outcome == history.OK {
		t.Errorf("got %+v", o)
	}
}
