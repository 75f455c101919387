package bench

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// retryPause is how long a worker waits after an error.
const retryPause = 5 * time.Millisecond

// probePause lets a probe see much of what happens, and disturb little.
const probePause = time.Millisecond

// tally is what one worker, or all of a measurement, did.
type tally struct {
	messages uint64
	requests uint64
	errors   uint64
	first    error // the first error
	latency  histogram
	commit   histogram // wake: of the sends
}

func (t *tally) add(other *tally) {
	t.messages += other.messages
	t.requests += other.requests
	t.errors += other.errors
	if t.first == nil {
		t.first = other.first
	}
	t.latency.add(&other.latency)
	t.commit.add(&other.commit)
}

// worker is one client and the requests that it sends.
type worker struct {
	tally
	shape    shape
	fields   *fields
	conn     client
	requests [calls]*request
	handles  [][]byte
	stamps   uint64 // the next one
	group    int    // of the next message
	groups   int
}

// newWorker returns the n-th worker of a measurement.
func newWorker(t *target, n int, o Options) *worker {
	endpoint := t.endpoints[n%len(t.endpoints)]
	w := &worker{
		shape: shape{
			protocol: o.Protocol, queueURL: t.queues[n%len(t.queues)],
			topic: t.topic, body: o.Body, batch: max(o.Batch, 1), fifo: o.Groups > 0,
		},
		fields:  fieldsOf(o.Protocol),
		conn:    newClient(o.Client, endpoint),
		handles: make([][]byte, 0, maxBatch),
		stamps:  uint64(n) << 40,
		group:   n,
		groups:  max(o.Groups, 1),
	}
	for c := range calls {
		protocol := o.Protocol
		if c == callPublish {
			protocol = Query
		}
		w.requests[c] = newRequest(endpoint.Host, protocol, c)
	}
	w.prepare(0)
	return w
}

// prepare builds the bodies of all requests that stay as they are; receives
// wait for so many seconds.
func (w *worker) prepare(wait int) {
	w.shape.wait = wait
	for _, c := range []call{callSend, callSendBatch, callReceive, callReceiveBatch, callPublish} {
		w.shape.fill(w.requests[c], c)
	}
}

// do sends bytes and returns the body of the answer; nil after an error, which
// is counted.
func (w *worker) do(ctx context.Context, bytes []byte) []byte {
	status, body, err := w.conn.roundTrip(ctx, bytes)
	w.tally.requests++
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, body[:min(len(body), 300)])
	}
	if err == nil {
		return body
	}
	if ctx.Err() == nil {
		w.fail(err)
		time.Sleep(retryPause)
	}
	return nil
}

func (w *worker) fail(err error) {
	w.errors++
	if w.first == nil {
		w.first = err
	}
}

// send sends one message, or a batch, and returns how many.
func (w *worker) send(ctx context.Context, c call) int {
	r := w.requests[c]
	r.setStamp(w.stamps)
	w.stamps += uint64(len(r.stamps))
	n := 1
	if c == callSendBatch {
		n = w.shape.batch
	}
	if w.shape.fifo {
		r.setGroups(w.group, w.groups)
		w.group += n
	}
	if w.do(ctx, r.bytes) == nil {
		return 0
	}
	return n
}

// receive returns the handles that one receive yields, valid until the next
// request.
func (w *worker) receive(ctx context.Context, c call) [][]byte {
	answer := w.do(ctx, w.requests[c].bytes)
	w.handles = w.fields.handles(w.handles[:0], answer)
	return w.handles
}

// remove deletes the messages with these handles.
func (w *worker) remove(ctx context.Context, c call, handles [][]byte) bool {
	return w.do(ctx, w.shape.fillDelete(w.requests[c], c, handles)) != nil
}

// goesOn reports whether there is another round: until stop is set, but until
// something was done at least. A machine that stood still for the whole time has
// measured little, not nothing.
func (w *worker) goesOn(ctx context.Context, stop *atomic.Bool, done uint64) bool {
	return ctx.Err() == nil && (!stop.Load() || done == 0 && w.errors == 0)
}

// sending sends until stop is set.
func (w *worker) sending(ctx context.Context, stop *atomic.Bool, c call) {
	for w.goesOn(ctx, stop, w.messages) {
		start := time.Now()
		n := w.send(ctx, c)
		if n > 0 {
			w.latency.record(time.Since(start))
			w.messages += uint64(n)
		}
	}
}

// draining receives ten and deletes them until the queue is empty or stop is
// set. The latency is that of both calls.
func (w *worker) draining(ctx context.Context, stop *atomic.Bool) {
	for w.goesOn(ctx, stop, w.messages) {
		start := time.Now()
		before := w.errors
		handles := w.receive(ctx, callReceiveBatch)
		switch {
		case w.errors > before:
		case len(handles) == 0:
			return
		case w.remove(ctx, callDeleteBatch, handles):
			w.latency.record(time.Since(start))
			w.messages += uint64(len(handles))
		}
	}
}

// halving receives ten and deletes those with odd numbers, until left of them
// are deleted. What it does not delete it leaves hidden.
func (w *worker) halving(ctx context.Context, left *atomic.Int64) {
	for left.Load() > 0 && w.errors == 0 && ctx.Err() == nil {
		answer := w.do(ctx, w.requests[callReceiveBatch].bytes)
		w.handles = w.fields.oddHandles(w.handles[:0], answer)
		switch {
		case len(w.handles) == 0:
			time.Sleep(retryPause)
		case w.remove(ctx, callDeleteBatch, w.handles):
			left.Add(-int64(len(w.handles)))
		}
	}
}

// probing sends, receives and deletes one message after the other until stop is
// set, with a pause after each. The latency is that of each call.
func (w *worker) probing(ctx context.Context, stop *atomic.Bool) {
	timed := func(call func()) {
		start := time.Now()
		call()
		w.latency.record(time.Since(start))
	}
	for w.goesOn(ctx, stop, w.tally.requests) {
		timed(func() { w.send(ctx, callSend) })
		var handles [][]byte
		timed(func() { handles = w.receive(ctx, callReceive) })
		if len(handles) > 0 {
			timed(func() { w.remove(ctx, callDelete, handles) })
		}
		time.Sleep(probePause)
	}
}

// cycling sends, receives and deletes one message until stop is set. The latency
// is that of the three calls.
func (w *worker) cycling(ctx context.Context, stop *atomic.Bool) {
	for w.goesOn(ctx, stop, w.messages) {
		start := time.Now()
		if w.send(ctx, callSend) == 0 {
			continue
		}
		handles := w.receive(ctx, callReceive)
		for len(handles) == 0 && !stop.Load() && ctx.Err() == nil {
			handles = w.receive(ctx, callReceive)
		}
		if len(handles) > 0 && w.remove(ctx, callDelete, handles) {
			w.latency.record(time.Since(start))
			w.messages++
		}
	}
}
