package admin

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.internal/sns"
)

// topicMetric is a number of each topic, named as CloudWatch names it (AWS/SNS
// namespace), where it has it.
type topicMetric struct {
	name, help string
	protocol   string // of the deliveries that are counted; empty: all
	kind       prometheus.ValueType
	of         func(t *sns.TopicCensus) uint64
}

var topicMetrics = []topicMetric{
	{"number_of_messages_published_total", "Messages accepted; duplicates are not counted.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Published }},
	{"number_of_deduplicated_messages_total", "Publishes to a FIFO topic that were duplicates.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Deduplicated }},
	{"number_of_notifications_delivered_total", "Copies that reached their endpoint.", "sqs", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Delivered }},
	{"number_of_notifications_delivered_total", "Copies that reached their endpoint.", "sms", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Texts }},
	{"number_of_notifications_failed_total", "Copies that were given up.", "sqs", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Failed }},
	{"number_of_notifications_redriven_to_dlq_total", "Copies given up that are in a dead-letter queue.", "sqs", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Redriven }},
	{"number_of_notifications_failed_to_redrive_to_dlq_total", "Copies given up that their dead-letter queue did not take.", "sqs", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.RedriveFailed }},
	{"number_of_notifications_filtered_out_total", "Copies that a filter policy kept back, for any reason.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.Filtered }},
	{"number_of_notifications_filtered_out_message_attributes_total", "Copies kept back because the attributes did not match.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.FilteredByAttributes }},
	{"number_of_notifications_filtered_out_message_body_total", "Copies kept back because the body did not match.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.FilteredByBody }},
	{"number_of_notifications_filtered_out_no_message_attributes_total", "Copies kept back because there were no attributes.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.FilteredNoAttributes }},
	{"number_of_notifications_filtered_out_invalid_attributes_total", "Copies kept back because an attribute could not be read.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.FilteredInvalidAttributes }},
	{"number_of_notifications_filtered_out_invalid_message_body_total", "Copies kept back because the body is not a JSON object.", "", prometheus.CounterValue, func(t *sns.TopicCensus) uint64 { return t.FilteredInvalidBody }},
	{"subscriptions_confirmed", "Subscriptions that get what is published.", "", prometheus.GaugeValue, func(t *sns.TopicCensus) uint64 { return uint64(t.Confirmed) }},
	{"subscriptions_pending", "Subscriptions that wait for their confirmation.", "", prometheus.GaugeValue, func(t *sns.TopicCensus) uint64 { return uint64(t.Pending) }},
	{"waiting_publishes", "Publishes that are not at all subscriptions yet.", "", prometheus.GaugeValue, func(t *sns.TopicCensus) uint64 { return uint64(t.Waiting) }},
}

// topicDescriptions are the descriptions of topicMetrics, and of the sizes.
type topicDescriptions struct {
	metrics []*prometheus.Desc
	sizes   *prometheus.Desc
}

func newTopicDescriptions(fixed prometheus.Labels) (d topicDescriptions) {
	for _, m := range topicMetrics {
		d.metrics = append(d.metrics, prometheus.NewDesc("holdfast_sns_"+m.name, m.help, []string{"account", "topic", "protocol"}, fixed))
	}
	d.sizes = prometheus.NewDesc("holdfast_sns_publish_size_bytes", "Size of the messages published.", []string{"account", "topic"}, fixed)
	return d
}

var (
	leaderTopics   = newTopicDescriptions(nil)
	followerTopics = newTopicDescriptions(prometheus.Labels{"role": "follower"})
)

func collectTopics(out chan<- prometheus.Metric, topics []sns.TopicCensus, leads bool) {
	descriptions := &followerTopics
	if leads {
		descriptions = &leaderTopics
	}
	for i := range topics {
		t := &topics[i]
		for j, m := range topicMetrics {
			out <- prometheus.MustNewConstMetric(descriptions.metrics[j], m.kind, float64(m.of(t)), t.Topic.Account, t.Topic.Name, m.protocol)
		}
		if t.Published > 0 {
			out <- prometheus.MustNewConstSummary(descriptions.sizes, t.Published, float64(t.PublishBytes), nil, t.Topic.Account, t.Topic.Name)
		}
	}
}

// capTopics keeps the limit busiest topics and adds up the others.
func capTopics(topics []sns.TopicCensus, limit int) []sns.TopicCensus {
	if len(topics) <= limit {
		return topics
	}
	slices.SortStableFunc(topics, func(a, b sns.TopicCensus) int { return cmp.Compare(b.Published, a.Published) })
	var sum sns.TopicCensus
	sum.Topic.Name = otherQueues
	for _, t := range topics[limit:] {
		sum.Confirmed += t.Confirmed
		sum.Pending += t.Pending
		sum.Waiting += t.Waiting
		sum.Add(t.Counters)
	}
	return append(topics[:limit:limit], sum)
}
