package cluster

import (
	"context"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// relay is a request of another member that this one passes on to the leader,
// because that member does not reach the leader itself. Numbers and turns stay those
// of the member that has the client: whoever passes them on knows nothing of them.
type relay struct {
	*gateway
	from  peer.Target
	there uint64 // number of the wait at from; 0 if it is no receive
	id    uint64 // and here
}

// relayProposal is the answer of the leader to a proposal of another member's.
func (g *gateway) relayProposal(ctx context.Context, from string, call proposalCall, op raftfsm.Operation) []byte {
	call.relay = false
	r := relay{gateway: g, from: peer.Target{Name: from}}
	return r.pass(ctx, peer.MethodPropose, appendProposal(nil, call, op.Origin, op.Command), nil)
}

// relayReceive is the answer of the leader to a receive of another member's.
func (g *gateway) relayReceive(ctx context.Context, from peer.Target, call receiveCall, op raftfsm.Operation) []byte {
	id, wait := g.waits.enter()
	defer g.waits.leave(id, wait)
	r := relay{gateway: g, from: from, there: call.id, id: id}
	call.relay, call.id = false, id
	return r.pass(ctx, peer.MethodReceive, appendReceive(nil, call, op.Origin, op.Command), wait.news)
}

// pass asks the leader. A request goes over one other member at most: the leader is
// not asked to pass it on.
func (r *relay) pass(ctx context.Context, method byte, request []byte, news <-chan turnCall) []byte {
	reign := r.reign.Load()
	if !reign.known || reign.here || reign.via.Name != "" || reign.leader.Name == r.from.Name {
		return r.notLeader()
	}
	pending, err := r.port.Start(reign.ctx, reign.leader, method, request)
	if err != nil {
		return r.notLeader()
	}
	for {
		var answer []byte
		select {
		case n := <-news:
			n.answer <- r.hear(ctx, n)
			continue
		case reply, ok := <-pending.Reply():
			answer, err = pending.Result(reply, ok)
		case <-reign.ctx.Done():
			answer, err = pending.Cancel(errReignOver)
		case <-ctx.Done():
			answer, err = pending.Cancel(ctx.Err())
		}
		if err != nil {
			return answerError(callError(err))
		}
		return answer
	}
}

// hear tells the member of the client what the leader tells.
func (r *relay) hear(ctx context.Context, news turnCall) turnAnswer {
	if news.id != r.id {
		return turnAnswer{} // of a wait that is over
	}
	news.id = r.there
	return r.ask(ctx, r.from, news)
}
