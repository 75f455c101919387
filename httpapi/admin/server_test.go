package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/admin"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// fakeNode is a node that stands still, but for its settings.
type fakeNode struct {
	status    cluster.Status
	metrics   cluster.Metrics
	queues    []sqs.QueueCensus
	topics    []sns.TopicCensus
	listed    []sns.ListedSubscription // of the first topic
	settings  raftfsm.Settings
	behind    bool                 // a follower: what was set is not in settings yet
	described sqs.QueueDescription // of its queue
	page      cluster.PeekPage
	peeked    string // the arguments of Peek
	trace     raftfsm.Trace
	refusal   error       // of Do's outcome
	condition error       // of Do
	obstacles []string    // why it is not ready
	done      sqs.Command // the latest of Do
	result    sqs.Result  // of it
}

func (n *fakeNode) Status() cluster.Status     { return n.status }
func (n *fakeNode) Ready() (bool, []string)    { return len(n.obstacles) == 0, n.obstacles }
func (n *fakeNode) Metrics() cluster.Metrics   { return n.metrics }
func (n *fakeNode) Queues() []sqs.QueueCensus  { return n.queues }
func (n *fakeNode) Settings() raftfsm.Settings { return n.settings }
func (n *fakeNode) Now() sqs.Time              { return 1_000_000 }

func (n *fakeNode) FullDigest() raftfsm.IndexedDigest {
	return raftfsm.IndexedDigest{Index: 10, Sum: 0xabc}
}

func (n *fakeNode) Topics() []sns.TopicCensus { return n.topics }

// Topic pages as a State does.
func (n *fakeNode) Topic(key sns.TopicKey, after sns.SubscriptionPlace, limit int) (sns.TopicCensus, sns.ListSubscriptionsResult, bool) {
	if len(n.topics) == 0 || key != n.topics[0].Topic {
		return sns.TopicCensus{}, sns.ListSubscriptionsResult{}, false
	}
	var r sns.ListSubscriptionsResult
	for _, s := range n.listed {
		switch {
		case s.Endpoint <= after.Endpoint:
		case len(r.Subscriptions) == limit:
			r.More = true
		default:
			r.Subscriptions = append(r.Subscriptions, s)
		}
	}
	return n.topics[0], r, true
}

func (n *fakeNode) RotateSigningKey(context.Context) (string, error) {
	return "SimpleNotificationService-1.pem", n.condition
}

func (n *fakeNode) Queue(key sqs.QueueKey) (sqs.QueueDescription, bool) {
	return n.described, key == n.described.Queue
}

func (n *fakeNode) Peek(_ context.Context, key sqs.QueueKey, state sqs.MessageState, after uint64, limit int) (cluster.PeekPage, error) {
	n.peeked = fmt.Sprint(key.Account, "/", key.Name, " ", state, " ", after, " ", limit)
	if key != n.described.Queue {
		return cluster.PeekPage{}, sqs.NoSuchQueue()
	}
	return n.page, n.condition
}

func (n *fakeNode) Tail(sqs.QueueKey) (*cluster.Tail, error) { return nil, cluster.ErrTails }

func (n *fakeNode) Trace(_ context.Context, id sqs.MessageID) (raftfsm.Trace, error) {
	n.trace.MessageID = id
	return n.trace, n.condition
}

func (n *fakeNode) Do(_ context.Context, c raftfsm.Command, _ ...[]byte) (raftfsm.Outcome, error) {
	if n.condition != nil {
		return raftfsm.Outcome{}, n.condition
	}
	if _, ok := c.(sqs.PurgeQueue); ok {
		return raftfsm.Outcome{Index: 7, Err: n.refusal}, nil
	}
	if command, ok := c.(sqs.Command); ok {
		n.done = command
		return raftfsm.Outcome{Index: 7, Result: n.result, Err: n.refusal}, nil
	}
	set, settings := c.(raftfsm.SetSetting), n.settings
	err := settings.Set(set.Name, set.Value)
	if !n.behind {
		n.settings = settings
	}
	return raftfsm.Outcome{Index: 7, Err: err}, nil
}

