package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// guest is a receive of another member's client in the line of this one.
type guest struct {
	*gateway
	from   peer.Target
	id     uint64 // of the wait, there
	origin raftfsm.Origin
	left   time.Duration
	began  time.Duration
}

// answerReceive is the peer.Handler of receives.
func (g *gateway) answerReceive(ctx context.Context, from string, request []byte) []byte {
	r := callReader{data: request}
	call := receiveCall{proposalCall: r.head()}
	call.wait, call.waited, call.id = time.Duration(r.signed())*time.Millisecond, r.millis(), r.number()
	op, err := r.operation()
	if err != nil {
		return answerError(fmt.Errorf("read receive: %w", err))
	}
	command, _, err := raftfsm.DecodeCommand(op.Command)
	c, ok := command.(sqs.ReceiveMessage)
	if err != nil || !ok {
		return answerError(fmt.Errorf("read receive: %w", errors.Join(errForward, err)))
	}
	target, err := g.members.target(from)
	if err != nil {
		return answerError(err)
	}
	if call.relay && !g.group.leading.Load() {
		return g.relayReceive(ctx, target, call, op)
	}
	v := guest{gateway: g, from: target, id: call.id, origin: op.Origin, left: call.left, began: g.elapsed()}
	outcome, err := g.line.receive(ctx, &poll{
		command: c, wait: call.wait, waited: call.waited, again: call.again, remote: true,
		turn: v.turn, parked: v.parked, propose: v.propose,
	})
	return g.answer(&outcome, err)
}

func (v *guest) propose(ctx context.Context, c sqs.ReceiveMessage) (raftfsm.Outcome, error) {
	return v.group.proposeOnce(ctx, c, v.origin, v.left-(v.elapsed()-v.began))
}

// parked tells the member of the client. It does not wait for the answer: if it is
// lost, the number stays in use for longer than it must.
func (v *guest) parked() {
	news := turnCall{kind: newsParked, id: v.id, number: v.origin.Number}
	go v.ask(context.Background(), v.from, news)
}

// turn asks the member of the client whether that is still there, and takes the
// number under which the receive is to be proposed. A member that is down is not asked:
// each of its receives would hold up those behind it for turnTimeout.
func (v *guest) turn(ctx context.Context) bool {
	if !v.members.isUp(v.from.Name) {
		return false
	}
	a := v.ask(ctx, v.from, turnCall{kind: newsTurn, id: v.id, number: v.origin.Number})
	v.origin = a.origin
	return a.goOn
}
