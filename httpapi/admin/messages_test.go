package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/admin"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

const account = "000000000000"

var (
	orders    = sqs.QueueKey{Account: account, Name: "orders"}
	messageID = sqs.MessageID{0x5f, 0xea, 0x77, 0x56, 0x0e, 0xa4, 0x45, 0x1a, 0xa7, 0x03, 0xa5, 0x58, 0xb9, 0x33, 0xe2, 0x74}
)

const messageIDText = "5fea7756-0ea4-451a-a703-a558b933e274"

func newOrdersNode() *fakeNode {
	n := newNode()
	n.described.Queue = orders
	return n
}

// decode reads an answer.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestQueueDetails(t *testing.T) {
	node := newNode()
	node.described = sqs.QueueDescription{
		QueueCensus: sqs.QueueCensus{Queue: orders, Visible: 1, OldestSentAt: 999_000},
		Attributes:  []sqs.Attribute{{Name: sqs.DelaySeconds, Value: "5"}},
		Tags:        []sqs.Tag{{Key: "team", Value: "red"}},
		CreatedAt:   2, ModifiedAt: 3, PurgedAt: 4,
		Sources: []sqs.QueueKey{{Account: account, Name: "source"}},
	}
	node.metrics.EmptyReceives = map[sqs.QueueKey]uint64{orders: 5}
	got := decode[admin.QueueDetails](t, call(t, newHandler(node, 10), http.MethodGet, "/queues/000000000000/orders", "", http.StatusOK))
	want := admin.QueueDetails{
		Queue:      admin.Queue{Account: account, Name: "orders", Visible: 1, OldestMS: 1000, EmptyReceives: 5},
		Attributes: map[string]string{"DelaySeconds": "5"},
		Tags:       map[string]string{"team": "red"},
		CreatedMS:  2, ModifiedMS: 3, PurgedMS: 4,
		Sources: []string{"000000000000/source"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	call(t, newHandler(node, 10), http.MethodGet, "/queues/111111111111/orders", "", http.StatusNotFound)
}

func TestMessages(t *testing.T) {
	node := newNode()
	node.described.Queue = sqs.QueueKey{Account: account, Name: "orders.fifo"}
	text := sqs.Content{
		MessageID: messageID, SenderID: "me", DeduplicationID: "d", Body: []byte("apple\n"),
		Attributes: []sqs.MessageAttribute{
			{Name: "a", DataType: "String", Value: []byte("v")}, {Name: "b", DataType: "Binary", Value: []byte{0xff}, Binary: true},
		},
	}
	node.page = cluster.PeekPage{
		Messages: []cluster.PeekedMessage{
			{
				Peeked: sqs.Peeked{
					Sequence: 1, Body: 2, State: sqs.InFlight, GroupID: "g", SentAt: 3, ArrivedAt: 4, AvailableAt: 5, FirstReceivedAt: 6,
					ReceiveCount: 7, DeadLetterSource: sqs.QueueKey{Account: account, Name: "source"},
				},
				Content: sqs.AppendContent(nil, &text),
			},
			{Peeked: sqs.Peeked{Sequence: 8, State: sqs.Delayed}, Content: sqs.AppendContent(nil, &sqs.Content{DeduplicationID: "d", Body: []byte{0xff}})},
			{Peeked: sqs.Peeked{Sequence: 9, State: sqs.Visible}, Err: errors.New("rotten")},
		},
		Next: 9, More: true,
	}
	path := "/queues/000000000000/orders.fifo/messages"
	got := decode[admin.MessagePage](t, call(t, newHandler(node, 10), http.MethodGet, path, "", http.StatusOK))
	want := admin.MessagePage{
		Messages: []admin.Message{
			{
				Account: account, Queue: "orders.fifo", Sequence: 1, MessageID: messageIDText, State: "inflight", SentMS: 3, ArrivedMS: 4,
				AvailableMS: 5, FirstReceivedMS: 6, ReceiveCount: 7, GroupID: "g", DeduplicationID: messageIDText, MovedFrom: "000000000000/source",
				SenderID: "me", Body: "apple\n",
				Attributes: []admin.MessageAttribute{{Name: "a", Type: "String", Value: "v"}, {Name: "b", Type: "Binary", Value: "/w=="}},
			},
			{
				Account: account, Queue: "orders.fifo", Sequence: 8, MessageID: "00000000-0000-0000-0000-000000000000", State: "delayed",
				DeduplicationID: "d", Body: "/w==", BodyBase64: true,
			},
			{Account: account, Queue: "orders.fifo", Sequence: 9, State: "visible", Error: "rotten"},
		},
		Next: "9",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMessagesArguments(t *testing.T) {
	for _, test := range []struct {
		query  string
		status int
		peeked string
		want   string
	}{
		{query: "", status: 200, peeked: "000000000000/orders 1 0 10"},
		{query: "?state=inflight&limit=1000&after=7", status: 200, peeked: "000000000000/orders 2 7 1000"},
		{query: "?state=delayed&limit=1", status: 200, peeked: "000000000000/orders 3 0 1"},
		{query: "?state=any", status: 200, peeked: "000000000000/orders 0 0 10"},
		{query: "?state=gone", status: 400, want: "want visible"},
		{query: "?limit=0", status: 400, want: "from 1 to 1000"},
		{query: "?limit=1001", status: 400, want: "from 1 to 1000"},
		{query: "?limit=x", status: 400, want: "from 1 to 1000"},
		{query: "?after=-1", status: 400, want: "cursor"},
		{query: "?after=18446744073709551615", status: 400, want: "cursor"},
	} {
		node := newOrdersNode()
		got := call(t, newHandler(node, 10), http.MethodGet, "/queues/000000000000/orders/messages"+test.query, "", test.status)
		if node.peeked != test.peeked || !strings.Contains(got, test.want) {
			t.Errorf("%s: got peek %q and %s, want %q and %q", test.query, node.peeked, got, test.peeked, test.want)
		}
	}
	node := newOrdersNode()
	handler := newHandler(node, 10)
	call(t, handler, http.MethodGet, "/queues/000000000000/nowhere/messages", "", http.StatusNotFound)
	node.condition = cluster.ErrNoLeader
	call(t, handler, http.MethodGet, "/queues/000000000000/orders/messages", "", http.StatusServiceUnavailable)
}

func TestPurge(t *testing.T) {
	node := newOrdersNode()
	handler := newHandler(node, 10)
	const path = "/queues/000000000000/orders/messages"
	if got := call(t, handler, http.MethodDelete, path, "", http.StatusOK); got != "{\"index\":7}\n" {
		t.Errorf("got %s, want index 7", got)
	}
	node.refusal = &sqs.Error{Code: sqs.PurgeQueueInProgress, Message: "Only one"}
	if got := call(t, handler, http.MethodDelete, path, "", http.StatusConflict); !strings.Contains(got, "Only one") {
		t.Errorf("got %s, want AWS's text", got)
	}
	node.refusal = sqs.NoSuchQueue()
	call(t, handler, http.MethodDelete, path, "", http.StatusNotFound)
	node.condition = cluster.ErrOutcomeUnknown
	call(t, handler, http.MethodDelete, path, "", http.StatusServiceUnavailable)
	// A page in a browser may send a POST to loopback without being asked; a DELETE it may not.
	call(t, handler, http.MethodPost, path, "", http.StatusMethodNotAllowed)
}

func TestTraceAnswer(t *testing.T) {
	node := newOrdersNode()
	node.trace = raftfsm.Trace{
		First: 1, Exact: 2, Last: 9,
		Steps: []raftfsm.Step{
			{Index: 3, At: 4, Kind: raftfsm.StepReceived, Queue: orders, Sequence: 5, ReceiveCount: 6, AvailableAt: 7},
			{Index: 8, At: 9, Kind: raftfsm.StepMoved, Queue: orders, Sequence: 5, To: sqs.QueueKey{Account: account, Name: "dead"}, ToSequence: 1},
		},
		Found: true, Queue: orders, Message: sqs.Peeked{Sequence: 5, State: sqs.Visible},
	}
	handler := newHandler(node, 10)
	got := decode[admin.Trace](t, call(t, handler, http.MethodGet, "/messages/"+messageIDText+"/trace", "", http.StatusOK))
	want := admin.Trace{
		MessageID: messageIDText, FirstIndex: 1, ExactIndex: 2, LastIndex: 9,
		Steps: []admin.Step{
			{
				Index: 3, TimeMS: 4, Event: "received", Account: account, Queue: "orders", MessageID: messageIDText,
				Sequence: 5, ReceiveCount: 6, AvailableMS: 7,
			},
			{
				Index: 8, TimeMS: 9, Event: "moved", Account: account, Queue: "orders", MessageID: messageIDText,
				Sequence: 5, To: "000000000000/dead", ToSequence: 1,
			},
		},
		Now: &admin.Message{Account: account, Queue: "orders", Sequence: 5, MessageID: messageIDText, State: "visible"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, id := range []string{"x", messageIDText[1:], strings.ReplaceAll(messageIDText, "-", ""), messageIDText + "00"} {
		call(t, handler, http.MethodGet, "/messages/"+id+"/trace", "", http.StatusBadRequest)
	}
	node.condition = cluster.ErrTracing
	call(t, handler, http.MethodGet, "/messages/"+messageIDText+"/trace", "", http.StatusConflict)
	node.condition = errors.New("disk")
	call(t, handler, http.MethodGet, "/messages/"+messageIDText+"/trace", "", http.StatusInternalServerError)
}

func TestTailRefused(t *testing.T) {
	handler := newHandler(newOrdersNode(), 10)
	call(t, handler, http.MethodGet, "/queues/000000000000/nowhere/tail", "", http.StatusNotFound)
	got := call(t, handler, http.MethodGet, "/queues/000000000000/orders/tail", "", http.StatusServiceUnavailable)
	if !strings.Contains(got, "too many tails") {
		t.Errorf("got %s, want the reason", got)
	}
}

// Whoever adds up all nodes can leave out the copies of followers.
func TestMetricsOfFollower(t *testing.T) {
	node := newNode()
	node.status.Role = "follower"
	node.queues = []sqs.QueueCensus{{Queue: orders, Counters: sqs.Counters{Sent: 2, SentBytes: 3}}}
	got := holdfastLines(call(t, newHandler(node, 10), http.MethodGet, "/metrics", "", http.StatusOK))
	for _, want := range []string{
		`holdfast_sqs_number_of_messages_sent_total{account="000000000000",queue="orders",role="follower"} 2`,
		`holdfast_sqs_sent_message_size_bytes_sum{account="000000000000",queue="orders",role="follower"} 3`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s in\n%s", want, got)
		}
	}
}
