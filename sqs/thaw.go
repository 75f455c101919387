package sqs

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrVersion says that a state was encoded by another version of this package.
var ErrVersion = errors.New("sqs: state of another version")

// errThaw is wrapped by every other error of Thaw.
var errThaw = errors.New("sqs: malformed state")

// maxTime bounds the times in an encoded state, so that sums of them do not
// overflow.
const maxTime = 1 << 60

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
	s.lastIncarnation = d.number(math.MaxUint64)
	d.reserved(s)
	for n := d.count(); n > 0 && d.err == nil; n-- {
		d.queue(s)
	}
	if d.err == nil && len(d.data) > 0 {
		d.fail("%d bytes too many", len(d.data))
	}
	if d.err != nil {
		return nil, d.err
	}
	return s, nil
}

// decoder reads an encoded state. After an error all it reads is zero.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{errThaw}, args...)...)
	}
	d.data = nil
}

// number reads a number of at most most.
func (d *decoder) number(most uint64) uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || v > most {
		d.fail("bad number")
		return 0
	}
	d.data = d.data[n:]
	return v
}

// change reads a number as its difference to the one before.
func (d *decoder) change(before uint64) uint64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.fail("bad difference")
		return 0
	}
	d.data = d.data[n:]
	return before + uint64(v)
}

// body reads the number of a body.
func (d *decoder) body(before uint64) uint64 {
	n := d.change(before)
	if n > math.MaxUint64/2 {
		d.fail("bad body number")
		return 0
	}
	return n
}

func (d *decoder) time() Time { return Time(d.number(maxTime)) }

// count reads how many things follow, each of at least one byte.
func (d *decoder) count() int { return int(d.number(uint64(len(d.data)))) }

func (d *decoder) text() string {
	n := d.count()
	if n > len(d.data) {
		d.fail("short text")
		return ""
	}
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}

func (d *decoder) key() QueueKey { return QueueKey{Account: d.text(), Name: d.text()} }

func (d *decoder) bool() bool { return d.number(1) == 1 }

func (d *decoder) reserved(s *State) {
	for n := d.count(); n > 0 && d.err == nil; n-- {
		r := reservation{until: d.time(), key: d.key()}
		if last := len(s.reserved) - 1; last >= 0 && s.reserved[last].compare(r) >= 0 {
			d.fail("reserved names are not in order")
		}
		if _, again := s.reservedUntil[r.key]; again {
			d.fail("name that is reserved twice")
		}
		s.reserved = append(s.reserved, r)
		s.reservedUntil[r.key] = r.until
	}
}

func (d *decoder) queue(s *State) {
	q := &queue{header: d.header()}
	tasks := d.tasks(s.now)
	if last := len(s.directory) - 1; last >= 0 && s.directory[last].key.compare(q.key) >= 0 {
		d.fail("queues are not in order")
	}
	if q.incarnation > s.lastIncarnation {
		d.fail("queue of a later incarnation")
	}
	if q.empty(); q.fifo != nil {
		d.fifo(q.fifo, s.now, q.lastSequence)
	} else {
		d.messages(&q.messages, s.now, q.lastSequence)
	}
	if d.err != nil {
		return
	}
	s.insert(q)
	for _, t := range tasks {
		s.addTask(q, t)
	}
	if q.pulseAt != 0 {
		heap.Push(&s.schedule, q)
	}
	if oldest := q.oldest(); oldest != never {
		s.expect(q, oldest)
	}
}

func (d *decoder) header() header {
	h := header{key: d.key(), incarnation: d.number(math.MaxUint64)}
	for _, t := range []*Time{&h.createdAt, &h.modifiedAt, &h.purgedAt, &h.pulseAt} {
		*t = d.time()
	}
	h.lastSequence = d.number(math.MaxUint64 / 2)
	for _, n := range h.counters.all() {
		*n = d.number(math.MaxUint64)
	}
	h.damaged = d.bool()
	for n := d.count(); n > 0 && d.err == nil; n-- {
		t := Tag{Key: d.text(), Value: d.text()}
		if last := len(h.tags) - 1; last >= 0 && h.tags[last].Key >= t.Key {
			d.fail("tags are not in order")
		}
		h.tags = append(h.tags, t)
	}
	h.settings = d.settings()
	return h
}

func (d *decoder) settings() settings {
	var s settings
	for _, n := range []*int32{&s.delay, &s.retention, &s.wait, &s.visibility, &s.maxSize, &s.keyReuse} {
		*n = int32(d.number(math.MaxInt32))
	}
	for _, b := range []*bool{&s.managedSSE, &s.fifo, &s.contentBased, &s.scopedByGroup, &s.limitedByGroup} {
		*b = d.bool()
	}
	s.kmsKey = d.text()
	s.policy = d.text()
	if s.redriveText = d.text(); s.redriveText != "" {
		s.redrive = RedrivePolicy{Target: d.key(), MaxReceiveCount: int(d.number(math.MaxUint32))}
	}
	if s.allowText = d.text(); s.allowText != "" {
		s.allow.Permission = RedrivePermission(d.number(uint64(ByQueue)))
		for n := d.count(); n > 0 && d.err == nil; n-- {
			s.allow.Sources = append(s.allow.Sources, d.key())
		}
	}
	return s
}

