package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
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
	// ticksPerSecond is the unit of /proc/PID/stat: USER_HZ, 100 on every
	// machine that Linux runs on today.
	ticksPerSecond = 100
)

// measure runs one phase once, on new queues.
func measure(ctx context.Context, t *target, phase string, o Options) (*measurement, error) {
	if phase == phaseBatch {
		phase, o.Batch = phaseSend, maxBatch
	}
	if !t.echo {
		cleanup, err := t.createQueues(ctx, o)
		if err != nil {
			return nil, err
		}
		defer cleanup()
	}
	if (phase == phasePublish || phase == phaseDeliver) && !t.echo {
		cleanup, err := t.createTopic(ctx)
		if err != nil {
			return nil, err
		}
		defer cleanup()
	}
	if phase == phaseDrain && !t.echo {
		if err := preload(ctx, t, o); err != nil {
			return nil, err
		}
	}
	if phase == phaseDeliver && !t.echo {
		if err := fillTopic(ctx, t, o); err != nil {
			return nil, err
		}
	}
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
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("measure %s: %w", phase, err)
	}
	if m.messages == 0 {
		return nil, fmt.Errorf("measure %s: no message got through, %d errors, the first: %w", phase, m.errors, m.first)
	}
	return m, nil
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
		workers[i].conn.deadline = time.Now().Add(o.Duration + patience)
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
func fill(ctx context.Context, t *target, o Options, left int64) error {
	o.Batch = min(maxBatch, maxBody/o.Body)
	o.Duration = fillPatience // of the connections
	workers := newWorkers(t, phaseSend, o)
	defer closeAll(workers)
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for w.errors == 0 && ctx.Err() == nil && atomic.AddInt64(&left, -int64(o.Batch)) > -int64(o.Batch) {
				w.send(ctx, callSendBatch)
			}
		})
	}
	group.Wait()
	for _, w := range workers {
		if w.first != nil {
			return fmt.Errorf("fill queue: %w", w.first)
		}
	}
	return nil
}

// processCPU returns the processor time that another process has used; 0 if that
// is not known.
func processCPU(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in parentheses may hold spaces; user and system time are the 12th
	// and 13th field after it.
	after := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(after) < 13 {
		return 0
	}
	user, userErr := strconv.ParseInt(string(after[11]), 10, 64)
	system, systemErr := strconv.ParseInt(string(after[12]), 10, 64)
	if userErr != nil || systemErr != nil {
		return 0
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
