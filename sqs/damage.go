package sqs

import (
	"cmp"
	"slices"
)

// Damage marks a queue after a panic in one of its commands. What it held may
// contradict itself, so its messages are sorted out first; it is inspected and
// deleted afterwards, and nothing else. Damage takes time for every message: it
// is the only change of a State that does.
func (s *State) Damage(key QueueKey) {
	q := s.queues[key]
	if q == nil {
		return
	}
	q.damaged = true
	if q.fifo != nil {
		q.fifo = q.salvageFIFO(s.now)
	} else {
		q.messages = q.salvage(s.now)
	}
	s.reschedule(q)
}

// Working tells at which queue Pulse was when it panicked; false when it was at
// none.
func (s *State) Working() (QueueKey, bool) { return s.working, s.working != QueueKey{} }

// remains are messages of a damaged queue: a run of a list, or a record.
type remains struct {
	run    run
	record *record
	window Time
	group  string
	origin origin
}

// compare orders remains by sequence number, and equal ones by what they are,
// not by where they lay, which may differ between replicas.
func (r remains) compare(s remains) int {
	return cmp.Or(
		cmp.Compare(r.run.sequence, s.run.sequence),
		cmp.Compare(r.run.count, s.run.count),
		cmp.Compare(r.run.body, s.run.body),
		cmp.Compare(r.window, s.window),
		cmp.Compare(r.group, s.group),
		r.origin.compare(s.origin),
	)
}

// salvage builds the index of a queue's messages anew, trusting nothing but
// single runs and records: what cannot be, or is there twice, is left out.
func (q *queue) salvage(now Time) (m messages) {
	all := q.messages.remains()
	slices.SortFunc(all, remains.compare)
	latest := map[rank]Time{} // enqueue time of the last run, by window and group
	free := uint64(1)         // the first sequence number that is not taken
	for _, r := range all {
		end := r.run.sequence + uint64(r.run.count)
		possible := r.run.sequence >= free && end > r.run.sequence && end <= q.lastSequence+1 &&
			r.run.sentAt >= 0 && r.run.sentAt <= now
		if !possible {
			continue
		}
		if r.record != nil {
			kept := *r.record
			kept.group, kept.origin = m.groups.use(r.group), m.origins.use(r.origin)
			m.settle(m.enter(kept), now, kept.visibleAt)
			free = end
			continue
		}
		group, from := m.groups.use(r.group), m.origins.use(r.origin)
		kind := kindRank(r.window, group, from)
		if r.run.sentAt >= latest[kind] {
			m.send(r.run, r.window, r.group, r.origin)
			latest[kind] = r.run.sentAt
			free = end
		}
		m.groups.release(group)
		m.origins.release(from)
	}
	return m
}

// remains collects all runs and records, in an order that is the same on every
// replica.
func (m *messages) remains() (all []remains) {
	for l := range m.lists.all {
		skipped := l.skipped
		for j, c := range l.chunks {
			runs := c.runs
			if j == 0 {
				runs = runs[min(int(l.head), len(runs)):]
			}
			for _, r := range runs {
				lost := min(skipped, r.count)
				r.sequence, r.body, r.count = r.sequence+uint64(lost), r.body+uint64(lost), r.count-lost
				skipped = 0
				all = append(all, remains{run: r, window: max(l.window, 0), group: m.groups.lookup(l.group), origin: m.origins.lookup(l.origin)})
			}
		}
	}
	return append(all, m.records.remains(&m.groups, &m.origins)...)
}

// remains collects all records.
func (r *records) remains(groups *names[string], origins *names[origin]) (all []remains) {
	for _, p := range r.pages {
		for i := range p {
			r := &p[i]
			all = append(all, remains{
				run:    run{sequence: r.sequence, body: r.body, sentAt: r.sentAt, count: 1},
				record: r, group: groups.lookup(r.group), origin: origins.lookup(r.origin),
			})
		}
	}
	return all
}

// salvageFIFO is salvage for a FIFO queue. Deduplication and attempt ids, which
// nobody can use any more, are forgotten.
func (q *queue) salvageFIFO(now Time) *fifo {
	all := q.fifo.records.remains(&q.fifo.groups.names, &q.fifo.origins)
	slices.SortFunc(all, remains.compare)
	f := &fifo{}
	free, latest := uint64(1), Time(0)
	for _, r := range all {
		kept := *r.record
		if kept.sequence < free || kept.sequence > q.lastSequence || kept.sentAt < latest || kept.sentAt > now || r.group == "" {
			continue
		}
		free, latest = kept.sequence+1, kept.sentAt
		kept.group, kept.origin = f.groups.use(r.group), f.origins.use(r.origin)
		if kept.visibleAt < 0 || !f.fits(&kept) {
			kept.visibleAt = 0
		}
		f.enter(kept)
	}
	f.fileAll()
	return f
}