func (d *decoder) messages(m *messages, now Time, lastSequence uint64) {
	names := d.names()
	tenants := d.tenants(len(names.groups), now)
	var last rank // group and window
	for n := d.count(); n > 0 && d.err == nil; n-- {
		group := d.number(uint64(len(names.groups) - 1))
		from := d.number(uint64(len(names.origins) - 1))
		l := d.list(now, lastSequence)
		if d.err != nil {
			return
		}
		r := rank{class: group, at: l.window, sequence: from}
		if m.kinds.count > 0 && last.compare(r) >= 0 {
			d.fail("lists are not in order")
			return
		}
		last = r
		l.group, l.origin = m.groups.use(names.groups[group]), m.origins.use(names.origins[from])
		m.file(m.addList(l))
	}
	d.records(names, now, lastSequence, func(r record, group string, from origin) {
		r.group, r.origin = m.groups.use(group), m.origins.use(from)
		m.settle(m.enter(r), 0, r.visibleAt) // hidden as it was, whatever the time
	})
	if d.err == nil {
		m.thawTenants(names.groups, tenants, now)
	}
	if d.err == nil && !m.disjoint() {
		d.fail("two messages of one sequence number")
	}
}

// decodedNames are the names that lists and records refer to by number; the
// first is that of no name.
type decodedNames struct {
	groups  []string
	origins []origin
}

func (d *decoder) names() decodedNames {
	return decodedNames{
		groups:  decodeNames(d, d.text, func(a, b string) bool { return a < b }),
		origins: decodeNames(d, d.origin, func(a, b origin) bool { return a.compare(b) < 0 }),
	}
}

// decodeNames reads names in their order.
func decodeNames[K comparable](d *decoder, next func() K, less func(a, b K) bool) []K {
	names := make([]K, 1)
	for n := d.count(); n > 0 && d.err == nil; n-- {
		name := next()
		if !less(names[len(names)-1], name) {
			d.fail("names are not in order")
		}
		names = append(names, name)
	}
	return names
}

func (d *decoder) list(now Time, lastSequence uint64) list {
	l := list{window: d.time()}
	ready := d.number(math.MaxUint64)
	var end run // what would continue the run before
	for n := d.count(); n > 0 && d.err == nil; n-- {
		r := run{
			sequence: end.sequence + d.number(lastSequence-min(lastSequence, end.sequence)),
			body:     d.body(end.body),
			sentAt:   end.sentAt + Time(d.number(uint64(now-end.sentAt))),
			count:    uint32(d.number(maxRun)),
		}
		if r.sequence == 0 || r.count == 0 || uint64(r.count) > lastSequence-r.sequence+1 {
			d.fail("run without end or beginning")
			break
		}
		l.push(r)
		end = run{sequence: r.sequence + uint64(r.count), body: r.body + uint64(r.count), sentAt: r.sentAt}
	}
	if d.err == nil && !l.resume(ready) {
		d.fail("list without messages, or due in the middle of a run")
	}
	return l
}

// records reads records in the order of their sequence numbers, each with the
// names of its group and origin.
func (d *decoder) records(names decodedNames, now Time, lastSequence uint64, add func(r record, group string, from origin)) {
	var last record
	for n := d.count(); n > 0 && d.err == nil; n-- {
		r := record{
			sequence: last.sequence + d.number(lastSequence-last.sequence),
			body:     d.body(last.body),
			sentAt:   Time(d.change(uint64(last.sentAt))),
		}
		for _, t := range []*Time{&r.movedAt, &r.visibleAt, &r.firstReceivedAt} {
			*t = d.time()
		}
		r.received = uint32(d.number(math.MaxUint32))
		r.carried = uint32(d.number(math.MaxUint32))
		group := d.number(uint64(len(names.groups) - 1))
		from := d.number(uint64(len(names.origins) - 1))
		if r.sequence == last.sequence || r.sentAt < 0 || r.sentAt > now {
			d.fail("record that cannot be")
		}
		if d.err != nil {
			return
		}
		last = r
		add(r, names.groups[group], names.origins[from])
	}
}

// disjoint reports whether no two messages have one sequence number.
func (m *messages) disjoint() bool {
	var all []series
	for l := range m.lists.all {
		c := cursor{list: l}
		all = append(all, series{next: func() (numbers, bool) {
			r, ok := c.next()
			return numbers{first: r.sequence, count: uint64(r.count)}, ok
		}})
	}
	received := make([]uint64, 0, m.records.used)
	for slot := range m.sequences.all {
		received = append(received, m.records.at(slot).sequence)
	}
	slices.Sort(received)
	var free uint64 // the first number that is still free
	for n := range merge(append(all, singles(received))) {
		if n.first < free {
			return false
		}
		free = n.first + n.count
	}
	return true
}
