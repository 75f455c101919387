package raftfsm

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

const (
	// sessionWindow is how long a session lasts without an operation.
	sessionWindow = 15 * time.Minute

	// maxOpenNumbers is how many results a session keeps, and how many gaps its
	// finished numbers may have.
	maxOpenNumbers = 16_384

	// maxSessions is how many sessions there may be. A node opens one when it
	// starts, so there are as many only if nodes restart all the time; the one
	// that was not used for the longest time ends then.
	maxSessions = 1_024
)

// OpenSession begins a session, or does nothing if there is one of that id. Every
// operation that names a session is executed at most once: see Origin.
type OpenSession struct {
	Session uint64 // random, not 0; never used again
	Node    string // for operators
}

// SessionReason says why an operation was refused because of its origin.
type SessionReason byte

// The reasons.
const (
	SessionUnknown SessionReason = iota + 1 // it was never opened, or it has ended
	NumberFinished                          // the number's answer has arrived, or nobody waits for it
	SessionFull                             // too many results wait to be acknowledged
)

func (r SessionReason) String() string {
	switch r {
	case SessionUnknown:
		return "unknown session"
	case NumberFinished:
		return "number is finished"
	case SessionFull:
		return "session is full"
	}
	return fmt.Sprintf("reason %d", byte(r))
}

// SessionError says that an operation was refused because of its origin. This
// time it was not executed; but for SessionFull it may have been before.
type SessionError struct {
	Session, Number uint64
	Reason          SessionReason
}

func (e *SessionError) Error() string {
	return fmt.Sprintf("operation %d of session %x: %v", e.Number, e.Session, e.Reason)
}

// sessions are all that have not ended, in the order of their ids.
type sessions struct {
	list []*session
	due  sqs.Time // none of them ends before; 0 while there is none
}

// session is what is known of the operations of one boot of a node.
type session struct {
	id       uint64
	node     string
	usedAt   sqs.Time
	finished NumberRanges
	kept     map[uint64]kept // results that were not acknowledged, by number
}

// kept is the outcome of an executed operation, for its repetitions. Bodies are
// not kept: what a receive returns is pinned anew.
type kept struct {
	index  uint64
	result any
	err    error
}

// find returns a session that has not ended at now, and where it is or would be.
func (s *sessions) find(id uint64, now sqs.Time) (*session, int) {
	if s.due != 0 && s.due <= now {
		s.expire(now)
	}
	i, ok := slices.BinarySearchFunc(s.list, id, func(s *session, id uint64) int {
		switch {
		case s.id < id:
			return -1
		case s.id > id:
			return 1
		}
		return 0
	})
	if !ok {
		return nil, i
	}
	return s.list[i], i
}

func (s *sessions) expire(now sqs.Time) {
	s.list = slices.DeleteFunc(s.list, func(s *session) bool { return s.usedAt.WindowEnd(sessionWindow) <= now })
	s.due = 0
	for _, left := range s.list {
		s.expect(left)
	}
}

// expect takes note of when a session ends at the earliest.
func (s *sessions) expect(added *session) {
	if end := added.usedAt.WindowEnd(sessionWindow); s.due == 0 || end < s.due {
		s.due = end
	}
}

func (s *sessions) open(c OpenSession, now sqs.Time) error {
	if c.Session == 0 {
		return &SessionError{Reason: SessionUnknown}
	}
	known, i := s.find(c.Session, now)
	if known != nil {
		known.usedAt = now
		return nil
	}
	opened := &session{id: c.Session, node: c.Node, usedAt: now, kept: map[uint64]kept{}}
	s.list = slices.Insert(s.list, i, opened)
	s.expect(opened)
	if len(s.list) > maxSessions {
		s.endIdlest()
	}
	return nil
}

func (s *sessions) endIdlest() {
	idlest := slices.MinFunc(s.list, func(a, b *session) int { return int(a.usedAt - b.usedAt) })
	s.list = slices.DeleteFunc(s.list, func(s *session) bool { return s == idlest })
}

// begin decides what becomes of an operation: refused with an error, answered
// with what is kept, or, if known is false, executed. Acknowledgements are taken
// in any case.
func (s *session) begin(o Origin, now sqs.Time) (answer kept, known bool, err error) {
	s.usedAt = now
	for _, r := range o.Acks {
		s.finish(r)
	}
	if s.finished.Has(o.Number) {
		return kept{}, false, &SessionError{s.id, o.Number, NumberFinished}
	}
	answer, known = s.kept[o.Number]
	if !known && len(s.kept) >= maxOpenNumbers {
		return kept{}, false, &SessionError{s.id, o.Number, SessionFull}
	}
	return answer, known, nil
}

// finish adds numbers to those that are finished, and forgets their results.
func (s *session) finish(r NumberRange) {
	if r.First > r.Last {
		return
	}
	s.forget(r)
	s.finished = s.finished.Add(r)
	if len(s.finished) > maxOpenNumbers {
		s.closeOldestGap()
	}
}

// closeOldestGap finishes the oldest numbers that are open: nobody can have so
// many in use.
func (s *session) closeOldestGap() {
	oldest := NumberRange{0, s.finished[1].Last}
	s.forget(oldest)
	s.finished = slices.Replace(s.finished, 0, 2, oldest)
}

