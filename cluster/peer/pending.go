package peer

import (
	"context"
	"errors"
	"fmt"
)

// Pending is a request whose answer is yet to come.
type Pending struct {
	link  *link
	id    uint64
	sent  ticket
	reply chan Reply
}

// Reply is what came for a request; Pending.Result tells what it means.
type Reply struct{ frame frame }

// Start sends a request as Call does, and returns before the answer. ctx bounds
// only the time until the request is on its way. An error wraps ErrNotSent.
func (p *Port) Start(ctx context.Context, to Target, method byte, request []byte) (*Pending, error) {
	l, err := p.link(ctx, linkName{to, method == MethodPing})
	if err != nil {
		return nil, fmt.Errorf("call %s: %w: %w", to, ErrNotSent, err)
	}
	pending, err := l.start(ctx, method, request)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	return pending, nil
}

func (l *link) start(ctx context.Context, method byte, request []byte) (*Pending, error) {
	if len(request) > MaxFrame {
		return nil, fmt.Errorf("%w: %w: %d bytes", ErrNotSent, errTooLarge, len(request))
	}
	id, reply, err := l.expect()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	sent, err := l.out.addSoon(ctx, frame{kind: frameRequest, method: method, id: id, payload: request})
	if err != nil {
		l.forget(id)
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return &Pending{l, id, sent, reply}, nil
}

// Reply yields one value, or is closed if the connection breaks before. The
// value, and whether there was one, are for Result.
func (p *Pending) Reply() <-chan Reply { return p.reply }

// Result is what a reply means. The error wraps ErrNotSent or ErrBroken.
func (p *Pending) Result(r Reply, ok bool) ([]byte, error) {
	if ok {
		return r.frame.result()
	}
	return nil, fmt.Errorf("%w: %w", p.link.fate(p.sent), p.link.broken)
}

// await is the answer. When ctx ends the request is given up.
func (p *Pending) await(ctx context.Context) ([]byte, error) {
	select {
	case r, ok := <-p.reply:
		return p.Result(r, ok)
	case <-ctx.Done():
		return p.Cancel(ctx.Err())
	}
}

// Cancel gives the request up for a reason, and tells the other side. If a reply
// has come all the same, it returns that.
func (p *Pending) Cancel(reason error) ([]byte, error) {
	if p.link.forget(p.id) == nil { // the answer was faster, or the link broke
		if r, ok := <-p.reply; ok {
			return r.frame.result()
		}
		return nil, fmt.Errorf("%w: %w", p.link.fate(p.sent), reason)
	}
	fate := p.link.fate(p.sent)
	if errors.Is(fate, ErrBroken) {
		p.link.out.addNow(frame{kind: frameCancel, id: p.id})
	}
	return nil, fmt.Errorf("%w: %w", fate, reason)
}
