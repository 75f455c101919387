package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

// SNS speaks AWS Query only, whatever the protocol of the queues.
const snsVersion = "&Version=2010-03-31"

// ask sends one request to SNS and returns the text between open and close in its
// answer.
func (t *target) ask(ctx context.Context, c *connection, parameters, open, end string) (string, error) {
	r := newRequest(t.endpoints[0].Host, Query, callPublish)
	status, answer, err := c.roundTrip(ctx, r.text(parameters+snsVersion).finish())
	if err != nil {
		return "", err
	}
	_, rest, ok := bytes.Cut(answer, []byte(open))
	found, _, _ := bytes.Cut(rest, []byte(end))
	if status != http.StatusOK || !ok {
		return "", fmt.Errorf("status %d: %s", status, answer)
	}
	return string(found), nil
}

// createTopic makes a topic to which all queues are subscribed, and returns what
// deletes it.
func (t *target) createTopic(ctx context.Context) (cleanup func(), err error) {
	c := newConnection(t.endpoints[0])
	c.until(time.Now().Add(time.Minute))
	defer c.close()
	first, err := url.Parse(t.queues[0])
	if err != nil {
		return nil, fmt.Errorf("parse queue URL: %w", err)
	}
	name := strings.ReplaceAll(path.Base(first.Path), ".fifo", "")
	if t.topic, err = t.ask(ctx, c, "Action=CreateTopic&Name="+name, "<TopicArn>", "</TopicArn>"); err != nil {
		return nil, fmt.Errorf("create topic: %w", err)
	}
	for _, queue := range t.queues {
		u, err := url.Parse(queue)
		if err != nil {
			return nil, fmt.Errorf("parse queue URL: %w", err)
		}
		arn := strings.Replace(t.topic[:strings.LastIndexByte(t.topic, ':')+1], ":sns:", ":sqs:", 1) + path.Base(u.Path)
		if _, err := t.ask(ctx, c, "Action=Subscribe&TopicArn="+t.topic+"&Protocol=sqs&Endpoint="+arn, "<SubscriptionArn>", "<"); err != nil {
			return nil, fmt.Errorf("subscribe: %w", err)
		}
	}
	return func() { t.deleteTopic(ctx) }, nil
}

// deleteTopic deletes the topic; one that stays does no harm.
func (t *target) deleteTopic(ctx context.Context) {
	c := newConnection(t.endpoints[0])
	c.until(time.Now().Add(time.Minute))
	defer c.close()
	_, _ = t.ask(ctx, c, "Action=DeleteTopic&TopicArn="+t.topic, "<RequestId>", "<")
}

// fillTopic publishes as much as phase deliver can receive.
func fillTopic(ctx context.Context, t *target, o Options) error {
	publishes := int64(preloadRate * o.Duration.Seconds() / float64(len(t.queues)))
	return feed(ctx, newWorkers(t, phasePublish, o), callPublish, publishes, 1)
}

// publishing publishes until stop is set. Each publish counts as the copies of it.
func (w *worker) publishing(ctx context.Context, stop *atomic.Bool, copies int) {
	for w.goesOn(ctx, stop, w.messages) {
		start := time.Now()
		if w.send(ctx, callPublish) > 0 {
			w.latency.record(time.Since(start))
			w.messages += uint64(copies)
		}
	}
}
