package cluster

import (
	"context"
	"errors"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// errReignOver is why a call to a member that leads no more is given up.
var errReignOver = errors.New("another leader")

// answerShare is the part of the time that a command may take which another member
// leaves for its answer: that may say why the command was not executed, where a caller
// who hears nothing knows nothing.
const answerShare = 100

// operation is a command on its way to an answer.
type operation struct {
	*gateway
	numbering
	p        *proposal // nil if it was left to the coalescer
	grows    bool
	admitted bool          // by this node's admission
	ends     time.Duration // by elapsed
	hint     peer.Target   // who leads, as another member says
	over     bool          // there is no time for another try
}

// run tries until there is an answer, or no time.
func (o *operation) run(ctx context.Context) (raftfsm.Outcome, error) {
	for o.enlist(ctx) {
		r := o.reign.Load()
		outcome, err := o.attempt(ctx, r)
		if err == nil {
			err = o.refusal(o.gateway, &outcome)
		}
		switch {
		case err == nil:
			return outcome, o.finish(true, nil)
		case errors.Is(err, errForgotten):
			return raftfsm.Outcome{}, o.finish(false, err)
		case errors.Is(err, errAnew) && !o.over:
			continue
		case errors.Is(err, ErrOutcomeUnknown):
			o.maybe = true
		case errors.Is(err, ErrOverloaded) && !o.maybe, !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrNoLeader):
			return raftfsm.Outcome{}, o.finish(false, err)
		}
		if o.over || !o.pause(ctx, r) {
			break
		}
	}
	if o.maybe {
		return raftfsm.Outcome{}, o.finish(false, ErrOutcomeUnknown)
	}
	return raftfsm.Outcome{}, o.finish(false, ErrNoLeader)
}

// enlist gives the operation a number; false if there is no session in time.
func (o *operation) enlist(ctx context.Context) bool {
	for o.session == nil {
		s, renewed := o.current()
		if s != nil {
			o.session = s
			break
		}
		select {
		case <-renewed:
		case <-o.p.expired.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	if o.origin.Number == 0 {
		o.origin = o.session.begin(o.p.acks)
		o.p.acks = o.origin.Acks
	}
	return true
}

// attempt tries once, at the leader of r. The error is nil, ErrNoLeader,
// ErrOutcomeUnknown, ErrOverloaded, or a fault.
func (o *operation) attempt(ctx context.Context, r *reign) (raftfsm.Outcome, error) {
	switch {
	case o.hint.Name != "":
		to := o.hint
		o.hint = peer.Target{}
		return o.there(ctx, r, to)
	case !r.known || r.here && !o.group.leading.Load():
		return raftfsm.Outcome{}, ErrNoLeader
	case r.here:
		return o.here(ctx)
	}
	return o.there(ctx, r, r.to())
}

// here proposes the command on this node.
func (o *operation) here(ctx context.Context) (raftfsm.Outcome, error) {
	o.p.origin = o.origin
	if o.grows && !o.admitted {
		size := int64(len(o.p.command)) + commandOverhead
		if err := o.group.admission.admit(ctx, o.p.expired.C, size); err != nil {
			o.over = true
			return raftfsm.Outcome{}, err
		}
		o.p.held, o.admitted = size, true
	}
	if err := o.group.coalescer.submit(ctx, o.p); err != nil {
		o.p, o.over = nil, true
		return raftfsm.Outcome{}, err
	}
	return o.p.outcome, o.p.err
}

// there has another member propose the command, if there is time for its answer.
func (o *operation) there(ctx context.Context, r *reign, to peer.Target) (raftfsm.Outcome, error) {
	call := proposalCall{left: o.ends - o.elapsed() - o.group.timeout/answerShare, grows: o.grows, relay: to == r.via}
	if call.left <= 0 {
		o.over = true
		return raftfsm.Outcome{}, ErrNoLeader
	}
	buf := o.calls.Get().(*[]byte)
	*buf = appendProposal((*buf)[:0], call, o.origin, o.p.command)
	pending, err := o.port.Start(r.ctx, to, peer.MethodPropose, *buf)
	o.recycleCall(buf)
	if err != nil {
		return raftfsm.Outcome{}, ErrNoLeader
	}
	var answer []byte
	select {
	case reply, ok := <-pending.Reply():
		answer, err = pending.Result(reply, ok)
	case <-r.ctx.Done():
		answer, err = pending.Cancel(errReignOver)
	case <-o.p.expired.C:
		o.over = true
		answer, err = pending.Cancel(context.DeadlineExceeded)
	case <-ctx.Done():
		o.over = true
		answer, err = pending.Cancel(ctx.Err())
	}
	if err != nil {
		return raftfsm.Outcome{}, callError(err)
	}
	outcome, leader, err := readAnswer(answer)
	o.hint = o.hinted(leader, to, r)
	return outcome, err
}

// hinted is the member that another one takes for the leader; zero if it is that
// one itself, this one, the leader of r, to which a way is known, or one that this
// node does not hear.
func (g *gateway) hinted(leader string, by peer.Target, r *reign) peer.Target {
	if leader == "" || leader == by.Name || leader == g.node || leader == r.leader.Name || g.members.isDeaf(leader) {
		return peer.Target{}
	}
	target, err := g.members.target(leader)
	if err != nil {
		return peer.Target{}
	}
	return target
}

// callError is what the failure of a call means for the operation.
func callError(err error) error {
	if errors.Is(err, peer.ErrNotSent) {
		return ErrNoLeader
	}
	return ErrOutcomeUnknown
}

// pause waits before the next try; false means that there is no time for one.
func (o *operation) pause(ctx context.Context, r *reign) bool {
	if o.group.coalescer.isClosed() {
		return false
	}
	select {
	case <-r.ctx.Done():
		return true
	case <-time.After(retryEvery):
		return true
	case <-o.p.expired.C:
	case <-ctx.Done():
	}
	return false
}

// finish acknowledges the number and gives the proposal back.
func (o *operation) finish(told bool, err error) error {
	o.retire(told)
	if o.p != nil {
		o.group.coalescer.recycle(o.p)
	}
	return err
}

// maxPooledCall is the largest buffer kept for the next request.
const maxPooledCall = 64 << 10

func (g *gateway) recycleCall(buf *[]byte) {
	if cap(*buf) <= maxPooledCall {
		g.calls.Put(buf)
	}
}
