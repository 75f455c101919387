package raftfsm

import (
	"holdfast.internal/raftfsm/policy"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// permissions decides whether queues take what topics send. It remembers parsed
// policies and decisions, which changes no answer.
type permissions struct{ queues map[sqs.QueueKey]*permission }

// permission is what is known of the access policy of a queue.
type permission struct {
	text     string
	document *policy.Document // nil: the text is malformed, which allows nothing
	latest   decision
}

// decision is about one topic, and holds as long as the queue has the policy.
type decision struct {
	topic   sns.TopicKey
	region  string // empty: nothing was decided yet
	allowed bool
	steps   int
}

// follow parses the policy that a command has given a queue. A publish to very many
// queues would else parse those of all, which takes several times as long as the
// copies.
func (p *permissions) follow(queues *sqs.State, c sqs.Command) {
	switch c.(type) { //nolint:gochecksumtype // the others leave policies as they are
	case sqs.CreateQueue, sqs.SetQueueAttributes, sqs.ReplacePolicy, sqs.DeleteQueue:
		text, _ := queues.Policy(c.Target())
		p.of(c.Target(), text)
	}
}

// restart does the same for a state that takes the place of another.
func (p *permissions) restart(queues *sqs.State) {
	p.queues = make(map[sqs.QueueKey]*permission)
	for queue, text := range queues.Policies {
		p.of(queue, text)
	}
}

// of is what is known of the policy of a queue; nil if the text is empty.
func (p *permissions) of(queue sqs.QueueKey, text string) *permission {
	known := p.queues[queue]
	switch {
	case text == "":
		delete(p.queues, queue)
		return nil
	case known == nil || known.text != text:
		known = &permission{text: text}
		known.document, _ = policy.Parse(text)
		p.queues[queue] = known
	}
	return known
}

// A decision takes a step more for every workOfStep that the policy takes beyond
// freeWork, which is more than those take that users write.
const (
	workOfStep = 4
	freeWork   = 8
)

// maySend reports whether a queue with that access policy takes messages of a
// topic, and how many steps the decision counts, whether it was remembered or not. A
// queue without one takes all while policies are open, and none while they are
// enforced, as in AWS.
func (m *Machine) maySend(topic sns.TopicKey, queue sqs.QueueKey, text string) (allowed bool, steps int) {
	if text == "" {
		return m.state.settings.QueuePolicies == PoliciesOpen, 0
	}
	known := m.permissions.of(queue, text)
	region := m.state.settings.Region
	if d := &known.latest; d.region == region && d.topic == topic {
		return d.allowed, d.steps
	}
	queueARN := "arn:aws:sqs:" + region + ":" + queue.Account + ":" + queue.Name
	allowed, work := known.document.AllowsSend(queueARN, sns.TopicARN(region, topic), topic.Account, int64(m.state.now))
	steps = max(0, work-freeWork) / workOfStep
	if !known.document.DependsOnTime() {
		known.latest = decision{topic, region, allowed, steps}
	}
	return allowed, steps
}
