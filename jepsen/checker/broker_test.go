package checker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/history"
)

// A small broker in virtual time, driven by random clients and killed now and
// then, shows two things: the checks accept every history of a correct broker,
// and they find the mistakes that a broker is likely to make.

const (
	tick       = time.Millisecond
	look       = 50 * tick // how often a long poll looks
	visibility = 2 * time.Second
)

// mistake is one way in which the broker is wrong.
type mistake string

const (
	losesAcked      mistake = "loses what it acknowledged just before a kill"
	revivesDeleted  mistake = "forgets the deletes just before a kill"
	losesLeases     mistake = "forgets leases in a kill"
	losesCounts     mistake = "forgets receive counts in a kill"
	losesDelays     mistake = "forgets delays in a kill"
	losesExtensions mistake = "forgets extensions in a kill"
	losesFirstTime  mistake = "forgets first receive times in a kill"
	shortLeases     mistake = "ends leases a tenth early"
	longLeases      mistake = "ends every fifth lease much too late"
	halfExtensions  mistake = "extends by half"
	storesTwice     mistake = "stores every twentieth message twice"
	swapsBodies     mistake = "hands out the body of another message now and then"
	refusesHandles  mistake = "refuses the handles issued before a kill"
)

type stored struct {
	id, body  string
	sent      time.Duration
	visibleAt time.Duration
	delayed   bool
	count     int
	firstAt   int64
	deleted   bool
	deletedAt time.Duration
	extended  time.Duration // what the last change added

	epoch        int // of the latest hand-out
	group, dedup string
	sequence     int
}

// broker is the queue, and the faults that it has.
type broker struct {
	random   *rand.Rand
	mistake  mistake
	messages []*stored
	handles  map[string]*stored
	epoch    int // rises with each kill
	ids      int

	fifo     bool
	sequence int
	known    map[string]*stored // by deduplication id
}

func (b *broker) send(now time.Duration, o *history.Operation) {
	copies := 1
	if b.mistake == storesTwice && b.random.IntN(20) == 0 {
		copies = 2
	}
	for range copies {
		b.ids++
		m := &stored{id: fmt.Sprintf("m%d", b.ids), body: o.Body, sent: now, visibleAt: now + o.Delay, delayed: o.Delay > 0}
		b.messages = append(b.messages, m)
		o.MessageID, o.MD5 = m.id, sum(o.Body)
	}
}

func (b *broker) receive(now time.Duration, o *history.Operation) {
	o.Messages = nil
	for _, m := range b.messages {
		if m.deleted || m.visibleAt > now || len(o.Messages) == o.Max {
			continue
		}
		m.count++
		m.delayed = false
		if m.firstAt == 0 {
			m.firstAt = int64(now)
		}
		v := visibility
		switch {
		case b.mistake == shortLeases:
			v = v * 9 / 10
		case b.mistake == longLeases && b.random.IntN(5) == 0:
			v *= 4
		}
		m.visibleAt, m.extended = now+v+v/1000+tick, 0
		m.epoch = b.epoch
		handle := b.handle(m)
		b.handles[handle] = m
		d := history.Delivery{MessageID: m.id, Handle: handle, Count: m.count, Body: m.body, MD5: sum(m.body), SentAt: int64(m.sent), FirstAt: m.firstAt}
		if b.mistake == swapsBodies && b.random.IntN(100) == 0 {
			d.Body = b.messages[b.random.IntN(len(b.messages))].body
			d.MD5 = sum(d.Body)
		}
		o.Messages = append(o.Messages, d)
	}
}

// handle is that of the latest hand-out.
func (b *broker) handle(m *stored) string { return fmt.Sprintf("%s#%d@%d", m.id, m.count, m.epoch) }

