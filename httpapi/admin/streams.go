package admin

import (
	"encoding/json"
	"errors"
	"net/http"

	"holdfast.internal/cluster"
	"holdfast.internal/raftfsm"
)

// Trace is the answer of GET /messages/{id}/trace.
type Trace struct {
	MessageID string `json:"message_id"`
	// FirstIndex and LastIndex are the entries of the log that were read. Before
	// ExactIndex only the send can be seen.
	FirstIndex uint64   `json:"first_index"`
	ExactIndex uint64   `json:"exact_index"`
	LastIndex  uint64   `json:"last_index"`
	Steps      []Step   `json:"steps"`
	Now        *Message `json:"now"` // where the message is, without its content; null when it is nowhere
}

// NewTrace gives t its names on the wire.
func NewTrace(t raftfsm.Trace) Trace {
	trace := Trace{
		MessageID:  uuidText(t.MessageID),
		FirstIndex: t.First,
		ExactIndex: t.Exact,
		LastIndex:  t.Last,
		Steps: each(t.Steps, func(step raftfsm.Step) Step {
			step.MessageID = t.MessageID
			return newStep(step)
		}),
	}
	if t.Found {
		now := newPlace(t.Queue, t.Message)
		now.MessageID = trace.MessageID
		trace.Now = &now
	}
	return trace
}

func (s *server) getTrace(w http.ResponseWriter, r *http.Request) {
	id, ok := ParseMessageID(r.PathValue("id"))
	if !ok {
		s.refuse(w, http.StatusBadRequest, "a MessageId looks like 5fea7756-0ea4-451a-a703-a558b933e274")
		return
	}
	trace, err := s.Node.Trace(r.Context(), id)
	switch {
	case errors.Is(err, cluster.ErrTracing):
		s.refuse(w, http.StatusConflict, err.Error())
	case err != nil:
		s.refuse(w, http.StatusInternalServerError, err.Error())
	default:
		s.answer(w, NewTrace(trace))
	}
}

// getTail streams what happens to the messages of a queue from now on, one JSON
// object a line, until the client or the node goes. The status line is sent at
// once: whoever has it misses nothing from then on.
func (s *server) getTail(w http.ResponseWriter, r *http.Request) {
	key := pathKey(r)
	if _, ok := s.Node.Queue(key); !ok {
		s.refuse(w, http.StatusNotFound, noSuchQueue)
		return
	}
	tail, err := s.Node.Tail(key)
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer tail.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	stream := http.NewResponseController(w)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for {
		if err := stream.Flush(); err != nil {
			return // the client left
		}
		event, err := tail.Next(r.Context())
		if err != nil {
			return // as did the client, or the node ends
		}
		step := newStep(event.Step)
		step.Dropped = event.Dropped
		if err := encoder.Encode(step); err != nil {
			return
		}
	}
}
