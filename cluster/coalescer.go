package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

const (
	// maxEntrySize is where packing stops. A single larger command (ten
	// messages of 1 MiB are the largest) gets an entry of its own.
	maxEntrySize = 256 << 10

	// maxEntriesInFlight overlaps the fsync of an entry with the apply of the
	// one before. More make entries smaller, which costs throughput.
	maxEntriesInFlight = 2

	// operationOverhead is what an entry holds per command beside its bytes:
	// origin, with an acknowledgement or two, and length. An underestimate costs
	// a copy of the entry.
	operationOverhead = 32
	entryOverhead     = 16

	// maxPooledCommand is the largest buffer kept for the next command.
	maxPooledCommand = 64 << 10
)

// proposal is one command on its way into the log. Its buffers are reused, so
// nobody may hold it after it was recycled.
type proposal struct {
	command []byte // from raftfsm.AppendCommand
	steps   int    // that it takes of an entry's (raftfsm.Machine.FanOut)
	origin  raftfsm.Origin
	acks    []raftfsm.NumberRange // room for those of origin
	held    int64                 // bytes that admission holds for it
	state   atomic.Int32
	done    chan struct{} // capacity 1: outcome and err are set
	expired *time.Timer

	outcome raftfsm.Outcome
	err     error // ErrNoLeader, ErrOutcomeUnknown
}

// The states of a proposal. Whoever moves it out of waiting decides.
const (
	proposalWaiting int32 = iota
	proposalTaken         // into an entry: only the answer tells the outcome
	proposalLeft          // by its caller: it must not get into an entry
)

// coalescer packs the commands that wait into few log entries: one fsync and one
// trip through raft serve them all. Two lanes take turns at packing; a lane
// whose entry is in flight waits for the outcomes and hands them out.
type coalescer struct {
	apply   func(entry []byte) raft.ApplyFuture
	now     func() sqs.Time
	fanOut  func(command []byte) int // steps of a command
	release func(held int64)         // tells admission that so many bytes were answered

	mu       sync.Mutex
	ready    sync.Cond // on mu; isReady
	waiting  []*proposal
	size     int // bytes of the commands that wait
	inFlight int // commands in entries that are not answered
	closed   bool

	packing chan struct{} // held by the lane that packs
	lanes   sync.WaitGroup
	pool    sync.Pool // of *proposal

	commands, entries, bytes atomic.Uint64
}

// newCoalescer starts a coalescer; close ends it.
func newCoalescer(
	apply func([]byte) raft.ApplyFuture, now func() sqs.Time, fanOut func([]byte) int, release func(int64),
) *coalescer {
	c := &coalescer{apply: apply, now: now, fanOut: fanOut, release: release, packing: make(chan struct{}, 1)}
	c.ready.L = &c.mu
	c.pool.New = func() any {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return &proposal{done: make(chan struct{}, 1), expired: timer}
	}
	for range maxEntriesInFlight {
		c.lanes.Go(c.lane)
	}
	return c
}

// take gives out an empty proposal, for recycle to get back.
func (c *coalescer) take() *proposal {
	return c.pool.Get().(*proposal)
}

// recycle takes back a proposal that was never submitted, or that is answered.
func (c *coalescer) recycle(p *proposal) {
	p.expired.Stop()
	p.outcome, p.err, p.held, p.origin = raftfsm.Outcome{}, nil, 0, raftfsm.Origin{}
	if cap(p.command) > maxPooledCommand {
		p.command = nil
	}
	p.state.Store(proposalWaiting)
	c.pool.Put(p)
}

// submit puts p into the log and waits until it is answered; then the error is
// nil, and p's outcome and err tell the rest. If ctx is done or p's timer fires
// before, the error is ErrNoLeader or ErrOutcomeUnknown, and p belongs to the
// coalescer.
func (c *coalescer) submit(ctx context.Context, p *proposal) error {
	p.state.Store(proposalWaiting)
	p.steps = c.fanOut(p.command)
	if !c.enqueue(p) {
		c.release(p.held)
		p.held, p.err = 0, ErrNoLeader
		return nil
	}
	select {
	case <-p.done:
		p.held = 0 // released with the answer; a second try goes without
		return nil
	case <-ctx.Done():
	case <-p.expired.C:
	}
	if p.state.CompareAndSwap(proposalWaiting, proposalLeft) {
		return ErrNoLeader
	}
	return ErrOutcomeUnknown
}

