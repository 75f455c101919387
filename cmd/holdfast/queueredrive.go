package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast.internal/httpapi/admin"
	"holdfast.internal/sqs"
)

const (
	// taskPoll is how often a move task is looked at; each look is a log entry.
	taskPoll = 200 * time.Millisecond
	// progressEvery is how often its progress is told.
	progressEvery = time.Second
)

type queueRedrive struct {
	oneQueue
	To        string  `placeholder:"ARN" help:"Queue that the messages go to (each one's own source)."`
	Rate      *int    `placeholder:"N" help:"Messages a second, 1 to 500 (as fast as the node can)."`
	Limit     *uint64 `xor:"messages" env:"HOLDFAST_REDRIVE_LIMIT" placeholder:"N" help:"At most so many messages (all)."`
	MessageID string  `name:"message-id" xor:"messages" placeholder:"ID" help:"This message only, at once."`
	Cancel    bool    `help:"End the move task that is running. What it has moved stays moved."`
}

// Validate is called by kong when all flags have their values. A zero is
// refused, since the node takes one for "as fast as it can" and for "all".
func (c *queueRedrive) Validate() error {
	switch _, ok := admin.ParseMessageID(c.MessageID); {
	case c.Cancel && (c.To != "" || c.Rate != nil || c.Limit != nil || c.MessageID != ""):
		return errors.New("--cancel goes with no flag of a new move task")
	case c.Rate != nil && (*c.Rate < 1 || *c.Rate > sqs.MaxMoveRate):
		return fmt.Errorf("--rate %d: want 1 to %d", *c.Rate, sqs.MaxMoveRate)
	case c.Limit != nil && *c.Limit == 0:
		return errors.New("--limit 0: want 1 or more")
	case c.MessageID == "":
		return nil
	case !ok:
		return fmt.Errorf("--message-id %q: want one such as 5fea7756-0ea4-451a-a703-a558b933e274", c.MessageID)
	case c.Rate != nil:
		return errors.New("--rate is of no use to a single message")
	}
	return nil
}

// Run answers yes when everything that was to be moved is moved.
func (c *queueRedrive) Run(out *console) error {
	target, err := c.url(out, staleFlag{})
	if err != nil {
		return err
	}
	target += "/redrive"
	if c.Cancel {
		return c.cancel(out, target)
	}
	wanted := admin.Redrive{To: c.To, MessageID: c.MessageID}
	if c.Rate != nil {
		wanted.Rate = *c.Rate
	}
	if c.Limit != nil {
		wanted.Limit = *c.Limit
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	var done admin.Redriven
	if err := callAdmin(out.ctx, http.MethodPost, target, bytes.NewReader(body), queueTimeout, &done); err != nil {
		return fmt.Errorf("queue %s: %w", c.Name, err)
	}
	if done.TaskID == "" {
		return c.writeMessage(out.stdout, &done)
	}
	task, err := c.follow(out, target, done.TaskID)
	if err != nil && out.ctx.Err() != nil {
		return fmt.Errorf("stopped looking; the move task goes on: GET %s shows it, redrive --cancel ends it", target)
	}
	if err != nil {
		return fmt.Errorf("queue %s: the move task may go on (GET %s shows it): %w", c.Name, target, err)
	}
	return c.writeTask(out.stdout, task)
}

// cancel ends the running move task, and answers yes when it has ended.
func (c *queueRedrive) cancel(out *console, target string) error {
	var task admin.MoveTask
	if err := callAdmin(out.ctx, http.MethodDelete, target, nil, queueTimeout, &task); err != nil {
		return fmt.Errorf("queue %s: %w", c.Name, err)
	}
	ended, err := c.follow(out, target, task.TaskID)
	if err != nil {
		return fmt.Errorf("queue %s: the move task was told to end, but not seen to (GET %s shows it): %w", c.Name, target, err)
	}
	if c.JSON {
		return writeJSON(out.stdout, ended)
	}
	_, err = fmt.Fprintf(out.stdout, "%s after %d of %d\n", ended.Status, ended.Moved, ended.ToMove)
	return err
}

func (c *queueRedrive) writeMessage(w io.Writer, moved *admin.Redriven) error {
	if c.JSON {
		return writeJSON(w, moved)
	}
	_, err := fmt.Fprintf(w, "%s moved to %s, where it is %s\n", c.MessageID, moved.To, moved.MessageID)
	return err
}

// follow looks at the task until it has ended.
func (c *queueRedrive) follow(out *console, target, id string) (*admin.MoveTask, error) {
	told := time.Now()
	for {
		task, err := readTask(out.ctx, target, id)
		if err != nil || !task.Active() {
			return task, err
		}
		if time.Since(told) >= progressEvery {
			told = time.Now()
			_, _ = fmt.Fprintf(out.stderr, "%d of %d moved\n", task.Moved, task.ToMove)
		}
		select {
		case <-out.ctx.Done():
			return nil, out.ctx.Err()
		case <-time.After(taskPoll):
		}
	}
}

func readTask(ctx context.Context, target, id string) (*admin.MoveTask, error) {
	var tasks []admin.MoveTask
	if err := callAdmin(ctx, http.MethodGet, target, nil, queueTimeout, &tasks); err != nil {
		return nil, err
	}
	for i := range tasks {
		if tasks[i].TaskID == id {
			return &tasks[i], nil
		}
	}
	return nil, errors.New("the task is gone: the queue was deleted, or ten others were started since")
}

func (c *queueRedrive) writeTask(w io.Writer, task *admin.MoveTask) error {
	var err error
	if c.JSON {
		err = writeJSON(w, task)
	} else {
		_, err = fmt.Fprintf(w, "%d of %d moved\n", task.Moved, task.ToMove)
	}
	switch {
	case err != nil || task.Status == "completed":
		return err
	case task.FailureReason != "":
		return fmt.Errorf("the move task has %s: %s", task.Status, failureText(task.FailureReason))
	}
	return fmt.Errorf("the move task was %s", task.Status)
}

// failureText says in a sentence what ListMessageMoveTasks has a code for.
func failureText(code string) string {
	switch sqs.Code(code) {
	case sqs.CouldNotDetermineMessageSource:
		return "a message did not come here as a dead letter of another queue; name a destination with --to"
	case sqs.QueueDoesNotExist:
		return "the queue that a message was to go to does not exist"
	case sqs.MoveTaskTimedOut:
		return "it took more than 36 hours"
	}
	return code
}
