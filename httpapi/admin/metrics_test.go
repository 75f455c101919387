package admin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/admin"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

func TestMetrics(t *testing.T) {
	node := newNode()
	node.metrics = cluster.Metrics{
		Commands: 40, Entries: 41, EntryBytes: 42, Refused: 43, LeaderChanges: 44, Snapshots: 45, Panics: 46,
		Fsyncs: cluster.Histogram{
			Bounds: []time.Duration{time.Millisecond, time.Second}, Counts: []uint64{3, 2, 1}, Sum: 1500 * time.Millisecond,
		},
		EmptyReceives: map[sqs.QueueKey]uint64{{Account: "000000000000", Name: "a"}: 9},
	}
	node.queues = []sqs.QueueCensus{{
		Queue: sqs.QueueKey{Account: "000000000000", Name: "a"}, Visible: 3, InFlight: 4, Delayed: 5,
		OldestSentAt: 999_400, Counters: sqs.Counters{Sent: 6, SentBytes: 60, Received: 7, Deleted: 8, Moved: 10, Stranded: 11, Lost: 12},
		NoisyGroups: 1, Quiet: sqs.QuietCensus{Visible: 10, InFlight: 11, Delayed: 12, OldestSentAt: 999_700},
	}, {
		Queue: sqs.QueueKey{Account: "000000000000", Name: "\"odd\\\n"}, // no queue has such a name; no scrape may break
	}}
	node.topics = []sns.TopicCensus{{Topic: sns.TopicKey{Account: "000000000000", Name: "t"}, Confirmed: 20, Pending: 21, Waiting: 22, Counters: sns.Counters{
		Published: 1, PublishBytes: 2, Deduplicated: 3, Delivered: 4, Failed: 5, Redriven: 6, RedriveFailed: 7, Filtered: 8, FilteredByAttributes: 9,
		FilteredByBody: 10, FilteredNoAttributes: 11, FilteredInvalidAttributes: 12, FilteredInvalidBody: 13, Deleted: 14, Subscribed: 15, Texts: 16,
	}}}
	metrics := admin.NewMetrics()
	metrics.ObserveRequest("SendMessage", 200, 3*time.Millisecond)
	handler := admin.New(admin.Config{
		Node: node, Metrics: metrics, Certificates: certificates, Logger: slog.New(slog.DiscardHandler), MetricsQueues: 10,
	})
	datadriven.RunTest(t, "testdata/metrics", func(t *testing.T, _ *datadriven.TestData) string {
		return holdfastLines(call(t, handler, http.MethodGet, "/metrics", "", http.StatusOK))
	})
}

// countingNode counts how often it was asked for what takes a walk over its state.
type countingNode struct {
	*fakeNode
	status, metrics, queues, topics int
}

func (n *countingNode) Status() cluster.Status    { n.status++; return n.fakeNode.Status() }
func (n *countingNode) Metrics() cluster.Metrics  { n.metrics++; return n.fakeNode.Metrics() }
func (n *countingNode) Queues() []sqs.QueueCensus { n.queues++; return n.fakeNode.Queues() }
func (n *countingNode) Topics() []sns.TopicCensus { n.topics++; return n.fakeNode.Topics() }

// A scrape asks for everything once.
func TestMetricsAskOnce(t *testing.T) {
	node := &countingNode{fakeNode: newNode()}
	handler := admin.New(admin.Config{Node: node, Metrics: admin.NewMetrics(), Logger: slog.New(slog.DiscardHandler), MetricsQueues: 10})
	call(t, handler, http.MethodGet, "/metrics", "", http.StatusOK)
	if node.status != 1 || node.metrics != 1 || node.queues != 1 || node.topics != 1 {
		t.Errorf("got status %d, metrics %d, queues %d, topics %d times, want each once", node.status, node.metrics, node.queues, node.topics)
	}
}

