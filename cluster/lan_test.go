package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// lan is a network in memory for the peer ports of nodes in a bubble. What is
// written to a link that is cut waits, as it does with TCP, until the link is
// healed, the deadline comes, or the connection is closed.
type lan struct {
	mu        sync.Mutex
	listeners map[string]*lanListener // by address
	cuts      map[lanLink]bool
	rate      int           // bytes a second on each connection; 0: no limit
	changed   chan struct{} // closed when cuts change
}

// lanLink is one direction between two addresses.
type lanLink struct{ from, to string }

func newLAN() *lan {
	return &lan{listeners: map[string]*lanListener{}, cuts: map[lanLink]bool{}, changed: make(chan struct{})}
}

// listen opens an address, in place of who listened there before.
func (l *lan) listen(address string) *lanListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := &lanListener{lan: l, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	l.listeners[address] = ln
	return ln
}

// dialer makes connections from an address.
func (l *lan) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		if err := errors.Join(l.pass(ctx.Done(), lanLink{from, to}), l.pass(ctx.Done(), lanLink{to, from})); err != nil {
			return nil, err
		}
		l.mu.Lock()
		ln := l.listeners[to]
		l.mu.Unlock()
		if ln == nil {
			return nil, fmt.Errorf("dial %s: nobody listens", to)
		}
		near, far := net.Pipe()
		select {
		case ln.conns <- l.conn(far, lanLink{to, from}):
			return l.conn(near, lanLink{from, to}), nil
		case <-ln.closed:
		case <-ctx.Done():
		}
		_, _ = near.Close(), far.Close()
		return nil, fmt.Errorf("dial %s: refused", to)
	}
}

// cut makes sure that nothing passes from one address to another.
func (l *lan) cut(from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts[lanLink{from, to}] = true
}

// heal lets everything pass again.
func (l *lan) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cuts)
	close(l.changed)
	l.changed = make(chan struct{})
}

// slow limits every connection to so many bytes a second.
func (l *lan) slow(rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
}

// transfer is how long so many bytes take.
func (l *lan) transfer(bytes int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(l.rate)
}

func (l *lan) isCut(link lanLink) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts[link]
}

// pass waits until the link is whole or over is closed.
func (l *lan) pass(over <-chan struct{}, link lanLink) error {
	for {
		l.mu.Lock()
		cut, changed := l.cuts[link], l.changed
		l.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-changed:
		case <-over:
			return os.ErrDeadlineExceeded
		}
	}
}

type lanListener struct {
	lan     *lan
	address string
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (ln *lanListener) Accept() (net.Conn, error) {
	select {
	case conn := <-ln.conns:
		return conn, nil
	case <-ln.closed:
		return nil, net.ErrClosed
	}
}

func (ln *lanListener) Close() error {
	ln.once.Do(func() { close(ln.closed) })
	return nil
}

func (ln *lanListener) Addr() net.Addr { return lanAddr(ln.address) }

type lanAddr string

func (a lanAddr) Network() string { return "lan" }
func (a lanAddr) String() string  { return string(a) }

// lanConn is one end of a connection.
type lanConn struct {
	net.Conn
	lan    *lan
	link   lanLink // of what is written
	once   sync.Once
	closed chan struct{}

	mu       sync.Mutex
	deadline time.Time // of writes
}

func (l *lan) conn(pipe net.Conn, link lanLink) net.Conn {
	return &lanConn{Conn: pipe, lan: l, link: link, closed: make(chan struct{})}
}

func (c *lanConn) Write(b []byte) (int, error) {
	if c.lan.isCut(c.link) {
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
	if took := c.lan.transfer(len(b)); took > 0 {
		c.mu.Lock()
		deadline := c.deadline
		c.mu.Unlock()
		if left := time.Until(deadline); !deadline.IsZero() && left < took {
			time.Sleep(left)
			return 0, os.ErrDeadlineExceeded
		}
		time.Sleep(took)
	}
	return c.Conn.Write(b)
}

// wait waits until the link is whole, the deadline of writes has come, or the
// connection is closed.
func (c *lanConn) wait() error {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	go func() {
		select {
		case <-c.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return c.lan.pass(ctx.Done(), c.link)
}

func (c *lanConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *lanConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *lanConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *lanConn) LocalAddr() net.Addr  { return lanAddr(c.link.from) }
func (c *lanConn) RemoteAddr() net.Addr { return lanAddr(c.link.to) }
