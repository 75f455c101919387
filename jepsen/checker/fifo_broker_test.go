package checker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/history"
)

// The mistakes of a FIFO queue.
const (
	looksAtHeads   mistake = "takes what is visible of a group, whatever is in flight before it"
	queuesAtTail   mistake = "hands out what came back after the rest of its group"
	losesLocks     mistake = "forgets leases of FIFO messages in a kill, but for the last one of a group"
	losesIDs       mistake = "forgets deduplication ids in a kill"
	shortWindow    mistake = "ends deduplication windows a fifth early"
	renewsWindow   mistake = "starts the window anew with each duplicate"
	freshIDs       mistake = "answers a duplicate with a new message id"
	losesSequence  mistake = "goes back with sequence numbers in a kill"
	freshSequence  mistake = "answers a duplicate with a new sequence number"
	honoursDead    mistake = "lets handles act whose lease is over"
	storesRepeated mistake = "stores every twentieth duplicate"
)

const (
	simulatedWindow = 3 * time.Second
	simulatedGroups = 16
)

// newFIFOSimulation is a simulation of a FIFO queue.
func newFIFOSimulation(seed uint64, m mistake) *simulation {
	random := rand.New(rand.NewPCG(seed, 1))
	b := &broker{random: random, mistake: m, handles: map[string]*stored{}, fifo: true, known: map[string]*stored{}}
	return &simulation{random: random, broker: b, lag: quickly}
}

// askFIFO sends with a new deduplication id, or with one of the latest, now and then
// to another group.
func (s *simulation) askFIFO() *history.Operation {
	s.bodies++
	o := &history.Operation{
		Kind: history.Send, Process: 1, Body: history.Body(history.Name{Run: "r", Process: 1, Counter: s.bodies}, 40),
		Group: fmt.Sprint("g", s.random.IntN(simulatedGroups)), DedupID: fmt.Sprint("d", s.bodies),
	}
	asked := &s.asked[s.random.IntN(len(s.asked))]
	if s.random.IntN(3) > 0 && asked[1] != "" {
		o.DedupID = asked[1]
		if s.random.IntN(4) > 0 {
			o.Group = asked[0]
		}
	} else {
		*asked = [2]string{o.Group, o.DedupID}
	}
	return o
}

func (b *broker) sendFIFO(now time.Duration, o *history.Operation) {
	window := simulatedWindow
	if b.mistake == shortWindow {
		window = window * 4 / 5
	}
	b.sequence++
	m := b.known[o.DedupID]
	duplicate := m != nil && m.sent+window+window/1000+tick > now
	if duplicate && b.mistake == storesRepeated && b.random.IntN(20) == 0 {
		duplicate = false
	}
	if !duplicate {
		b.ids++
		m = &stored{id: fmt.Sprint("m", b.ids), body: o.Body, sent: now, visibleAt: now, group: o.Group, dedup: o.DedupID, sequence: b.sequence}
		b.known[o.DedupID] = m
		b.messages = append(b.messages, m)
	}
	o.MessageID, o.MD5, o.Sequence = m.id, sum(o.Body), history.Sequence(fmt.Sprint(m.sequence))
	switch {
	case duplicate && b.mistake == renewsWindow:
		m.sent = now
	case duplicate && b.mistake == freshIDs:
		b.ids++
		o.MessageID = fmt.Sprint("m", b.ids)
	case duplicate && b.mistake == freshSequence:
		o.Sequence = history.Sequence(fmt.Sprint(b.sequence))
	}
}

func (b *broker) receiveFIFO(now time.Duration, o *history.Operation) {
	o.Messages = nil
	locked := map[string]bool{}
	queue := slices.Clone(b.messages)
	if b.mistake == queuesAtTail {
		slices.SortStableFunc(queue, func(x, y *stored) int { return min(x.count, 1) - min(y.count, 1) })
	}
	for _, m := range queue {
		switch {
		case m.deleted:
			continue
		case m.visibleAt > now:
			locked[m.group] = locked[m.group] || b.mistake != looksAtHeads
			continue
		case locked[m.group] || len(o.Messages) == o.Max:
			continue
		}
		m.count++
		m.epoch = b.epoch
		if m.firstAt == 0 {
			m.firstAt = int64(now)
		}
		m.visibleAt = now + visibility + visibility/1000 + tick
		b.handles[b.handle(m)] = m
		o.Messages = append(o.Messages, history.Delivery{
			MessageID: m.id, Handle: b.handle(m), Count: m.count, Body: m.body, MD5: sum(m.body), FirstAt: m.firstAt,
			Group: m.group, DedupID: m.dedup, Sequence: history.Sequence(fmt.Sprint(m.sequence)),
		})
	}
}

// killFIFO leaves of a FIFO queue what the mistake leaves.
func (b *broker) killFIFO() {
	switch b.mistake {
	case losesIDs:
		clear(b.known)
	case losesSequence:
		b.sequence = max(b.sequence-50, 0)
	case losesLocks:
		last := map[string]*stored{}
		for _, m := range b.messages {
			if m.deleted {
				continue
			}
			if p := last[m.group]; p != nil {
				p.visibleAt = 0
			}
			last[m.group] = m
		}
	}
}

var judgedFIFO = checker.Options{
	Queues:  map[string]checker.Queue{"q": {VisibilityTimeout: visibility, FIFO: true, DedupWindow: simulatedWindow}},
	Drained: true,
}

// fifoMistakes is what each mistake breaks.
var fifoMistakes = map[mistake]string{
	looksAtHeads:   "P8-order",
	queuesAtTail:   "P8-order",
	losesLocks:     "P4-lease",
	losesIDs:       "P9-dedup",
	shortWindow:    "P9-dedup",
	renewsWindow:   "P9-dedup",
	freshIDs:       "P9-dedup",
	storesRepeated: "P9-dedup",
	losesSequence:  "P17-sequence",
	freshSequence:  "P17-sequence",
	honoursDead:    "P5-handle",
	losesAcked:     "P1-loss",
	losesCounts:    "P6-count",
	revivesDeleted: "P11-delete",
}
