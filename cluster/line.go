package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// line is where receivers stand who wait for messages. For a queue with k
// available messages at most k receives are proposed at a time; the rest wait
// here, first come, first served, and one that came back empty keeps its place.
//
// A wake-up cannot be lost: a receiver joins and looks for messages under mu,
// and so does whoever hears of a change (notify, the ticker, the end of another
// receive), always after the change can be seen in the state.
//
// A parked receiver costs its caller's goroutine and nothing else: one ticker
// serves the ends of all waits, the looks at the clients, and the messages that
// become available by the clock.
type line struct {
	propose func(context.Context, sqs.ReceiveMessage) (raftfsm.Outcome, error)
	view    func(func(raftfsm.View))
	now     func() sqs.Time
	elapsed func() time.Duration
	proven  func() bool // this node leads for certain, or did leaseLength ago

	mu       sync.Mutex // taken before the machine's lock, never inside of it
	queues   map[sqs.QueueKey]*queueLine
	tickets  uint64
	wheel    wheel
	alarm    sqs.Time // no queue has an earlier one; 0: no queue has one
	draining bool     // the clients of this node are answered at once
	away     bool     // another node leads

	parked  atomic.Int64
	started chan struct{} // capacity 1: somebody parked while the ticker slept
	pool    sync.Pool     // of *waiter
}

// queueLine is the line of one queue. It exists from the first receive until the
// queue is deleted.
type queueLine struct {
	key      sqs.QueueKey
	waiters  waiterList // parked, by ticket
	proposed int        // receives that were let go and have not come back
	alarm    sqs.Time   // when the next hidden message becomes available; 0: never
	empty    uint64     // receives that were answered without a message
}

// waiter is one receiver. Its fields are guarded by line.mu.
type waiter struct {
	ticket uint64
	end    time.Duration // of the wait, by elapsed
	signal chan struct{} // capacity 1: look at the fields again
	parked bool          // in the waiters of queue
	turn   bool          // let go: counted in queue.proposed
	remote bool          // its client is at another node
	queue  *queueLine
	due    int64 // tick of the wheel at which it is signalled

	prev, next *waiter
}

func newLine(propose func(context.Context, sqs.ReceiveMessage) (raftfsm.Outcome, error), view func(func(raftfsm.View)),
	now func() sqs.Time, elapsed func() time.Duration,
) *line {
	l := &line{
		propose: propose, view: view, now: now, elapsed: elapsed,
		proven:  func() bool { return true },
		queues:  make(map[sqs.QueueKey]*queueLine),
		started: make(chan struct{}, 1),
	}
	l.pool.New = func() any { return &waiter{signal: make(chan struct{}, 1)} }
	return l
}

// errMoved says that this node does not lead any more: the receive has to wait at
// another one. Nothing was received.
var errMoved = errors.New("not the leader")

// poll is a ReceiveMessage that may wait.
type poll struct {
	command sqs.ReceiveMessage
	wait    time.Duration // negative: the queue's own
	waited  time.Duration // of it, before it came to this line
	again   bool          // it may have been executed: only the log can answer
	remote  bool          // its client is at another node, which may drain or not

	// alive, which may be nil, is asked once a second whether the client is still
	// there, and once more when it has its turn.
	alive func() bool
	// turn, if it is not nil, is asked in place of alive when it has its turn.
	turn func(context.Context) bool
	// parked, if it is not nil, is told whenever nothing is available and the
	// receive begins to wait.
	parked func()
	// propose, if it is not nil, takes the place of the line's.
	propose func(context.Context, sqs.ReceiveMessage) (raftfsm.Outcome, error)
}

// receive waits: until there are messages, until the wait is over, until ctx is
// done, or until the client has left. The outcome is the zero Outcome if nothing
// was proposed.
func (l *line) receive(ctx context.Context, p *poll) (raftfsm.Outcome, error) {
	if p.propose == nil {
		p.propose = l.propose
	}
	w := l.pool.Get().(*waiter)
	defer l.pool.Put(w)
	entry := l.enter(w, p)
	p.command.Short = entry.short
	switch {
	case entry.moved:
		return raftfsm.Outcome{}, errMoved
	case entry.ask:
		outcome, err := p.propose(ctx, p.command)
		if isEmpty(outcome, err) {
			l.countEmpty(p.command.Queue)
		}
		return outcome, err
	case entry.parked:
		if turn, err := l.await(ctx, w, p); !turn {
			return raftfsm.Outcome{}, err
		}
	case !entry.turn:
		return raftfsm.Outcome{}, nil
	}
	for {
		outcome, err := p.propose(ctx, p.command)
		if !l.comeBack(w, isEmpty(outcome, err)) {
			return outcome, err
		}
		if turn, err := l.await(ctx, w, p); !turn {
			return outcome, err
		}
	}
}

