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

// follow parses the policy that a command has given a queue. A publish to very many
// queues would else parse those of all, which takes several times as long as the
// copies.
func (p *permissions) follow(queues *sqs.State, c sqs.Command) {
	switch c.(type) { //nolint:gochecksumtype // the others leave policies as they are
	case sqs.CreateQueue, sqs.SetQueueAttributes, sqs.ReplacePolicy:
		if text, _ := queues.Policy(c.Target()); text != "" {
			p.documents.Document(text)
		}
	}
}

// restart does the same for a state that takes the place of another.
func (p *permissions) restart(queues *sqs.State) {
	left := policy.MaxCached
	for text := range queues.Policies {
		if left--; left < 0 {
			return
		}
		p.documents.Document(text)
	}
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
