package httpapi

import (
	"encoding/base64"
	"encoding/json"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var moveTasks = wire.List{JSON: "Results", Query: "ListMessageMoveTasksResultEntry"}

func startMessageMoveTask(r *request) error {
	source, _ := r.in.Text("SourceArn")
	destination, directed := r.in.Text("DestinationArn")
	rate, limited := r.in.Int("MaxNumberOfMessagesPerSecond")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	c := sqs.StartMessageMoveTask{Task: r.server.config.NewID()}
	var invalid *sqs.Error
	if c.Source, invalid = r.taskQueue("SourceArn", source); invalid != nil {
		return invalid
	}
	if directed {
		key, invalid := r.taskQueue("DestinationArn", destination)
		if invalid != nil {
			return invalid
		}
		c.Destination = &key
	}
	if limited {
		if rate < 1 || rate > sqs.MaxMoveRate {
			return sqs.Invalidf("Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a number that's between 1 and 500.")
		}
		c.MaxPerSecond = int(rate)
	}
	if _, err := r.doTask(c.Source, c); err != nil {
		return err
	}
	r.out.Text("TaskHandle", taskHandle(c.Task, source))
	return nil
}

func cancelMessageMoveTask(r *request) error {
	handle, _ := r.in.Text("TaskHandle")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if handle == "" {
		return &sqs.Error{Code: sqs.MissingParameter, Message: "The TaskHandle parameter is required."}
	}
	task, source, ok := parseTaskHandle(handle)
	if !ok {
		return sqs.Invalidf("Value for parameter TaskHandle is invalid.")
	}
	c := sqs.CancelMessageMoveTask{Source: r.ownQueue(source), Task: task}
	done, err := r.doTask(c.Source, c)
	if err != nil {
		return err
	}
	r.out.Int("ApproximateNumberOfMessagesMoved", int64(done.(sqs.CancelMessageMoveTaskResult).Moved))
	return nil
}

func listMessageMoveTasks(r *request) error {
	source, _ := r.in.Text("SourceArn")
	most, limited := r.in.Int("MaxResults")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	key, invalid := r.taskQueue("SourceArn", source)
	if invalid != nil {
		return invalid
	}
	c := sqs.ListMessageMoveTasks{Source: key, Limit: 1}
	if limited {
		if most < 1 || most > sqs.MaxListedTasks {
			return sqs.Invalidf("Value for parameter MaxResults is invalid. Reason: You must enter a number that's between 1 and 10.")
		}
		c.Limit = int(most)
	}
	done, err := r.doTask(c.Source, c)
	if err != nil {
		return err
	}
	tasks := done.(sqs.ListMessageMoveTasksResult).Tasks
	if len(tasks) == 0 {
		return nil
	}
	r.out.OpenList(moveTasks)
	for i := range tasks {
		r.writeTask(&tasks[i], source)
	}
	r.out.CloseList(moveTasks)
	return nil
}

// taskStatuses are the texts of AWS.
var taskStatuses = map[sqs.MoveTaskStatus]string{
	sqs.TaskRunning:    "RUNNING",
	sqs.TaskCompleted:  "COMPLETED",
	sqs.TaskCancelling: "CANCELLING",
	sqs.TaskCancelled:  "CANCELLED",
	sqs.TaskFailed:     "FAILED",
}

// writeTask answers one task. It has a handle only while it can be cancelled (AWS
// recordings test_basic_move_task_workflow, test_move_task_cancel).
func (r *request) writeTask(t *sqs.MoveTask, source string) {
	r.out.OpenStruct(moveTasks)
	if t.Status == sqs.TaskRunning {
		r.out.Text("TaskHandle", taskHandle(t.ID, source))
	}
	r.out.Text("Status", taskStatuses[t.Status])
	r.out.Text("SourceArn", source)
	if t.Destination != nil {
		r.out.Text("DestinationArn", queueARN(*t.Destination, r.settings.Region))
	}
	if t.MaxPerSecond != 0 {
		r.out.Int("MaxNumberOfMessagesPerSecond", int64(t.MaxPerSecond))
	}
	r.out.Int("ApproximateNumberOfMessagesMoved", int64(t.Moved))
	r.out.Int("ApproximateNumberOfMessagesToMove", int64(t.ToMove))
	if t.Status == sqs.TaskFailed {
		r.out.Text("FailureReason", failureReason(t.FailureReason))
	}
	r.out.Int("StartedTimestamp", int64(t.StartedAt))
	r.out.CloseStruct(moveTasks)
}

// failureReason is the code that the failing step would have been answered with
// (AWS recording test_move_task_delete_destination_queue_while_running).
func failureReason(code sqs.Code) string {
	if shape, ok := errorShapes[code]; ok {
		return shape.query
	}
	return string(code)
}

// taskQueue returns the queue that an ARN of a move task names; the key is zero
// if it can be no queue of the caller.
func (r *request) taskQueue(parameter, text string) (sqs.QueueKey, *sqs.Error) {
	if text == "" && parameter == "SourceArn" {
		return sqs.QueueKey{}, sqs.MissingParameterError(parameter)
	}
	if a, ok := parseARN(text); !ok || a.service != "sqs" {
		return sqs.QueueKey{}, sqs.Invalidf("You must use this format to specify the %s: "+
			"arn:<partition>:<service>:<region>:<account-id>:<resource-id>", parameter)
	}
	return r.ownQueue(text), nil
}

// ownQueue returns the queue that an ARN names; the key is zero if it can be no
// queue of the caller.
func (r *request) ownQueue(text string) sqs.QueueKey {
	a, ok := parseARN(text)
	key := sqs.QueueKey{Account: a.account, Name: a.resource}
	if !ok || a.service != "sqs" || a.region != r.settings.Region || !sqs.ValidQueueName(key.Name) {
		return sqs.QueueKey{}
	}
	return r.own(key)
}

// doTask is do for a command about the move tasks of a queue, if it can be one.
func (r *request) doTask(source sqs.QueueKey, c sqs.Command) (sqs.Result, error) {
	if source.Name == "" {
		return nil, sqs.NoTaskSource()
	}
	return r.do(c)
}

// taskHandle is what a client knows a move task by (AWS recording
// test_cancel_with_invalid_task_id_in_task_handle).
func taskHandle(task sqs.TaskID, source string) string {
	text := append([]byte(nil), `{"taskId":"`...)
	text = wire.AppendUUID(text, task)
	text = append(text, `","sourceArn":`...)
	quoted, _ := json.Marshal(source) // a text never fails
	return base64.StdEncoding.EncodeToString(append(append(text, quoted...), '}'))
}

// parseTaskHandle reads a handle of a move task. An id that is no UUID names no
// task: it is zero.
func parseTaskHandle(handle string) (task sqs.TaskID, source string, ok bool) {
	text, err := base64.StdEncoding.DecodeString(handle)
	if err != nil {
		return task, "", false
	}
	d, ok := parseDocument(string(text))
	if !ok {
		return task, "", false
	}
	id, hasID := d.text("taskId")
	source, hasSource := d.text("sourceArn")
	if parsed, ok := wire.ParseUUID(id); ok {
		task = parsed
	}
	return task, source, hasID && hasSource
}