// isEmpty reports whether a receive that was proposed found no message.
func isEmpty(o raftfsm.Outcome, err error) bool {
	return err == nil && o.Err == nil && len(o.Result.(sqs.ReceiveMessageResult).Messages) == 0
}

// entrance is what becomes of a receiver that comes to the line. If all but
// short is false, it is answered empty.
type entrance struct {
	short  bool // the client does not wait
	moved  bool // another node leads
	ask    bool // only the log can answer, and at once
	turn   bool // it may propose at once
	parked bool
}

// enter lets a receiver go at once, or parks it if it waits. Without a fresh
// proof that this node leads, an empty answer has to come from the log.
func (l *line) enter(w *waiter, p *poll) entrance {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return entrance{moved: true}
	}
	key, wait := p.command.Queue, p.wait
	q := l.queues[key]
	limit := 1
	if q != nil {
		limit += q.proposed + q.waiters.len
	}
	sight := l.look(key, limit)
	if wait < 0 {
		wait = sight.wait
	}
	short := wait == 0
	if !sight.open || p.command.AttemptID != "" && l.repeats(p.command) {
		return entrance{short: short, ask: true}
	}
	if q == nil {
		q = &queueLine{key: key}
		l.queues[key] = q
	}
	l.letGo(q, sight) // whoever stands here comes first
	l.tickets++
	w.queue, w.turn, w.ticket, w.end = q, false, l.tickets, l.elapsed()+wait-p.waited
	w.remote = p.remote
	proven := l.proven()
	switch {
	case sight.available > q.proposed || p.again || !proven && !short:
		q.proposed++
		w.turn = true
		return entrance{short: short, turn: true}
	case short && (sight.mayBeFull() || !proven):
		return entrance{short: short, ask: true}
	case short || l.ends(w):
		q.empty++
		return entrance{short: short}
	}
	l.park(w)
	l.setAlarm(q, sight.next)
	return entrance{parked: true}
}

// await returns true when it is w's turn, with w counted as proposed. Else w
// stands nowhere any more: its wait is over, or this node does not lead.
func (l *line) await(ctx context.Context, w *waiter, p *poll) (turn bool, err error) {
	if p.parked != nil {
		p.parked()
	}
	for {
		select {
		case <-w.signal:
		case <-ctx.Done():
			l.leave(w)
			return false, nil
		}
		turn, over, err := l.news(w)
		if over {
			return false, err
		}
		if turn && p.turn != nil {
			turn, err = p.turn(ctx), errMoved
		} else if p.alive != nil && !p.alive() {
			turn, over = false, true
		}
		if turn {
			return true, nil
		}
		if over || err != nil {
			l.leave(w)
			return false, err
		}
	}
}

// news tells w why it was signalled, and sets the time of the next signal.
func (l *line) news(w *waiter) (turn, over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.turn:
		return true, false, nil
	case l.away:
		l.unpark(w)
		return false, true, errMoved
	case l.ends(w):
		l.unpark(w)
		w.queue.empty++
		return false, true, nil
	}
	l.wheel.arm(w, l.elapsed())
	return false, false, nil
}

// ends reports whether w is answered empty now. The caller holds mu.
func (l *line) ends(w *waiter) bool {
	return l.draining && !w.remote || l.elapsed() >= w.end
}

// leave takes w out of the line. If it was w's turn, the next one gets it.
func (l *line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.turn {
		l.unpark(w)
		return
	}
	w.turn = false
	w.queue.proposed--
	l.dispatch(w.queue)
}

// comeBack ends the receive that w has proposed. If it was empty and the wait is
// not over, w is parked again, in its old place, and the answer is true.
func (l *line) comeBack(w *waiter, empty bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := w.queue
	w.turn = false
	q.proposed--
	again := empty && !l.ends(w)
	switch {
	case again:
		if l.queues[q.key] == nil {
			l.queues[q.key] = q
		}
		w.queue = l.queues[q.key] // another one if the queue was made anew
		l.park(w)
	case empty:
		q.empty++
	}
	l.dispatch(q)
	if w.queue != q {
		l.dispatch(w.queue)
	}
	return again
}

