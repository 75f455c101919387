package cluster

import (
	"container/list"
	"context"
	"sync"
	"time"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

const (
	// maxHeld is how many bytes of growing commands may be between admission
	// and their answer.
	maxHeld = 16 << 20

	// maxPendingBodies is how many bytes of bodies may be in no snapshot yet.
	maxPendingBodies = 192 << 20

	// commandOverhead is counted for a command beside its bodies.
	commandOverhead = 256
)

// grows reports whether a command makes the state larger. Such commands wait
// when the node is short of something; all others pass, since they are what
// makes the state smaller. To create what is there already passes, too: many a
// consumer begins with that.
func grows(c raftfsm.Command, machine *raftfsm.Machine) (grows bool) {
	switch c := c.(type) {
	case sqs.SendMessageBatch, sqs.TagQueue, sns.PublishBatch, sns.Subscribe, sns.TagResource:
		return true
	case sqs.CreateQueue:
		machine.View(func(v raftfsm.View) { grows = !v.Queues().Has(c.Queue) })
	case sns.CreateTopic:
		machine.View(func(v raftfsm.View) { grows = !v.Topics().Has(c.Topic) })
	}
	return grows
}

// admission decides, before the log, when a growing command may go on. Whoever
// must wait stands in line, first come, first served.
type admission struct {
	pending func() int64 // bytes of bodies in no snapshot

	mu       sync.Mutex
	held     int64
	waiting  list.List // of *hold
	lowDisk  bool
	fullHeap bool
	closed   bool
	refused  uint64
}

// hold is a growing command that stands in line.
type hold struct {
	size    int64
	decided chan struct{} // closed when admitted, or when admission is closed
}

// admit returns when a command of that size may go on; release gives the bytes
// back. The error is ErrOverloaded when ctx is done or expired fires before, and
// ErrNoLeader when the node closes.
func (a *admission) admit(ctx context.Context, expired <-chan time.Time, size int64) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return ErrNoLeader
	}
	if a.waiting.Len() == 0 && a.fits(size) {
		a.held += size
		a.mu.Unlock()
		return nil
	}
	h := &hold{size: size, decided: make(chan struct{})}
	place := a.waiting.PushBack(h)
	a.mu.Unlock()

	select {
	case <-h.decided:
	case <-ctx.Done():
	case <-expired:
	}
	return a.decide(place)
}

// decide is the end of the wait of the command at place.
func (a *admission) decide(place *list.Element) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-place.Value.(*hold).decided:
		if a.closed {
			return ErrNoLeader
		}
		return nil
	default:
	}
	a.waiting.Remove(place)
	a.refused++
	a.letIn() // a smaller one behind it may fit
	return ErrOverloaded
}

// release gives back the bytes of commands that were answered.
func (a *admission) release(size int64) {
	if size == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= size
	a.letIn()
}

// observe tells what the node is short of. It is called at least once a second,
// so it also notices a snapshot that made pending smaller.
func (a *admission) observe(lowDisk, fullHeap bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lowDisk, a.fullHeap = lowDisk, fullHeap
	a.letIn()
}

// close refuses whoever waits and whoever comes.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for e := a.waiting.Front(); e != nil; e = e.Next() {
		close(e.Value.(*hold).decided)
	}
	a.waiting.Init()
}

// letIn admits from the head of the line as long as it fits. The caller holds mu.
func (a *admission) letIn() {
	for e := a.waiting.Front(); e != nil; e = a.waiting.Front() {
		h := e.Value.(*hold)
		if !a.fits(h.size) {
			return
		}
		a.held += h.size
		a.waiting.Remove(e)
		close(h.decided)
	}
}

// fits reports whether a command of that size may go on now. One that is larger
// than the limit goes alone. The caller holds mu.
func (a *admission) fits(size int64) bool {
	return !a.lowDisk && !a.fullHeap &&
		(a.held == 0 || a.held+size <= maxHeld) &&
		a.pending() < maxPendingBodies
}

// The reasons for which growing commands are held back, in the order in which they are
// told. A burst, which waits for answers to those before, is none.
const (
	HeldForDisk   = "disk"   // the disks of a majority are below their reserve
	HeldForMemory = "memory" // the live heap is above its limit
	HeldForBodies = "bodies" // as many bodies as may be are in no snapshot yet
)

// HoldReasons are all of them.
func HoldReasons() []string { return []string{HeldForDisk, HeldForMemory, HeldForBodies} }

// reasons is why growing commands are held back now; empty if they are not.
func (a *admission) reasons() (why []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lowDisk {
		why = append(why, HeldForDisk)
	}
	if a.fullHeap {
		why = append(why, HeldForMemory)
	}
	if a.pending() >= maxPendingBodies {
		why = append(why, HeldForBodies)
	}
	return why
}

// refusals is the number of commands that were refused so far.
func (a *admission) refusals() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}
