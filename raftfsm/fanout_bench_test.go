package raftfsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// fanOutMachine has a topic with so many subscriptions, each of a queue of its own.
func fanOutMachine(tb testing.TB, subscriptions int, attributes ...sns.Attribute) *testMachine {
	tb.Helper()
	m := newTestMachine(tb)
	m.Machine.bodies = &noBodies{}
	m.must(sns.CreateTopic{Topic: testTopic("t")})
	for i := range subscriptions {
		m.subscribe(i+1, "t", fmt.Sprint("queue-", i), attributes...)
	}
	m.log = nil
	return m
}

func (m *testMachine) publishEntry(tb testing.TB) []byte {
	tb.Helper()
	message := sns.Message{
		TopicARN: topicARN("t"), Text: bytes.Repeat([]byte("x"), 1024),
		Attributes: []sns.MessageAttribute{{Name: "kind", DataType: "String", Value: []byte("order")}},
	}
	c := sns.PublishBatch{Topic: testTopic("t"), Entries: []sns.PublishEntry{{Size: 1024}}, Single: true}
	b, err := AppendCommand(nil, c, [][]byte{sns.AppendMessage(nil, &message)})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// BenchmarkFanOut measures copies: publishes to 100 queues, with and without a
// filter policy that lets them pass.
func BenchmarkFanOut(b *testing.B) {
	for name, attributes := range map[string][]sns.Attribute{
		"plain": nil, "filtered": {{Name: sns.FilterPolicyAttribute, Value: `{"kind":["order","bill"]}`}},
	} {
		b.Run(name, func(b *testing.B) {
			m := fanOutMachine(b, 100, attributes...)
			command := m.publishEntry(b)
			b.ReportAllocs()
			for b.Loop() {
				m.index++
				m.now++
				m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: AppendOperation(AppendEntryHeader(nil, m.now), Origin{}, command)})
			}
			b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "copies/s")
		})
	}
}

// BenchmarkRender measures what a hand-out of an envelope costs, the signature
// known and not.
func BenchmarkRender(b *testing.B) {
	m := fanOutMachine(b, 1)
	m.must(AddSigningKey{Key: testSigningKey(), First: true})
	message := sns.Message{TopicARN: topicARN("t"), Text: bytes.Repeat([]byte("x"), 1024)}
	m.publish(message)
	record := m.Machine.bodies.(*noBodies).body
	settings := m.published.Load()
	for name, step := range map[string]uint64{"known": 0, "new": 1} {
		b.Run(name, func(b *testing.B) {
			number := uint64(1)
			for b.Loop() {
				number += step
				if _, err := m.render(settings, number, sqs.Copy{Shape: uint8(sns.Enveloped)}, record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
