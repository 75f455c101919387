package sqs_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// TestFairQueueDwell plays 20 quiet tenants and one that sends a hundred times
// what each of them does, to consumers that take 50 ms a message, in virtual
// time. The messages of the quiet ones must not wait for the noisy one: of the
// time from send to receive, p95 is at most 1.5 times what it is without the
// noisy tenant, and the mean time until one of the consumers comes free.
func TestFairQueueDwell(t *testing.T) {
	if underRace {
		t.Skip("one goroutine in virtual time")
	}
	for _, test := range []struct {
		consumers int
		load      int  // per mille of the consumers' time that the quiet tenants need
		random    bool // they send at random, else evenly
		length    time.Duration
		settle    time.Duration // at the beginning, which does not count
	}{
		{64, 500, false, 10 * time.Second, 0},
		{8, 500, false, 20 * time.Second, 0},
		{64, 980, true, 20 * time.Second, 0},
		{64, 950, true, 30 * time.Second, 10 * time.Second},
		{8, 900, true, 2 * time.Minute, 0},
	} {
		t.Run(fmt.Sprintf("%d consumers, load %d, random %t", test.consumers, test.load, test.random), func(t *testing.T) {
			sim := func(noise int, groups bool) time.Duration {
				s := newSimulation(t, test.consumers, test.load, noise)
				s.random, s.groups, s.settle = test.random, groups, test.settle
				return s.run(test.length)
			}
			baseline, fair, unfair := sim(0, true), sim(100, true), sim(100, false)
			most := baseline*3/2 + workTime/time.Duration(test.consumers)
			t.Logf("p95 of the quiet tenants: %v alone, %v with the noisy one, %v without fairness", baseline, fair, unfair)
			if fair > most {
				t.Errorf("got p95 %v, want at most %v", fair, most)
			}
			if unfair <= most {
				t.Errorf("got p95 %v without fairness: the test shows nothing", unfair)
			}
		})
	}
}

const (
	workTime     = 50 * time.Millisecond
	quietTenants = 20
)

// simulation is a queue with senders and consumers.
type simulation struct {
	*player
	random bool          // quiet tenants send at random
	groups bool          // messages tell their tenants
	settle time.Duration // messages before do not count
	clock  time.Duration
	events eventHeap
	pushed int                      // events
	idle   int                      // consumers
	sentAt map[uint64]time.Duration // by body, of quiet tenants
	waits  []time.Duration
}

// simEvent is a send of a tenant, or the end of a consumer's work.
type simEvent struct {
	at     time.Duration
	order  int // of events at one time
	tenant *simTenant
	done   []sqs.Receipt
}

type simTenant struct {
	name  string
	noisy bool
	every time.Duration // mean time between sends
	*rand.Rand
}

func newSimulation(t *testing.T, consumers, load, noise int) *simulation {
	s := &simulation{player: newPlayer(t), sentAt: map[uint64]time.Duration{}}
	every := workTime * quietTenants * 1000 / time.Duration(consumers*load)
	for i := range quietTenants {
		tenant := &simTenant{name: fmt.Sprint("quiet", i), every: every, Rand: rand.New(rand.NewPCG(1, uint64(i)))}
		s.push(simEvent{at: every * time.Duration(i) / quietTenants, tenant: tenant})
	}
	if noise > 0 {
		s.push(simEvent{tenant: &simTenant{name: "noisy", noisy: true, every: every / time.Duration(noise)}})
	}
	for i := range consumers {
		s.push(simEvent{at: workTime * time.Duration(i) / time.Duration(consumers)})
	}
	return s
}

func (s *simulation) push(e simEvent) {
	s.pushed++
	e.order = s.pushed
	heap.Push(&s.events, e)
}

// run lets time pass and returns p95 of the quiet messages' waits.
func (s *simulation) run(length time.Duration) time.Duration {
	for s.events[0].at < length {
		e := heap.Pop(&s.events).(simEvent)
		s.clock = e.at
		s.at.Now = scriptStart.Add(e.at)
		switch {
		case e.tenant != nil:
			s.sendOf(e)
		case len(e.done) > 0:
			s.remove(e.done...)
			s.idle++
		default:
			s.idle++
		}
		s.serve()
	}
	slices.Sort(s.waits)
	return s.waits[len(s.waits)*95/100]
}

func (s *simulation) sendOf(e simEvent) {
	entry := sqs.SendEntry{Delay: sqs.QueueDefault}
	if s.groups {
		entry.GroupID = e.tenant.name
	}
	wait := e.tenant.every
	if !e.tenant.noisy {
		s.sentAt[s.at.NextBody] = s.clock
		if s.random {
			wait = time.Duration(float64(wait) * e.tenant.ExpFloat64())
		}
	}
	s.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{entry}})
	e.at += wait
	s.push(e)
}

// serve lets idle consumers receive.
func (s *simulation) serve() {
	for ; s.idle > 0; s.idle-- {
		r := s.do(sqs.ReceiveMessage{Queue: key("q"), MaxMessages: 1, VisibilityTimeout: time.Minute}).(sqs.ReceiveMessageResult)
		if len(r.Messages) == 0 {
			return
		}
		m := r.Messages[0]
		if sentAt, ok := s.sentAt[m.Body]; ok && s.clock >= s.settle {
			s.waits = append(s.waits, s.clock-sentAt)
		}
		s.push(simEvent{at: s.clock + workTime, done: []sqs.Receipt{m.Receipt}})
	}
}

// eventHeap orders events by time.
type eventHeap []simEvent

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
