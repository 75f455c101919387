package cluster

import (
	"context"
	"encoding/binary"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
)

// turnTimeout is how long a member may take to say whether the client of a receive is
// still there.
const turnTimeout = time.Second

// newsKind is what the leader tells of a receive that waits.
type newsKind byte

const (
	newsParked newsKind = iota + 1 // nothing was available; its number is not in use any more
	newsTurn                       // it has its turn, if its client is still there
)

// turnCall is such a telling.
type turnCall struct {
	kind   newsKind
	id     uint64 // of the wait
	number uint64 // that it had
	answer chan turnAnswer
}

// turnAnswer says whether the receive is to be proposed, and as which operation.
type turnAnswer struct {
	goOn   bool
	origin raftfsm.Origin
}

// answerTurn is the peer.Handler of news about receives that wait.
func (g *gateway) answerTurn(ctx context.Context, _ string, request []byte) []byte {
	r := callReader{data: request}
	format, kind := r.byte(), newsKind(r.byte())
	news := turnCall{kind: kind, id: r.number(), number: r.number(), answer: make(chan turnAnswer, 1)}
	wait := g.waits.find(news.id)
	if r.bad || format != forwardFormat || wait == nil {
		return appendTurnAnswer(nil, turnAnswer{})
	}
	select {
	case wait.news <- news:
	case <-ctx.Done():
		return nil
	}
	return appendTurnAnswer(nil, <-news.answer)
}

func appendTurn(dst []byte, news turnCall) []byte {
	dst = append(dst, forwardFormat, byte(news.kind))
	dst = binary.AppendUvarint(dst, news.id)
	return binary.AppendUvarint(dst, news.number)
}

func appendTurnAnswer(dst []byte, a turnAnswer) []byte {
	if !a.goOn {
		return append(dst, 0)
	}
	return raftfsm.AppendOperation(append(dst, 1), a.origin, nil)
}

// ask tells a member news of a receive of its client's, and returns what it says.
func (g *gateway) ask(ctx context.Context, to peer.Target, news turnCall) turnAnswer {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	answer, err := g.port.Call(ctx, to, peer.MethodTurn, appendTurn(nil, news))
	if err != nil || len(answer) == 0 || answer[0] == 0 {
		return turnAnswer{}
	}
	op, err := raftfsm.DecodeOperation(answer[1:])
	return turnAnswer{goOn: err == nil, origin: op.Origin}
}
