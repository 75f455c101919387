package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

const (
	// receiveGrace is how long a receive may take beyond its wait: so long it looks
	// for a leader.
	receiveGrace = 5 * time.Second

	// answerGrace is how long the leader may be late with the answer to a receive
	// whose wait is over, before it is taken for lost.
	answerGrace = 500 * time.Millisecond
)

// reception is a receive of one of this node's clients, on its way to an answer.
// It stands in the line of the leader, and moves when another member leads.
type reception struct {
	*gateway
	numbering
	poll
	limit  time.Duration // of the wait; of a queue's own as this node knows it
	began  time.Duration // by elapsed
	hint   peer.Target
	proven bool // a leader has seen since then that there is nothing: an empty answer is right
}

// receive is Node.Receive for a member.
func (g *gateway) receive(ctx context.Context, c sqs.ReceiveMessage, wait time.Duration, alive func() bool) (raftfsm.Outcome, error) {
	r := reception{gateway: g, poll: poll{command: c, wait: wait, alive: alive}, limit: wait, began: g.elapsed()}
	if wait < 0 {
		r.limit = g.line.look(c.Queue, 1).wait
	}
	outcome, err := r.run(ctx)
	r.retire(outcome.Index != 0) // else it need not have been in the log
	return outcome, err
}

// run tries until there is an answer, or no time.
func (r *reception) run(ctx context.Context) (raftfsm.Outcome, error) {
	for ctx.Err() == nil {
		reign := r.reign.Load()
		outcome, err := r.attempt(ctx, reign)
		switch {
		case err == nil || isFinal(err):
			return outcome, err
		case errors.Is(err, ErrOutcomeUnknown):
			r.maybe = true
		case errors.Is(err, errAnew):
			continue
		}
		if r.proven && !r.maybe && r.waitIsOver() {
			return raftfsm.Outcome{}, nil
		}
		if r.waitedFor() > r.limit+receiveGrace || !r.pause(ctx, reign) {
			break
		}
	}
	switch {
	case r.maybe:
		return raftfsm.Outcome{}, ErrOutcomeUnknown
	case ctx.Err() != nil && r.proven:
		return raftfsm.Outcome{}, nil
	}
	return raftfsm.Outcome{}, ErrNoLeader
}

// isFinal reports whether an error is one that another try would not change.
func isFinal(err error) bool {
	switch {
	case errors.Is(err, errForgotten):
		return true
	case errors.Is(err, errMoved), errors.Is(err, ErrNoLeader), errors.Is(err, ErrOutcomeUnknown):
		return false
	}
	return true
}

func (r *reception) waitedFor() time.Duration { return r.elapsed() - r.began }

// waitIsOver reports whether the client has waited for as long as it wanted, or
// may not wait any more.
func (r *reception) waitIsOver() bool {
	return r.waitedFor() >= r.limit || r.isDrained()
}

func (r *reception) isDrained() bool {
	select {
	case <-r.drained:
		return true
	default:
		return false
	}
}

// attempt tries once, at the leader of a reign.
func (r *reception) attempt(ctx context.Context, reign *reign) (raftfsm.Outcome, error) {
	r.waited, r.again = r.waitedFor(), r.maybe
	to := reign.to()
	switch {
	case r.hint.Name != "":
		to, r.hint = r.hint, peer.Target{}
	case !reign.known || reign.here && !r.group.leading.Load():
		return raftfsm.Outcome{}, ErrNoLeader
	case reign.here:
		here := r.poll
		here.propose, here.parked = r.proposeHere, func() { r.isParked(r.origin.Number) }
		return r.line.receive(ctx, &here)
	}
	return r.there(ctx, reign, to)
}

// enlist gives the receive a number; false if there is no session.
func (r *reception) enlist() bool {
	if r.session == nil {
		r.session, _ = r.current()
	}
	if r.session == nil {
		return false
	}
	if r.origin.Number == 0 {
		r.origin = r.session.begin(nil)
	}
	return true
}

// isParked notes that nothing was available when the receive began to wait. What
// has that number is not executed any more.
func (r *reception) isParked(number uint64) {
	r.proven = true
	if number != 0 && number == r.origin.Number {
		r.retire(false)
	}
}

// proposeHere puts the receive into the log of this node, once.
func (r *reception) proposeHere(ctx context.Context, c sqs.ReceiveMessage) (raftfsm.Outcome, error) {
	if !r.enlist() {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	outcome, err := r.group.proposeOnce(ctx, c, r.origin, r.limit+receiveGrace-r.waitedFor())
	if err == nil {
		err = r.refusal(r.gateway, &outcome)
	}
	return outcome, err
}

// pause waits before the next try; false means that the node ends or the client
// has left.
func (r *reception) pause(ctx context.Context, reign *reign) bool {
	if r.group.coalescer.isClosed() {
		return false
	}
	select {
	case <-reign.ctx.Done():
	case <-time.After(retryEvery):
	case <-ctx.Done():
		return false
	}
	return true
}

// waits are the receives of this node's clients that stand at another member.
type waits struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*remoteWait
	pool sync.Pool // of *remoteWait
}

// remoteWait is where the leader asks about one of them.
type remoteWait struct {
	news  chan turnCall
	timer *time.Timer
}

