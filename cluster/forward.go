package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// A request to the leader:
//
//	proposal = format 1 · flags · ms left · operation
//	receive  = format 1 · flags · ms left · wait · ms waited · number of the wait · operation
//	turn     = format 1 · news · number of the wait · number that is not in use any more
//
// and what is answered:
//
//	proposal, receive = status · (outcome · contents | name of the leader | text)
//	turn              = alive · operation
//
// Integers are varints, flags, news and alive are bytes, the operation is that of a
// log entry; that of a turn has no command.
const forwardFormat = 1

// The flags of a request.
const (
	flagGrows = 1 << iota // the command makes the state larger: admission may hold it back
	flagAgain             // it may have been executed
	flagRelay             // a member that does not lead passes it on to the leader
)

// callStatus is the first byte of an answer.
type callStatus byte

const (
	statusAnswered   callStatus = iota + 1 // an outcome follows
	statusNotLeader                        // not executed; the name of the leader follows, if it is known
	statusNotApplied                       // not executed in time
	statusUnknown                          // may have been executed
	statusOverloaded                       // not executed: ErrOverloaded
	statusFault                            // a text follows
)

var errForward = errors.New("malformed request or answer")

// proposalCall is what a request says beside the operation.
type proposalCall struct {
	left  time.Duration // until its caller gives up
	grows bool
	again bool
	relay bool
}

func (c *proposalCall) flags() (flags byte) {
	if c.grows {
		flags |= flagGrows
	}
	if c.again {
		flags |= flagAgain
	}
	if c.relay {
		flags |= flagRelay
	}
	return flags
}

func appendProposal(dst []byte, c proposalCall, o raftfsm.Origin, command []byte) []byte {
	dst = append(dst, forwardFormat, c.flags())
	dst = appendMillis(dst, c.left)
	return raftfsm.AppendOperation(dst, o, command)
}

// receiveCall is what the request of a receive says beside the operation.
type receiveCall struct {
	proposalCall
	wait   time.Duration // negative: the queue's own
	waited time.Duration // of it
	id     uint64        // of the wait, at the caller
}

func appendReceive(dst []byte, c receiveCall, o raftfsm.Origin, command []byte) []byte {
	dst = append(dst, forwardFormat, c.flags())
	dst = appendMillis(dst, c.left)
	dst = binary.AppendVarint(dst, c.wait.Milliseconds())
	dst = appendMillis(dst, c.waited)
	dst = binary.AppendUvarint(dst, c.id)
	return raftfsm.AppendOperation(dst, o, command)
}

func appendMillis(dst []byte, d time.Duration) []byte {
	return binary.AppendUvarint(dst, uint64(max(d, 0).Milliseconds()))
}

// callReader reads the fields of a request; after an error all are zero.
type callReader struct {
	data []byte
	bad  bool
}

func (r *callReader) byte() byte {
	if len(r.data) == 0 {
		r.bad = true
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *callReader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.data, r.bad = nil, true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *callReader) signed() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.data, r.bad = nil, true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *callReader) millis() time.Duration {
	const longest = uint64(24 * time.Hour / time.Millisecond)
	return time.Duration(min(r.number(), longest)) * time.Millisecond
}

// head reads what all requests begin with.
func (r *callReader) head() (c proposalCall) {
	if r.byte() != forwardFormat {
		r.data, r.bad = nil, true
	}
	flags := r.byte()
	c.grows, c.again, c.relay = flags&flagGrows != 0, flags&flagAgain != 0, flags&flagRelay != 0
	c.left = r.millis()
	return c
}

// operation reads the rest.
func (r *callReader) operation() (raftfsm.Operation, error) {
	if r.bad {
		return raftfsm.Operation{}, errForward
	}
	return raftfsm.DecodeOperation(r.data)
}