// holdfastLines leaves out comments, and the metrics of the Go runtime and the
// process.
func holdfastLines(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "holdfast_") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// The busiest queues have series of their own; the sums are whole.
func TestMetricsCapQueues(t *testing.T) {
	node := newNode()
	for i := range 10 {
		node.queues = append(node.queues, sqs.QueueCensus{
			Queue: sqs.QueueKey{Account: "000000000000", Name: fmt.Sprintf("q%d", i)}, Visible: 1,
			OldestSentAt: sqs.Time(990_000 + i*1_000), Counters: sqs.Counters{Sent: uint64(i)},
			NoisyGroups: i, Quiet: sqs.QuietCensus{Visible: 2 * i, InFlight: 3 * i, Delayed: 4 * i, OldestSentAt: sqs.Time(991_000 + i*1_000)},
		})
	}
	got := holdfastLines(call(t, newHandler(node, 2), http.MethodGet, "/metrics", "", http.StatusOK))
	for _, want := range []string{
		`holdfast_sqs_number_of_messages_sent_total{account="000000000000",queue="q9"} 9`,
		`holdfast_sqs_number_of_messages_sent_total{account="000000000000",queue="q8"} 8`,
		`holdfast_sqs_number_of_messages_sent_total{account="",queue="~other"} 28`,
		`holdfast_sqs_approximate_number_of_messages_visible{account="",queue="~other"} 8`,
		`holdfast_sqs_approximate_age_of_oldest_message_seconds{account="",queue="~other"} 10`,
		`holdfast_sqs_approximate_number_of_noisy_groups{account="",queue="~other"} 28`,
		`holdfast_sqs_approximate_number_of_messages_visible_in_quiet_groups{account="",queue="~other"} 56`,
		`holdfast_sqs_approximate_number_of_messages_not_visible_in_quiet_groups{account="",queue="~other"} 84`,
		`holdfast_sqs_approximate_number_of_messages_delayed_in_quiet_groups{account="",queue="~other"} 112`,
		`holdfast_sqs_approximate_age_of_oldest_message_in_quiet_groups_seconds{account="",queue="~other"} 9`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
	if n := strings.Count(got, "holdfast_sqs_number_of_messages_sent_total{"); n != 3 {
		t.Errorf("got %d series of sent messages, want 3", n)
	}
}

// No number of a queue is left out of the sums.
func TestMetricsSumAll(t *testing.T) {
	node := newNode()
	node.metrics.EmptyReceives = map[sqs.QueueKey]uint64{}
	for _, name := range []string{"a", "b"} {
		q := sqs.QueueCensus{
			Queue: sqs.QueueKey{Account: "000000000000", Name: name}, Visible: 1, InFlight: 1, Delayed: 1, GroupsInFlight: 1, OldestSentAt: 1,
			NoisyGroups: 1, Quiet: sqs.QuietCensus{Visible: 1, InFlight: 1, Delayed: 1, OldestSentAt: 1},
			Counters: sqs.Counters{Sent: 1, SentBytes: 1, Received: 1, Deleted: 1, Moved: 1, Stranded: 1, Deduplicated: 1, Lost: 1},
		}
		node.queues = append(node.queues, q)
		node.metrics.EmptyReceives[q.Queue] = 1
	}
	sums := 0
	for line := range strings.Lines(holdfastLines(call(t, newHandler(node, 0), http.MethodGet, "/metrics", "", http.StatusOK))) {
		name, value, ok := strings.Cut(line, `{account="",queue="~other"} `)
		if !ok || strings.Contains(name, "_age_") {
			continue
		}
		if sums++; value != "2\n" {
			t.Errorf("%s: got %s, want 2", name, value)
		}
	}
	if sums != 18 {
		t.Errorf("got %d sums, want 18", sums)
	}
}

// A client that invents actions cannot make the process grow.
func TestMetricsCapRequests(t *testing.T) {
	metrics := admin.NewMetrics()
	for i := range 10_000 {
		metrics.ObserveRequest(fmt.Sprintf("Action%d", i), 400, time.Millisecond)
	}
	handler := admin.New(admin.Config{Node: newNode(), Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	got := call(t, handler, http.MethodGet, "/metrics", "", http.StatusOK)
	if n := strings.Count(got, "holdfast_http_request_seconds_count{"); n > 600 {
		t.Errorf("got %d series of requests, want at most 600", n)
	}
	if want := `holdfast_http_request_seconds_count{action="other",code=""} 9488`; !strings.Contains(got, want) {
		t.Errorf("got no line %s", want)
	}
}
