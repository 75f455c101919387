package sqs

import (
	"cmp"
	"math"
	"slices"
)

// maxMoves is the most messages that one receive moves to a dead-letter queue.
const maxMoves = 100

// link says that target is the dead-letter queue of source.
type link struct{ target, source QueueKey }

func (l link) compare(m link) int {
	return cmp.Or(l.target.compare(m.target), l.source.compare(m.source))
}

// link takes note of the queue's RedrivePolicy.
func (s *State) link(q *queue) {
	if q.settings.redriveText == "" {
		return
	}
	l := link{target: q.settings.redrive.Target, source: q.key}
	i, _ := slices.BinarySearchFunc(s.links, l, link.compare)
	s.links = slices.Insert(s.links, i, l)
}

// unlink forgets the queue's RedrivePolicy.
func (s *State) unlink(q *queue) {
	l := link{target: q.settings.redrive.Target, source: q.key}
	if i, ok := slices.BinarySearchFunc(s.links, l, link.compare); ok {
		s.links = slices.Delete(s.links, i, i+1)
	}
}

func (s *State) listDeadLetterSourceQueues(c ListDeadLetterSourceQueues) (Result, []Event, *Error) {
	if _, err := s.found(c.Queue); err != nil {
		return nil, nil, err
	}
	from := link{target: c.Queue, source: c.After}
	i, ok := slices.BinarySearchFunc(s.links, from, link.compare)
	if ok {
		i++
	}
	var r ListDeadLetterSourceQueuesResult
	for _, l := range s.links[i:] {
		if l.target != c.Queue {
			break
		}
		if len(r.Queues) >= c.Limit {
			r.More = true
			break
		}
		r.Queues = append(r.Queues, l.source)
	}
	return r, nil, nil
}

// checkRedrive checks the RedrivePolicy that queue source is to have. A queue
// may name itself, chains and cycles are allowed (AWS recording
// sqs-edge-cases/redrive-to-self).
func (s *State) checkRedrive(source QueueKey, settings *settings) *Error {
	target, allow := settings.redrive.Target, &settings.allow
	if target != source {
		q := s.queues[target]
		if q == nil {
			return badRedrivePolicy(settings.redriveText, "Dead letter target does not exist.")
		}
		allow = &q.settings.allow
	}
	if IsFIFO(target.Name) != IsFIFO(source.Name) {
		return badRedrivePolicy(settings.redriveText, "Dead-letter queue must be same type of queue as the source..")
	}
	if !allow.admits(source) {
		return badRedrivePolicy(settings.redriveText, "The redrive allow policy of the dead letter target does not allow this source queue.")
	}
	return nil
}

// admits reports whether source may name the policy's queue as its target.
// Without a policy every queue may.
func (p *RedriveAllowPolicy) admits(source QueueKey) bool {
	switch p.Permission {
	case DenyAll:
		return false
	case ByQueue:
		return slices.Contains(p.Sources, source)
	case AllowAll:
	}
	return true
}

// deadLetters returns where the queue's messages go that were received too
// often, and what too often is. While the target does not exist they stay and
// are delivered on, and so they do when there is no policy: nothing is too often
// then.
func (s *State) deadLetters(q *queue) (target *queue, tooOften uint32) {
	if q.settings.redriveText == "" {
		return nil, math.MaxUint32
	}
	tooOften = uint32(q.settings.redrive.MaxReceiveCount)
	target = s.queues[q.settings.redrive.Target]
	if target == nil || target.damaged {
		return nil, tooOften
	}
	return target, tooOften
}

// dangling reports whether the queue's RedrivePolicy names a queue that does
// not exist.
func (s *State) dangling(q *queue) bool {
	return q.settings.redriveText != "" && s.queues[q.settings.redrive.Target] == nil
}

// parcel is a message on its way from one queue to another.
type parcel struct {
	record
	group  string
	origin origin
}

// pack removes a lifted message from its queue.
func (q *queue) pack(slot uint32) parcel {
	p := parcel{record: *q.messages.records.at(slot)}
	p.group = q.messages.groups.name(p.record.group)
	p.origin = q.messages.origins.name(p.record.origin)
	q.messages.forget(slot)
	return p
}

// accept adds a message that was moved from source. Its identity, its content
// and its enqueue time stay (so retention runs on), the shown receive count goes
// on, and the one that RedrivePolicies compare begins anew. The queue's
// DelaySeconds does not apply. In a FIFO queue the message is enqueued anew, at
// the end of its group, and no deduplication id matters. (SQS developer guide,
// dead-letter queues; AWS recording
// test_dead_letter_queue_message_attributes.) It returns the message's sequence
// number here.
func (q *queue) accept(now Time, p parcel, source QueueKey) uint64 {
	q.lastSequence++
	r := p.record
	r.sequence = q.lastSequence
	r.movedAt = now
	r.visibleAt = 0
	r.carried += r.received
	r.received = 0
	if q.fifo != nil {
		r.sentAt = now
		r.origin = q.fifo.origins.use(p.origin.deadLetterOf(source))
		q.fifo.add(r, p.group)
		return r.sequence
	}
	r.group = q.messages.groups.use(p.group)
	r.origin = q.messages.origins.use(p.origin.deadLetterOf(source))
	q.messages.settle(q.messages.enter(r), now, 0)
	if r.group != 0 {
		q.messages.noteSend(r.group, now)
	}
	return r.sequence
}
