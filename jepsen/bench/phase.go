package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long an answer may take when a measurement ends.
	patience = 30 * time.Second
	// Phase drain finds messages for its duration at preloadRate per second, but
	// no more than preloadBytes.
	preloadRate  = 60_000
	preloadBytes = 128 << 20
	// fillPatience is how long a queue may take to be filled.
	fillPatience = time.Hour
)

// measure runs one phase once, on new queues.
func measure(ctx context.Context, t *target, phase string, o Options) (*measurement, error) {
	if phase == phaseBatch {
		phase, o.Batch = phaseSend, maxBatch
	}
	if !t.echo {
		cleanup, err := t.setUp(ctx, phase, o)
		if err != nil {
			return nil, err
		}
		defer cleanup()
	}
	m := timed(ctx, t, phase, o)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("measure %s: %w", phase, err)
	}
	if m.messages == 0 {
		return nil, fmt.Errorf("measure %s: no message got through, %d errors, the first: %w", phase, m.errors, m.first)
	}
	return m, nil
}

// setUp makes the queues of a phase, its topic, and what there is to receive, and
// returns what deletes them.
func (t *target) setUp(ctx context.Context, phase string, o Options) (cleanup func(), err error) {
	if cleanup, err = t.createQueues(ctx, o); err != nil {
		return nil, err
	}
	if phase == phasePublish || phase == phaseDeliver {
		deleteQueues := cleanup
		deleteTopic, err := t.createTopic(ctx)
		if err != nil {
			deleteQueues()
			return nil, err
		}
		cleanup = func() { deleteTopic(); deleteQueues() }
	}
	switch phase {
	case phaseDrain:
		err = preload(ctx, t, o)
	case phaseDeliver:
		err = fillTopic(ctx, t, o)
	}
	if err != nil {
		cleanup()
		return nil, err
	}
	return cleanup, nil
}

// timed has workers do a phase for its duration, or until there is nothing to do.
func timed(ctx context.Context, t *target, phase string, o Options) *measurement {
	workers := newWorkers(t, phase, o)
	defer closeAll(workers)
	m := &measurement{}
	client, server := ownCPU(), processCPU(t.pid)
	start := time.Now()
	var stop atomic.Bool
	timer := time.AfterFunc(o.Duration, func() { stop.Store(true) })
	defer timer.Stop()
	run(ctx, &stop, phase, workers, o)
	m.elapsed = time.Since(start)
	m.clientCPU, m.serverCPU = ownCPU()-client, processCPU(t.pid)-server
	for _, w := range workers {
		m.add(&w.tally)
	}
	return m
}

func newWorkers(t *target, phase string, o Options) []*worker {
	n := o.Connections
	switch phase {
	case phaseTrip:
		n = max(n, 2)
	case phaseWake:
		n, o.Queues = 2, 1
		t = &target{endpoints: t.endpoints, queues: t.queues[:1], echo: t.echo}
	}
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = newWorker(t, i, o)
		workers[i].conn.until(time.Now().Add(o.Duration + patience))
	}
	if phase == phaseTrip && len(t.queues) > 1 {
		pairUp(workers, t)
	}
	return workers
}

// pairUp gives the pollers, which are the second half, the queues of the senders.
func pairUp(workers []*worker, t *target) {
	half := len(workers) / 2
	for i, w := range workers[:half] {
		w.shape.queueURL = t.queues[i%len(t.queues)]
		w.prepare(0)
	}
	for i, w := range workers[half:] {
		w.shape.queueURL = t.queues[i%half%len(t.queues)]
		w.prepare(0)
	}
}

func closeAll(workers []*worker) {
	for _, w := range workers {
		w.conn.close()
	}
}

// run lets the workers do a phase until stop is set.
func run(ctx context.Context, stop *atomic.Bool, phase string, workers []*worker, o Options) {
	switch phase {
	case phaseTrip:
		trips(ctx, stop, workers[:len(workers)/2], workers[len(workers)/2:])
		return
	case phaseWake:
		wakes(ctx, stop, workers[0], workers[1])
		return
	}
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			switch phase {
			case phaseSend:
				w.sending(ctx, stop, sendCall(o))
			case phaseDrain, phaseDeliver:
				w.draining(ctx, stop)
			case phaseCycle:
				w.cycling(ctx, stop)
			case phasePublish:
				w.publishing(ctx, stop, o.Queues)
			}
		})
	}
	group.Wait()
}

func sendCall(o Options) call {
	if o.Batch > 1 {
		return callSendBatch
	}
	return callSend
}

// preload fills the queues for phase drain.
func preload(ctx context.Context, t *target, o Options) error {
	messages := min(int64(preloadRate*o.Duration.Seconds()), int64(preloadBytes/o.Body))
	return fill(ctx, t, o, max(messages, int64(o.Connections*maxBatch)))
}

// fill sends about so many messages, shared out among the queues.
func fill(ctx context.Context, t *target, o Options, messages int64) error {
	o.Batch = min(maxBatch, maxBody/o.Body)
	o.Duration = fillPatience // of the connections
	return feed(ctx, newWorkers(t, phaseSend, o), callSendBatch, messages, int64(o.Batch))
}

// feed has workers make a call until it has sent about so many messages, each of the
// calls some of them.
func feed(ctx context.Context, workers []*worker, c call, messages, each int64) error {
	defer closeAll(workers)
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for w.errors == 0 && ctx.Err() == nil && atomic.AddInt64(&messages, -each) > -each {
				w.send(ctx, c)
			}
		})
	}
	group.Wait()
	for _, w := range workers {
		if w.first != nil {
			return fmt.Errorf("feed queues: %w", w.first)
		}
	}
	return nil
}
