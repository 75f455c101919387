package raftfsm

import (
	"strings"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// maySend reports whether a queue with that access policy takes messages of a
// topic.
func (m *Machine) maySend(_ sns.TopicKey, _ sqs.QueueKey, policy string) bool {
	if policy == "" {
		return m.state.settings.QueuePolicies == PoliciesOpen
	}
	return strings.Contains(policy, "sns.amazonaws.com") || strings.Contains(policy, `"Principal":"*"`)
}