func (b *broker) act(now time.Duration, o *history.Operation) {
	m := b.handles[o.Handle]
	var epoch int
	_, _ = fmt.Sscanf(o.Handle[slices.Index([]byte(o.Handle), '@')+1:], "%d", &epoch)
	if b.mistake == refusesHandles && epoch != b.epoch {
		o.Outcome, o.Status = history.Fail, 404
		return
	}
	switch {
	case b.fifo && !m.deleted && o.Handle != b.handle(m) && b.mistake != honoursDead:
		o.Outcome, o.Status = history.Fail, 400
	case b.fifo && !m.deleted && m.visibleAt <= now && b.mistake != honoursDead:
		o.Outcome, o.Status = history.Fail, 400
	case o.Kind == history.Delete:
		m.deleted = true
		m.deletedAt = now
	case m.deleted:
		o.Outcome, o.Status = history.Fail, 400
	default:
		v := o.Visibility
		if b.mistake == halfExtensions {
			v /= 2
		}
		m.extended = max(now+v-m.visibleAt, 0)
		m.visibleAt = now + v + v/1000 + tick
	}
}

// kill ends the process and starts it again, with what the mistake leaves.
func (b *broker) kill(now time.Duration) {
	b.epoch++
	b.killFIFO()
	for _, m := range b.messages {
		switch b.mistake {
		case losesAcked:
			m.deleted = m.deleted || m.sent > now-50*tick
		case revivesDeleted:
			if m.deleted && m.deletedAt > now-50*tick {
				m.deleted = false
			}
		case losesLeases:
			if !m.delayed {
				m.visibleAt = min(m.visibleAt, now)
			}
		case losesCounts:
			m.count = 0
		case losesDelays:
			if m.delayed {
				m.visibleAt = now
			}
		case losesExtensions:
			m.visibleAt -= m.extended
		case losesFirstTime:
			m.firstAt = 0
		}
	}
}

// simulation drives the broker.
type simulation struct {
	random     *rand.Rand
	broker     *broker
	now        time.Duration
	operations []*history.Operation
	clients    [6]client
	bodies     int
	asked      [150][2]string // the latest groups and deduplication ids
	lag        int            // milliseconds that a request and an answer are on their way at most
}

// client is one client: idle until a moment, or waiting for an answer.
type client struct {
	idleUntil time.Duration
	asked     *history.Operation // nil if idle
	answer    *history.Operation // nil until it took effect
	effectAt  time.Duration
	backAt    time.Duration
	handles   []string
	late      []string // FIFO: handles that are used when their leases are over
}

// quickly is the lag of a machine that has nothing else to do.
const quickly = 10

// newSimulation is a simulation of a standard queue.
func newSimulation(seed uint64, m mistake) *simulation {
	random := rand.New(rand.NewPCG(seed, 0))
	return &simulation{random: random, broker: &broker{random: random, mistake: m, handles: map[string]*stored{}}, lag: quickly}
}

// run returns the history of a run of the given length, with a drain.
func (s *simulation) run(length time.Duration) []history.Operation {
	kill := s.within(500, 3500)
	for ; s.now < length; s.now += tick {
		if s.now >= kill {
			s.kill()
			kill = s.now + s.within(500, 3500)
		}
		for i := range s.clients {
			s.step(&s.clients[i])
		}
	}
	s.kill()
	s.drain()
	history := make([]history.Operation, len(s.operations))
	for i, o := range s.operations {
		history[i] = *o
		history[i].ID = int64(i)
	}
	return history
}

// within returns a random time of low to high milliseconds.
func (s *simulation) within(low, high int) time.Duration {
	return time.Duration(low+s.random.IntN(high-low)) * tick
}

func (s *simulation) kill() {
	s.add(&history.Operation{Kind: history.Fault, Call: s.now, Return: s.now, Outcome: history.OK})
	s.broker.kill(s.now)
	for i := range s.clients {
		c := &s.clients[i]
		c.asked, c.answer, c.idleUntil = nil, nil, s.now+100*tick // what it asked stays unknown
	}
}

