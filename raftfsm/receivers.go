package raftfsm

import (
	"sync"

	"holdfast.internal/sns"
)

// receivers are the numbers of confirmed subscriptions of topics, for whoever must
// not wait for the lock. A topic with fewer than two is left out.
type receivers struct{ counts sync.Map } // of sns.TopicKey, int

// follow notes what a command has changed.
func (r *receivers) follow(topics *sns.State, c sns.Command, result sns.Result) {
	switch c.(type) { //nolint:gochecksumtype // the others leave the numbers as they are
	case sns.Subscribe, sns.Unsubscribe, sns.DeleteTopic:
		r.note(topics, c.Target())
	case sns.ConfirmSubscription:
		r.note(topics, result.(sns.ConfirmSubscriptionResult).Topic)
	}
}

func (r *receivers) note(topics *sns.State, topic sns.TopicKey) {
	if n := topics.Receivers(topic); n > 1 {
		r.counts.Store(topic, n)
	} else {
		r.counts.Delete(topic)
	}
}

// restart notes what there is in a state that takes the place of another.
func (r *receivers) restart(topics *sns.State) {
	r.counts.Clear()
	for _, t := range topics.Census() {
		if t.Confirmed > 1 {
			r.counts.Store(t.Topic, t.Confirmed)
		}
	}
}

// FanOut is the number of steps that an encoded command takes of those that a log
// entry has for publishes (sns.MaxSteps): one for each message and subscription; 0
// for a command that is no publish. It is what holds now, so by the time when the
// command is applied it may be another. It takes no lock.
func (m *Machine) FanOut(command []byte) int {
	f := fields{data: command, reading: true}
	if f.byte(0) != kindPublishBatch {
		return 0
	}
	topic := topicKeyFields(&f, sns.TopicKey{})
	messages := f.count(0, maxBatchEntries)
	if n, ok := m.receivers.counts.Load(topic); ok {
		return messages * n.(int)
	}
	return messages
}
