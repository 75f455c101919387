package raftfsm

import (
	"fmt"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// applyToTopics applies a command of sns. A publish stores its record and sends its
// copies while it is being applied (outlet).
func (m *Machine) applyToTopics(o *Outcome, c sns.Command, contents [][]byte) {
	if publish, ok := c.(sns.PublishBatch); ok {
		for i := range publish.Entries {
			publish.Entries[i].Content = contents[i]
		}
	}
	result, refusal, panicked := m.applyTopicIsolated(o.Index, c)
	if panicked {
		m.state.topics.Damage(m.state.topics.Concerned(c))
	}
	if refusal != nil {
		o.Err = refusal
		return
	}
	o.Result = result
	m.receivers.follow(m.state.topics, c, result)
}

// errTopicPanicked answers a command that panicked.
var errTopicPanicked = sns.Error{Code: sns.InternalError, Message: errPanicked.Message}

// applyTopicIsolated is State.Apply, with a panic turned into a refusal. What a
// publish has stored and sent until then stays.
func (m *Machine) applyTopicIsolated(index uint64, c sns.Command) (result sns.Result, refusal *sns.Error, panicked bool) {
	defer func() {
		if m.letPanic {
			return
		}
		if p := recover(); p != nil {
			topic := m.state.topics.Concerned(c)
			m.report(PanicReport{Index: index, Command: CommandName(c), Queue: sqs.QueueKey(topic), Value: fmt.Sprint(p)})
			result, refusal, panicked = nil, &errTopicPanicked, true
		}
	}()
	if m.plantedTopic != nil {
		m.plantedTopic(c)
	}
	result, events, refusal := m.state.topics.Apply(m.topicMoment(index), c)
	m.topicEvents = append(m.topicEvents, events...)
	return result, refusal, false
}

// pulseTopics is sns.State.Pulse, isolated in the same way: what panics is the
// topic that it was at.
func (m *Machine) pulseTopics(o *Outcome) {
	defer func() {
		if m.letPanic {
			return
		}
		if p := recover(); p != nil {
			topic, at := m.state.topics.Working()
			m.report(PanicReport{Index: o.Index, Command: CommandName(Pulse{}), Queue: sqs.QueueKey(topic), Value: fmt.Sprint(p)})
			if at {
				m.state.topics.Damage(topic)
			}
			o.Err = &errTopicPanicked
		}
	}()
	m.topicEvents = append(m.topicEvents, m.state.topics.Pulse(m.topicMoment(o.Index))...)
}

func (m *Machine) topicMoment(index uint64) sns.Moment {
	return sns.Moment{
		Index:  index,
		Now:    sns.Time(m.state.now),
		Rules:  sns.Rules{DedupWindow: m.state.settings.Rules.DedupWindow, FilterLimit: m.state.settings.FilterLimit},
		Outlet: outlet{m, index},
	}
}

// outlet is where publishes go while an entry is applied.
type outlet struct {
	*Machine
	index uint64
}

// Store implements sns.Outlet.
func (o outlet) Store(record []byte) uint64 {
	number := o.state.nextBody
	o.store(number, record)
	return number
}

// Deliver implements sns.Outlet. A queue elsewhere is none of this cluster's.
func (o outlet) Deliver(c *sns.Copy) (outcome sns.Outcome, steps int) {
	if c.Queue.Region != o.state.settings.Region || c.Queue.Account != c.Topic.Account {
		return sns.QueueGone, 0
	}
	queue := sqs.QueueKey{Account: c.Queue.Account, Name: c.Queue.Name}
	policy, ok := o.state.queues.Policy(queue)
	if !ok {
		return sns.QueueGone, 0
	}
	allowed, steps := o.maySend(c.Topic, queue, policy)
	if !allowed {
		return sns.QueueDenied, steps
	}
	refusal := o.sendIsolated(sqs.CopyEntry{
		Queue: queue, Body: c.Body, Size: c.Size, GroupID: c.GroupID, DeduplicationID: c.DeduplicationID,
		Copy: sqs.Copy{Receiver: c.Subscription, Shape: shapeOf(c)},
	})
	if refusal != nil {
		return sns.QueueBroken, steps
	}
	o.tell(queue)
	o.copied(o.index, queue, c.Body, sqs.Copy{Receiver: c.Subscription, Shape: shapeOf(c)})
	return sns.Delivered, steps
}

// sendIsolated is sqs.State.SendCopy; a panic in it damages the queue, not the
// topic.
func (o outlet) sendIsolated(c sqs.CopyEntry) (refusal *sqs.Error) {
	defer func() {
		if o.letPanic {
			return
		}
		if p := recover(); p != nil {
			o.report(PanicReport{Index: o.index, Command: "SendCopy", Queue: c.Queue, Value: fmt.Sprint(p)})
			o.state.queues.Damage(c.Queue)
			refusal = &errPanicked
		}
	}()
	return o.state.queues.SendCopy(o.moment(), c)
}

// tell notes, once for a batch of entries, that a queue has got messages.
func (m *Machine) tell(queue sqs.QueueKey) {
	if _, told := m.told[queue]; told {
		return
	}
	if m.told == nil {
		m.told = make(map[sqs.QueueKey]struct{})
	}
	m.told[queue] = struct{}{}
	m.events = append(m.events, sqs.Event{Kind: sqs.MessagesAvailable, Queue: queue})
}
