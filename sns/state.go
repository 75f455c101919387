package sns

import (
	"container/heap"
	"fmt"
)

// State holds all topics of one raft group. It is not safe for concurrent use; but
// what its methods say to be reading may go on at the same time.
type State struct {
	now        Time  // of the latest command
	rules      Rules // of the latest command; zero before the first
	topics     map[TopicKey]*topic
	directory  sorted[*topic]   // the same, by key
	holdings   sorted[*holding] // who has subscribed to what, by account and topic
	schedule   schedule
	unfinished []*topic // with publishes that wait for Pulses; the next one first
	waiting    int      // bytes of those publishes
	deleted    []*topic // that have left something behind (sweep); in no encoding
	tokens     map[TokenHash]confirmation
	sms        []smsAttributes   // by account
	texts      map[string]string // that many subscriptions have; never walked over
	events     []Event           // of the command at hand
	working    TopicKey          // which Pulse is at
	steps      int               // what one entry may do: MaxSteps, but in tests
	entry      uint64            // index of the one at hand
	left       int               // of its steps
}

// New returns a State without topics.
func New() *State {
	return &State{
		topics:    make(map[TopicKey]*topic),
		directory: sorted[*topic]{compare: func(a, b *topic) int { return a.key.compare(b.key) }},
		holdings:  sorted[*holding]{compare: byHolder},
		tokens:    make(map[TokenHash]confirmation),
		texts:     make(map[string]string),
		steps:     MaxSteps,
	}
}

// Apply executes one command. Its refusal is as much a part of the replicated
// outcome as its result; a command that is refused has changed nothing that a
// client could see. The events are valid until the next call.
func (s *State) Apply(at Moment, c Command) (Result, []Event, *Error) {
	s.tick(&at)
	result, err := s.apply(&at, c)
	return result, s.events, err.bounded()
}

func (s *State) apply(at *Moment, c Command) (Result, *Error) {
	switch c := c.(type) { //nolint:gochecksumtype // the others are in applySubscriptions
	case PublishBatch:
		return s.publishBatch(at, c)
	case CreateTopic:
		return s.createTopic(at, c)
	case DeleteTopic:
		return s.deleteTopic(c)
	case ListTopics:
		return s.listTopics(c)
	case GetTopicAttributes:
		return s.getTopicAttributes(c)
	case SetTopicAttributes:
		return s.setTopicAttributes(c)
	case ReplaceTopicPolicy:
		return s.replaceTopicPolicy(c)
	case TagResource:
		return s.tagResource(c)
	case UntagResource:
		return s.untagResource(c)
	case ListTagsForResource:
		return s.listTagsForResource(c)
	case PutDataProtectionPolicy:
		return s.putDataProtectionPolicy(c)
	case GetDataProtectionPolicy:
		return s.getDataProtectionPolicy(c)
	case SetSMSAttributes:
		return s.setSMSAttributes(c)
	case GetSMSAttributes:
		return s.getSMSAttributes(c)
	}
	return s.applySubscriptions(at, c)
}

func (s *State) applySubscriptions(at *Moment, c Command) (Result, *Error) {
	switch c := c.(type) { //nolint:gochecksumtype // the others are in apply
	case Subscribe:
		return s.subscribe(at, c)
	case ConfirmSubscription:
		return s.confirmSubscription(c)
	case Unsubscribe:
		return s.unsubscribe(c)
	case ListSubscriptions:
		return s.listSubscriptions(c)
	case ListSubscriptionsByTopic:
		return s.listSubscriptionsByTopic(c)
	case GetSubscriptionAttributes:
		return s.getSubscriptionAttributes(c)
	case SetSubscriptionAttributes:
		return s.setSubscriptionAttributes(c)
	}
	panic(fmt.Sprintf("sns: unknown command %T", c))
}

// tick keeps time from going back, on which windows depend, and begins an entry
// with its first command. (An entry is never in two parts with a snapshot between
// them, so its steps are in none.)
func (s *State) tick(at *Moment) {
	if at.Index == 0 || at.Index != s.entry {
		s.entry, s.left = at.Index, s.steps
	}
	s.now = max(s.now, at.Now)
	at.Now = s.now
	s.rules = at.Rules
	s.sweep(sweptByCommand)
	s.events = s.events[:0]
}

// Pulse does what time alone asks for: it goes on with publishes to many
// subscriptions, and forgets deduplication ids, subscriptions that nobody
// confirmed, and what deleted topics have left behind. It takes a bounded number of
// steps; NextPulse tells whether more is due. The events are valid until the next
// call.
func (s *State) Pulse(at Moment) []Event {
	s.tick(&at)
	s.sweep(sweptByPulse)
	kept := max(0, s.left-PulseSteps)
	s.left -= kept
	s.goOn(&at, &s.left)
	s.left += kept
	for len(s.schedule) > 0 && s.schedule[0].pulseAt <= at.Now && s.left > 0 {
		s.left--
		t := s.schedule[0]
		s.working = t.key
		s.left = max(0, s.left-t.dedup.forget(at.Now, at.Rules.DedupWindow, forgottenByPulse))
		s.dropUnconfirmed(t, &s.left)
		s.reschedule(t)
	}
	s.working = TopicKey{}
	return s.events
}

// HasTopics reports whether there is any topic. It only reads.
func (s *State) HasTopics() bool { return s.directory.count > 0 }

// Has reports whether there is a topic of that key. It only reads.
func (s *State) Has(key TopicKey) bool { return s.topics[key] != nil }

// NextPulse returns when Pulse next has something to do; false when it has nothing
// to wait for. It only reads.
func (s *State) NextPulse() (Time, bool) {
	if len(s.unfinished) > 0 || len(s.deleted) > 0 {
		return s.now, true
	}
	if len(s.schedule) > 0 {
		return s.schedule[0].pulseAt, true
	}
	return 0, false
}

// maxTexts bounds State.texts, in which those stay, too, that no subscription has any
// more.
const maxTexts = 4096

// intern returns a text that is equal to the given one and shared with others.
func (s *State) intern(text string) string {
	if shared, ok := s.texts[text]; ok {
		return shared
	}
	if len(s.texts) == maxTexts {
		clear(s.texts)
	}
	s.texts[text] = text
	return text
}

// schedule is a heap of the topics in which something ends, by the time noted for
// that. The note may be too early, never too late.
type schedule []*topic

// Len implements heap.Interface.
func (h schedule) Len() int { return len(h) }

// Less implements heap.Interface.
func (h schedule) Less(i, j int) bool {
	if h[i].pulseAt != h[j].pulseAt {
		return h[i].pulseAt < h[j].pulseAt
	}
	return h[i].key.compare(h[j].key) < 0
}

// Swap implements heap.Interface.
func (h schedule) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *schedule) Push(x any) {
	t := x.(*topic)
	t.place = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *schedule) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// due notes that a pulse has something to do in t at a time.
func (s *State) due(t *topic, at Time) {
	switch {
	case at == never:
	case t.pulseAt == 0:
		t.pulseAt = at
		heap.Push(&s.schedule, t)
	case at < t.pulseAt:
		t.pulseAt = at
		heap.Fix(&s.schedule, t.place)
	}
}

// reschedule notes exactly when something of t ends.
func (s *State) reschedule(t *topic) {
	s.unschedule(t)
	s.due(t, t.dedup.due(s.now, s.rules.DedupWindow))
	for sub := range t.unconfirmed.all {
		s.due(t, sub.more.expires)
		break
	}
}

func (s *State) unschedule(t *topic) {
	if t.pulseAt != 0 {
		heap.Remove(&s.schedule, t.place)
		t.pulseAt = 0
	}
}
