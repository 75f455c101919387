package raftfsm

import (
	"holdfast.internal/raftfsm/policy"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// maxDecisions bounds the decisions that are remembered.
const maxDecisions = 1 << 16

// permissions decides whether queues take what topics send. It remembers decisions
// and parsed policies, which changes no answer.
type permissions struct {
	documents policy.Cache
	decisions map[permission]decision
}

type permission struct {
	topic sns.TopicKey
	queue sqs.QueueKey
}

// decision holds as long as the queue has the policy.
type decision struct {
	policy  string
	allowed bool
}

// maySend reports whether a queue with that access policy takes messages of a
// topic. A queue without one takes all while policies are open, and none while
// they are enforced, as in AWS.
func (m *Machine) maySend(topic sns.TopicKey, queue sqs.QueueKey, text string) bool {
	if text == "" {
		return m.state.settings.QueuePolicies == PoliciesOpen
	}
	p := &m.permissions
	key := permission{topic, queue}
	if known, ok := p.decisions[key]; ok && known.policy == text {
		return known.allowed
	}
	document := p.documents.Document(text)
	region := m.state.settings.Region
	queueARN := "arn:aws:sqs:" + region + ":" + queue.Account + ":" + queue.Name
	allowed := document.AllowsSend(queueARN, sns.TopicARN(region, topic), topic.Account, int64(m.state.now))
	if document.DependsOnTime() {
		return allowed
	}
	if p.decisions == nil || len(p.decisions) >= maxDecisions {
		p.decisions = make(map[permission]decision)
	}
	p.decisions[key] = decision{text, allowed}
	return allowed
}