// enter gives a wait its number.
func (w *waits) enter() (uint64, *remoteWait) {
	wait, ok := w.pool.Get().(*remoteWait)
	if !ok {
		wait = &remoteWait{news: make(chan turnCall), timer: time.NewTimer(time.Hour)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.open[w.last] = wait
	return w.last, wait
}

func (w *waits) leave(id uint64, wait *remoteWait) {
	wait.timer.Stop()
	w.mu.Lock()
	delete(w.open, id)
	w.mu.Unlock()
	w.pool.Put(wait)
}

func (w *waits) find(id uint64) *remoteWait {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[id]
}

// there has the receive wait at another member.
func (r *reception) there(ctx context.Context, reign *reign, to peer.Target) (raftfsm.Outcome, error) {
	if !r.enlist() {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	id, wait := r.waits.enter()
	defer r.waits.leave(id, wait)
	command, err := raftfsm.AppendCommand(nil, r.command, nil)
	if err != nil {
		return raftfsm.Outcome{}, err
	}
	buf := r.calls.Get().(*[]byte)
	*buf = appendReceive((*buf)[:0], receiveCall{
		proposalCall: proposalCall{left: r.limit + receiveGrace - r.waited, again: r.again, relay: to == reign.via},
		wait:         r.wait, waited: r.waited, id: id,
	}, r.origin, command)
	pending, err := r.port.Start(reign.ctx, to, peer.MethodReceive, *buf)
	r.recycleCall(buf)
	if err != nil {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	v := visit{reception: r, id: id, wait: wait, pending: pending, reign: reign}
	outcome, err := v.await(ctx)
	r.hint = r.hinted(v.leader, to, reign)
	return outcome, err
}

// visit is a receive while it stands at another member.
type visit struct {
	*reception
	id      uint64
	wait    *remoteWait
	pending *peer.Pending
	reign   *reign
	granted bool   // it was told to go on when it had its turn
	gone    bool   // its client has left
	leader  string // as the other member says
}

// await returns the answer.
func (v *visit) await(ctx context.Context) (raftfsm.Outcome, error) {
	drained := v.drained
	v.wait.timer.Reset(v.nextLook())
	for {
		select {
		case reply, ok := <-v.pending.Reply():
			return v.result(v.pending.Result(reply, ok))
		case news := <-v.wait.news:
			news.answer <- v.hear(news)
			if v.gone || v.isDrained() && v.idle() {
				return v.leave(context.Canceled)
			}
		case <-v.wait.timer.C:
			if v.alive != nil && !v.alive() {
				return v.leave(context.Canceled)
			}
			if late := v.waitedFor() - v.limit; late > receiveGrace || late > answerGrace && v.idle() {
				return v.result(v.pending.Cancel(context.DeadlineExceeded))
			}
			v.wait.timer.Reset(v.nextLook())
		case <-drained:
			if v.idle() {
				return v.leave(context.Canceled)
			}
			drained = nil // it ends when it is parked
		case <-v.reign.ctx.Done():
			return v.result(v.pending.Cancel(errReignOver))
		case <-ctx.Done():
			return v.leave(ctx.Err())
		}
	}
}

// nextLook is when the client is looked at, or the wait is over.
func (v *visit) nextLook() time.Duration {
	if left := v.limit + answerGrace - v.waitedFor(); left > 0 {
		return min(lookEvery, left+time.Millisecond)
	}
	return lookEvery
}

// idle reports whether the receive certainly waits: nothing is executed for it.
func (v *visit) idle() bool { return v.proven && v.origin.Number == 0 }

// leave gives the wait up; the answer is empty, whatever the other member does.
func (v *visit) leave(reason error) (raftfsm.Outcome, error) {
	_, _ = v.pending.Cancel(reason) // nobody wants the answer
	return raftfsm.Outcome{}, nil
}

// result is what came of the call.
func (v *visit) result(answer []byte, err error) (raftfsm.Outcome, error) {
	if err != nil {
		if v.idle() {
			return raftfsm.Outcome{}, ErrNoLeader
		}
		return raftfsm.Outcome{}, callError(err)
	}
	outcome, leader, err := readAnswer(answer)
	v.leader = leader
	if errors.Is(err, ErrOutcomeUnknown) && v.idle() {
		err = ErrNoLeader // as the member says that passed the receive on
	}
	if v.granted && (err == nil || errors.Is(err, ErrNoLeader)) {
		v.maybe = false // what was granted was executed now, or not at all
	}
	if err == nil {
		err = v.refusal(v.gateway, &outcome)
	}
	return outcome, err
}

// hear takes news in. For its turn the receive gets a new number: from then on it
// may be executed.
func (v *visit) hear(news turnCall) turnAnswer {
	if news.id != v.id {
		return turnAnswer{} // of somebody who has left
	}
	v.isParked(news.number)
	if news.kind == newsParked {
		return turnAnswer{}
	}
	v.gone = v.alive != nil && !v.alive() || v.isDrained()
	if v.gone || !v.enlist() {
		return turnAnswer{}
	}
	v.granted, v.maybe = true, true
	return turnAnswer{true, v.origin}
}
