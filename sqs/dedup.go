package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"time"
)

const (
	dedupPageBits = 9
	dedupPageSize = 1 << dedupPageBits // entries of a full page: 20 KiB
	// dedupNumbers is how many numbers there are for pages. It leaves out the
	// last one, so that a reference plus one is never zero.
	dedupNumbers = 1<<(32-dedupPageBits) - 1
	// forgottenBySend is the most ids that one send forgets: more than one, so
	// that a backlog shrinks while sends go on.
	forgottenBySend = 4
	// forgottenByPulse is the most ids that a pulse forgets in one queue.
	forgottenByPulse = 2000
)

// dedupKey stands for a MessageDeduplicationId in its scope: the first half of
// a SHA-256.
type dedupKey [16]byte

// newDedupKey is the key of the id of a message to send. The key says which scope
// the queue had: when the scope changes, ids that are known keep theirs.
func newDedupKey(e *SendEntry, byGroup bool) dedupKey {
	var room [1 + 2*(1+MaxIDLength)]byte
	text := append(room[:0], 0)
	if byGroup {
		text[0] = 1
		text = appendSized(text, e.GroupID)
	}
	if e.DeduplicationID != "" {
		text = append(text, e.DeduplicationID...)
	} else {
		text = hex.AppendEncode(text, e.BodySHA256[:])
	}
	sum := sha256.Sum256(text)
	return dedupKey(sum[:len(dedupKey{})])
}

// dedup remembers the deduplication ids of a FIFO queue, each with the message
// that was sent with it: in a ring by time, with an index into it. What happens to
// the message later does not matter.
type dedup struct {
	pages   []dedupPage // the ring, oldest first
	number  uint32      // of the first page; pages are numbered in a row, modulo dedupNumbers
	skipped int         // entries of the first page that are forgotten
	count   int
	index   dedupIndex
}

// dedupPage is a part of the ring. What is in a page never changes, so that a
// Frozen may refer to it.
type dedupPage struct {
	at       Time   // of the first entry
	sequence uint64 // of the first entry
	entries  []dedupEntry
}

// dedupEntry is an accepted send: 40 bytes without a pointer.
type dedupEntry struct {
	key      dedupKey
	id       MessageID
	at       uint32 // milliseconds since the page's
	sequence uint32 // since the page's
}

// original is the message that a duplicate is one of.
type original struct {
	at       Time
	id       MessageID
	sequence uint64
}

func (p *dedupPage) original(e *dedupEntry) original {
	return original{at: p.at + Time(e.at), id: e.id, sequence: p.sequence + uint64(e.sequence)}
}

// page returns where the entry of a reference is.
func (d *dedup) page(ref uint32) (p *dedupPage, e *dedupEntry) {
	number := ref >> dedupPageBits
	if number < d.number {
		number += dedupNumbers
	}
	p = &d.pages[number-d.number]
	return p, &p.entries[ref&(dedupPageSize-1)]
}

func (d *dedup) keyOf(ref uint32) *dedupKey {
	_, e := d.page(ref)
	return &e.key
}

// find returns the message that was sent with the id within the window.
func (d *dedup) find(key dedupKey, now Time, window time.Duration) (original, bool) {
	ref, ok := d.index.find(key, d.keyOf)
	if !ok {
		return original{}, false
	}
	o := (*dedupPage).original(d.page(ref))
	return o, now < o.at.WindowEnd(window)
}

// add remembers an id from now on. If it is known it has the new message then.
func (d *dedup) add(key dedupKey, o original) {
	last := len(d.pages) - 1
	if last < 0 || !d.pages[last].takes(o) {
		capacity := dedupPageSize
		if last < 0 {
			capacity = 1 // most queues are small
		}
		d.pages = append(d.pages, dedupPage{at: o.at, sequence: o.sequence, entries: make([]dedupEntry, 0, capacity)})
		last++
	}
	p := &d.pages[last]
	p.entries = append(p.entries, dedupEntry{key: key, id: o.id, at: uint32(o.at - p.at), sequence: uint32(o.sequence - p.sequence)})
	d.count++
	number := (uint64(d.number) + uint64(last)) % dedupNumbers
	d.index.set(key, uint32(number)<<dedupPageBits+uint32(len(p.entries)-1), d.keyOf)
}

// takes reports whether there is room for o, whose distance to the page's first
// entry must fit into 32 bits.
func (p *dedupPage) takes(o original) bool {
	return len(p.entries) < dedupPageSize && o.at-p.at <= math.MaxUint32 && o.sequence-p.sequence <= math.MaxUint32
}

// forget forgets ids whose window is over, at most so many.
func (d *dedup) forget(now Time, window time.Duration, most int) {
	for ; most > 0 && d.count > 0; most-- {
		p := &d.pages[0]
		e := &p.entries[d.skipped]
		if (p.at + Time(e.at)).WindowEnd(window) > now {
			return
		}
		d.index.remove(e.key, d.number<<dedupPageBits+uint32(d.skipped), d.keyOf)
		d.count--
		d.skipped++
		if d.skipped == len(p.entries) {
			d.shift()
		}
	}
	if d.count == 0 {
		*d = dedup{}
	}
}

// shift lets the first page go.
func (d *dedup) shift() {
	d.pages[0] = dedupPage{}
	d.pages = d.pages[1:]
	d.number = (d.number + 1) % dedupNumbers
	d.skipped = 0
}

// due is when ids are to be forgotten next: at once if some are left over from
// before, else not before all that are known now can go, because until then sends
// do it by the way.
func (d *dedup) due(now Time, window time.Duration) Time {
	if d.count == 0 {
		return never
	}
	first, last := &d.pages[0], &d.pages[len(d.pages)-1]
	if (first.at + Time(first.entries[d.skipped].at)).WindowEnd(window) <= now {
		return now
	}
	return (last.at + Time(last.entries[len(last.entries)-1].at)).WindowEnd(window)
}
