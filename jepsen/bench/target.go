package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// target is a broker, or the echo server in its place.
type target struct {
	endpoints []*url.URL
	queues    []string // URLs
	topic     string   // ARN, in phase publish
	echo      bool
	pid       int // of its process, 0 if it is somebody else's
}

func newTarget(endpoints []string, pid int) (*target, error) {
	t := &target{pid: pid}
	for _, e := range endpoints {
		u, err := url.Parse(e)
		if err != nil {
			return nil, fmt.Errorf("parse endpoint: %w", err)
		}
		if u.Port() == "" {
			u.Host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
		}
		t.endpoints = append(t.endpoints, u)
	}
	return t, nil
}

// createQueues makes new queues, so that no measurement finds what an earlier
// one left, and returns what deletes them.
func (t *target) createQueues(ctx context.Context, o Options) (cleanup func(), err error) {
	c := newConnection(t.endpoints[0])
	c.until(time.Now().Add(time.Minute))
	defer c.close()
	t.queues = nil
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	for i := range o.Queues {
		r := newRequest(t.endpoints[0].Host, o.Protocol, callCreateQueue)
		createQueueBody(r, o, fmt.Sprintf("bench-%d-%s-%d", os.Getpid(), run, i))
		status, answer, err := c.roundTrip(ctx, r.finish())
		if err != nil {
			return nil, fmt.Errorf("create queue: %w", err)
		}
		f := fieldsOf(o.Protocol)
		queue, _ := f.find(answer, f.queueURL)
		if status != http.StatusOK || queue == nil {
			return nil, fmt.Errorf("create queue: status %d: %s", status, answer)
		}
		t.queues = append(t.queues, string(queue))
	}
	return func() { t.deleteQueues(ctx, o) }, nil
}

func createQueueBody(r *request, o Options, name string) {
	if o.Groups > 0 {
		name += ".fifo"
	}
	switch {
	case o.Protocol == JSON && o.Groups > 0:
		r.text(`{"QueueName":"` + name + `","Attributes":{"FifoQueue":"true"}}`)
	case o.Protocol == JSON:
		r.text(`{"QueueName":"` + name + `"}`)
	case o.Groups > 0:
		r.text("Action=CreateQueue&Version=2012-11-05&QueueName=" + name + "&Attribute.1.Name=FifoQueue&Attribute.1.Value=true")
	default:
		r.text("Action=CreateQueue&Version=2012-11-05&QueueName=" + name)
	}
}

// deleteQueues deletes the queues; one that stays does no harm.
func (t *target) deleteQueues(ctx context.Context, o Options) {
	c := newConnection(t.endpoints[0])
	c.until(time.Now().Add(time.Minute))
	defer c.close()
	for _, queue := range t.queues {
		r := newRequest(t.endpoints[0].Host, o.Protocol, callDeleteQueue)
		s := shape{protocol: o.Protocol, queueURL: queue}
		_, _, _ = c.roundTrip(ctx, s.fill(r, callDeleteQueue))
	}
}

// measurement is what one phase did in one go.
type measurement struct {
	tally
	elapsed   time.Duration
	clientCPU time.Duration
	serverCPU time.Duration
}

// rate returns messages per second.
func (m *measurement) rate() float64 { return float64(m.messages) / m.elapsed.Seconds() }

// perRequest returns microseconds per request.
func (m *measurement) perRequest(d time.Duration) float64 {
	return microseconds(d) / float64(max(m.requests, 1))
}
