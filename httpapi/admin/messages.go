package admin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// The limits of ?limit= in GET /queues/{account}/{name}/messages.
const (
	defaultPeek = 10
	maxPeek     = 1000
)

// MessagePage is the answer of GET /queues/{account}/{name}/messages.
type MessagePage struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next,omitempty"` // for ?after=; empty when there is no more
}

// Message is a message as an operator sees it. Times are in milliseconds since
// the Unix epoch, 0 where there is none.
type Message struct {
	Account         string `json:"account"`
	Queue           string `json:"queue"`
	Sequence        uint64 `json:"sequence"`   // of the message in its queue
	MessageID       string `json:"message_id"` // empty with Error
	State           string `json:"state"`      // visible, inflight or delayed
	SentMS          int64  `json:"sent_ms"`
	ArrivedMS       int64  `json:"arrived_ms"`   // in this queue, by a send or a move
	AvailableMS     int64  `json:"available_ms"` // end of the lease or the delay
	FirstReceivedMS int64  `json:"first_received_ms"`
	ReceiveCount    int    `json:"receive_count"`
	GroupID         string `json:"group_id,omitempty"`
	DeduplicationID string `json:"deduplication_id,omitempty"`
	MovedFrom       string `json:"moved_from,omitempty"` // ACCOUNT/NAME
	SenderID        string `json:"sender_id,omitempty"`
	Body            string `json:"body,omitempty"`
	BodyBase64      bool   `json:"body_base64,omitempty"` // Body is no UTF-8 and in base64
	Error           string `json:"error,omitempty"`       // why there is no content

	Attributes []MessageAttribute `json:"attributes,omitempty"`
}

// MessageAttribute is one of Message.Attributes. Binary values are in base64.
type MessageAttribute struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

var messageStates = map[string]sqs.MessageState{
	"": sqs.Visible, "visible": sqs.Visible, "inflight": sqs.InFlight, "delayed": sqs.Delayed, "any": sqs.AnyState,
}

var stateNames = map[sqs.MessageState]string{sqs.Visible: "visible", sqs.InFlight: "inflight", sqs.Delayed: "delayed"}

// peekArguments are what a request for messages asks for.
type peekArguments struct {
	state sqs.MessageState
	after uint64
	limit int
}

func parsePeek(r *http.Request) (a peekArguments, err error) {
	state, known := messageStates[r.FormValue("state")]
	if !known {
		return a, fmt.Errorf("state %q: want visible, inflight, delayed or any", r.FormValue("state"))
	}
	a.state = state
	if a.limit, err = parseLimit(r, defaultPeek, maxPeek); err != nil {
		return a, err
	}
	if text := r.FormValue("after"); text != "" {
		if a.after, err = strconv.ParseUint(text, 10, 64); err != nil || a.after > math.MaxInt64 {
			return a, badCursor(text)
		}
	}
	return a, nil
}

// parseLimit reads ?limit=, how much a page may have.
func parseLimit(r *http.Request, standard, most int) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return standard, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, fmt.Errorf("limit %q: want a number from 1 to %d", text, most)
	}
	return limit, nil
}

func badCursor(text string) error {
	return fmt.Errorf("after %q: want the cursor of an earlier answer", text)
}

// getMessages shows messages without receiving or counting them.
func (s *server) getMessages(w http.ResponseWriter, r *http.Request) {
	key := pathKey(r)
	a, err := parsePeek(r)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	page, err := s.Node.Peek(r.Context(), key, a.state, a.after, a.limit)
	if _, answered := errors.AsType[*sqs.Error](err); answered {
		s.refuseAnswer(w, err)
		return
	}
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer := MessagePage{Messages: each(page.Messages, func(m cluster.PeekedMessage) Message { return newMessage(key, m) })}
	if page.More {
		answer.Next = strconv.FormatUint(page.Next, 10)
	}
	s.answer(w, answer)
}

