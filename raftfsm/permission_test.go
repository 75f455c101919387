package raftfsm

import (
	"fmt"
	"testing"

	"holdfast.internal/sqs"
)

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
		policies = append(policies, fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":"%d","Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
			`"Action":"sqs:SendMessage","Condition":{"ArnEquals":{"aws:SourceArn":"%s"}}}]}`, i, topicARN("t")))
		m.must(sqs.CreateQueue{Queue: key(i), Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: policies[i]}}})
	}
	check := func(m *Machine) {
		t.Helper()
		next := 0
		taken := testing.AllocsPerRun(queues-1, func() {
			if !m.maySend(testTopic("t"), key(next), policies[next]) {
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
