package policy

import (
	"strconv"
	"time"
)

// SNS is the principal that topics send as.
const SNS = "sns.amazonaws.com"

// The condition keys of the time.
const (
	currentTime = "aws:CurrentTime"
	epochTime   = "aws:EpochTime"
)

// AllowsSend reports whether the policy of a queue lets a topic send to it, as
// SQS asks before it takes a message of SNS: the principal is the service, and
// what it sends for is the source. now is cluster time, in milliseconds since
// 1970. A nil document allows nothing. work is about how many texts of the policy
// were looked at, one for each microsecond at most; it is the same each time.
func (d *Document) AllowsSend(queueARN, topicARN, topicAccount string, now int64) (allowed bool, work int) {
	if d == nil {
		return false, 0
	}
	context := Context{
		{"aws:SourceArn", topicARN},
		{"aws:SourceAccount", topicAccount},
		{"aws:SourceOwner", topicAccount},
		{"aws:PrincipalIsAWSService", "true"},
		{"aws:PrincipalServiceName", SNS},
		{"aws:SecureTransport", "true"}, // it is the broker's own
	}
	if d.timed {
		at := time.UnixMilli(now).UTC()
		context = append(context,
			ContextValue{currentTime, at.Format(time.RFC3339)}, ContextValue{epochTime, strconv.FormatInt(at.Unix(), 10)})
	}
	r := Request{
		Principal: Principal{Kind: Service, Name: SNS},
		Action:    "sqs:SendMessage",
		Resource:  queueARN,
		Context:   context,
	}
	decision := d.evaluate(&r)
	return decision == Allow, r.work
}

// DependsOnTime reports whether the same request may get another answer later. A
// nil document always answers the same.
func (d *Document) DependsOnTime() bool { return d != nil && d.timed }