func (s *session) forget(r NumberRange) {
	if r.Last-r.First >= uint64(len(s.kept)) {
		maps.DeleteFunc(s.kept, func(n uint64, _ kept) bool { return n >= r.First && n <= r.Last })
		return
	}
	for n := r.First; n-1 != r.Last; n++ {
		delete(s.kept, n)
	}
}

// isRepeatable reports whether a command that ended so may as well be executed
// again: it was a question, or a receive that found nothing. Of such commands
// nothing is kept, so a receive that waits may be proposed many times under one
// number.
func isRepeatable(c Command, o *Outcome) bool {
	switch c.(type) {
	case sqs.GetQueueUrl, sqs.GetQueueAttributes, sqs.ListQueues, sqs.ListQueueTags,
		sqs.ListDeadLetterSourceQueues, sqs.ListMessageMoveTasks,
		sns.ListTopics, sns.GetTopicAttributes, sns.ListTagsForResource, sns.GetDataProtectionPolicy, sns.ListSubscriptions,
		sns.ListSubscriptionsByTopic, sns.GetSubscriptionAttributes, sns.GetSMSAttributes:
		return true
	case sqs.ReceiveMessage:
		received, ok := o.Result.(sqs.ReceiveMessageResult)
		return ok && len(received.Messages) == 0
	}
	return false
}

// applyInSession applies a command that names a session.
func (m *Machine) applyInSession(o *Outcome, origin Origin, c Command, contents [][]byte) {
	s, _ := m.state.sessions.find(origin.Session, m.state.now)
	if s == nil {
		o.Err = &SessionError{origin.Session, origin.Number, SessionUnknown}
		return
	}
	answer, known, err := s.begin(origin, m.state.now)
	switch {
	case err != nil:
		o.Err = err
		return
	case known && m.answerAgain(o, c, answer):
		return
	}
	delete(s.kept, origin.Number)
	m.applyCommand(o, c, contents)
	if !isRepeatable(c, o) {
		s.kept[origin.Number] = kept{o.Index, o.Result, o.Err}
	}
}

// answerAgain answers a repetition with what is kept. Of a receive that is what
// its client would still have if the first answer had arrived; if nothing is left
// the answer is false, and the receive is to be executed anew.
func (m *Machine) answerAgain(o *Outcome, c Command, answer kept) bool {
	received, ok := answer.result.(sqs.ReceiveMessageResult)
	if !ok {
		o.Index, o.Result, o.Err = answer.index, answer.result, answer.err
		return true
	}
	var current []sqs.Received
	for _, r := range received.Messages {
		if m.state.queues.Holds(c.(sqs.ReceiveMessage).Queue, r.Receipt, m.state.now) {
			current = append(current, r)
		}
	}
	if len(current) == 0 {
		return false
	}
	o.Index, o.Result = answer.index, sqs.ReceiveMessageResult{Messages: current}
	o.Bodies = m.pin(current)
	return true
}

// freeze is a copy of s that later operations do not change.
func (s *sessions) freeze() sessions {
	frozen := sessions{list: make([]*session, len(s.list)), due: s.due}
	for i, live := range s.list {
		c := *live
		c.finished, c.kept = slices.Clone(live.finished), maps.Clone(live.kept)
		frozen.list[i] = &c
	}
	return frozen
}

// inOrder reports whether ids and finished numbers are as find and begin need
// them.
func (s *sessions) inOrder() bool {
	for i, one := range s.list {
		if i > 0 && s.list[i-1].id >= one.id || !one.finished.isValid() {
			return false
		}
	}
	return true
}

func openSessionFields(f *fields, c OpenSession) OpenSession {
	c.Session = f.u64(c.Session)
	c.Node = f.str(c.Node)
	return c
}

func sessionsFields(f *fields, s sessions) sessions {
	s.list = list(f, s.list, maxSessions, sessionFields)
	s.due = f.time(s.due)
	return s
}

// numberedResult is a kept one in a snapshot.
type numberedResult struct {
	number uint64
	kept
}

// results are those that are kept, in the order of their numbers.
func (s *session) results() []numberedResult {
	list := make([]numberedResult, 0, len(s.kept))
	for _, number := range slices.Sorted(maps.Keys(s.kept)) {
		list = append(list, numberedResult{number, s.kept[number]})
	}
	return list
}

func sessionFields(f *fields, s *session) *session {
	if s == nil {
		s = &session{}
	}
	s.id = f.u64(s.id)
	s.node = f.str(s.node)
	s.usedAt = f.time(s.usedAt)
	s.finished = list(f, s.finished, maxOpenNumbers, numberRangeFields)
	results := list(f, s.results(), maxOpenNumbers, numberedResultFields)
	if f.reading {
		s.kept = make(map[uint64]kept, len(results))
		for _, r := range results {
			s.kept[r.number] = r.kept
		}
	}
	return s
}

func numberedResultFields(f *fields, r numberedResult) numberedResult {
	r.number = f.u64(r.number)
	r.index = f.u64(r.index)
	o := Outcome{Result: r.result, Err: r.err}
	outcomeFields(f, &o)
	r.result, r.err = o.Result, o.Err
	return r
}