// notify hears what the commands of a batch did. It is called after the batch
// was applied, without the machine's lock.
func (l *line) notify(events []sqs.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		q := l.queues[e.Queue]
		if q == nil || e.Kind == sqs.DeadLetterTargetMissing {
			continue
		}
		if e.Kind == sqs.QueueDeleted {
			l.letGo(q, sight{}) // there may be another one of that name by now
			continue
		}
		l.dispatch(q)
	}
}

// drain answers all who are parked, and lets nobody park from now on.
func (l *line) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.wakeAll()
}

// lead tells whether this node leads. If it does not, all who wait or come have to
// go elsewhere. A line that was never told belongs to a node that is alone.
func (l *line) lead(leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = !leads
	if l.away {
		l.wakeAll()
	}
}

// wakeAll has all who are parked look again. The caller holds mu.
func (l *line) wakeAll() {
	for _, q := range l.queues {
		for w := q.waiters.first; w != nil; w = w.next {
			w.wake()
		}
	}
}

// countEmpty counts an empty answer that did not come from the line.
func (l *line) countEmpty(key sqs.QueueKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[key]; q != nil {
		q.empty++
	}
}

// emptyReceives is the number of empty answers per queue.
func (l *line) emptyReceives() map[sqs.QueueKey]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[sqs.QueueKey]uint64, len(l.queues))
	for key, q := range l.queues {
		counts[key] = q.empty
	}
	return counts
}

// dispatch looks at the queue and lets go whom it can. The caller holds mu.
func (l *line) dispatch(q *queueLine) {
	if q.waiters.len == 0 {
		return
	}
	l.letGo(q, l.look(q.key, q.proposed+q.waiters.len))
}

// letGo lets go as many waiters as sight has messages, less the receives that
// are proposed; all of them if only the log can answer. The caller holds mu.
func (l *line) letGo(q *queueLine, sight sight) {
	for w := q.waiters.first; w != nil && (!sight.open || sight.available > q.proposed); w = q.waiters.first {
		l.unpark(w)
		w.turn = true
		q.proposed++
		w.wake()
	}
	if !sight.open && l.queues[q.key] == q {
		delete(l.queues, q.key)
	}
	l.setAlarm(q, sight.next)
}

// setAlarm has the ticker look at the queue at a time, if it has waiters; 0 is
// never. The caller holds mu.
func (l *line) setAlarm(q *queueLine, at sqs.Time) {
	if q.waiters.len == 0 {
		at = 0
	}
	q.alarm = at
	if at != 0 && (l.alarm == 0 || at < l.alarm) {
		l.alarm = at
	}
}

// sight is what can be seen of a queue in the state, now.
type sight struct {
	open      bool          // there is such a queue, and it is in order
	wait      time.Duration // its ReceiveMessageWaitTimeSeconds
	available int           // messages that a receive would find, at most the limit
	next      sqs.Time      // when the next hidden message becomes available; 0: never
}

// mayBeFull reports whether nothing is available because too much is in flight:
// only then is a short poll's empty answer an error, which is the log's to give.
func (s sight) mayBeFull() bool { return s.available == 0 && s.next != 0 }

func (l *line) look(key sqs.QueueKey, limit int) sight {
	var s sight
	now := l.now()
	l.view(func(v raftfsm.View) {
		queues := v.Queues()
		if s.wait, s.open = queues.WaitTime(key); !s.open {
			return
		}
		s.available = queues.Available(key, now, limit)
		if s.available == limit {
			return
		}
		if next, ever := queues.NextAvailable(key, now); ever {
			s.next = next
		}
	})
	return s
}

// repeats reports whether a receive will have the answer of an earlier one, for
// which no message need be available.
func (l *line) repeats(c sqs.ReceiveMessage) (yes bool) {
	l.view(func(v raftfsm.View) { yes = v.Queues().Repeats(c, l.now()) })
	return yes
}

// park puts w into its queue's line, by its ticket. The caller holds mu.
func (l *line) park(w *waiter) {
	select {
	case <-w.signal: // of an earlier wait
	default:
	}
	w.parked = true
	w.queue.waiters.insert(w)
	l.wheel.arm(w, l.elapsed())
	if l.away {
		w.wake()
	}
	if l.parked.Add(1) == 1 {
		select {
		case l.started <- struct{}{}:
		default:
		}
	}
}

// unpark takes w out of its queue's line. The caller holds mu.
func (l *line) unpark(w *waiter) {
	w.parked = false
	w.queue.waiters.remove(w)
	l.wheel.disarm(w)
	l.parked.Add(-1)
}

func (w *waiter) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
