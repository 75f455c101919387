package raftfsm

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// sendPolicy lets a topic send to a queue, as consoles and tools write it.
func sendPolicy(queue, topic string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
		`"Action":"sqs:SendMessage","Resource":"%s","Condition":{"ArnEquals":{"aws:SourceArn":"%s"}}}]}`, testQueueARN(queue), topicARN(topic))
}

// TestPoliciesAreParsedBefore: a publish finds the policies of its queues parsed,
// also after a restart.
func TestPoliciesAreParsedBefore(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	const queues = 21
	key := func(i int) sqs.QueueKey { return sqs.QueueKey{Account: "000000000000", Name: fmt.Sprint("q", i)} }
	var policies []string
	m := newTestMachine(t)
	for i := range queues {
		policies = append(policies, sendPolicy(key(i).Name, "t"))
		m.must(sqs.CreateQueue{Queue: key(i), Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: policies[i]}}})
	}
	check := func(m *Machine) {
		t.Helper()
		next := 0
		taken := testing.AllocsPerRun(queues-1, func() {
			if allowed, _ := m.maySend(testTopic("t"), key(next), policies[next]); !allowed {
				t.Errorf("queue %d denies", next)
			}
			next++
		})
		if taken > 20 {
			t.Errorf("a decision takes %v allocations, want the few of one without parsing", taken)
		}
	}
	restored := New(newMemoryBodies(), nil)
	if err := restore(restored, snapshotOf(t, m.Machine)); err != nil {
		t.Fatal(err)
	}
	check(m.Machine)
	check(restored)
}

// TestPermissionsAreForgotten: what is known of policies is bounded by those that
// queues have now.
func TestPermissionsAreForgotten(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	for i := range 100 {
		text := sendPolicy("q", fmt.Sprint("t", i))
		m.must(sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: text}}})
	}
	if n := len(m.permissions.queues); n != 1 {
		t.Errorf("got %d policies, want that of the queue", n)
	}
	m.must(sqs.DeleteQueue{Queue: q})
	if n := len(m.permissions.queues); n != 0 {
		t.Errorf("got %d policies, want none of a queue that is gone", n)
	}
}

// TestRestoreForgetsDecisions: those of before were about another region.
func TestRestoreForgetsDecisions(t *testing.T) {
	machineIn := func(region string) *testMachine {
		m, q := newTestMachine(t), testQueue("q")
		m.must(SetSetting{Name: "region", Value: region})
		policy := sqs.Attribute{Name: sqs.Policy, Value: sendPolicy("q", "t")} // of us-east-1
		m.must(sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{policy}})
		m.must(sns.CreateTopic{Topic: testTopic("t")})
		m.must(sns.Subscribe{
			Topic: testTopic("t"), Subscription: subscriptionID(1), Protocol: sns.SQS, Owner: q.Account,
			Endpoint: "arn:aws:sqs:" + region + ":" + q.Account + ":q",
		})
		m.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("x")})
		return m
	}
	target, other := machineIn("us-east-1"), machineIn("eu-west-1")
	if n := target.state.topics.Census()[0].Delivered; n != 1 {
		t.Fatalf("before: got %d copies, want 1", n)
	}
	if err := restore(target.Machine, snapshotOf(t, other.Machine)); err != nil {
		t.Fatal(err)
	}
	target.index = other.index
	target.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("x")})
	if n := target.state.topics.Census()[0].Delivered; n != 0 {
		t.Errorf("got %d copies, want none: the policy is about a queue in another region", n)
	}
}

// TestCostlyPolicies: a publish to queues whose policies take long goes on with
// Pulses, at the same place whether decisions are remembered or not.
func TestCostlyPolicies(t *testing.T) {
	const queues = 100
	resources := strings.Repeat(`"*a*0*x",`, 800) + `"*"`
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":[` + resources + `]}]}`
	m := fanOutMachine(t, queues)
	for i := range queues {
		q := testQueue(fmt.Sprint("queue-", i))
		m.must(sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: policy}}})
	}
	var copies []uint64
	for range 2 {
		before := m.state.topics.Census()[0].Delivered
		m.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("x")})
		copies = append(copies, m.state.topics.Census()[0].Delivered-before)
		for m.state.topics.Totals().Waiting > 0 {
			m.must(Pulse{})
		}
	}
	if copies[0] < 3 || copies[0] > 10 || copies[1] != copies[0] {
		t.Errorf("got %d copies in the entries of two publishes, want as few in both", copies)
	}
	if n := m.state.topics.Census()[0].Delivered; n != 2*queues {
		t.Errorf("got %d copies, want %d", n, 2*queues)
	}
}
