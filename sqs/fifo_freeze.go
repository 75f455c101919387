package sqs

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// freezeFIFO is freeze for a FIFO queue. All but the ids is derived from the
// records.
func (q *queue) freezeFIFO() frozenQueue {
	f := q.fifo
	frozen := frozenQueue{
		header:  q.header,
		pages:   f.records.freeze(),
		groups:  slices.Clone(f.groups.names.entries),
		origins: slices.Clone(f.origins.entries),
		tasks:   q.freezeTasks(),
		dedup:   frozenDedup{pages: slices.Clone(f.dedup.pages), skipped: f.dedup.skipped, count: f.dedup.count},
	}
	for t := f.attempts.first; t != nil; t = t.newer {
		frozen.attempts = append(frozen.attempts, t)
	}
	return frozen
}

// frozenDedup is the ring of a dedup; its pages do not change any more.
type frozenDedup struct {
	pages   []dedupPage
	skipped int
	count   int
}

func (d *frozenDedup) appendTo(dst []byte, spill spill) []byte {
	dst = binary.AppendUvarint(dst, uint64(d.count))
	var last original
	for i := range d.pages {
		p := &d.pages[i]
		entries := p.entries
		if i == 0 {
			entries = entries[d.skipped:]
		}
		for j := range entries {
			o := p.original(&entries[j])
			dst = append(dst, entries[j].key[:]...)
			dst = append(dst, o.id[:]...)
			dst = binary.AppendUvarint(dst, uint64(o.at-last.at))
			dst = spill(binary.AppendUvarint(dst, o.sequence-last.sequence))
			last = o
		}
	}
	return dst
}

func appendAttempts(dst []byte, attempts []*attempt) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(attempts)))
	for _, t := range attempts {
		dst = appendSized(dst, t.id)
		dst = appendTime(dst, t.at)
		dst = binary.AppendVarint(dst, int64(t.most))
		dst = binary.AppendVarint(dst, int64(t.timeout))
		dst = appendTime(dst, t.visibleAt)
		dst = binary.AppendUvarint(dst, uint64(len(t.sequences)))
		for _, sequence := range t.sequences {
			dst = binary.AppendUvarint(dst, sequence)
		}
	}
	return dst
}

// fifo reads the messages and ids of a FIFO queue.
func (d *decoder) fifo(f *fifo, now Time, lastSequence uint64) {
	var last Time
	d.records(d.names(), now, lastSequence, func(r record, group string, from origin) {
		if group == "" || r.sentAt < last {
			d.fail("record that cannot be in a FIFO queue")
			return
		}
		last = r.sentAt
		r.group, r.origin = f.groups.use(group), f.origins.use(from)
		if !f.fits(&r) {
			d.fail("hidden message in the middle of a group")
		}
		f.enter(r)
	})
	f.fileAll()
	d.dedup(&f.dedup, now, lastSequence)
	d.attempts(f, now)
}

// fits reports whether a record may come behind those of its group: only
// MaxReceivedMessages at the head of a group can have been hidden.
func (f *fifo) fits(r *record) bool {
	if r.visibleAt == 0 {
		return true
	}
	n := 0
	for at := f.groups.at(r.group).head; at != 0; at = f.chains.at(at - 1).next {
		if n++; n == MaxReceivedMessages || f.records.at(at-1).visibleAt == 0 {
			return false
		}
	}
	return !r.isFresh()
}

// fileAll files all groups.
func (f *fifo) fileAll() {
	for i := range f.groups.all {
		f.file(uint32(i + 1))
	}
}

func (d *decoder) dedup(ids *dedup, now Time, lastSequence uint64) {
	var last original
	for n := d.count(); n > 0 && d.err == nil; n-- {
		var key dedupKey
		var o original
		d.fixed(key[:])
		d.fixed(o.id[:])
		o.at = last.at + Time(d.number(uint64(now-last.at)))
		o.sequence = last.sequence + d.number(lastSequence-last.sequence)
		if o.sequence == last.sequence {
			d.fail("two deduplication ids of one message")
		}
		if d.err == nil {
			ids.add(key, o)
		}
		last = o
	}
}

func (d *decoder) attempts(f *fifo, now Time) {
	for n := d.count(); n > 0 && d.err == nil; n-- {
		t := &attempt{id: d.text(), at: d.time(), most: int(d.signed()), timeout: time.Duration(d.signed()), visibleAt: d.time()}
		for n := d.count(); n > 0 && d.err == nil; n-- {
			t.sequences = append(t.sequences, d.number(math.MaxUint64))
		}
		last := f.attempts.last
		if d.err == nil && (t.id == "" || t.at > now || last != nil && last.at > t.at || !f.returned(t)) {
			d.fail("attempt that cannot be")
		}
		if d.err == nil {
			f.attempts.add(t)
		}
	}
}

// returned reports whether an attempt may be added: its messages are those of no
// other attempt, and hidden as long as it says.
func (f *fifo) returned(t *attempt) bool {
	if f.attempts.byID[t.id] != nil || len(t.sequences) == 0 || len(t.sequences) > MaxReceivedMessages {
		return false
	}
	for i, sequence := range t.sequences {
		slot, ok := f.held.find(rank{sequence: sequence}, f.bySequence)
		if !ok || f.records.at(slot).visibleAt != t.visibleAt || f.attempts.byMessage[sequence] != nil ||
			slices.Contains(t.sequences[:i], sequence) {
			return false
		}
	}
	return true
}

// fixed reads as many bytes as there are in b.
func (d *decoder) fixed(b []byte) {
	if len(d.data) < len(b) {
		d.fail("short array")
		return
	}
	d.data = d.data[copy(b, d.data):]
}

func (d *decoder) signed() int64 { return int64(d.change(0)) }
