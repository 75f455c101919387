package workload

import (
	"context"
	"fmt"
)

// MoveTask is a message move task as ListMessageMoveTasks shows it.
type MoveTask struct {
	Status        string
	FailureReason string
	Moved         int `json:"ApproximateNumberOfMessagesMoved"`
	ToMove        int `json:"ApproximateNumberOfMessagesToMove"`
}

// ARN returns the Amazon Resource Name of a queue.
func (c *Client) ARN(ctx context.Context, q Queue) (string, error) {
	var out struct{ Attributes struct{ QueueArn string } }
	err := c.Call(ctx, "GetQueueAttributes", map[string]any{"QueueUrl": q.URL, "AttributeNames": []string{"QueueArn"}}, &out)
	return out.Attributes.QueueArn, err
}

// SetRedrivePolicy makes the queue with the ARN target the dead-letter queue of q.
func (c *Client) SetRedrivePolicy(ctx context.Context, q Queue, target string, maxReceiveCount int) error {
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, target, maxReceiveCount)
	return c.Call(ctx, "SetQueueAttributes", map[string]any{"QueueUrl": q.URL, "Attributes": map[string]string{"RedrivePolicy": policy}}, nil)
}

// StartMoveTask starts a move task between two ARNs; rate 0 is none.
func (c *Client) StartMoveTask(ctx context.Context, source, destination string, rate int) error {
	in := map[string]any{"SourceArn": source, "DestinationArn": destination}
	if rate > 0 {
		in["MaxNumberOfMessagesPerSecond"] = rate
	}
	return c.Call(ctx, "StartMessageMoveTask", in, nil)
}

// MoveTasks lists the move tasks of an ARN, the latest first.
func (c *Client) MoveTasks(ctx context.Context, source string) ([]MoveTask, error) {
	var out struct{ Results []MoveTask }
	err := c.Call(ctx, "ListMessageMoveTasks", map[string]any{"SourceArn": source, "MaxResults": 10}, &out)
	return out.Results, err
}
