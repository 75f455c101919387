package peer

import (
	"context"
	"fmt"
	"time"
)

// linkName says which connection a call uses. A ping has its own: its way there
// and back is measured, and large frames must not stand before it.
type linkName struct {
	to    Target
	pings bool
}

// linkSlot is the place of a link, and of the attempt to make it.
type linkSlot struct {
	made   chan struct{} // closed when the attempt has ended
	link   *link
	err    error
	failed time.Time
}

// Call asks a node and returns its answer. Calls to one node share a connection,
// which the first one makes. ctx bounds the call; when it ends the other side is
// told to give up. The error wraps ErrNotSent or ErrBroken, and that of ctx if
// this was the reason. The request has at most MaxFrame bytes and may be used
// again after the return.
func (p *Port) Call(ctx context.Context, to Target, method byte, request []byte) ([]byte, error) {
	if method == MethodFormation {
		return p.callOnce(ctx, to, method, request)
	}
	pending, err := p.Start(ctx, to, method, request)
	if err != nil {
		return nil, err
	}
	answer, err := pending.await(ctx)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	return answer, nil
}

// callOnce asks on a connection of its own: what may be asked on it ends when
// the cluster is formed.
func (p *Port) callOnce(ctx context.Context, to Target, method byte, request []byte) ([]byte, error) {
	conn, err := p.dial(ctx, to, kindFormation, 0)
	if err != nil {
		return nil, fmt.Errorf("call: %w: %w", ErrNotSent, err)
	}
	l := newLink(p, conn)
	defer l.end(ErrClosed)
	pending, err := l.start(ctx, method, request)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	answer, err := pending.await(ctx)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	return answer, nil
}

// link is a link that works, made if need be. Calls that come while it is being
// made wait for the one attempt, for dialTimeout at most; after one that failed, the
// next begins a moment later.
func (p *Port) link(ctx context.Context, name linkName) (*link, error) {
	p.mu.Lock()
	slot := p.links[name]
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if slot == nil || slot.stale(p.config.Now()) {
		slot = &linkSlot{made: make(chan struct{})}
		p.links[name] = slot
		p.done.Go(func() { p.make(slot, name) })
	}
	p.mu.Unlock()
	select {
	case <-slot.made:
		return slot.link, slot.err
	default:
	}
	late := time.NewTimer(p.dialTimeout)
	defer late.Stop()
	select {
	case <-slot.made:
		return slot.link, slot.err
	case <-late.C:
		return nil, errStillDialling
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make fills a slot.
func (p *Port) make(slot *linkSlot, name linkName) {
	conn, err := p.dial(p.ctx, name.to, kindRequests, 0)
	if err != nil {
		slot.err, slot.failed = err, p.config.Now()
	} else {
		slot.link = newLink(p, conn)
	}
	close(slot.made)
}

// stale reports whether a new attempt is due.
func (s *linkSlot) stale(now time.Time) bool {
	select {
	case <-s.made:
	default:
		return false
	}
	if s.err != nil {
		return now.Sub(s.failed) >= redialAfter
	}
	return s.link.isBroken()
}
