package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pollSeconds is the wait of the long polls; a measurement that ends leaves
	// its pollers at most so long behind.
	pollSeconds = 1
	// parkPause is how long phase wake waits after a long poll was written until
	// it is certainly parked, beyond the time of a send.
	parkPause = 2 * time.Millisecond
)

// trips runs senders and as many long pollers. A send waits until one of the
// earlier messages has arrived, so that there are never more under way than
// senders. The latency runs from the call of the send to the answer of the poll.
func trips(ctx context.Context, stop *atomic.Bool, senders, pollers []*worker) {
	free := make(chan struct{}, len(senders))
	for range senders {
		free <- struct{}{}
	}
	done := make(chan struct{})
	start := time.Now()
	var sending, polling sync.WaitGroup
	for _, w := range senders {
		sending.Go(func() { w.tripSending(ctx, stop, start, free) })
	}
	for _, w := range pollers {
		w.prepare(pollSeconds)
		polling.Go(func() { w.tripPolling(ctx, done, start, free) })
	}
	sending.Wait()
	close(done)
	polling.Wait()
}

func (w *worker) tripSending(ctx context.Context, stop *atomic.Bool, start time.Time, free chan struct{}) {
	lost := time.NewTicker(pollSeconds * time.Second) // a message whose answer was lost frees nobody
	defer lost.Stop()
	for w.goesOn(ctx, stop, w.tally.requests) {
		select {
		case <-free:
		case <-lost.C:
			continue
		}
		w.stamps = uint64(time.Since(start))
		if w.send(ctx, callSend) == 0 {
			free <- struct{}{}
		}
	}
}

func (w *worker) tripPolling(ctx context.Context, done <-chan struct{}, start time.Time, free chan<- struct{}) {
	for ctx.Err() == nil {
		answer := w.do(ctx, w.requests[callReceive].bytes)
		arrived := time.Since(start)
		w.handles = w.fields.handles(w.handles[:0], answer)
		if len(w.handles) > 0 {
			if sent, ok := w.fields.stamp(answer); ok {
				w.latency.record(arrived - time.Duration(sent))
			}
			w.messages++
			w.remove(ctx, callDelete, w.handles)
			select {
			case free <- struct{}{}:
			default:
			}
			continue
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// wakes measures how long after the answer of a send a parked long poll is
// answered, one at a time. The sends' own latencies, which are those of a commit
// without load, are in commit.
func wakes(ctx context.Context, stop *atomic.Bool, sender, poller *worker) {
	poller.prepare(pollSeconds)
	type arrival struct {
		at      time.Time
		handles [][]byte
	}
	parked := make(chan struct{})
	arrivals := make(chan arrival)
	go func() {
		defer close(arrivals)
		for range parked {
			handles := poller.receive(ctx, callReceive)
			arrivals <- arrival{time.Now(), handles}
		}
	}()
	for sender.goesOn(ctx, stop, sender.messages) {
		parked <- struct{}{}
		time.Sleep(parkPause + sender.commit.quantile(0.5))
		start := time.Now()
		sent := sender.send(ctx, callSend)
		answered := time.Now()
		a := <-arrivals
		for sent > 0 && len(a.handles) == 0 && ctx.Err() == nil { // the poll ended before the send
			a.handles = poller.receive(ctx, callReceive)
			sent = -1 // not a measurement
		}
		if sent > 0 {
			sender.commit.record(answered.Sub(start))
			sender.latency.record(a.at.Sub(answered))
			sender.messages++
		}
		if len(a.handles) > 0 {
			poller.remove(ctx, callDelete, a.handles)
		}
	}
	close(parked)
	for range arrivals {
	}
}
