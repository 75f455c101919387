package workload

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"holdfast.internal/jepsen/history"
)

const (
	// maxKept is how many handles a consumer keeps for later. With more, most of
	// their messages would be deleted by others before it comes back.
	maxKept = 40
	// drainQuiet is how many receives in a row have to find nothing before a
	// queue counts as empty.
	drainQuiet = 2
	// drainWait is the wait of the receives of a drain.
	drainWait = time.Second
)

// Standard is a load on standard queues.
type Standard struct {
	Endpoint  string
	Transport http.RoundTripper // of all clients; nil: a connection for each
	Recorder  *history.Recorder
	Queues    []Queue
	Run       string // goes into the bodies; letters and digits
	Producers int
	Consumers int
	// Pause is the mean time between two calls of a client, so that the load
	// leaves the machine room for the broker.
	Pause   time.Duration
	Timeout time.Duration // of a call, beyond the wait of a receive; 0: DefaultTimeout
	Seed    uint64
}

// Drive loads the queues until ctx ends. Calls under way are not cut short.
func (s Standard) Drive(ctx context.Context) {
	s.drive(ctx, habits{produce: (*actor).produce, receive: (*actor).receive})
}

// habits are what clients do differently in other loads.
type habits struct {
	produce func(*actor, context.Context)
	receive func(*actor, context.Context, Queue, demand) []history.Delivery
}

// demand is what a consumer asks for.
type demand struct {
	limit            int
	visibility, wait time.Duration
}

func (s Standard) drive(ctx context.Context, h habits) {
	var clients sync.WaitGroup
	for i := range s.Producers + s.Consumers {
		c := s.client(i+1, "")
		random := rand.New(rand.NewPCG(s.Seed, uint64(i)))
		clients.Go(func() {
			defer c.client.HTTP.CloseIdleConnections()
			c.random = random
			if i < s.Producers {
				h.produce(c, ctx)
			} else {
				c.consume(ctx, h.receive)
			}
		})
	}
	clients.Wait()
}

// actor is a client with habits.
type actor struct {
	load   Standard
	client *Client
	random *rand.Rand
	sends  int
	asked  int // receives from FIFO queues
	kept   []keptHandle
}

// keptHandle is a handle that a consumer has not done with.
type keptHandle struct {
	queue  Queue
	handle string
}

func (s Standard) client(process int, phase string) *actor {
	transport := s.Transport
	if transport == nil {
		transport = &http.Transport{MaxIdleConnsPerHost: 1}
	}
	return &actor{load: s, client: &Client{
		Endpoint: s.Endpoint, Recorder: s.Recorder, Process: process, Phase: phase, Timeout: s.Timeout,
		HTTP: &http.Client{Transport: transport},
	}}
}

func (a *actor) queue() Queue { return a.load.Queues[a.random.IntN(len(a.load.Queues))] }

// seconds returns a whole number of seconds from low to high.
func (a *actor) seconds(low, high int) time.Duration {
	return time.Duration(low+a.random.IntN(high-low+1)) * time.Second
}

// rest waits for the pause, or until ctx ends.
func (a *actor) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(a.random.ExpFloat64() * float64(a.load.Pause))):
	}
}

func (a *actor) body() string {
	a.sends++
	size := 60 + a.random.IntN(300)
	if a.random.IntN(200) == 0 {
		size = 64 << 10
	}
	return history.Body(history.Name{Run: a.load.Run, Process: a.client.Process, Counter: a.sends}, size)
}

func (a *actor) produce(ctx context.Context) {
	call := context.WithoutCancel(ctx)
	for ; ctx.Err() == nil; a.rest(ctx) {
		switch a.random.IntN(10) {
		case 0, 1:
			bodies := make([]string, 2+a.random.IntN(9))
			for i := range bodies {
				bodies[i] = a.body()
			}
			a.client.SendBatch(call, a.queue(), bodies)
		case 2:
			a.client.Send(call, a.queue(), a.body(), a.seconds(1, 3))
		default:
			a.client.Send(call, a.queue(), a.body(), history.QueueDefault)
		}
	}
}

