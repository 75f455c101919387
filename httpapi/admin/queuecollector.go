package admin

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.internal/cluster"
	"holdfast.internal/sqs"
)

// queueMetric is a number of each queue, named as CloudWatch names it (AWS/SQS
// namespace), where it has it.
type queueMetric struct {
	name, help string
	kind       prometheus.ValueType
	of         func(q *queueReading) float64
}

// queueReading is one queue, or the sum of many, at a scrape.
type queueReading struct {
	sqs.QueueCensus
	emptyReceives uint64
	age           time.Duration // of the oldest message; of many queues, the greatest
	quietAge      time.Duration // the same without the messages of noisy groups
}

var queueMetrics = []queueMetric{
	{
		"number_of_messages_sent_total", "Messages sent; moves from another queue are not sends.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Sent) },
	},
	{
		"number_of_messages_received_total", "Messages handed out, repeated deliveries included.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Received) },
	},
	{
		"number_of_messages_deleted_total", "Successful deletes, repeated ones included.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Deleted) },
	},
	{
		"number_of_empty_receives_total", "Receives that this node answered without a message.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.emptyReceives) },
	},
	{
		"dead_letter_moves_total", "Messages that went from this queue to its dead-letter queue.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Moved) },
	},
	{
		"dead_letter_target_missing_total", "Deliveries of messages that should have been in a dead-letter queue, which does not exist.",
		prometheus.CounterValue, func(q *queueReading) float64 { return float64(q.Stranded) },
	},
	{
		"lost_messages_total", "Messages whose content is damaged on every node, and which are not handed out any more.",
		prometheus.CounterValue, func(q *queueReading) float64 { return float64(q.Lost) },
	},
	{
		"approximate_number_of_messages_visible", "Messages available to receivers.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Visible) },
	},
	{
		"approximate_number_of_messages_not_visible", "Messages in flight.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.InFlight) },
	},
	{
		"approximate_number_of_messages_delayed", "Messages whose delay is not over.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Delayed) },
	},
	{
		"number_of_deduplicated_sent_messages_total", "Sends to a FIFO queue that were duplicates.", prometheus.CounterValue,
		func(q *queueReading) float64 { return float64(q.Deduplicated) },
	},
	{
		"approximate_number_of_groups_with_inflight_messages", "Groups of a FIFO queue with messages in flight.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.GroupsInFlight) },
	},
	{
		"approximate_age_of_oldest_message_seconds",
		"Time since the oldest message was sent here or moved here. One that was received three times does not count.",
		prometheus.GaugeValue, func(q *queueReading) float64 { return q.age.Seconds() },
	},
	{
		"approximate_number_of_noisy_groups", "Groups of a standard queue that take more than their share.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.NoisyGroups) },
	},
	{
		"approximate_number_of_messages_visible_in_quiet_groups", "The same as without in_quiet_groups, less the messages of noisy groups.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Quiet.Visible) },
	},
	{
		"approximate_number_of_messages_not_visible_in_quiet_groups", "The same as without in_quiet_groups, less the messages of noisy groups.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Quiet.InFlight) },
	},
	{
		"approximate_number_of_messages_delayed_in_quiet_groups", "The same as without in_quiet_groups, less the messages of noisy groups.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return float64(q.Quiet.Delayed) },
	},
	{
		"approximate_age_of_oldest_message_in_quiet_groups_seconds", "The same as without in_quiet_groups, less the messages of noisy groups.", prometheus.GaugeValue,
		func(q *queueReading) float64 { return q.quietAge.Seconds() },
	},
}

// otherQueues is the queue label of the sum. No queue can have the name.
const otherQueues = "~other"

// queueDescriptions are the descriptions of queueMetrics, and of the sizes.
type queueDescriptions struct {
	metrics []*prometheus.Desc
	sizes   *prometheus.Desc
}

func newQueueDescriptions(fixed prometheus.Labels) (d queueDescriptions) {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_sqs_"+name, help, []string{"account", "queue"}, fixed)
	}
	for _, m := range queueMetrics {
		d.metrics = append(d.metrics, describe(m.name, m.help))
	}
	d.sizes = describe("sent_message_size_bytes", "Size of the messages sent.")
	return d
}

// A follower's numbers are copies of the leader's: whoever adds up all nodes must
// be able to leave them out.
var (
	leaderDescriptions   = newQueueDescriptions(nil)
	followerDescriptions = newQueueDescriptions(prometheus.Labels{"role": "follower"})
)

func collectQueues(out chan<- prometheus.Metric, readings []queueReading, leads bool) {
	descriptions := &followerDescriptions
	if leads {
		descriptions = &leaderDescriptions
	}
	for i := range readings {
		q := &readings[i]
		for j, m := range queueMetrics {
			out <- prometheus.MustNewConstMetric(descriptions.metrics[j], m.kind, m.of(q), q.Queue.Account, q.Queue.Name)
		}
		if q.Sent > 0 { // SentMessageSize has no data until one was sent
			out <- prometheus.MustNewConstSummary(descriptions.sizes, q.Sent, float64(q.SentBytes), nil, q.Queue.Account, q.Queue.Name)
		}
	}
}

func readQueues(node Node, metrics *cluster.Metrics) []queueReading {
	now := node.Now()
	return each(node.Queues(), func(q sqs.QueueCensus) queueReading { return newReading(q, metrics, now) })
}

func newReading(q sqs.QueueCensus, metrics *cluster.Metrics, now sqs.Time) queueReading {
	r := queueReading{QueueCensus: q, emptyReceives: metrics.EmptyReceives[q.Queue]}
	if q.OldestSentAt > 0 {
		r.age = max(0, now.Sub(q.OldestSentAt))
	}
	if q.Quiet.OldestSentAt > 0 {
		r.quietAge = max(0, now.Sub(q.Quiet.OldestSentAt))
	}
	return r
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
		sum.SentBytes += q.SentBytes
		sum.Received += q.Received
		sum.Deleted += q.Deleted
		sum.Moved += q.Moved
		sum.Stranded += q.Stranded
		sum.Lost += q.Lost
		sum.Deduplicated += q.Deduplicated
		sum.GroupsInFlight += q.GroupsInFlight
		sum.Visible += q.Visible
		sum.InFlight += q.InFlight
		sum.Delayed += q.Delayed
		sum.emptyReceives += q.emptyReceives
		sum.age = max(sum.age, q.age)
		sum.NoisyGroups += q.NoisyGroups
		sum.Quiet.Visible += q.Quiet.Visible
		sum.Quiet.InFlight += q.Quiet.InFlight
		sum.Quiet.Delayed += q.Quiet.Delayed
		sum.quietAge = max(sum.quietAge, q.quietAge)
	}
	return append(readings[:limit:limit], sum)
}
