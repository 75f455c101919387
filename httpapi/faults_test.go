package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// TestFaults looks at what clients are told when the broker cannot serve.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		fault                  error
		status                 int
		outcome, query, logged string
	}{
		{cluster.ErrNoLeader, 503, "not-applied", "ServiceUnavailable;Receiver", ""},
		{fmt.Errorf("propose: %w", cluster.ErrOutcomeUnknown), 503, "unknown", "ServiceUnavailable;Receiver", ""},
		{cluster.ErrOverloaded, 403, "not-applied", "RequestThrottled;Sender", ""},
		{context.Canceled, 503, "unknown", "ServiceUnavailable;Receiver", ""},
		{errors.New("a bug"), 500, "unknown", "InternalFailure;Receiver", "a bug"},
		// The state's answer to a command that has panicked, perhaps half done.
		{&sqs.Error{Code: sqs.InternalFailure, Message: "x"}, 500, "unknown", "InternalFailure;Receiver", ""},
	} {
		broker := newStateBroker()
		broker.fault = tt.fault
		var log lockedBuffer
		e := serve(t, broker, httpapi.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, action := range []string{"SendMessage", "ReceiveMessage"} {
			r := e.json(action, `{"QueueUrl":"q","MessageBody":"x"}`)
			if r.status != tt.status || r.header["x-holdfast-outcome"] != tt.outcome || r.header["x-amzn-query-error"] != tt.query {
				t.Errorf("%v: got %d %v, want %d %s %s", tt.fault, r.status, r.header, tt.status, tt.outcome, tt.query)
			}
			if strings.Contains(r.body, "a bug") {
				t.Errorf("%v: the client was told: %s", tt.fault, r.body)
			}
			r = e.query("Action=" + action + "&QueueUrl=q&MessageBody=x")
			code, _, _ := strings.Cut(tt.query, ";")
			if r.status != tt.status || r.header["x-holdfast-outcome"] != tt.outcome || !strings.Contains(r.body, "<Code>"+code+"</Code>") {
				t.Errorf("%v: got %d %v %s, want %d %s %s", tt.fault, r.status, r.header, r.body, tt.status, tt.outcome, code)
			}
		}
		if got := strings.Count(log.String(), "level=ERROR"); (got == 4) != (tt.logged != "") || !strings.Contains(log.String(), tt.logged) {
			t.Errorf("%v: got log %q, want %q for each request", tt.fault, log.String(), tt.logged)
		}
	}
}

// startingBroker does not know its cluster before it is awaited.
type startingBroker struct {
	*stateBroker
	cluster raftfsm.Settings
	fault   error // of the wait
}

func (b *startingBroker) AwaitFormed(context.Context) error {
	if b.fault == nil {
		b.settings = b.cluster
	}
	return b.fault
}

// TestStartingNodeWaits: a request that comes before the node has read its log is
// answered by the settings of the cluster, or not at all.
func TestStartingNodeWaits(t *testing.T) {
	broker := &startingBroker{stateBroker: newStateBroker()}
	broker.settings.ClusterID, broker.settings.Account = "c", "111111111111"
	broker.cluster = broker.settings
	e := serveBroker(t, broker.stateBroker, broker, httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	e.json("SendMessage", `{"QueueUrl":"q","MessageBody":"x"}`)
	received := e.json("ReceiveMessage", `{"QueueUrl":"q"}`).body
	_, rest, _ := strings.Cut(received, `"ReceiptHandle":"`)
	handle, _, _ := strings.Cut(rest, `"`)

	for _, tt := range []struct {
		fault           error
		status          int
		outcome, action string
	}{
		{cluster.ErrNoLeader, 503, "not-applied", "GetQueueUrl"},
		{cluster.ErrNoLeader, 503, "not-applied", "DeleteMessage"},
		{nil, 200, "", "GetQueueUrl"},
		{nil, 200, "", "DeleteMessage"},
	} {
		broker.settings, broker.fault = raftfsm.DefaultSettings(), tt.fault
		r := e.json(tt.action, `{"QueueUrl":"q","QueueName":"q","ReceiptHandle":"`+handle+`"}`)
		if r.status != tt.status || r.header["x-holdfast-outcome"] != tt.outcome {
			t.Errorf("%s, %v: got %d %v %s, want %d %s", tt.action, tt.fault, r.status, r.header, r.body, tt.status, tt.outcome)
		}
	}
}

// panickyBroker panics once.
type panickyBroker struct {
	*stateBroker
	once sync.Once
}

func (b *panickyBroker) Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	b.once.Do(func() { panic("a broken invariant") })
	return b.stateBroker.Do(ctx, c, bodies...)
}