func newNode() *fakeNode {
	settings := raftfsm.DefaultSettings()
	settings.ClusterID = "c1"
	return &fakeNode{
		status: cluster.Status{
			Node: "n1", ClusterID: "c1", Version: "v1", Format: cluster.FormatStatus{Current: 2, Min: 1, Max: 3},
			PID: 4, Uptime: 5 * time.Millisecond, Ready: true, Reasons: []string{"because"}, Held: []string{cluster.HeldForMemory}, Role: "leader", Leader: "n1", Term: 6,
			Groups: []cluster.GroupStatus{{
				Group: 7, Role: "leader", Leader: "n1", Term: 8, Commit: 9, Applied: 10, Last: 11, First: 12, Snapshot: 13,
				LogBytes: 14, PendingBytes: 15, ParkedPolls: 16, Sessions: 17,
				Digests: []raftfsm.IndexedDigest{{Index: 4096, Sum: 0xabc}},
			}},
			Time: cluster.TimeStatus{Cluster: 18, WallOffset: 19 * time.Millisecond, RatePPM: 20},
			Members: []cluster.MemberStatus{{
				Name: "n1", ID: "n1/00000001", Peer: "10.0.0.1:4568", Suffrage: "voter", Up: true, Reason: "it is", Applied: 21, LagEntries: 22,
				LastContact: 23 * time.Millisecond, ClockOffset: 24 * time.Millisecond, Version: "v1",
			}},
			Disk: cluster.DiskStatus{
				FreeBytes: 25, ReserveBytes: 26, State: "ok", FsyncP50: 27 * time.Microsecond, FsyncP99: 28 * time.Microsecond,
				Segments: 29, SegmentBytes: 30, SnapshotPause: 38 * time.Microsecond,
			},
			Totals: sqs.Totals{Queues: 31, Visible: 32, InFlight: 33, Delayed: 34, Damaged: 35, Lost: 38},
			Topics: sns.Totals{Topics: 39, Confirmed: 20, Pending: 21, Damaged: 40},
			Memory: cluster.MemoryStatus{RSSBytes: 36, HeapBytes: 37, LimitBytes: 41},
		},
		settings: settings,
	}
}

func certificates() []admin.Certificate {
	return []admin.Certificate{
		{Name: "peer", NotAfter: time.Unix(1_900_000_000, 0).UTC()},
		{Name: "peer-ca", NotAfter: time.Unix(2_000_000_000, 0).UTC()},
	}
}

func newHandler(node admin.Node, queues int) http.Handler {
	return admin.New(admin.Config{
		Node: node, Metrics: admin.NewMetrics(), Certificates: certificates, Logger: slog.New(slog.DiscardHandler), MetricsQueues: queues,
	})
}

// call does one request and wants the status; it returns the body.
func call(t *testing.T, handler http.Handler, method, path, body string, status int) string {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(method, path, strings.NewReader(body)))
	if response.Code != status {
		t.Errorf("%s %s: got %d, want %d: %s", method, path, response.Code, status, response.Body)
	}
	return response.Body.String()
}

// looks are the paths that look into the state.
var looks = []string{
	"/queues", "/queues/000000000000/q", "/queues/000000000000/q/messages", "/queues/000000000000/q/tail", "/settings",
	"/topics", "/topics/000000000000/orders/subscriptions", "/messages/5fea7756-0ea4-451a-a703-a558b933e274/trace",
}