// answerProposal is the peer.Handler of proposals.
func (g *gateway) answerProposal(ctx context.Context, from string, request []byte) []byte {
	r := callReader{data: request}
	call := r.head()
	op, err := r.operation()
	if err != nil {
		return answerError(fmt.Errorf("read proposal: %w", err))
	}
	switch {
	case g.group.leading.Load():
	case call.relay:
		return g.relayProposal(ctx, from, call, op)
	default:
		return g.notLeader()
	}
	p := g.group.coalescer.take()
	p.command, p.origin = op.Command, op.Origin // the request is ours to keep
	p.expired.Reset(call.left)
	if call.grows {
		size := int64(len(p.command)) + commandOverhead
		if err := g.group.admission.admit(ctx, p.expired.C, size); err != nil {
			g.group.coalescer.recycle(p)
			return answerError(err)
		}
		p.held = size
	}
	if err := g.group.coalescer.submit(ctx, p); err != nil {
		return answerError(err)
	}
	answer := g.answer(&p.outcome, p.err)
	g.group.coalescer.recycle(p)
	return answer
}

// answer encodes what came of an operation. A leader that has lost the leadership
// says who has it.
func (g *gateway) answer(o *raftfsm.Outcome, err error) []byte {
	if errors.Is(err, ErrNoLeader) || errors.Is(err, errMoved) {
		return g.notLeader()
	}
	if err != nil {
		return answerError(err)
	}
	size := 64
	if len(o.Bodies) > 0 {
		size = 4 << 10
	}
	b := append(make([]byte, 0, size), byte(statusAnswered))
	b = raftfsm.AppendOutcome(b, o)
	for _, fetch := range o.Bodies {
		content, err := fetch()
		switch {
		case errors.Is(err, wal.ErrDamagedBody):
			b = append(b, 0)
			continue
		case err != nil:
			return answerError(fmt.Errorf("read body: %w", err))
		}
		b = binary.AppendUvarint(b, uint64(len(content))+1)
		b = append(b, content...)
	}
	return b
}

// notLeader says that this node does not lead, and who does by the word of raft. The
// word of others about it, in the reign, may be of the time before: whoever follows
// that to a leader that is cut off waits for nothing.
func (g *gateway) notLeader() []byte {
	answer := []byte{byte(statusNotLeader)}
	if leader, _, known := g.leader(); known && leader.Name != g.node {
		answer = append(answer, leader.Name...)
	}
	return answer
}

func answerError(err error) []byte {
	switch {
	case errors.Is(err, ErrNoLeader):
		return []byte{byte(statusNotApplied)}
	case errors.Is(err, ErrOutcomeUnknown):
		return []byte{byte(statusUnknown)}
	case errors.Is(err, ErrOverloaded):
		return []byte{byte(statusOverloaded)}
	}
	return append([]byte{byte(statusFault)}, err.Error()...)
}

// readAnswer is what the leader has answered. The error is nil, ErrNoLeader, with
// the name of the leader if the other node knows it, ErrOutcomeUnknown,
// ErrOverloaded, or a fault.
func readAnswer(b []byte) (o raftfsm.Outcome, leader string, err error) {
	if len(b) == 0 {
		return o, "", errForward
	}
	rest := b[1:]
	switch callStatus(b[0]) {
	case statusAnswered:
		o, err = readOutcome(rest)
		return o, "", err
	case statusNotLeader:
		return o, string(rest), ErrNoLeader
	case statusNotApplied:
		return o, "", ErrNoLeader
	case statusUnknown:
		return o, "", ErrOutcomeUnknown
	case statusOverloaded:
		return o, "", ErrOverloaded
	case statusFault:
		return o, "", fmt.Errorf("leader answers: %s", rest)
	}
	return o, "", errForward
}

// readOutcome reads an outcome and its contents, which alias b.
func readOutcome(b []byte) (raftfsm.Outcome, error) {
	o, rest, err := raftfsm.DecodeOutcome(b)
	if err != nil {
		return raftfsm.Outcome{}, fmt.Errorf("read answer: %w", err)
	}
	r := callReader{data: rest}
	for len(r.data) > 0 {
		size := r.number()
		switch {
		case size == 0 && !r.bad:
			o.Bodies = append(o.Bodies, func() ([]byte, error) { return nil, wal.ErrDamagedBody })
		case r.bad || size-1 > uint64(len(r.data)):
			return raftfsm.Outcome{}, fmt.Errorf("read answer: %w", errForward)
		default:
			content := r.data[: size-1 : size-1]
			r.data = r.data[size-1:]
			o.Bodies = append(o.Bodies, func() ([]byte, error) { return content, nil })
		}
	}
	return o, nil
}
