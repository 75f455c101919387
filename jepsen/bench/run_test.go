package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain plays the echo server when Run starts this binary as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == EchoCommand {
		if err := Echo(context.Background(), os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// fakeSQS keeps bodies in memory and hands each out once. It speaks as much of
// both protocols as this package does, and has a topic.
type fakeSQS struct {
	mu         sync.Mutex
	changed    *sync.Cond
	queues     map[string][]string
	subscribed []string // URLs of queues
	handed     int
	deleted    int
}

func newFakeSQS(t *testing.T) (*fakeSQS, string) {
	t.Helper()
	f := &fakeSQS{queues: map[string][]string{}}
	f.changed = sync.NewCond(&f.mu)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

type fakeRequest struct {
	QueueName, QueueURL, MessageBody string
	Entries                          []struct{ MessageBody string }
	MaxNumberOfMessages              int
	WaitTimeSeconds                  int
	Endpoint, Message                string
}

func (f *fakeSQS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q fakeRequest
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	query := action == ""
	if query {
		action = q.parseForm(r)
	} else if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("x-amzn-RequestId", "1")
	answer := f.answer(action, q, query)
	w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
	fmt.Fprint(w, answer)
}

func (q *fakeRequest) parseForm(r *http.Request) (action string) {
	r.ParseForm()
	q.QueueName, q.QueueURL, q.MessageBody = r.PostForm.Get("QueueName"), r.PostForm.Get("QueueUrl"), r.PostForm.Get("MessageBody")
	q.Endpoint, q.Message = r.PostForm.Get("Endpoint"), r.PostForm.Get("Message")
	fmt.Sscan(r.PostForm.Get("MaxNumberOfMessages"), &q.MaxNumberOfMessages)
	fmt.Sscan(r.PostForm.Get("WaitTimeSeconds"), &q.WaitTimeSeconds)
	for i := 1; r.PostForm.Has(fmt.Sprintf("SendMessageBatchRequestEntry.%d.Id", i)); i++ {
		body := r.PostForm.Get(fmt.Sprintf("SendMessageBatchRequestEntry.%d.MessageBody", i))
		q.Entries = append(q.Entries, struct{ MessageBody string }{body})
	}
	return r.PostForm.Get("Action")
}

func (f *fakeSQS) answer(action string, q fakeRequest, query bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch action {
	case "CreateQueue":
		if query {
			return "<QueueUrl>http://q/0/" + q.QueueName + "</QueueUrl>"
		}
		return `{"QueueUrl":"http://q/0/` + q.QueueName + `"}`
	case "DeleteQueue":
		delete(f.queues, q.QueueURL)
	case "SendMessage":
		f.queues[q.QueueURL] = append(f.queues[q.QueueURL], q.MessageBody)
	case "SendMessageBatch":
		for _, e := range q.Entries {
			f.queues[q.QueueURL] = append(f.queues[q.QueueURL], e.MessageBody)
		}
	case "ReceiveMessage":
		return f.receive(q, query)
	case "DeleteMessage", "DeleteMessageBatch":
		f.deleted++
	case "CreateTopic":
		f.subscribed = nil
		return "<TopicArn>arn:aws:sns:r:0:t</TopicArn>"
	case "Subscribe":
		f.subscribed = append(f.subscribed, "http://q/0/"+strings.TrimPrefix(q.Endpoint, "arn:aws:sqs:r:0:"))
		return "<SubscriptionArn>s</SubscriptionArn>"
	case "Publish":
		for _, queue := range f.subscribed {
			f.queues[queue] = append(f.queues[queue], q.Message)
		}
	}
	f.changed.Broadcast()
	return "{}"
}

func (f *fakeSQS) receive(q fakeRequest, query bool) string {
	deadline := time.Now().Add(time.Duration(q.WaitTimeSeconds) * time.Second)
	timer := time.AfterFunc(time.Until(deadline), f.changed.Broadcast)
	defer timer.Stop()
	for len(f.queues[q.QueueURL]) == 0 && time.Now().Before(deadline) {
		f.changed.Wait()
	}
	var answer strings.Builder
	queue := f.queues[q.QueueURL]
	n := min(len(queue), q.MaxNumberOfMessages)
	for _, body := range queue[:n] {
		f.handed++
		if query {
			fmt.Fprintf(&answer, "<Message><ReceiptHandle>h%d</ReceiptHandle><Body>%s</Body></Message>", f.handed, body)
		} else {
			fmt.Fprintf(&answer, `{"ReceiptHandle":"h%d","Body":"%s"}`, f.handed, body)
		}
	}
	f.queues[q.QueueURL] = queue[n:]
	return answer.String()
}

func TestRunMeasuresEveryPhaseAgainstItsFloor(t *testing.T) {
	for _, test := range []struct{ protocol, client string }{{JSON, Raw}, {Query, Raw}, {JSON, Standard}, {Query, Standard}} {
		t.Run(test.protocol+" "+test.client, func(t *testing.T) {
			_, endpoint := newFakeSQS(t)
			file := filepath.Join(t.TempDir(), "report.json")
			var out bytes.Buffer
			report, err := Run(t.Context(), Options{
				Endpoints: []string{endpoint}, Protocol: test.protocol, Client: test.client, Connections: 4, Queues: 2, Body: 1024,
				Duration: 50 * time.Millisecond, Floor: true, Rounds: 3, JSON: file, Version: "v",
			}, &out)
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if len(report.Runs) != len(Phases()) {
				t.Fatalf("%d runs, want one for each of %v", len(report.Runs), Phases())
			}
			for _, r := range report.Runs {
				if r.Messages == 0 || r.Rate <= 0 || r.Errors > 0 || r.P50 > r.P99 || r.P99 > r.Max {
					t.Errorf("%+v", r)
				}
				wants := r.Phase == phaseSend || r.Phase == phaseDrain || r.Phase == phaseCycle
				if has := r.Ratio > 0 && r.FloorRate > 0 && r.Rounds == 3; has != wants {
					t.Errorf("%s: has a floor: %v, want %v", r.Phase, has, wants)
				}
			}
			if len(report.Aims) != 4 {
				t.Errorf("%d aims: %+v", len(report.Aims), report.Aims)
			}
			saved, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(saved, []byte(`"floor_rate"`)) || !strings.Contains(out.String(), "≥ 0.6 of the echo") {
				t.Errorf("report %s %v, table\n%s", saved, err, &out)
			}
		})
	}
}

func TestTopicsAreMeasured(t *testing.T) {
	_, endpoint := newFakeSQS(t)
	report, err := Run(t.Context(), Options{
		Endpoints: []string{endpoint}, Connections: 4, Queues: 3, Body: 1024, Phases: []string{phasePublish, phaseDeliver},
		Duration: 50 * time.Millisecond, Floor: true, Rounds: 2,
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Runs {
		if r.Messages == 0 || r.Ratio == 0 || r.Errors > 0 || r.Phase == phasePublish && r.Messages%3 != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A machine that stands still for the whole time of a measurement finds it over when it
// goes on: something is measured all the same.
func TestRunMeasuresSomethingInNoTime(t *testing.T) {
	_, endpoint := newFakeSQS(t)
	report, err := Run(t.Context(), Options{Endpoints: []string{endpoint}, Connections: 2, Duration: 1}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Runs {
		if r.Messages == 0 || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestRunFailsIfNothingGetsThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such thing", http.StatusForbidden)
	}))
	defer server.Close()
	_, err := Run(t.Context(), Options{Endpoints: []string{server.URL}, Duration: 10 * time.Millisecond}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{Endpoints: []string{"127.0.0.1:1"}},
		{Protocol: "soap"},
		{Client: "curl"},
		{Phases: []string{"rest"}},
		{Backlogs: []string{"none"}},
		{Connections: -1},
		{Body: 8},
		{Body: 200_000, Batch: 10},
		{Batch: 11},
		{Duration: -1},
	} {
		if _, err := Run(t.Context(), o, &bytes.Buffer{}); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// A load generator that collects garbage competes with what it measures.
func TestSendingDoesNotAllocate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = []string{"2"}
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	target, err := newTarget([]string{server.URL}, 0)
	if err != nil {
		t.Fatal(err)
	}
	target.queues = []string{"q"}
	w := newWorker(target, 0, Options{Protocol: JSON, Body: 1024, Batch: 1})
	defer w.conn.close()
	ctx := t.Context()
	w.send(ctx, callSend)
	own := testing.AllocsPerRun(200, func() { w.requests[callSend].setStamp(1); w.latency.record(time.Millisecond) })
	// The server of the test allocates in this process too, so the answer is
	// parsed apart from it.
	head := []byte("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: y\r\nContent-Length: 2\r\nx-amzn-RequestId: z\r\n\r\n")
	own += testing.AllocsPerRun(200, func() { _, _, _, _ = parseHead(head) })
	handles := make([][]byte, 0, 10)
	answer := []byte(`{"Messages":[{"ReceiptHandle":"abc","Body":"x"}]}`)
	own += testing.AllocsPerRun(200, func() {
		handles = w.fields.handles(handles[:0], answer)
		w.shape.fillDelete(w.requests[callDelete], callDelete, handles)
	})
	if own != 0 {
		t.Errorf("%v allocations per request", own)
	}
}
