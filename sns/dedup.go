package sns

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

const (
	dedupPage = 512 // ids of a page: 28 KiB
	// forgottenByPublish is the most ids that one message forgets: more than one,
	// so that a backlog shrinks while publishes go on.
	forgottenByPublish = 4
	// forgottenByPulse is the most ids that a pulse forgets in one topic.
	forgottenByPulse = 1000
)

// dedupKey stands for a deduplication id in its scope: the first half of a
// SHA-256.
type dedupKey [16]byte

// newDedupKey is the key of a message. It says which scope the topic had: when the
// scope changes, ids that are known keep theirs.
func newDedupKey(e *PublishEntry, byGroup bool) dedupKey {
	var room [2 + 2*MaxIDLength]byte
	text := append(room[:0], 0)
	if byGroup {
		text[0] = 1
		text = appendSized(text, e.GroupID)
	}
	text = append(text, deduplicationText(e)...)
	sum := sha256.Sum256(text)
	return dedupKey(sum[:len(dedupKey{})])
}

// deduplicationText is the id of a message to a FIFO topic: one that equals the
// hash of another message is the same id.
func deduplicationText(e *PublishEntry) string {
	if e.DeduplicationID != "" {
		return e.DeduplicationID
	}
	return hex.EncodeToString(e.SHA256[:])
}

// original is an accepted publish, which duplicates are answered with.
type original struct {
	key      dedupKey
	id       MessageID
	at       Time
	sequence uint64
}

// dedup remembers the deduplication ids of a FIFO topic: in a ring by time, with
// an index into it. Pages of the ring never change but by growing, so that a
// Frozen may refer to them.
type dedup struct {
	pages   [][]original
	first   uint64 // ordinal of the first entry of the first page, of all that ever were
	skipped int    // entries of the first page that are forgotten
	count   int
	index   map[dedupKey]uint64 // ordinals
}

func (d *dedup) at(ordinal uint64) *original {
	n := ordinal - d.first
	return &d.pages[n/dedupPage][n%dedupPage]
}

// find returns the message that was published with the id within the window.
func (d *dedup) find(key dedupKey, now Time, window time.Duration) (original, bool) {
	ordinal, ok := d.index[key]
	if !ok {
		return original{}, false
	}
	o := d.at(ordinal)
	return *o, now < o.at.WindowEnd(window)
}

// add remembers an id from now on. If it is known it has the new message then.
func (d *dedup) add(o original) {
	if d.index == nil {
		d.index = make(map[dedupKey]uint64)
	}
	last := len(d.pages) - 1
	if last < 0 || len(d.pages[last]) == dedupPage {
		d.pages = append(d.pages, nil)
		last++
	}
	d.pages[last] = append(d.pages[last], o)
	d.count++
	d.index[o.key] = d.first + uint64(last*dedupPage+len(d.pages[last])-1)
}

// forget forgets ids whose window is over, at most so many, and returns how many.
func (d *dedup) forget(now Time, window time.Duration, most int) (forgotten int) {
	for ; forgotten < most && d.count > 0; forgotten++ {
		o := &d.pages[0][d.skipped]
		if o.at.WindowEnd(window) > now {
			return forgotten
		}
		ordinal := d.first + uint64(d.skipped)
		if d.index[o.key] == ordinal {
			delete(d.index, o.key)
		}
		d.count--
		if d.skipped++; d.skipped == dedupPage {
			d.pages[0] = nil
			d.pages = d.pages[1:]
			d.first += dedupPage
			d.skipped = 0
		}
	}
	if d.count == 0 {
		*d = dedup{} // a map never shrinks by itself
	}
	return forgotten
}

// due is when ids are to be forgotten next: at once if some are left over from
// before, else not before all that are known now can go, because until then
// publishes do it by the way.
func (d *dedup) due(now Time, window time.Duration) Time {
	if d.count == 0 {
		return never
	}
	if end := d.pages[0][d.skipped].at.WindowEnd(window); end <= now {
		return now
	}
	page := d.pages[len(d.pages)-1]
	return page[len(page)-1].at.WindowEnd(window)
}

// freeze returns a copy that does not change any more.
func (d *dedup) freeze() dedup {
	return dedup{pages: slices.Clone(d.pages), skipped: d.skipped, count: d.count}
}

// all yields the ids that are known, oldest first.
func (d *dedup) all(yield func(o *original) bool) {
	for i, page := range d.pages {
		if i == 0 {
			page = page[d.skipped:]
		}
		for j := range page {
			if !yield(&page[j]) {
				return
			}
		}
	}
}
