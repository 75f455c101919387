package admin

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.internal/cluster"
	"holdfast.internal/sqs"
)

// collector reads a node when it is scraped. Nothing is counted twice: all
// numbers are the node's own.
type collector struct {
	node   Node
	queues int // with series of their own
}

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

// metric is a single number of the node.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *cluster.Status, m *cluster.Metrics) float64
}

var nodeMetrics = []metric{
	{
		description("raft_term", "Current term."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Term) },
	},
	{
		description("raft_commit_index", "Index of the last entry known to be on a majority."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.Commit) }),
	},
	{
		description("raft_applied_index", "Index of the last entry applied."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.Applied) }),
	},
	{
		description("raft_snapshot_index", "Index of the newest snapshot."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.Snapshot) }),
	},
	{
		description("raft_log_bytes", "Size of the log on disk."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.LogBytes) }),
	},
	{
		description("raft_is_leader", "1 on the leader."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return oneIf(s.Role == "leader") },
	},
	{
		description("raft_leader_changes_total", "Changes of leader seen by this process."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.LeaderChanges) },
	},
	{
		description("raft_entries_total", "Entries proposed."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.Entries) },
	},
	{
		description("raft_entry_bytes_total", "Size of the entries proposed."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.EntryBytes) },
	},
	{
		description("raft_commands_total", "Commands in the entries proposed."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.Commands) },
	},
	{
		description("raft_snapshots_total", "Snapshots taken."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.Snapshots) },
	},
	{
		description("refused_commands_total", "Commands held back until their deadline by a limit."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.Refused) },
	},
	{
		description("panics_total", "Commands that ended in a panic and closed their queue."), prometheus.CounterValue,
		func(_ *cluster.Status, m *cluster.Metrics) float64 { return float64(m.Panics) },
	},
	{
		description("parked_polls", "Receives that wait for a message."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.ParkedPolls) }),
	},
	{
		description("pending_body_bytes", "Message bodies that are in no snapshot yet."), prometheus.GaugeValue,
		ofGroup(func(g *cluster.GroupStatus) float64 { return float64(g.PendingBytes) }),
	},
	{
		description("disk_free_bytes", "Free space under the data folder."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Disk.FreeBytes) },
	},
	{
		description("ready", "1 when the node takes requests."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return oneIf(s.Ready) },
	},
	{
		description("sqs_queues", "Queues."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Totals.Queues) },
	},
}

func ofGroup(f func(*cluster.GroupStatus) float64) func(*cluster.Status, *cluster.Metrics) float64 {
	return func(s *cluster.Status, _ *cluster.Metrics) float64 {
		if len(s.Groups) == 0 {
			return 0
		}
		return f(&s.Groups[0])
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

var fsyncDescription = description("wal_fsync_seconds", "Time to write log entries and make them durable.")

// queueMetric is a number of each queue, named as CloudWatch names it (AWS/SQS
// namespace). Beyond the capped queues the numbers are added up.
type queueMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(q *queueReading) float64
}

// queueReading is one queue, or the sum of many, at a scrape.
type queueReading struct {
	sqs.QueueCensus
	emptyReceives uint64
	age           time.Duration // of the oldest message; of many queues, the greatest
}

func queueMetricOf(name, help string, kind prometheus.ValueType, of func(q *queueReading) float64) queueMetric {
	return queueMetric{description("sqs_"+name, help, "account", "queue"), kind, of}
}

var queueMetrics = []queueMetric{
	queueMetricOf("number_of_messages_sent_total", "Messages sent.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Sent) }),
	queueMetricOf("number_of_messages_received_total", "Messages handed out, repeated deliveries included.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Received) }),
	queueMetricOf("number_of_messages_deleted_total", "Successful deletes, repeated ones included.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Deleted) }),
	queueMetricOf("number_of_empty_receives_total", "Receives that returned nothing.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.emptyReceives) }),
	queueMetricOf("sent_message_size_bytes_total", "Size of the messages sent.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.SentBytes) }),
	queueMetricOf("approximate_number_of_messages_visible", "Messages available to receivers.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Visible) }),
	queueMetricOf("approximate_number_of_messages_not_visible", "Messages in flight.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.InFlight) }),
	queueMetricOf("approximate_number_of_messages_delayed", "Messages whose delay is not over.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Delayed) }),
	queueMetricOf("number_of_deduplicated_sent_messages_total", "Sends to a FIFO queue that were duplicates.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Deduplicated) }),
	queueMetricOf("approximate_number_of_groups_with_inflight_messages", "Groups of a FIFO queue with messages in flight.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.GroupsInFlight) }),
	queueMetricOf("approximate_age_of_oldest_message_seconds", "Age of the oldest message.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return q.age.Seconds() }),
}

// otherQueues is the queue label of the sum. No queue can have the name.
const otherQueues = "~other"

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range nodeMetrics {
		out <- m.desc
	}
	for _, m := range queueMetrics {
		out <- m.desc
	}
	out <- fsyncDescription
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	status, metrics := c.node.Status(), c.node.Metrics()
	for _, m := range nodeMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(&status, &metrics))
	}
	out <- newHistogram(fsyncDescription, metrics.Fsyncs)
	readings := capQueues(readQueues(c.node, &metrics), c.queues)
	for i := range readings {
		q := &readings[i]
		for _, m := range queueMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(q), q.Queue.Account, q.Queue.Name)
		}
	}
}

func readQueues(node Node, metrics *cluster.Metrics) []queueReading {
	census, now := node.Queues(), node.Now()
	readings := make([]queueReading, 0, len(census))
	for _, q := range census {
		reading := queueReading{QueueCensus: q, emptyReceives: metrics.EmptyReceives[q.Queue]}
		if q.OldestSentAt > 0 {
			reading.age = max(0, now.Sub(q.OldestSentAt))
		}
		readings = append(readings, reading)
	}
	return readings
}

// capQueues keeps the limit busiest queues and adds up the others.
func capQueues(readings []queueReading, limit int) []queueReading {
	if len(readings) <= limit {
		return readings
	}
	slices.SortStableFunc(readings, func(a, b queueReading) int {
		return cmp.Compare(b.Sent+b.Received+b.Deleted, a.Sent+a.Received+a.Deleted)
	})
	var sum queueReading
	sum.Queue.Name = otherQueues
	for _, q := range readings[limit:] {
		sum.Sent += q.Sent
		sum.Received += q.Received
		sum.Deleted += q.Deleted
		sum.SentBytes += q.SentBytes
		sum.Visible += q.Visible
		sum.InFlight += q.InFlight
		sum.Delayed += q.Delayed
		sum.Deduplicated += q.Deduplicated
		sum.GroupsInFlight += q.GroupsInFlight
		sum.emptyReceives += q.emptyReceives
		sum.age = max(sum.age, q.age)
	}
	return append(readings[:limit:limit], sum)
}

// newHistogram gives h the cumulative form that Prometheus wants.
func newHistogram(desc *prometheus.Desc, h cluster.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Bounds))
	total := uint64(0)
	for i, count := range h.Counts {
		total += count
		if i < len(h.Bounds) {
			buckets[h.Bounds[i].Seconds()] = total
		}
	}
	return prometheus.MustNewConstHistogram(desc, total, h.Sum.Seconds(), buckets)
}
