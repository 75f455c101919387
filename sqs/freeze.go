package sqs

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// stateVersion begins the encoding of a State.
const stateVersion = 1

// Frozen is a State as it was at one moment. It may be used beside the State,
// by one goroutine at a time.
type Frozen struct {
	now             Time
	lastIncarnation uint64
	queues          []frozenQueue // by key
	reserved        []reservation
}

// frozenQueue shares with its queue what does not change any more.
type frozenQueue struct {
	header
	lists   []list
	pages   [][]record
	groups  []nameEntry[string]
	origins []nameEntry[origin]
	tasks   moveTasks
	tenants []frozenTenant // of each group
	spent   uint64         // processing time, as it counts now
	// Of a FIFO queue:
	dedup    frozenDedup
	attempts []*attempt // oldest first

	ordered []numbered // of pages, by sequence number; nil until they are needed
}

// Freeze returns the state as it is now. It copies little, and marks chunks of
// lists and pages of records so that they are copied before they change; so it is
// no reading method, and must have the State for itself.
func (s *State) Freeze() *Frozen {
	f := &Frozen{
		now:             s.now,
		lastIncarnation: s.lastIncarnation,
		queues:          make([]frozenQueue, len(s.directory)),
		reserved:        slices.Clone(s.reserved),
	}
	for i, q := range s.directory {
		f.queues[i] = q.freeze(s.now)
	}
	return f
}

func (q *queue) freeze(now Time) frozenQueue {
	if q.fifo != nil {
		return q.freezeFIFO()
	}
	m := &q.messages
	tenants, spent := m.freezeTenants(now)
	origins := slices.Clone(m.origins.entries)
	lists := m.freezeLists(origins)
	return frozenQueue{
		header:  q.header,
		lists:   lists,
		pages:   m.records.freeze(),
		groups:  slices.Clone(m.groups.entries),
		origins: origins,
		tasks:   q.freezeTasks(),
		tenants: tenants,
		spent:   spent,
	}
}

// freezeLists copies the lists that have messages, without their chunks. It takes
// the names of the others out of origins, a copy.
func (m *messages) freezeLists(origins []nameEntry[origin]) []list {
	lists := 0
	for _, o := range m.listsByAge() {
		lists += o.count
	}
	frozen := make([]list, 0, lists)
	for l := range m.lists.all {
		switch {
		case !l.empty():
			l.frozen = true
			frozen = append(frozen, *l)
		case l.origin != 0:
			origins[l.origin-1].uses--
		}
	}
	return frozen
}

// AppendTo appends the encoding of the state to dst. It is the same for all
// states that behave the same from here on, wherever in memory their messages
// lie: lists are sorted by group and delay, records by sequence number, and
// names are numbered in their own order.
//
// The encoding is made of varints: a version, then counted lists of queues, and
// in them of lists, runs and records. Numbers that mostly rise are differences
// to the one before.
func (f *Frozen) AppendTo(dst []byte) []byte {
	return f.appendTo(dst, func(dst []byte) []byte { return dst })
}

// encodedPart is about how many bytes Encode passes on at a time.
const encodedPart = 64 << 10

// Encode passes on what AppendTo appends, in parts that are valid during the call:
// the encoding of a large state would take as much memory as its messages.
func (f *Frozen) Encode(write func(part []byte)) {
	write(f.appendTo(make([]byte, 0, encodedPart+encodedPart/8), func(dst []byte) []byte {
		if len(dst) < encodedPart {
			return dst
		}
		write(dst)
		return dst[:0]
	}))
}

// spill is given the encoding so far, may pass it on, and returns what is to be
// appended to.
type spill func(dst []byte) []byte

func (f *Frozen) appendTo(dst []byte, spill spill) []byte {
	dst = binary.AppendUvarint(dst, stateVersion)
	dst = appendTime(dst, f.now)
	dst = binary.AppendUvarint(dst, f.lastIncarnation)
	dst = binary.AppendUvarint(dst, uint64(len(f.reserved)))
	for _, r := range f.reserved {
		dst = appendTime(dst, r.until)
		dst = appendKey(dst, r.key)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.queues)))
	for i := range f.queues {
		dst = spill(f.queues[i].appendTo(dst, spill))
	}
	return dst
}

func (q *frozenQueue) appendTo(dst []byte, spill spill) []byte {
	dst = q.header.appendTo(dst)
	dst = binary.AppendUvarint(dst, uint64(len(q.tasks)))
	for i := range q.tasks {
		dst = q.tasks[i].appendTo(dst)
	}
	records := q.sorted()
	groups := newNumbering(q.groups, cmp.Compare[string])
	origins := newNumbering(q.origins, origin.compare)
	dst = binary.AppendUvarint(dst, uint64(len(groups.names)))
	for _, name := range groups.names {
		dst = spill(appendSized(dst, name))
	}
	dst = binary.AppendUvarint(dst, uint64(len(origins.names)))
	for _, o := range origins.names {
		dst = o.appendTo(dst)
	}
	if q.settings.fifo {
		dst = appendRecords(dst, records, groups.numbers, origins.numbers, spill)
		dst = q.dedup.appendTo(dst, spill)
		return appendAttempts(dst, q.attempts)
	}
	dst = q.appendTenants(dst, &groups)
	lists := slices.Clone(q.lists)
	slices.SortFunc(lists, func(a, b list) int {
		return cmp.Or(cmp.Compare(groups.numbers[a.group], groups.numbers[b.group]), cmp.Compare(a.window, b.window), cmp.Compare(origins.numbers[a.origin], origins.numbers[b.origin]))
	})
	dst = binary.AppendUvarint(dst, uint64(len(lists)))
	for i := range lists {
		dst = lists[i].appendTo(dst, groups.numbers[lists[i].group], origins.numbers[lists[i].origin], spill)
	}
	return appendRecords(dst, records, groups.numbers, origins.numbers, spill)
}

