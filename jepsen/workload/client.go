package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast.internal/jepsen/history"
)

// DefaultTimeout is how long a call may take beyond the wait of a receive.
const DefaultTimeout = 5 * time.Second

// maxAnswer bounds the answers that are read, in bytes.
const maxAnswer = 16 << 20

// Queue is a queue as its creator knows it.
type Queue struct {
	Name string
	URL  string
}

// Client is one client of a broker: a process of a history, that has one
// operation under way at a time.
type Client struct {
	Endpoint string
	Recorder *history.Recorder
	Process  int
	Phase    string        // of its operations
	Timeout  time.Duration // 0: DefaultTimeout
	HTTP     *http.Client  // nil: http.DefaultClient
}

// answer is what is known after a call.
type answer struct {
	outcome history.Outcome
	status  int
	code    string // error code, or what went wrong
	index   uint64
}

// call makes one call and decodes a good answer into out.
func (c *Client) call(ctx context.Context, action string, wait time.Duration, in, out any) answer {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+wait)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return answer{outcome: history.Fail, code: err.Error()}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return answer{outcome: history.Fail, code: err.Error()}
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	return read(response, out)
}

// unanswered judges a call without an answer: only one that never reached a
// connection certainly did nothing.
func unanswered(err error) answer {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return answer{outcome: history.Fail, code: err.Error()}
	}
	return answer{outcome: history.Info, code: err.Error()}
}

func read(response *http.Response, out any) answer {
	a := answer{outcome: history.OK, status: response.StatusCode}
	a.index, _ = strconv.ParseUint(response.Header.Get("x-holdfast-index"), 10, 64)
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		a.outcome, a.code = history.Info, err.Error()
		return a
	}
	if response.StatusCode == http.StatusOK {
		if out != nil && len(body) > 0 {
			err = json.Unmarshal(body, out)
		}
		if err != nil {
			a.outcome, a.code = history.Info, err.Error()
		}
		return a
	}
	var failure struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &failure) != nil {
		failure.Type = http.StatusText(response.StatusCode)
	}
	a.code = failure.Type[strings.LastIndexByte(failure.Type, '#')+1:]
	a.outcome = history.Fail
	if response.StatusCode >= http.StatusInternalServerError && response.Header.Get("x-holdfast-outcome") != "not-applied" {
		a.outcome = history.Info
	}
	return a
}

func (a answer) put(o *history.Operation) {
	o.Outcome, o.Status, o.Error, o.Index = a.outcome, a.status, a.code, a.index
}

// RefusedError is the error of a call that is not recorded and that was not answered
// with success.
type RefusedError struct {
	Action  string
	Status  int    // of the HTTP answer; 0 if there was none
	Code    string // the AWS error code, or what went wrong on the way
	Outcome history.Outcome
}

func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s: status %d, %s", r.Action, r.Status, r.Code)
}

// Call makes a call that is not recorded. The error is a *RefusedError.
func (c *Client) Call(ctx context.Context, action string, in, out any) error {
	if a := c.call(ctx, action, 0, in, out); a.outcome != history.OK {
		return &RefusedError{Action: action, Status: a.status, Code: a.code, Outcome: a.outcome}
	}
	return nil
}

// CreateQueue creates a queue with the given attributes. It is not recorded.
func (c *Client) CreateQueue(ctx context.Context, name string, attributes map[string]string) (Queue, error) {
	var out struct{ QueueUrl string } //nolint:revive // the name on the wire
	err := c.Call(ctx, "CreateQueue", map[string]any{"QueueName": name, "Attributes": attributes}, &out)
	return Queue{Name: name, URL: out.QueueUrl}, err
}

// record invokes the operations, lets f make the call and set their results, and
// completes them.
func (c *Client) record(operations []history.Operation, f func([]history.Operation)) []history.Operation {
	for i := range operations {
		operations[i].Process, operations[i].Phase = c.Process, c.Phase
	}
	invoked := c.Recorder.Invoke(operations...)
	f(invoked)
	c.Recorder.Complete(invoked...)
	return invoked
}

type sent struct {
	MessageId        string //nolint:revive // the name on the wire
	MD5OfMessageBody string
	SequenceNumber   history.Sequence
}

