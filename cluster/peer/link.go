package peer

import (
	"fmt"
	"net"
	"sync"
)

// link is a connection on which this node asks another one.
type link struct {
	port *Port
	conn net.Conn
	out  *outbox

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan Reply // a closed channel says that the link broke
	broken  error
}

func newLink(p *Port, conn net.Conn) *link {
	l := &link{port: p, conn: conn, out: newOutbox(conn, p.config.Now), waiting: map[uint64]chan Reply{}}
	writes := p.spawn(func() { l.end(l.out.run()) })
	if !writes || !p.spawn(func() { l.end(l.read()) }) {
		l.end(ErrClosed)
	}
	return l
}

// read hands answers to those who wait, until the link breaks.
func (l *link) read() error {
	r := newFrameReader(l.conn, l.port.config.Now)
	for {
		f, err := r.next()
		if err != nil {
			return err
		}
		if f.kind < frameAnswer || f.kind > frameFailed {
			return fmt.Errorf("read frame: unknown type %d", f.kind)
		}
		if c := l.forget(f.id); c != nil {
			c <- Reply{f}
		}
	}
}

// end breaks the link.
func (l *link) end(err error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = err
	}
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	l.out.fail(err)
	_ = l.port.drop(l.conn)
	for _, c := range waiting {
		close(c)
	}
}

// expect registers a call; false if the link is broken.
func (l *link) expect() (uint64, chan Reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return 0, nil, l.broken
	}
	l.next++
	c := make(chan Reply, 1)
	l.waiting[l.next] = c
	return l.next, c, nil
}

// forget ends the wait for an answer, and returns who waited.
func (l *link) forget(id uint64) chan Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.waiting[id]
	delete(l.waiting, id)
	return c
}

func (l *link) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken != nil
}

// fate takes a request back and says whether that was in time.
func (l *link) fate(sent ticket) error {
	if l.out.recall(sent) {
		return ErrNotSent
	}
	return ErrBroken
}

// result is what an answer means to the caller.
func (f frame) result() ([]byte, error) {
	switch f.kind {
	case frameRefused:
		return nil, fmt.Errorf("%w: the other node says: %s", ErrNotSent, f.payload)
	case frameFailed:
		return nil, fmt.Errorf("%w: the other node says: %s", ErrBroken, f.payload)
	}
	return f.payload, nil
}
