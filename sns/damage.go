package sns

import (
	"bytes"
	"maps"
	"slices"
)

// Damage marks a topic after a panic in one of its commands. It is inspected and
// deleted afterwards, and nothing else. What it held may contradict itself, so its
// lists are built anew from its subscriptions, and publishes that wait are given
// up. Damage takes time for every subscription: it is the only change of a State
// that does.
func (s *State) Damage(key TopicKey) {
	t := s.topics[key]
	if t == nil {
		return
	}
	s.dropFanOuts(t)
	s.unschedule(t)
	s.dropHoldings(t)
	known := slices.SortedFunc(maps.Values(t.ids), func(a, b *subscription) int { return bytes.Compare(a.id[:], b.id[:]) })
	whole := newTopic(t.header)
	for _, sub := range known {
		_, placed := whole.directory.find(sub)
		_, numbered := whole.receivers.find(sub)
		expiring := sub.more != nil && sub.more.expires != 0
		if placed || sub.pending() && !expiring || !sub.pending() && (numbered || sub.number > t.lastNumber) {
			s.forgetTokens(sub)
			continue
		}
		s.add(whole, sub)
	}
	whole.damaged = true
	s.insert(whole)
	s.reschedule(whole)
}

// Concerned is the topic that a command changes or looks into: of a
// ConfirmSubscription that of the token, whatever topic it names. It is zero if there
// is no such token.
func (s *State) Concerned(c Command) TopicKey {
	if confirm, ok := c.(ConfirmSubscription); ok {
		return s.tokens[confirm.Token].topic
	}
	return c.Target()
}

// Working tells at which topic Pulse was when it panicked; false when it was at
// none.
func (s *State) Working() (TopicKey, bool) { return s.working, s.working != TopicKey{} }