func TestPanicIsContained(t *testing.T) {
	broker := newStateBroker()
	var log lockedBuffer
	e := serveBroker(t, broker, &panickyBroker{stateBroker: broker}, httpapi.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if r := e.json("ListQueues", "{}"); r.status != 500 || !strings.Contains(r.body, "#InternalFailure") || r.header["x-holdfast-outcome"] != "unknown" {
		t.Errorf("got %d %v %s, want InternalFailure", r.status, r.header, r.body)
	}
	if !strings.Contains(log.String(), "a broken invariant") {
		t.Errorf("got log %q, want the panic", log.String())
	}
	if r := e.json("ListQueues", "{}"); r.status != 200 || r.body != "{}" {
		t.Errorf("after the panic: got %d %s, want 200 {}", r.status, r.body)
	}
}

func TestHeaders(t *testing.T) {
	broker := newStateBroker()
	var observed []string
	var mu sync.Mutex
	e := serve(t, broker, httpapi.Config{
		NodeName: "n1",
		Observe: func(action string, status int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			observed = append(observed, fmt.Sprint(action, " ", status))
		},
	})
	for _, r := range []response{e.json("CreateQueue", `{"QueueName":"q"}`), e.query("Action=ListQueues"), e.json("Bogus", "{}")} {
		for name, want := range map[string]string{
			"date":            "Tue, 14 Nov 2023 22:13:20 GMT",
			"x-holdfast-node": "n1",
		} {
			if got := r.header[name]; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if !uuidPattern.MatchString(r.header["x-amzn-requestid"]) {
			t.Errorf("got request id %q, want a UUID", r.header["x-amzn-requestid"])
		}
		if _, ok := r.header["server"]; ok {
			t.Errorf("got header server %q", r.header["server"])
		}
	}
	broker.mu.Lock()
	broker.now += 1000
	broker.mu.Unlock()
	if r := e.json("ListQueues", `{}`); r.header["x-holdfast-index"] != "3" || r.header["date"] != "Tue, 14 Nov 2023 22:13:21 GMT" {
		t.Errorf("got index %q, date %q, want 3, one second later", r.header["x-holdfast-index"], r.header["date"])
	}
	mu.Lock()
	defer mu.Unlock()
	if got, want := strings.Join(observed, ", "), "CreateQueue 200, ListQueues 200,  400, ListQueues 200"; got != want {
		t.Errorf("observed %q, want %q", got, want)
	}
}

func TestHealth(t *testing.T) {
	broker := newStateBroker()
	e := serve(t, broker, httpapi.Config{})
	for _, path := range []string{"/health", "/health/live", "/health/ready"} {
		if r := e.do("GET", path, nil); r.status != 200 {
			t.Errorf("%s: got %d %s, want 200", path, r.status, r.body)
		}
	}
	broker.reasons = []string{"no leader"}
	if r := e.do("GET", "/health/ready", nil); r.status != 503 || r.body != `{"ready":false,"reasons":["no leader"]}` {
		t.Errorf("not ready: got %d %s", r.status, r.body)
	}
	if r := e.do("GET", "/health/live", nil); r.status != 200 {
		t.Errorf("not ready: got %d, want 200 for live", r.status)
	}
}

func TestDrainClosesConnections(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	if r := e.json("ListQueues", "{}"); r.header["connection"] != "" {
		t.Errorf("got connection %q before Drain", r.header["connection"])
	}
	e.server.Drain()
	if r := e.json("ListQueues", "{}"); r.status != 200 || r.header["connection"] != "close" {
		t.Errorf("got %d, connection %q, want 200 close", r.status, r.header["connection"])
	}
}

// lockedBuffer is a log that a server writes while a test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
