package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

// maxRedriveSize bounds the body of POST /queues/{account}/{name}/redrive.
const maxRedriveSize = 16 << 10

// maxSought is how many messages of a queue are looked at for a MessageId.
const maxSought = 100_000

// Redrive is the body of POST /queues/{account}/{name}/redrive.
type Redrive struct {
	// To is the ARN of the queue that the messages go to; empty sends each one
	// back to the queue that it came from as a dead letter.
	To        string `json:"to,omitempty"`
	Rate      int    `json:"rate,omitempty"`       // messages a second, 1–500; 0: as fast as the node can
	Limit     uint64 `json:"limit,omitempty"`      // the most messages to move; 0: all
	MessageID string `json:"message_id,omitempty"` // of the only message to move
}

// Redriven is the answer: the task that was started, or the message that was
// moved, which is a new one now.
type Redriven struct {
	TaskID    string `json:"task_id,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	To        string `json:"to,omitempty"` // ACCOUNT/NAME
	Sequence  uint64 `json:"sequence,omitempty"`
}

// MoveTask is an element of GET /queues/{account}/{name}/redrive.
type MoveTask struct {
	TaskID        string `json:"task_id"`
	Status        string `json:"status"`       // running, completed, cancelling, cancelled or failed
	To            string `json:"to,omitempty"` // ACCOUNT/NAME; empty: each message's dead-letter source
	Rate          int    `json:"rate"`         // messages a second; 0: no limit
	Moved         uint64 `json:"moved"`
	ToMove        uint64 `json:"to_move"` // as of the start
	StartedMS     int64  `json:"started_ms"`
	FailureReason string `json:"failure_reason,omitempty"`
}

// Active reports whether the task goes on.
func (t *MoveTask) Active() bool {
	return t.Status == taskStatuses[sqs.TaskRunning] || t.Status == taskStatuses[sqs.TaskCancelling]
}

var taskStatuses = map[sqs.MoveTaskStatus]string{
	sqs.TaskRunning:    "running",
	sqs.TaskCompleted:  "completed",
	sqs.TaskCancelling: "cancelling",
	sqs.TaskCancelled:  "cancelled",
	sqs.TaskFailed:     "failed",
}

// getRedrive lists the latest move tasks of a queue, the latest first.
func (s *server) getRedrive(w http.ResponseWriter, r *http.Request) {
	result, _, ok := s.do(w, r, sqs.ListMessageMoveTasks{Source: pathKey(r), Limit: sqs.MaxListedTasks})
	if !ok {
		return
	}
	s.answer(w, each(result.(sqs.ListMessageMoveTasksResult).Tasks, newMoveTask))
}

func newMoveTask(t sqs.MoveTask) MoveTask {
	task := MoveTask{
		TaskID: uuidText(t.ID), Status: taskStatuses[t.Status], Rate: t.MaxPerSecond, Moved: t.Moved, ToMove: t.ToMove,
		StartedMS: int64(t.StartedAt), FailureReason: string(t.FailureReason),
	}
	if t.Destination != nil {
		task.To = keyText(*t.Destination)
	}
	return task
}

// postRedrive starts a move task, or moves one message.
func (s *server) postRedrive(w http.ResponseWriter, r *http.Request) {
	var wanted Redrive
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRedriveSize))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		s.refuse(w, http.StatusBadRequest, fmt.Sprintf("decode body: %v", err))
		return
	}
	destination, err := s.checkRedrive(&wanted)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if wanted.MessageID != "" {
		s.redriveMessage(w, r, wanted.MessageID, destination)
		return
	}
	c := sqs.StartMessageMoveTask{
		Source: pathKey(r), Task: wire.RandomUUID(), Destination: destination, MaxPerSecond: wanted.Rate, Limit: wanted.Limit,
	}
	if _, index, ok := s.do(w, r, c); ok {
		s.Logger.Info("move task started", "account", c.Source.Account, "queue", c.Source.Name, "task", uuidText(c.Task), "index", index)
		s.answer(w, Redriven{TaskID: uuidText(c.Task)})
	}
}

// deleteRedrive cancels the active move task of a queue and answers it. What the
// task has moved stays moved.
func (s *server) deleteRedrive(w http.ResponseWriter, r *http.Request) {
	source := pathKey(r)
	result, _, ok := s.do(w, r, sqs.ListMessageMoveTasks{Source: source, Limit: 1})
	if !ok {
		return
	}
	tasks := result.(sqs.ListMessageMoveTasksResult).Tasks
	if len(tasks) == 0 || tasks[0].Status != sqs.TaskRunning {
		s.refuse(w, http.StatusConflict, "no move task of this queue is running")
		return
	}
	result, index, ok := s.do(w, r, sqs.CancelMessageMoveTask{Source: source, Task: tasks[0].ID})
	if !ok {
		return
	}
	cancelled := tasks[0]
	cancelled.Status, cancelled.Moved = sqs.TaskCancelling, result.(sqs.CancelMessageMoveTaskResult).Moved
	s.Logger.Info("move task cancelled", "account", source.Account, "queue", source.Name, "task", uuidText(cancelled.ID), "index", index)
	s.answer(w, newMoveTask(cancelled))
}

// checkRedrive checks what the state takes for granted, and returns the
// destination, if there is one.
func (s *server) checkRedrive(wanted *Redrive) (*sqs.QueueKey, error) {
	switch {
	case wanted.Rate < 0 || wanted.Rate > sqs.MaxMoveRate:
		return nil, fmt.Errorf("rate %d: want 1 to %d", wanted.Rate, sqs.MaxMoveRate)
	case wanted.MessageID != "" && (wanted.Rate != 0 || wanted.Limit != 0):
		return nil, errors.New("message_id goes with neither rate nor limit")
	case wanted.To == "":
		return nil, nil
	}
	parts := strings.SplitN(wanted.To, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "sqs" || !sqs.ValidQueueName(parts[5]) {
		return nil, fmt.Errorf("to %q: want the ARN of a queue, arn:aws:sqs:REGION:ACCOUNT:NAME", wanted.To)
	}
	if region := s.Node.Settings().Region; parts[3] != region {
		return nil, fmt.Errorf("to %q: the region of this cluster is %s", wanted.To, region)
	}
	return &sqs.QueueKey{Account: parts[4], Name: parts[5]}, nil
}

// redriveMessage finds the message and moves exactly that one; what may happen
// to it in between, the command sees.
func (s *server) redriveMessage(w http.ResponseWriter, r *http.Request, text string, destination *sqs.QueueKey) {
	id, ok := ParseMessageID(text)
	if !ok {
		s.refuse(w, http.StatusBadRequest, "want a MessageId such as 5fea7756-0ea4-451a-a703-a558b933e274")
		return
	}
	found, err := s.seek(r.Context(), pathKey(r), id)
	if _, answered := errors.AsType[*sqs.Error](err); answered {
		s.refuseAnswer(w, err)
		return
	}
	if errors.Is(err, errNotThere) || errors.Is(err, errNotFound) {
		s.refuse(w, http.StatusNotFound, err.Error())
		return
	}
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	c := sqs.RedriveMessage{Source: pathKey(r), Sequence: found.Sequence, Body: found.Body, Task: wire.RandomUUID(), Destination: destination}
	result, index, ok := s.do(w, r, c)
	if !ok {
		return
	}
	moved := result.(sqs.RedriveMessageResult)
	s.Logger.Info("message redriven", "account", c.Source.Account, "queue", c.Source.Name, "message_id", text, "index", index)
	s.answer(w, Redriven{MessageID: uuidText(moved.MessageID), To: keyText(moved.To), Sequence: moved.Sequence})
}

var (
	errNotThere = errors.New("the message is not in the queue")
	errNotFound = fmt.Errorf("the message is not among the oldest %d of the queue", maxSought)
)

// seek finds a message by its id, in any state. The error is errNotThere,
// errNotFound or one of Node.Peek.
func (s *server) seek(ctx context.Context, queue sqs.QueueKey, id sqs.MessageID) (sqs.Peeked, error) {
	page := cluster.PeekPage{More: true}
	for seen := 0; page.More && seen < maxSought; seen += max(len(page.Messages), 1) {
		var err error
		if page, err = s.Node.Peek(ctx, queue, sqs.AnyState, page.Next, maxPeek); err != nil {
			return sqs.Peeked{}, fmt.Errorf("look for message: %w", err)
		}
		for _, m := range page.Messages {
			if messageIDOf(m) == id {
				return m.Peeked, nil
			}
		}
	}
	if page.More {
		return sqs.Peeked{}, errNotFound
	}
	return sqs.Peeked{}, errNotThere
}

// messageIDOf is the id under which clients know a message now; zero if its
// content cannot be read.
func messageIDOf(m cluster.PeekedMessage) sqs.MessageID {
	var content sqs.Content
	if m.Err == nil {
		content, _ = sqs.ParseContent(m.Content) // zero if it cannot be
	}
	return content.IDNow(m.Redriven)
}

// do proposes a command, and answers itself when it is refused.
func (s *server) do(w http.ResponseWriter, r *http.Request, c sqs.Command) (result any, index uint64, ok bool) {
	outcome, err := s.Node.Do(r.Context(), c)
	if err != nil {
		s.refuseCondition(w, err)
		return nil, 0, false
	}
	if outcome.Err != nil {
		s.refuseAnswer(w, outcome.Err)
		return nil, 0, false
	}
	return outcome.Result, outcome.Index, true
}