// TestUnformed: a node that has no state yet says so, and not that nothing is there,
// also to whoever takes an old answer.
func TestUnformed(t *testing.T) {
	node := newTopicNode()
	node.settings.ClusterID, node.obstacles = "", []string{"waits for n2", "no leader"}
	const want = `{"error":"this node knows nothing yet: waits for n2; no leader"}` + "\n"
	for _, path := range looks {
		if got := call(t, newHandler(node, 10), http.MethodGet, path+"?stale=true", "", http.StatusServiceUnavailable); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestUnready: a node that cannot know the state says why, unless it is asked for
// what it knows; what it says of itself it says in any case.
func TestUnready(t *testing.T) {
	node := newTopicNode()
	node.obstacles = []string{"no leader", "session not open"}
	handler := newHandler(node, 10)
	const want = `{"error":"this node is not ready: no leader; session not open"}` + "\n"
	for _, path := range looks {
		for _, query := range []string{"", "?stale=false", "?prefix=a"} {
			if got := call(t, handler, http.MethodGet, path+query, "", http.StatusServiceUnavailable); got != want {
				t.Errorf("%s: got %s, want %s", path+query, got, want)
			}
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path+"?stale=true", http.NoBody))
		if got := response.Body.String(); strings.Contains(got, "not ready") {
			t.Errorf("%s?stale=true: got %d %s", path, response.Code, got)
		}
	}
	for _, path := range []string{"/status", "/digest", "/members", "/metrics", "/settings?stale=true", "/queues?stale=true"} {
		call(t, handler, http.MethodGet, path, "", http.StatusOK)
	}
}

func TestDigest(t *testing.T) {
	const want = `{"index":10,"xxh64":"0000000000000abc"}`
	if got := call(t, newHandler(newNode(), 10), http.MethodGet, "/digest", "", http.StatusOK); strings.TrimSpace(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Names and nesting of /status are a promise to operators' tools.
func TestStatus(t *testing.T) {
	got := call(t, newHandler(newNode(), 10), http.MethodGet, "/status", "", http.StatusOK)
	want, err := os.ReadFile("testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	var gotJSON, wantJSON any
	if err := errors.Join(json.Unmarshal([]byte(got), &gotJSON), json.Unmarshal(want, &wantJSON)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotJSON, wantJSON) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A node that knows nothing yet answers lists, not null.
func TestStatusOfNothing(t *testing.T) {
	got := call(t, newHandler(&fakeNode{}, 10), http.MethodGet, "/status", "", http.StatusOK)
	if strings.Contains(got, "null") {
		t.Errorf("got %s, want no null", got)
	}
	formed := newNode()
	formed.status.Members = nil
	for _, path := range []string{"/members", "/queues", "/topics"} {
		if got := call(t, newHandler(formed, 10), http.MethodGet, path, "", http.StatusOK); got != "[]\n" {
			t.Errorf("%s: got %s, want []", path, got)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, behind := range []bool{false, true} {
		node := newNode()
		node.behind = behind
		handler := newHandler(node, 10)
		got := call(t, handler, http.MethodGet, "/settings", "", http.StatusOK)
		if want := `"purge-wait":"60s"`; !strings.Contains(got, want) {
			t.Errorf("got %s, want one with %s", got, want)
		}
		got = call(t, handler, http.MethodPut, "/settings/purge-wait", "5s", http.StatusOK)
		if want := `"purge-wait":"5s"`; !strings.Contains(got, want) {
			t.Errorf("behind %t: got %s, want one with %s", behind, got, want)
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	tests := []struct {
		name, path, value string
		condition         error
		status            int
		want, outcome     string
	}{
		{name: "bad value", path: "/settings/purge-wait", value: "soon", status: 400, want: "soon"},
		{name: "unknown name", path: "/settings/colour", value: "red", status: 400, want: "no such setting"},
		{name: "too long", path: "/settings/region", value: strings.Repeat("x", 64<<10+1), status: 400, want: "too long"},
		{
			name: "no leader", path: "/settings/region", value: "x", condition: cluster.ErrNoLeader,
			status: 503, want: "no leader", outcome: "not-applied",
		},
		{
			name: "overloaded", path: "/settings/region", value: "x", condition: cluster.ErrOverloaded,
			status: 503, want: "overloaded", outcome: "not-applied",
		},
		{
			name: "outcome unknown", path: "/settings/region", value: "x", condition: cluster.ErrOutcomeUnknown,
			status: 503, want: "unknown", outcome: "unknown",
		},
		{name: "fault", path: "/settings/region", value: "x", condition: io.ErrShortWrite, status: 503, want: "short", outcome: "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := newNode()
			node.condition = test.condition
			response := httptest.NewRecorder()
			newHandler(node, 10).ServeHTTP(response, httptest.NewRequest(http.MethodPut, test.path, strings.NewReader(test.value)))
			if response.Code != test.status {
				t.Errorf("got status %d, want %d", response.Code, test.status)
			}
			var problem struct{ Error string }
			if err := json.Unmarshal(response.Body.Bytes(), &problem); err != nil || !strings.Contains(problem.Error, test.want) {
				t.Errorf("got %s (%v), want an error with %q", response.Body, err, test.want)
			}
			if got := response.Header().Get("x-holdfast-outcome"); got != test.outcome {
				t.Errorf("got outcome %q, want %q", got, test.outcome)
			}
		})
	}
}

func TestQueues(t *testing.T) {
	node := newNode()
	node.queues = []sqs.QueueCensus{
		{Queue: sqs.QueueKey{Account: "000000000000", Name: "a"}, Visible: 1},
		{
			Queue: sqs.QueueKey{Account: "000000000000", Name: "b"}, Incarnation: 2, Visible: 3, InFlight: 4, Delayed: 5,
			OldestSentAt: 999_400, Counters: sqs.Counters{Sent: 6, SentBytes: 60, Received: 7, Deleted: 8, Moved: 10, Stranded: 11, Lost: 12},
			DeadLetterTarget: sqs.QueueKey{Account: "000000000000", Name: "d"}, Dangling: true,
		},
	}
	node.metrics.EmptyReceives = map[sqs.QueueKey]uint64{node.queues[1].Queue: 9}
	handler := newHandler(node, 10)
	var queues []admin.Queue
	if err := json.Unmarshal([]byte(call(t, handler, http.MethodGet, "/queues", "", http.StatusOK)), &queues); err != nil {
		t.Fatal(err)
	}
	if len(queues) != 2 {
		t.Fatalf("got %d queues, want 2", len(queues))
	}
	want := admin.Queue{
		Account: "000000000000", Name: "b", Incarnation: 2, Visible: 3, InFlight: 4, Delayed: 5, OldestMS: 600,
		Sent: 6, SentBytes: 60, Received: 7, Deleted: 8, EmptyReceives: 9, Moved: 10, Stranded: 11, Lost: 12,
		DeadLetterQueue: "000000000000/d", Dangling: true,
	}
	if queues[1] != want {
		t.Errorf("got %+v, want %+v", queues[1], want)
	}
	for query, n := range map[string]int{"prefix=a": 1, "prefix=": 2, "account=111111111111": 0, "account=000000000000&prefix=b": 1} {
		if err := json.Unmarshal([]byte(call(t, handler, http.MethodGet, "/queues?"+query, "", http.StatusOK)), &queues); err != nil {
			t.Fatal(err)
		}
		if len(queues) != n {
			t.Errorf("%s: got %d queues, want %d", query, len(queues), n)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	handler := newHandler(newNode(), 10)
	call(t, handler, http.MethodGet, "/", "", http.StatusNotFound)
	call(t, handler, http.MethodGet, "/settings/region/more", "", http.StatusNotFound)
	call(t, handler, http.MethodPost, "/nothing", "", http.StatusNotFound)
	call(t, handler, http.MethodGet, "/debug/pprof/goroutine?debug=1", "", http.StatusOK)
}

// TestOtherMethods: a path that takes other methods says which.
func TestOtherMethods(t *testing.T) {
	handler := newHandler(newNode(), 10)
	for _, test := range []struct{ method, path, allowed string }{
		{http.MethodPost, "/status", "GET, HEAD"},
		{http.MethodGet, "/signing-keys", "POST"},
		{http.MethodPost, "/queues/000000000000/q/messages", "DELETE, GET, HEAD"},
	} {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequest(test.method, test.path, http.NoBody))
		if got := response.Header().Get("Allow"); response.Code != http.StatusMethodNotAllowed || got != test.allowed {
			t.Errorf("%s %s: got %d, allowed %q, want 405, %q", test.method, test.path, response.Code, got, test.allowed)
		}
		if got, want := response.Body.String(), fmt.Sprintf("{\"error\":\"this takes %s\"}\n", test.allowed); got != want {
			t.Errorf("%s %s: got %q, want %q", test.method, test.path, got, want)
		}
	}
}