func (s *simulation) add(o *history.Operation) *history.Operation {
	o.Queue = "q"
	s.operations = append(s.operations, o)
	return o
}

func (s *simulation) step(c *client) {
	switch {
	case c.asked == nil && s.now < c.idleUntil:
	case c.asked == nil:
		c.asked = s.ask(c)
		c.asked.Call, c.asked.Return, c.asked.Outcome = s.now, history.Never, history.Info
		c.effectAt = s.now + s.within(1, s.lag)
	case c.answer == nil && s.now >= c.effectAt && (s.now-c.effectAt)%look == 0:
		answer := s.execute(*c.asked)
		if len(answer.Messages) > 0 || s.now >= c.effectAt+c.asked.Wait {
			c.answer, c.backAt = answer, s.now+s.within(0, s.lag)
		}
	case c.answer != nil && s.now >= c.backAt:
		*c.asked = *c.answer
		c.asked.Return = s.now
		for _, m := range c.answer.Messages {
			if s.broker.fifo && s.random.IntN(8) == 0 {
				c.late = append(c.late, m.Handle)
			} else {
				c.handles = append(c.handles, m.Handle)
			}
		}
		c.asked, c.answer, c.idleUntil = nil, nil, s.now+s.within(0, 20)
	}
}

// ask returns what the client does next.
func (s *simulation) ask(c *client) *history.Operation {
	if len(c.late) > 3 {
		h := c.late[0]
		c.late = c.late[1:]
		return s.add(&history.Operation{Kind: history.Delete, Handle: h})
	}
	if len(c.handles) > 0 && s.random.IntN(2) == 0 {
		i := s.random.IntN(len(c.handles))
		h := c.handles[i]
		if s.random.IntN(3) > 0 {
			c.handles = slices.Delete(c.handles, i, i+1)
			return s.add(&history.Operation{Kind: history.Delete, Handle: h})
		}
		return s.add(&history.Operation{Kind: history.Change, Handle: h, Visibility: s.within(0, 4000)})
	}
	if s.random.IntN(2) == 0 {
		wait := time.Duration(s.random.IntN(8)/7) * time.Second
		return s.add(&history.Operation{Kind: history.Receive, Max: 1 + s.random.IntN(4), Visibility: history.QueueDefault, Wait: wait})
	}
	s.bodies++
	if s.broker.fifo {
		return s.add(s.askFIFO())
	}
	o := &history.Operation{Kind: history.Send, Process: 1, Body: history.Body(history.Name{Run: "r", Process: 1, Counter: s.bodies}, 40)}
	if s.random.IntN(4) == 0 {
		o.Delay = s.within(1000, 3000)
	}
	return s.add(o)
}

// execute carries an operation out and returns its answer.
func (s *simulation) execute(o history.Operation) *history.Operation {
	o.Outcome = history.OK
	switch {
	case o.Kind == history.Send && s.broker.fifo:
		s.broker.sendFIFO(s.now, &o)
	case o.Kind == history.Receive && s.broker.fifo:
		s.broker.receiveFIFO(s.now, &o)
	case o.Kind == history.Send:
		s.broker.send(s.now, &o)
	case o.Kind == history.Receive:
		s.broker.receive(s.now, &o)
	default:
		s.broker.act(s.now, &o)
	}
	return &o
}

// drain receives and deletes for longer than any correct lease lasts.
func (s *simulation) drain() {
	call := func(o history.Operation) *history.Operation {
		o.Call, o.Phase = s.now, history.Drain
		s.now += tick
		answer := s.execute(o)
		s.now += tick
		answer.Return = s.now
		return s.add(answer)
	}
	for end := s.now + 20*time.Second; s.now < end; s.now += 10 * tick {
		for _, m := range call(history.Operation{Kind: history.Receive, Max: 10, Visibility: history.QueueDefault}).Messages {
			call(history.Operation{Kind: history.Delete, Handle: m.Handle})
		}
	}
	s.add(&history.Operation{Kind: history.Count, Call: s.now, Return: s.now, Outcome: history.OK, Phase: history.Drain})
}