func (a *actor) receive(ctx context.Context, q Queue, d demand) []history.Delivery {
	return a.client.Receive(ctx, q, d.limit, d.visibility, d.wait).Messages
}

func (a *actor) consume(ctx context.Context, receive func(*actor, context.Context, Queue, demand) []history.Delivery) {
	call := context.WithoutCancel(ctx)
	for ; ctx.Err() == nil; a.rest(ctx) {
		q := a.queue()
		d := demand{limit: 1 + a.random.IntN(10), visibility: history.QueueDefault, wait: a.seconds(0, 1)}
		if a.random.IntN(3) == 0 {
			d.visibility = a.seconds(1, 5)
		}
		var now []string
		for _, m := range receive(a, call, q, d) {
			if a.random.IntN(2) == 0 {
				now = append(now, m.Handle)
			} else {
				a.handle(call, keptHandle{q, m.Handle})
			}
		}
		a.remove(call, q, now)
		a.comeBack(call)
	}
}

// remove deletes messages, one by one or together.
func (a *actor) remove(ctx context.Context, q Queue, handles []string) {
	if len(handles) > 1 && a.random.IntN(2) == 0 {
		a.client.DeleteBatch(ctx, q, handles)
		return
	}
	for _, h := range handles {
		a.client.Delete(ctx, q, h)
	}
}

// handle does with a message what consumers do that do not delete it at once:
// extend it and delete it later, release it, forget it, or delete it late.
func (a *actor) handle(ctx context.Context, k keptHandle) {
	switch a.random.IntN(5) {
	case 0, 1:
		a.client.Change(ctx, k.queue, k.handle, a.seconds(2, 6))
		a.keep(k)
	case 2:
		a.client.Change(ctx, k.queue, k.handle, 0)
	case 3:
		a.keep(k)
	}
}

func (a *actor) keep(k keptHandle) {
	if len(a.kept) < maxKept {
		a.kept = append(a.kept, k)
	}
}

// comeBack deletes a kept message, or extends it once more. Its lease may have
// ended long ago, and the broker may have been restarted.
func (a *actor) comeBack(ctx context.Context) {
	if len(a.kept) == 0 || a.random.IntN(3) == 0 {
		return
	}
	i := a.random.IntN(len(a.kept))
	k := a.kept[i]
	if a.random.IntN(8) == 0 {
		a.client.Change(ctx, k.queue, k.handle, a.seconds(1, 4))
		return
	}
	a.kept[i] = a.kept[len(a.kept)-1]
	a.kept = a.kept[:len(a.kept)-1]
	a.client.Delete(ctx, k.queue, k.handle)
}

// Drain receives and deletes until every queue is empty or ctx ends, and counts
// what each queue says it holds. It reports whether all became empty.
func (s Standard) Drain(ctx context.Context) bool {
	a := s.client(s.Producers+s.Consumers+1, history.Drain)
	defer a.client.HTTP.CloseIdleConnections()
	for _, q := range s.Queues {
		for quiet := 0; quiet < drainQuiet && ctx.Err() == nil; {
			if a.drainOnce(ctx, q) {
				quiet++
			} else {
				quiet = 0
			}
		}
		a.client.Count(context.WithoutCancel(ctx), q)
	}
	return ctx.Err() == nil
}

// drainOnce receives and deletes once and reports whether the queue seems empty.
func (a *actor) drainOnce(ctx context.Context, q Queue) bool {
	received := a.client.Receive(ctx, q, 10, history.QueueDefault, drainWait)
	if received.Outcome != history.OK {
		return false
	}
	var handles []string
	for _, m := range received.Messages {
		handles = append(handles, m.Handle)
	}
	if len(handles) > 0 {
		a.client.DeleteBatch(ctx, q, handles)
		return false
	}
	c := a.client.Count(ctx, q)
	return c.Outcome == history.OK && c.Visible+c.InFlight+c.Delayed == 0
}
