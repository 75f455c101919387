package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"sync"

	"holdfast.internal/raftfsm"
)

// maxAcks is how many ranges of acknowledged numbers one operation carries; what
// is left rides with the next.
const maxAcks = 256

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