func (s sent) put(o *history.Operation) {
	o.MessageID, o.MD5, o.Sequence = s.MessageId, s.MD5OfMessageBody, s.SequenceNumber
}

// Send sends one message; delay may be history.QueueDefault.
func (c *Client) Send(ctx context.Context, q Queue, body string, delay time.Duration) history.Operation {
	in := map[string]any{"QueueUrl": q.URL, "MessageBody": body}
	if delay != history.QueueDefault {
		in["DelaySeconds"] = int(delay / time.Second)
	}
	operation := history.Operation{Kind: history.Send, Queue: q.Name, Body: body, Delay: delay}
	return c.record([]history.Operation{operation}, func(o []history.Operation) {
		var out sent
		c.call(ctx, "SendMessage", 0, in, &out).put(&o[0])
		out.put(&o[0])
	})[0]
}

type entry map[string]any

// batchAnswer is the answer to any batch.
type batchAnswer struct {
	Successful []struct {
		Id string //nolint:revive // the name on the wire
		sent
	}
	Failed []struct {
		Id          string //nolint:revive // the name on the wire
		Code        string
		SenderFault bool
	}
}

// batch makes a call with one entry for each of the operations.
func (c *Client) batch(ctx context.Context, action string, q Queue, entries []entry, o []history.Operation) {
	for i := range entries {
		entries[i]["Id"] = strconv.Itoa(i)
	}
	var out batchAnswer
	a := c.call(ctx, action, 0, map[string]any{"QueueUrl": q.URL, "Entries": entries}, &out)
	missing := a
	if a.outcome == history.OK {
		missing = answer{outcome: history.Info, status: a.status, code: "no result for this entry"}
	}
	for i := range o {
		missing.put(&o[i])
	}
	for _, s := range out.Successful {
		if i, err := strconv.Atoi(s.Id); err == nil && i >= 0 && i < len(o) {
			a.put(&o[i])
			s.put(&o[i])
		}
	}
	for _, f := range out.Failed {
		refusal := answer{outcome: history.Fail, status: http.StatusBadRequest, code: f.Code, index: a.index}
		if !f.SenderFault {
			refusal.outcome, refusal.status = history.Info, http.StatusInternalServerError
		}
		if i, err := strconv.Atoi(f.Id); err == nil && i >= 0 && i < len(o) {
			refusal.put(&o[i])
		}
	}
}

// SendBatch sends up to ten messages in one call.
func (c *Client) SendBatch(ctx context.Context, q Queue, bodies []string) []history.Operation {
	var operations []history.Operation
	var entries []entry
	for _, body := range bodies {
		operations = append(operations, history.Operation{Kind: history.Send, Queue: q.Name, Body: body, Delay: history.QueueDefault})
		entries = append(entries, entry{"MessageBody": body})
	}
	return c.record(operations, func(o []history.Operation) { c.batch(ctx, "SendMessageBatch", q, entries, o) })
}

// FIFOMessage is what is sent to a FIFO queue.
type FIFOMessage struct{ Body, Group, DedupID string }

// SendFIFO sends up to ten messages to a FIFO queue in one call.
func (c *Client) SendFIFO(ctx context.Context, q Queue, messages ...FIFOMessage) []history.Operation {
	var operations []history.Operation
	var entries []entry
	for _, m := range messages {
		operations = append(operations, history.Operation{
			Kind: history.Send, Queue: q.Name, Body: m.Body, Delay: history.QueueDefault, Group: m.Group, DedupID: m.DedupID,
		})
		entries = append(entries, entry{"MessageBody": m.Body, "MessageGroupId": m.Group, "MessageDeduplicationId": m.DedupID})
	}
	return c.record(operations, func(o []history.Operation) { c.batch(ctx, "SendMessageBatch", q, entries, o) })
}

// Receive receives up to limit messages; visibility may be history.QueueDefault.
func (c *Client) Receive(ctx context.Context, q Queue, limit int, visibility, wait time.Duration) history.Operation {
	return c.ReceiveAttempt(ctx, q, "", limit, visibility, wait)
}