func (h *header) appendTo(dst []byte) []byte {
	dst = appendKey(dst, h.key)
	dst = binary.AppendUvarint(dst, h.incarnation)
	for _, t := range []Time{h.createdAt, h.modifiedAt, h.purgedAt, h.pulseAt} {
		dst = appendTime(dst, t)
	}
	dst = binary.AppendUvarint(dst, h.lastSequence)
	for _, n := range h.counters.all() {
		dst = binary.AppendUvarint(dst, *n)
	}
	dst = appendBool(dst, h.damaged)
	dst = binary.AppendUvarint(dst, uint64(len(h.tags)))
	for _, t := range h.tags {
		dst = appendSized(dst, t.Key)
		dst = appendSized(dst, t.Value)
	}
	return h.settings.appendTo(dst)
}

func (s *settings) appendTo(dst []byte) []byte {
	for _, n := range []int32{s.delay, s.retention, s.wait, s.visibility, s.maxSize, s.keyReuse} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, b := range []bool{s.managedSSE, s.fifo, s.contentBased, s.scopedByGroup, s.limitedByGroup} {
		dst = appendBool(dst, b)
	}
	dst = appendSized(dst, s.kmsKey)
	dst = appendSized(dst, s.policy)
	dst = appendSized(dst, s.redriveText)
	if s.redriveText != "" {
		dst = appendKey(dst, s.redrive.Target)
		dst = binary.AppendUvarint(dst, uint64(s.redrive.MaxReceiveCount))
	}
	dst = appendSized(dst, s.allowText)
	if s.allowText != "" {
		dst = binary.AppendUvarint(dst, uint64(s.allow.Permission))
		dst = binary.AppendUvarint(dst, uint64(len(s.allow.Sources)))
		for _, key := range s.allow.Sources {
			dst = appendKey(dst, key)
		}
	}
	return dst
}

// appendTo encodes the messages that are left in a list.
func (l *list) appendTo(dst []byte, group, origin uint32, spill spill) []byte {
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = binary.AppendUvarint(dst, uint64(origin))
	dst = appendTime(dst, l.window)
	dst = binary.AppendUvarint(dst, l.passed-l.taken)
	runs := -int(l.head)
	for i := range l.chunks {
		runs += len(l.chunks[i].runs)
	}
	dst = binary.AppendUvarint(dst, uint64(runs))
	var end run // what would continue the run before
	c := cursor{list: l}
	for r, ok := c.next(); ok; r, ok = c.next() {
		dst = binary.AppendUvarint(dst, r.sequence-end.sequence)
		dst = binary.AppendVarint(dst, int64(r.body-end.body))
		dst = binary.AppendUvarint(dst, uint64(r.sentAt-end.sentAt))
		dst = spill(binary.AppendUvarint(dst, uint64(r.count)))
		end = run{sequence: r.sequence + uint64(r.count), body: r.body + uint64(r.count), sentAt: r.sentAt}
	}
	return dst
}

// numbered is a record, and beside it what it is sorted by: to look into millions
// of records for each comparison would take ten times as long.
type numbered struct {
	sequence uint64
	*record
}

// sorted returns the records by sequence number. It does not rely on any order
// that the queue keeps: those of a damaged queue may be wrong.
func (q *frozenQueue) sorted() []numbered {
	if q.ordered != nil {
		return q.ordered
	}
	n := 0
	for _, p := range q.pages {
		n += len(p)
	}
	records := make([]numbered, 0, n)
	for _, p := range q.pages {
		for i := range p {
			if p[i].sequence != 0 {
				records = append(records, numbered{p[i].sequence, &p[i]})
			}
		}
	}
	slices.SortFunc(records, func(a, b numbered) int { return cmp.Compare(a.sequence, b.sequence) })
	q.ordered = records
	return records
}

func appendRecords(dst []byte, records []numbered, groups, origins []uint32, spill spill) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(records)))
	var last record
	for _, r := range records {
		dst = binary.AppendUvarint(dst, r.sequence-last.sequence)
		dst = binary.AppendVarint(dst, int64(r.body-last.body))
		dst = binary.AppendVarint(dst, int64(r.sentAt-last.sentAt))
		for _, t := range []Time{r.movedAt, r.visibleAt, r.firstReceivedAt} {
			dst = appendTime(dst, t)
		}
		dst = binary.AppendUvarint(dst, uint64(r.received))
		dst = binary.AppendUvarint(dst, uint64(r.carried))
		dst = binary.AppendUvarint(dst, uint64(groups[r.group]))
		dst = spill(binary.AppendUvarint(dst, uint64(origins[r.origin])))
		last = *r.record
	}
	return dst
}

// numbering numbers names in their own order, from 1. 0 stands for no name.
type numbering[K comparable] struct {
	names   []K
	numbers []uint32 // of each name id
}

func newNumbering[K comparable](entries []nameEntry[K], compare func(a, b K) int) numbering[K] {
	n := numbering[K]{numbers: make([]uint32, len(entries)+1)}
	ids := make([]uint32, 0, len(entries))
	for i := range entries {
		if entries[i].uses > 0 {
			ids = append(ids, uint32(i+1))
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int { return compare(entries[a-1].name, entries[b-1].name) })
	for i, id := range ids {
		n.names = append(n.names, entries[id-1].name)
		n.numbers[id] = uint32(i + 1)
	}
	return n
}

func appendTime(dst []byte, t Time) []byte { return binary.AppendUvarint(dst, uint64(t)) }

func appendKey(dst []byte, k QueueKey) []byte {
	return appendSized(appendSized(dst, k.Account), k.Name)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}
