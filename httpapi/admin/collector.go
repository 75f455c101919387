package admin

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.internal/cluster"
)

// collector reads a node, once, when it is scraped. Nothing is counted twice: all
// numbers are the node's own.
type collector struct {
	node  Node
	limit int // of queues, and of topics, with series of their own
}

func description(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, nil, nil)
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
		description("disk_reserve_bytes", "Free space below which sends are held."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Disk.ReserveBytes) },
	},
	{
		description("memory_heap_bytes", "Heap that the last garbage collection left."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Memory.HeapBytes) },
	},
	{
		description("memory_limit_bytes", "Heap above which sends are held."), prometheus.GaugeValue,
		func(s *cluster.Status, _ *cluster.Metrics) float64 { return float64(s.Memory.LimitBytes) },
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

var (
	sendsHeldDescription = prometheus.NewDesc("holdfast_sends_held",
		"1 while sends, and what else makes the state larger, are held back for this reason.", []string{"reason"}, nil)
	memberUpDescription = prometheus.NewDesc("holdfast_member_up",
		"1 for a member that answers this node, and for the node itself.", []string{"member"}, nil)
)

// collectConditions tells what is wrong by this node's word: a series for each reason
// and each member, whether it is wrong or not.
func collectConditions(out chan<- prometheus.Metric, s *cluster.Status) {
	for _, reason := range cluster.HoldReasons() {
		held := oneIf(slices.Contains(s.Held, reason))
		out <- prometheus.MustNewConstMetric(sendsHeldDescription, prometheus.GaugeValue, held, reason)
	}
	for _, m := range s.Members {
		out <- prometheus.MustNewConstMetric(memberUpDescription, prometheus.GaugeValue, oneIf(m.Up), m.Name)
	}
}

var fsyncDescription = description("wal_fsync_seconds", "Time to write log entries and make them durable.")

// Describe implements prometheus.Collector. It tells nothing, which has the registry
// accept the series of queues and topics with both sets of labels; a scrape has only
// one of them.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	status, metrics := c.node.Status(), c.node.Metrics()
	for _, m := range nodeMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(&status, &metrics))
	}
	collectConditions(out, &status)
	out <- newHistogram(fsyncDescription, metrics.Fsyncs)
	leads := status.Role == "leader"
	collectQueues(out, capQueues(readQueues(c.node, &metrics), c.limit), leads)
	collectTopics(out, capTopics(c.node.Topics(), c.limit), leads)
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

// certificateCollector tells when certificates expire.
type certificateCollector struct{ certificates func() []Certificate }

var notAfterDescription = prometheus.NewDesc("holdfast_certificate_not_after_seconds",
	"When a certificate expires, as Unix time: peer, its authority (peer-ca), api.", []string{"certificate"}, nil)

// Describe implements prometheus.Collector.
func (c *certificateCollector) Describe(out chan<- *prometheus.Desc) { out <- notAfterDescription }

// Collect implements prometheus.Collector.
func (c *certificateCollector) Collect(out chan<- prometheus.Metric) {
	for _, certificate := range c.certificates() {
		out <- prometheus.MustNewConstMetric(notAfterDescription, prometheus.GaugeValue,
			float64(certificate.NotAfter.Unix()), certificate.Name)
	}
}
