package workload

import (
	"context"
	"fmt"

	"holdfast.internal/jepsen/history"
)

const (
	// keptIDs is how many sends a producer remembers to send them again.
	keptIDs = 40
	// tries is how often a client asks again what was not answered.
	tries = 20
)

// FIFO is a load on FIFO queues: that of Standard, but what was not answered is
// asked again, under the same ReceiveRequestAttemptId or deduplication id. The
// producers send into groups, and many a message again some time later, with
// another body, and now and then to another group.
type FIFO struct {
	Standard
	Groups int // of each queue
}

// Drive loads the queues until ctx ends. Calls under way are not cut short.
func (f FIFO) Drive(ctx context.Context) {
	f.drive(ctx, habits{
		produce: func(a *actor, ctx context.Context) { (&fifoProducer{actor: a, groups: f.Groups}).produce(ctx) },
		receive: (*actor).receiveAttempt,
	})
}

// receiveAttempt receives, and once more as the same attempt when there is no answer:
// so it gets what it was handed out without hearing of it.
func (a *actor) receiveAttempt(ctx context.Context, q Queue, d demand) []history.Delivery {
	a.asked++
	attempt := fmt.Sprintf("%d-%d", a.client.Process, a.asked)
	for range tries {
		o := a.client.ReceiveAttempt(ctx, q, attempt, d.limit, d.visibility, d.wait)
		if o.Outcome == history.OK {
			return o.Messages
		}
		a.rest(ctx)
	}
	return nil
}

// fifoProducer is a producer with a memory.
type fifoProducer struct {
	*actor
	groups int
	kept   []keptSend
}

type keptSend struct {
	queue   Queue
	message FIFOMessage
}

func (p *fifoProducer) produce(ctx context.Context) {
	call := context.WithoutCancel(ctx)
	for ; ctx.Err() == nil; p.rest(ctx) {
		switch n := p.random.IntN(10); {
		case n < 3 && len(p.kept) > 0:
			p.repeat(call)
		case n == 3:
			p.send(call, 2+p.random.IntN(9))
		default:
			p.send(call, 1)
		}
	}
}

func (p *fifoProducer) group() string { return fmt.Sprint("g", p.random.IntN(p.groups)) }

// send sends new messages, and again those that got no answer.
func (p *fifoProducer) send(ctx context.Context, count int) {
	q := p.queue()
	messages := make([]FIFOMessage, count)
	for i := range messages {
		body := p.body()
		messages[i] = FIFOMessage{
			Body: body, Group: p.group(), DedupID: fmt.Sprintf("%s-%d-%d", p.load.Run, p.client.Process, p.sends),
		}
	}
	for i, o := range p.client.SendFIFO(ctx, q, messages...) {
		k := keptSend{q, messages[i]}
		for try := 0; o.Outcome != history.OK && try < tries; try++ {
			p.rest(ctx)
			o = p.again(ctx, k)
		}
		p.keep(k)
	}
}

// keep remembers a send, half of the time, in place of any other: so some are
// sent again when their windows are over.
func (p *fifoProducer) keep(k keptSend) {
	if len(p.kept) < keptIDs {
		p.kept = append(p.kept, k)
		return
	}
	if p.random.IntN(2) == 0 {
		p.kept[p.random.IntN(keptIDs)] = k
	}
}

// repeat sends a message again that was sent before, one time in four to any group:
// where ids are known by group, it is another message.
func (p *fifoProducer) repeat(ctx context.Context) {
	k := p.kept[p.random.IntN(len(p.kept))]
	if p.random.IntN(4) == 0 {
		k.message.Group = p.group()
	}
	p.again(ctx, k)
}

func (p *fifoProducer) again(ctx context.Context, k keptSend) history.Operation {
	k.message.Body = p.body()
	return p.client.SendFIFO(ctx, k.queue, k.message)[0]
}
