package sns

import (
	"encoding/binary"
	"iter"
	"slices"
)

// stateVersion begins the encoding of a State.
const stateVersion = 1

// Frozen is a State as it was at one moment. It may be used beside the State, by
// one goroutine at a time.
type Frozen struct {
	now        Time
	topics     []frozenTopic // by key
	unfinished []TopicKey    // in the order of State.unfinished
	sms        []smsAttributes
}

// frozenTopic shares with its topic what does not change any more.
type frozenTopic struct {
	header
	pulseAt       Time
	subscriptions sorted[*subscription]
	dedup         dedup
	fanOuts       []fanOut
}

// Freeze returns the state as it is now. It copies directories of pages, and marks
// the pages so that they are copied before they change; so it is no reading method,
// and must have the State for itself.
func (s *State) Freeze() *Frozen {
	f := &Frozen{now: s.now, topics: make([]frozenTopic, 0, s.directory.count), sms: slices.Clone(s.sms)}
	for t := range s.directory.all {
		frozen := frozenTopic{
			header: t.header, pulseAt: t.pulseAt, subscriptions: t.directory.freeze(), dedup: t.dedup.freeze(),
		}
		for _, o := range t.fanOuts {
			frozen.fanOuts = append(frozen.fanOuts, fanOut{record: o.record, body: o.body, size: o.size, cursor: o.cursor, last: o.last})
		}
		f.topics = append(f.topics, frozen)
	}
	for _, t := range s.unfinished {
		f.unfinished = append(f.unfinished, t.key)
	}
	return f
}

// Bodies yields the ranges (first number, count) of the records that publishes
// will refer to which are not at all their subscriptions yet, ascending and apart
// from one another.
func (f *Frozen) Bodies() iter.Seq2[uint64, uint64] {
	var numbers []uint64
	for i := range f.topics {
		for j := range f.topics[i].fanOuts {
			numbers = append(numbers, f.topics[i].fanOuts[j].body)
		}
	}
	slices.Sort(numbers)
	return func(yield func(first, count uint64) bool) {
		for len(numbers) > 0 {
			n := 1
			for n < len(numbers) && numbers[n] == numbers[0]+uint64(n) {
				n++
			}
			if !yield(numbers[0], uint64(n)) {
				return
			}
			numbers = numbers[n:]
		}
	}
}

// AppendTo appends the encoding of the state to dst. It is the same for all states
// that behave the same from here on.
func (f *Frozen) AppendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, stateVersion)
	dst = appendTime(dst, f.now)
	dst = binary.AppendUvarint(dst, uint64(len(f.sms)))
	for i := range f.sms {
		dst = appendSized(dst, f.sms[i].account)
		dst = f.sms[i].attributes.appendTo(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.topics)))
	for i := range f.topics {
		dst = f.topics[i].appendTo(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.unfinished)))
	for _, key := range f.unfinished {
		dst = appendKey(dst, key)
	}
	return dst
}

func (t *frozenTopic) appendTo(dst []byte) []byte {
	dst = t.header.appendTo(dst)
	dst = appendTime(dst, t.pulseAt)
	dst = binary.AppendUvarint(dst, uint64(t.subscriptions.count))
	before := &subscription{}
	for sub := range t.subscriptions.all {
		dst = sub.appendTo(dst, before)
		before = sub
	}
	dst = binary.AppendUvarint(dst, uint64(t.dedup.count))
	var last original
	for o := range t.dedup.all {
		dst = append(dst, o.key[:]...)
		dst = append(dst, o.id[:]...)
		dst = binary.AppendUvarint(dst, uint64(o.at-last.at))
		dst = binary.AppendUvarint(dst, o.sequence-last.sequence)
		last = *o
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.fanOuts)))
	for i := range t.fanOuts {
		o := &t.fanOuts[i]
		for _, n := range [...]uint64{o.body, uint64(o.size), o.cursor, o.last} {
			dst = binary.AppendUvarint(dst, n)
		}
		dst = appendSized(dst, o.record)
	}
	return dst
}

func (h *header) appendTo(dst []byte) []byte {
	dst = appendKey(dst, h.key)
	dst = appendTime(dst, h.createdAt)
	dst = binary.AppendUvarint(dst, h.lastSequence)
	dst = binary.AppendUvarint(dst, h.lastNumber)
	dst = h.attributes.appendTo(dst)
	dst = binary.AppendUvarint(dst, uint64(len(h.tags)))
	for _, tag := range h.tags {
		dst = appendSized(appendSized(dst, tag.Key), tag.Value)
	}
	dst = appendSized(dst, h.dataProtection)
	for _, n := range h.counters.all() {
		dst = binary.AppendUvarint(dst, *n)
	}
	return appendBool(dst, h.damaged)
}

// appendTo encodes a subscription. What is as in the one before it, and mostly is,
// takes one byte.
func (s *subscription) appendTo(dst []byte, before *subscription) []byte {
	dst = append(dst, s.id[:]...)
	dst = binary.AppendUvarint(dst, s.number)
	dst = append(dst, byte(s.protocol))
	dst = appendBool(appendBool(dst, s.raw), s.authenticated)
	dst = appendSized(dst, s.endpoint)
	for _, p := range [...][2]string{{s.principal, before.principal}, {s.owner, before.owner}} {
		dst = appendBool(dst, p[0] != p[1])
		if p[0] != p[1] {
			dst = appendSized(dst, p[0])
		}
	}
	m := s.extra()
	dst = m.attributes.appendTo(dst)
	dst = binary.AppendUvarint(dst, uint64(len(m.tokens)))
	for _, t := range m.tokens {
		dst = append(dst, t.hash[:]...)
		dst = appendTime(dst, t.until)
	}
	return appendTime(dst, m.expires)
}

func (a attributes) appendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(a)))
	for i := range a {
		dst = appendSized(appendSized(dst, string(a[i].Name)), a[i].Value)
	}
	return dst
}

func appendTime(dst []byte, t Time) []byte { return binary.AppendUvarint(dst, uint64(t)) }

func appendKey(dst []byte, k TopicKey) []byte {
	return appendSized(appendSized(dst, k.Account), k.Name)
}
