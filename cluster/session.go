package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"holdfast.internal/raftfsm"
)

// maxAcks is how many ranges of acknowledged numbers one operation carries; what
// is left rides with the next.
const maxAcks = 256

// errAnew says that an operation was refused unexecuted because of its number, and
// has to begin with another one.
var errAnew = fmt.Errorf("%w: number refused", ErrNoLeader)

// errForgotten says that what an operation has done, if anything, will never be
// known: its session has ended, or its number is finished.
var errForgotten = fmt.Errorf("%w: result forgotten", ErrOutcomeUnknown)

// session numbers the operations of this node's clients, so that each can be sent
// again until its answer arrives (raftfsm.OpenSession). It is safe for concurrent
// use.
type session struct {
	id uint64 // 0: operations that need no session, since they may be repeated

	mu       sync.Mutex
	last     uint64
	answered raftfsm.NumberRanges // that no operation has told yet
}

func newSession() *session {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return &session{id: binary.LittleEndian.Uint64(id[:]) | 1}
}

// begin is the origin of the next operation. Its acknowledgements are in the room
// of buf.
func (s *session) begin(buf []raftfsm.NumberRange) raftfsm.Origin {
	if s.id == 0 {
		return raftfsm.Origin{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	told := min(len(s.answered), maxAcks)
	o := raftfsm.Origin{Session: s.id, Number: s.last, Acks: append(buf[:0], s.answered[:told]...)}
	s.answered = s.answered[:copy(s.answered, s.answered[told:])]
	return o
}

// end acknowledges the number of an operation: its answer has come, or nobody
// wants it any more. If the operation may not have told its acknowledgements, they
// are told again.
func (s *session) end(o raftfsm.Origin, told bool) {
	if o.Number == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = s.answered.Add(raftfsm.NumberRange{First: o.Number, Last: o.Number})
	if told {
		return
	}
	for _, r := range o.Acks {
		s.answered = s.answered.Add(r)
	}
}

// numbering is the place of an operation in the node's session.
type numbering struct {
	session *session
	origin  raftfsm.Origin
	maybe   bool // what has this number may have been executed
}

// refusal looks at an answer. The error is nil if it is one for the client; else
// it says what is to be done: errAnew, ErrNoLeader (try again later), or errForgotten
// (give up).
func (n *numbering) refusal(g *gateway, outcome *raftfsm.Outcome) error {
	refused, ok := outcome.Err.(*raftfsm.SessionError) //nolint:errorlint // an Outcome.Err is never wrapped
	switch {
	case !ok:
		return nil
	case refused.Reason == raftfsm.SessionFull:
		return ErrNoLeader
	case n.maybe:
		return errForgotten
	case refused.Reason == raftfsm.SessionUnknown:
		g.replace(n.session, nil)
		n.session, n.origin = nil, raftfsm.Origin{}
	default:
		n.retire(true)
	}
	return errAnew
}

// retire acknowledges the number, so that nothing is executed under it from now
// on. told says whether its own acknowledgements have certainly been told.
func (n *numbering) retire(told bool) {
	if n.session != nil {
		n.session.end(n.origin, told)
	}
	n.origin, n.maybe = raftfsm.Origin{}, false
}
