package sns

import (
	"container/heap"
	"fmt"
	"math"
)

// Thaw makes a State from what Frozen.AppendTo has encoded. Whatever data is, it
// returns an error or a state that keeps all its invariants, and allocates in
// proportion to data.
func Thaw(data []byte) (*State, error) {
	d := &decoder{data: data}
	if v := d.number(math.MaxUint64); d.err == nil && v != stateVersion {
		return nil, fmt.Errorf("%w: %d", ErrVersion, v)
	}
	s := New()
	s.now = d.time()
	for n := d.count(); n > 0 && d.err == nil; n-- {
		a := smsAttributes{account: d.text(), attributes: d.attributes()}
		if last := len(s.sms) - 1; last >= 0 && s.sms[last].account >= a.account {
			d.fail("accounts are not in order")
		}
		s.sms = append(s.sms, a)
	}
	var last *topic
	for n := d.count(); n > 0 && d.err == nil; n-- {
		t := d.topic(s)
		if last != nil && last.key.compare(t.key) >= 0 {
			d.fail("topics are not in order")
		}
		last = t
	}
	d.unfinished(s)
	if d.err == nil && len(d.data) > 0 {
		d.fail("%d bytes too many", len(d.data))
	}
	if d.err != nil {
		return nil, d.err
	}
	return s, nil
}

// unfinished reads in which order topics go on.
func (d *decoder) unfinished(s *State) {
	waiting := 0
	for t := range s.directory.all {
		if len(t.fanOuts) > 0 {
			waiting++
		}
	}
	seen := make(map[TopicKey]bool)
	for n := d.count(); n > 0 && d.err == nil; n-- {
		t := s.topics[d.key()]
		if t == nil || len(t.fanOuts) == 0 || seen[t.key] {
			d.fail("topic that has nothing to go on with")
			return
		}
		seen[t.key] = true
		s.unfinished = append(s.unfinished, t)
	}
	if len(s.unfinished) != waiting {
		d.fail("topic that does not go on")
	}
}

func (d *decoder) key() TopicKey { return TopicKey{Account: d.text(), Name: d.text()} }

func (d *decoder) topic(s *State) *topic {
	t := newTopic(d.header())
	pulseAt := d.time()
	before := &subscription{}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		sub := d.subscription(s, t, before)
		if d.err == nil && (before.id != (SubscriptionID{}) && byEndpoint(before, sub) >= 0 || t.ids[sub.id] != nil || sub.number > t.lastNumber) {
			d.fail("subscriptions are not in order")
		}
		if _, twice := t.receivers.find(sub); d.err == nil && !sub.pending() && twice {
			d.fail("two subscriptions of one number")
		}
		if d.err == nil {
			s.add(t, sub)
		}
		before = sub
	}
	d.dedup(t, s.now)
	d.fanOuts(s, t)
	if d.err != nil {
		return t
	}
	s.insert(t)
	if pulseAt != 0 {
		t.pulseAt = pulseAt
		heap.Push(&s.schedule, t)
	}
	return t
}

func (d *decoder) header() header {
	h := header{key: d.key(), createdAt: d.time(), lastSequence: d.number(math.MaxUint64 / 2), lastNumber: d.number(math.MaxUint64 / 2)}
	h.attributes = d.attributes()
	h.settings = h.attributes.topicSettings()
	for n := d.count(); n > 0 && d.err == nil; n-- {
		tag := Tag{Key: d.text(), Value: d.text()}
		if last := len(h.tags) - 1; last >= 0 && h.tags[last].Key >= tag.Key {
			d.fail("tags are not in order")
		}
		h.tags = append(h.tags, tag)
	}
	h.dataProtection = d.text()
	for _, n := range h.counters.all() {
		*n = d.number(math.MaxUint64)
	}
	h.damaged = d.bool()
	return h
}

func (d *decoder) attributes() (a attributes) {
	for n := d.count(); n > 0 && d.err == nil; n-- {
		next := Attribute{Name: AttributeName(d.text()), Value: d.text()}
		if last := len(a) - 1; last >= 0 && a[last].Name >= next.Name {
			d.fail("attributes are not in order")
		}
		a = append(a, next)
	}
	return a
}

func (d *decoder) subscription(s *State, t *topic, before *subscription) *subscription {
	sub := &subscription{principal: before.principal, owner: before.owner}
	d.fixed(sub.id[:])
	sub.number = d.number(math.MaxUint64 / 2)
	sub.protocol = Protocol(d.byte())
	sub.raw, sub.authenticated = d.bool(), d.bool()
	sub.endpoint = d.text()
	for _, text := range []*string{&sub.principal, &sub.owner} {
		if d.bool() {
			*text = s.intern(d.text())
		}
	}
	m := more{attributes: d.attributes()}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		var known confirmationToken
		d.fixed(known.hash[:])
		known.until = d.time()
		m.tokens = append(m.tokens, known)
		s.tokens[known.hash] = confirmation{topic: t.key, subscription: sub.id, until: known.until}
	}
	m.expires = d.time()
	if len(m.attributes) > 0 || len(m.tokens) > 0 || m.expires != 0 {
		d.compile(&m)
		sub.more = &m
	}
	if sub.pending() && (sub.more == nil || sub.more.expires == 0) || sub.protocol.String() == "" {
		d.fail("subscription that cannot be")
	}
	return sub
}

// compile makes what attributes mean from their texts.
func (d *decoder) compile(m *more) {
	if text := m.attributes.value(FilterPolicyAttribute); text != "" {
		var err error
		if m.filter, err = ParseFilterPolicy(text, scopeOf(m.attributes.value(FilterPolicyScope))); err != nil {
			d.fail("filter policy: %v", err)
		}
	}
	if text := m.attributes.value(RedrivePolicy); text != "" {
		var reason string
		if _, m.redrive, reason = parseRedrivePolicy(text); reason != "" {
			d.fail("redrive policy: %s", reason)
		}
	}
}

func (d *decoder) dedup(t *topic, now Time) {
	var last original
	for n := d.count(); n > 0 && d.err == nil; n-- {
		var o original
		d.fixed(o.key[:])
		d.fixed(o.id[:])
		o.at = last.at + Time(d.number(uint64(now-last.at)))
		o.sequence = last.sequence + d.number(t.lastSequence-min(t.lastSequence, last.sequence))
		if d.err == nil {
			t.dedup.add(o)
		}
		last = o
	}
}

func (d *decoder) fanOuts(s *State, t *topic) {
	for n := d.count(); n > 0 && d.err == nil; n-- {
		f := &fanOut{body: d.number(math.MaxUint64 / 2), size: int(d.number(math.MaxInt32)), cursor: d.number(math.MaxUint64 / 2), last: d.number(t.lastNumber)}
		f.record = append([]byte(nil), d.bytes()...)
		if d.err == nil && f.body == 0 {
			d.fail("publish without a record")
		}
		t.fanOuts = append(t.fanOuts, f)
		s.waiting += len(f.record)
	}
}