// refuseAnswer gives an answer of the state that is an error.
func (s *server) refuseAnswer(w http.ResponseWriter, err error) {
	status, text := http.StatusConflict, err.Error()
	if e, ok := errors.AsType[*sqs.Error](err); ok {
		text = e.Message // operators have no use for the codes of AWS
		switch e.Code {
		case sqs.QueueDoesNotExist:
			status, text = http.StatusNotFound, noSuchQueue
		case sqs.ResourceNotFoundException:
			status = http.StatusNotFound
		}
	}
	s.refuse(w, status, text)
}

func newMessage(key sqs.QueueKey, m cluster.PeekedMessage) Message {
	message := newPlace(key, m.Peeked)
	if m.Err != nil {
		message.Error = m.Err.Error()
		return message
	}
	content, err := sqs.ParseContent(m.Content)
	if err != nil {
		message.Error = err.Error()
		return message
	}
	message.MessageID = uuidText(content.IDNow(m.Redriven))
	if sqs.IsFIFO(key.Name) {
		message.DeduplicationID = content.DeduplicationID
		if id, moved := content.DeduplicationIDNow(m.DeadLetterSource, m.Redriven); moved {
			message.DeduplicationID = uuidText(id)
		}
	}
	message.SenderID = content.SenderID
	message.Body = string(content.Body)
	if !utf8.Valid(content.Body) {
		message.Body, message.BodyBase64 = base64.StdEncoding.EncodeToString(content.Body), true
	}
	for _, a := range content.Attributes {
		value := string(a.Value)
		if a.Binary {
			value = base64.StdEncoding.EncodeToString(a.Value)
		}
		message.Attributes = append(message.Attributes, MessageAttribute{Name: a.Name, Type: a.DataType, Value: value})
	}
	return message
}

// newPlace is a message without its content.
func newPlace(key sqs.QueueKey, m sqs.Peeked) Message {
	return Message{
		Account:         key.Account,
		Queue:           key.Name,
		Sequence:        m.Sequence,
		State:           stateNames[m.State],
		SentMS:          int64(m.SentAt),
		ArrivedMS:       int64(m.ArrivedAt),
		AvailableMS:     int64(m.AvailableAt),
		FirstReceivedMS: int64(m.FirstReceivedAt),
		ReceiveCount:    m.ReceiveCount,
		GroupID:         m.GroupID,
		MovedFrom:       keyText(m.DeadLetterSource),
	}
}

// Step is one line of a tail, and one of the steps of a trace: something that
// happened to one message, or to all of a queue.
type Step struct {
	Index        uint64 `json:"index"` // of the log entry
	TimeMS       int64  `json:"t"`     // of the log entry
	Event        string `json:"event"` // a raftfsm.StepKind
	Account      string `json:"account"`
	Queue        string `json:"queue"`
	MessageID    string `json:"message_id,omitempty"`
	Sequence     uint64 `json:"sequence,omitempty"` // of the message in the queue
	ReceiveCount int    `json:"receive_count,omitempty"`
	AvailableMS  int64  `json:"available_ms,omitempty"` // when it becomes visible
	To           string `json:"to,omitempty"`           // of a move, ACCOUNT/NAME
	ToSequence   uint64 `json:"to_sequence,omitempty"`
	Dropped      uint64 `json:"dropped,omitempty"` // events before this one that were lost
}

func newStep(step raftfsm.Step) Step {
	s := Step{
		Index:        step.Index,
		TimeMS:       int64(step.At),
		Event:        string(step.Kind),
		Account:      step.Queue.Account,
		Queue:        step.Queue.Name,
		Sequence:     step.Sequence,
		ReceiveCount: step.ReceiveCount,
		AvailableMS:  int64(step.AvailableAt),
		To:           keyText(step.To),
		ToSequence:   step.ToSequence,
	}
	if step.MessageID != (sqs.MessageID{}) {
		s.MessageID = uuidText(step.MessageID)
	}
	return s
}

func uuidText(id [16]byte) string { return string(wire.AppendUUID(nil, id)) }

// ParseMessageID reads a MessageId, in any case; false for what is none. The id of
// zeros is none: it stands for one that is not known.
func ParseMessageID(text string) (sqs.MessageID, bool) {
	id, ok := wire.ParseUUID(strings.ToLower(text))
	return id, ok && id != sqs.MessageID{}
}