var judged = checker.Options{Queues: map[string]checker.Queue{"q": {VisibilityTimeout: visibility}}, Drained: true}

// The slow runs are those of a machine on which requests and answers take seconds.
func TestACorrectBrokerIsNeverAccused(t *testing.T) {
	covers := func(c checker.Coverage) bool {
		return c.Unknown > 0 && c.Redeliveries >= 10 && c.AcrossFaults > 0 && c.LeasesAcross > 0 && c.DelaysAcross > 0 && c.EmptyReceives > 0
	}
	coversFIFO := func(c checker.Coverage) bool {
		return c.Unknown > 0 && c.Redeliveries >= 10 && c.LeasesAcross > 0 && c.InOrder > 0 && c.RepeatAcross > 0 && c.Renewals > 0
	}
	coversSlow := func(c checker.Coverage) bool { return c.Unknown > 0 && c.Redeliveries >= 10 && c.EmptyReceives >= 10 }
	for _, test := range []struct {
		name    string
		new     func(uint64, mistake) *simulation
		options checker.Options
		lag     int
		length  time.Duration
		covers  func(checker.Coverage) bool
	}{
		{"standard", newSimulation, judged, quickly, 20 * time.Second, covers},
		{"FIFO", newFIFOSimulation, judgedFIFO, quickly, 20 * time.Second, coversFIFO},
		{"standard, slow", newSimulation, judged, 4000, 4 * time.Minute, coversSlow},
		{"FIFO, slow", newFIFOSimulation, judgedFIFO, 4000, 4 * time.Minute, coversSlow},
	} {
		t.Run(test.name, func(t *testing.T) {
			seeds := uint64(20)
			if testing.Short() {
				seeds = 5
			}
			for seed := range seeds {
				s := test.new(seed, "")
				s.lag = test.lag
				report := checker.Check(s.run(test.length), test.options)
				if len(report.Violations) > 0 {
					t.Fatalf("seed %d: %s", seed, report)
				}
				if !test.covers(report.Coverage) {
					t.Errorf("seed %d covers too little: %s", seed, report.Coverage)
				}
			}
		})
	}
}

// standardMistakes is what each mistake breaks.
var standardMistakes = map[mistake]string{
	losesAcked:      "P1-loss",
	revivesDeleted:  "P11-delete",
	losesLeases:     "P4-lease",
	losesCounts:     "P6-count",
	losesDelays:     "P10-delay",
	losesExtensions: "P4-lease",
	losesFirstTime:  "P20-time",
	shortLeases:     "P4-lease",
	longLeases:      "P4b-stuck",
	halfExtensions:  "P4-lease",
	storesTwice:     "P3-copies",
	swapsBodies:     "P2-phantom",
	refusesHandles:  "P5-handle",
}

func TestMistakesAreFound(t *testing.T) {
	for _, queue := range []struct {
		name     string
		new      func(uint64, mistake) *simulation
		options  checker.Options
		length   time.Duration
		mistakes map[mistake]string
	}{
		{"standard", newSimulation, judged, 40 * time.Second, standardMistakes},
		{"FIFO", newFIFOSimulation, judgedFIFO, 30 * time.Second, fifoMistakes},
	} {
		for mistake, want := range queue.mistakes {
			t.Run(queue.name+": "+string(mistake), func(t *testing.T) {
				for seed := range uint64(3) {
					options := queue.options
					options.Cluster = seed == 2 // which excuses some counts
					report := checker.Check(queue.new(seed, mistake).run(queue.length), options)
					if !slices.Contains(report.Broken(), want) {
						t.Errorf("seed %d: broken: %v, want %s\n%s", seed, report.Broken(), want, report)
					}
				}
			})
		}
	}
}
