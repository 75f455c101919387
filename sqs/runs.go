package sqs

import (
	"slices"
	"sort"
)

const (
	chunkSize = 128     // runs in a full chunk: 4 KiB
	maxRun    = 1 << 31 // messages in a run
)

// run stands for count messages that were never received: their sequence
// numbers and the numbers of their bodies rise by one from the first.
type run struct {
	sequence uint64
	body     uint64
	sentAt   Time
	count    uint32
}

// list holds the never-received messages of one group and origin that have one
// delay, in the order of their sequence numbers. As cluster time never goes back,
// their enqueue times, due times and expiry times only grow, so its head decides.
//
// What is taken from the head is counted beside it. So nothing of the chunks ever
// changes but their directory and the last one, and those are copied before
// when a Frozen refers to them.
type list struct {
	window  Time   // from the enqueue of a message until it is due, padded
	group   uint32 // name id of the MessageGroupId
	origin  uint32 // name id of what the messages are copies of; 0: nothing
	head    uint16 // index of the first run in the first chunk
	skipped uint32 // messages of that run that are gone
	frozen  bool   // a Frozen refers to the chunks

	chunks []chunk
	// Messages are counted from the first that was ever in the list.
	taken  uint64 // gone from the head
	passed uint64 // known to be due
	sent   uint64 // ever put in
	next   rank   // enqueue time and sequence number of the first message that is not passed
}

// chunk is a part of a list.
type chunk struct {
	before uint64 // messages of the list in earlier chunks, gone or not
	runs   []run
}

func (l *list) empty() bool { return l.taken == l.sent }

// headRank is the enqueue time and sequence number of the first message.
func (l *list) headRank() rank {
	r := &l.chunks[0].runs[l.head]
	return rank{at: r.sentAt, sequence: r.sequence + uint64(l.skipped)}
}

// push adds a run at the end. It becomes one with the run before it when
// nothing tells them apart.
func (l *list) push(r run) {
	l.own()
	if l.passed == l.sent {
		if l.window == 0 {
			l.passed += uint64(r.count)
		} else {
			l.next = rank{at: r.sentAt, sequence: r.sequence}
		}
	}
	if !l.extend(r) {
		l.append(r)
	}
	l.sent += uint64(r.count)
}

// own makes sure that no Frozen refers to what is about to change.
func (l *list) own() {
	if !l.frozen {
		return
	}
	l.frozen = false
	l.chunks = slices.Clone(l.chunks)
	last := &l.chunks[len(l.chunks)-1]
	last.runs = append(make([]run, 0, cap(last.runs)), last.runs...)
}

func (l *list) extend(r run) bool {
	if l.empty() {
		return false
	}
	runs := l.chunks[len(l.chunks)-1].runs
	last := &runs[len(runs)-1]
	n := uint64(last.count)
	if last.sentAt != r.sentAt || last.sequence+n != r.sequence || last.body+n != r.body || n+uint64(r.count) > maxRun {
		return false
	}
	last.count += r.count
	return true
}

func (l *list) append(r run) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last].runs) == chunkSize {
		capacity := chunkSize
		if last < 0 {
			capacity = 1 // most lists are small
		}
		l.chunks = append(l.chunks, chunk{before: l.sent, runs: make([]run, 0, capacity)})
		last++
	}
	l.chunks[last].runs = append(l.chunks[last].runs, r)
}

// pop takes the first message.
func (l *list) pop() (r rank, body uint64) {
	head := &l.chunks[0].runs[l.head]
	r, body = l.headRank(), head.body+uint64(l.skipped)
	l.taken++
	l.skipped++
	if l.skipped == head.count {
		l.skipped = 0
		l.head++
		if int(l.head) == len(l.chunks[0].runs) {
			l.drop(1)
		}
	}
	return r, body
}

// drop lets the first n chunks go.
func (l *list) drop(n int) {
	l.own()
	l.head, l.skipped = 0, 0
	if n == len(l.chunks) {
		l.clear()
		return
	}
	clear(l.chunks[:n])
	l.chunks = l.chunks[n:]
}

// clear makes an empty list small.
func (l *list) clear() {
	if len(l.chunks) == 1 && cap(l.chunks[0].runs) <= keptCapacity {
		l.chunks[0] = chunk{before: l.sent, runs: l.chunks[0].runs[:0]}
		return
	}
	l.chunks = nil
}

// after finds the first message that was sent after t, at or behind the head.
func (l *list) after(t Time) (p listPlace) {
	p.chunk = sort.Search(len(l.chunks), func(i int) bool {
		runs := l.chunks[i].runs
		return len(runs) > 0 && runs[len(runs)-1].sentAt > t
	})
	if p.chunk == len(l.chunks) {
		p.ordinal = l.sent
		return p
	}
	c := &l.chunks[p.chunk]
	p.ordinal = c.before
	for p.run < len(c.runs) && c.runs[p.run].sentAt <= t {
		p.ordinal += uint64(c.runs[p.run].count)
		p.run++
	}
	p.rank = rank{at: c.runs[p.run].sentAt, sequence: c.runs[p.run].sequence}
	if p.ordinal <= l.taken { // what is left of the head
		p.ordinal, p.chunk, p.run, p.rank = l.taken, 0, int(l.head), l.headRank()
	}
	return p
}

// listPlace is a message of a list.
type listPlace struct {
	chunk, run int
	ordinal    uint64 // the list's count of sent messages when there is no such message
	rank       rank
}

// dropTo lets all messages before p go.
func (l *list) dropTo(p listPlace) {
	if p.ordinal == l.taken {
		return
	}
	l.taken = p.ordinal
	if p.chunk > 0 {
		l.drop(p.chunk)
	}
	if !l.empty() {
		l.head, l.skipped = uint16(p.run), 0
	}
	if l.passed < l.taken {
		l.passed, l.next = l.taken, p.rank
	}
}

// pass takes note that all messages before p are due.
func (l *list) pass(p listPlace) {
	if p.ordinal > l.passed {
		l.passed, l.next = p.ordinal, p.rank
	}
}

// resume makes a list, to which nothing but pushes has happened, one of whose
// messages the first ready ones are passed. It returns false when no such list
// can come about.
func (l *list) resume(ready uint64) bool {
	if l.empty() || ready > l.sent || (l.window == 0 && ready < l.sent) {
		return false
	}
	l.passed, l.next = ready, rank{}
	if ready == l.sent {
		return true
	}
	i := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].before > ready }) - 1
	at := l.chunks[i].before
	for _, r := range l.chunks[i].runs {
		if at == ready {
			l.next = rank{at: r.sentAt, sequence: r.sequence}
			return true
		}
		at += uint64(r.count)
	}
	return false
}
