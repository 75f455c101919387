package workload

import (
	"context"
	"fmt"

	"holdfast.internal/jepsen/history"
)

// keptIDs is how many sends a producer remembers to send them again.
const keptIDs = 40

// FIFO is a load on FIFO queues: that of Standard, but the producers send into
// groups, and many a message again under its deduplication id, with another
// body: at once if they got no answer, and some time later.
type FIFO struct {
	Standard
	Groups int // of each queue
}

// Drive loads the queues until ctx ends. Calls under way are not cut short.
func (f FIFO) Drive(ctx context.Context) {
	f.drive(ctx, func(a *actor, ctx context.Context) { (&fifoProducer{actor: a, groups: f.Groups}).produce(ctx) })
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

// send sends new messages, once more each that got no answer.
func (p *fifoProducer) send(ctx context.Context, count int) {
	q := p.queue()
	messages := make([]FIFOMessage, count)
	for i := range messages {
		body := p.body()
		messages[i] = FIFOMessage{
			Body: body, Group: fmt.Sprint("g", p.random.IntN(p.groups)), DedupID: fmt.Sprintf("%s-%d-%d", p.load.Run, p.client.Process, p.sends),
		}
	}
	for i, o := range p.client.SendFIFO(ctx, q, messages...) {
		k := keptSend{q, messages[i]}
		if o.Outcome == history.Info {
			p.again(ctx, k)
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

func (p *fifoProducer) repeat(ctx context.Context) { p.again(ctx, p.kept[p.random.IntN(len(p.kept))]) }

func (p *fifoProducer) again(ctx context.Context, k keptSend) {
	k.message.Body = p.body()
	p.client.SendFIFO(ctx, k.queue, k.message)
}