// ReceiveAttempt is Receive with a ReceiveRequestAttemptId; "" for none.
func (c *Client) ReceiveAttempt(ctx context.Context, q Queue, attempt string, limit int, visibility, wait time.Duration) history.Operation {
	in := map[string]any{
		"QueueUrl": q.URL, "MaxNumberOfMessages": limit, "WaitTimeSeconds": int(wait / time.Second),
		"MessageSystemAttributeNames": []string{"All"},
	}
	if visibility != history.QueueDefault {
		in["VisibilityTimeout"] = int(visibility / time.Second)
	}
	if attempt != "" {
		in["ReceiveRequestAttemptId"] = attempt
	}
	operation := history.Operation{Kind: history.Receive, Queue: q.Name, Max: limit, Visibility: visibility, Wait: wait, Attempt: attempt}
	return c.record([]history.Operation{operation}, func(o []history.Operation) {
		var out struct{ Messages []received }
		c.call(ctx, "ReceiveMessage", wait, in, &out).put(&o[0])
		for _, m := range out.Messages {
			o[0].Messages = append(o[0].Messages, m.delivery())
		}
	})[0]
}

type received struct {
	MessageId, ReceiptHandle, Body, MD5OfBody string //nolint:revive // the names on the wire
	Attributes                                map[string]string
}

func (m received) delivery() history.Delivery {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(m.Attributes[name], 10, 64)
		if err != nil {
			return -1 // the checks will not like it
		}
		return n
	}
	return history.Delivery{
		MessageID: m.MessageId, Handle: m.ReceiptHandle, Body: m.Body, MD5: m.MD5OfBody,
		Count: int(number("ApproximateReceiveCount")), SentAt: number("SentTimestamp"), FirstAt: number("ApproximateFirstReceiveTimestamp"),
		Group: m.Attributes["MessageGroupId"], DedupID: m.Attributes["MessageDeduplicationId"],
		Sequence: history.Sequence(m.Attributes["SequenceNumber"]),
	}
}

// Delete deletes one message by handle.
func (c *Client) Delete(ctx context.Context, q Queue, handle string) history.Operation {
	operation := history.Operation{Kind: history.Delete, Queue: q.Name, Handle: handle}
	return c.record([]history.Operation{operation}, func(o []history.Operation) {
		c.call(ctx, "DeleteMessage", 0, map[string]any{"QueueUrl": q.URL, "ReceiptHandle": handle}, nil).put(&o[0])
	})[0]
}

// DeleteBatch deletes up to ten messages in one call.
func (c *Client) DeleteBatch(ctx context.Context, q Queue, handles []string) []history.Operation {
	var operations []history.Operation
	var entries []entry
	for _, handle := range handles {
		operations = append(operations, history.Operation{Kind: history.Delete, Queue: q.Name, Handle: handle})
		entries = append(entries, entry{"ReceiptHandle": handle})
	}
	return c.record(operations, func(o []history.Operation) { c.batch(ctx, "DeleteMessageBatch", q, entries, o) })
}

// Change sets the visibility timeout of one message, in whole seconds from now.
func (c *Client) Change(ctx context.Context, q Queue, handle string, visibility time.Duration) history.Operation {
	operation := history.Operation{Kind: history.Change, Queue: q.Name, Handle: handle, Visibility: visibility}
	return c.record([]history.Operation{operation}, func(o []history.Operation) {
		in := map[string]any{"QueueUrl": q.URL, "ReceiptHandle": handle, "VisibilityTimeout": int(visibility / time.Second)}
		c.call(ctx, "ChangeMessageVisibility", 0, in, nil).put(&o[0])
	})[0]
}

// Count reads the three counters of a queue.
func (c *Client) Count(ctx context.Context, q Queue) history.Operation {
	operation := history.Operation{Kind: history.Count, Queue: q.Name}
	return c.record([]history.Operation{operation}, func(o []history.Operation) {
		var out struct{ Attributes map[string]string }
		names := []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"}
		a := c.call(ctx, "GetQueueAttributes", 0, map[string]any{"QueueUrl": q.URL, "AttributeNames": names}, &out)
		for i, field := range []*int{&o[0].Visible, &o[0].InFlight, &o[0].Delayed} {
			n, err := strconv.Atoi(out.Attributes[names[i]])
			if a.outcome == history.OK && err != nil {
				a.outcome, a.code = history.Info, "no "+names[i]
			}
			*field = n
		}
		a.put(&o[0])
	})[0]
}