func (c *coalescer) enqueue(p *proposal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.waiting = append(c.waiting, p)
	c.size += len(p.command)
	if c.isReady() {
		c.ready.Signal()
	}
	return true
}

// isReady reports whether it is time for an entry. While one is in flight, the
// next is worth its fsync only if it is as large; else it waits for the answer
// of the first, and grows meanwhile. The caller holds mu.
func (c *coalescer) isReady() bool {
	return c.closed || len(c.waiting) > 0 && (len(c.waiting) >= c.inFlight || c.size >= maxEntrySize)
}

// close refuses new commands and returns when those that wait are answered.
func (c *coalescer) close() {
	c.mu.Lock()
	c.closed = true
	c.ready.Broadcast()
	c.mu.Unlock()
	c.lanes.Wait()
}

func (c *coalescer) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// lane proposes entries, one at a time, until the coalescer is closed and empty.
func (c *coalescer) lane() {
	var batch []*proposal
	for {
		c.packing <- struct{}{}
		batch = c.next(batch[:0])
		if len(batch) == 0 {
			<-c.packing
			return
		}
		future := c.apply(c.pack(batch))
		<-c.packing
		c.answer(batch, future)
		clear(batch)
	}
}

// next appends to batch the commands of the next entry, as soon as there is one. An
// entry has publishes of as many steps as it may take (sns.MaxSteps), or one alone
// that has more: the state would put off the rest, which clients see as a delay,
// and in the end as throttling.
// It appends none when the coalescer is closed and empty.
func (c *coalescer) next(batch []*proposal) []*proposal {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for !c.isReady() {
			c.ready.Wait()
		}
		taken, size, steps := 0, 0, 0
		for _, p := range c.waiting {
			full := size > 0 && size+len(p.command) > maxEntrySize
			if full || steps > 0 && p.steps > 0 && steps+p.steps > sns.MaxSteps {
				break
			}
			taken++
			c.size -= len(p.command)
			if !p.state.CompareAndSwap(proposalWaiting, proposalTaken) {
				c.release(p.held)
				continue
			}
			size += len(p.command)
			steps += p.steps
			batch = append(batch, p)
		}
		c.waiting = dropFirst(c.waiting, taken)
		if len(batch) > 0 || c.closed && len(c.waiting) == 0 {
			c.inFlight += len(batch)
			return batch
		}
	}
}

// dropFirst removes the first n of list in place.
func dropFirst(list []*proposal, n int) []*proposal {
	kept := copy(list, list[n:])
	clear(list[kept:])
	return list[:kept]
}

// pack makes the entry of a batch. Raft, the log and the body store keep the
// entry, so its memory is never used again.
func (c *coalescer) pack(batch []*proposal) []byte {
	size := entryOverhead
	for _, p := range batch {
		size += operationOverhead + len(p.command)
	}
	entry := raftfsm.AppendEntryHeader(make([]byte, 0, size), c.now())
	for _, p := range batch {
		entry = raftfsm.AppendOperation(entry, p.origin, p.command)
	}
	c.commands.Add(uint64(len(batch)))
	c.entries.Add(1)
	c.bytes.Add(uint64(len(entry)))
	return entry
}

// answer waits for the entry of a batch and hands out its outcomes.
func (c *coalescer) answer(batch []*proposal, future raft.ApplyFuture) {
	err := future.Error()
	var outcomes []raftfsm.Outcome
	switch {
	case err == nil:
		outcomes = future.Response().(*raftfsm.Applied).Outcomes
	case notApplied(err):
		err = ErrNoLeader
	default:
		err = ErrOutcomeUnknown
	}
	c.landed(len(batch))
	held := int64(0)
	for i, p := range batch {
		held += p.held
		if p.err = err; err == nil {
			p.outcome = outcomes[i]
		}
		p.done <- struct{}{} // p is its caller's from here on
	}
	c.release(held)
}

// landed takes so many commands out of flight.
func (c *coalescer) landed(commands int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight -= commands
	c.ready.Signal()
}
