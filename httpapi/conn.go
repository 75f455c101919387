package httpapi

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lingerTime is how long a client may go on sending what will not be read: as long as
// a request may take to come in.
const lingerTime = 30 * time.Second

// connections knows all that is open, so that it can be closed at once.
type connections struct {
	mu        sync.Mutex
	closed    bool
	listeners map[*listener]struct{}
	open      map[*conn]struct{}
}

// add registers a connection, unless all were closed.
func (c *connections) add(nc *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.open == nil {
		c.open = make(map[*conn]struct{})
	}
	c.open[nc] = struct{}{}
	return true
}

// listen registers a listener, unless all were closed.
func (c *connections) listen(ln *listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.listeners == nil {
		c.listeners = make(map[*listener]struct{})
	}
	c.listeners[ln] = struct{}{}
	return true
}

func (c *connections) remove(nc *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, nc)
}

// closeAll closes what is open and has whatever comes later closed too. It
// resets connections, so that nothing that waits to be sent goes out.
func (c *connections) closeAll() {
	c.mu.Lock()
	c.closed = true
	listeners, open := c.listeners, c.open
	c.listeners, c.open = nil, nil
	c.mu.Unlock()
	for ln := range listeners {
		_ = ln.Close() // nothing can be done about it
	}
	for nc := range open {
		if tcp, ok := nc.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = nc.Conn.Close()
	}
}

// listener makes every connection a conn.
type listener struct {
	net.Listener
	connections *connections
}

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, connections: l.connections}
	if sc, ok := nc.(syscall.Conn); ok {
		if c.raw, err = sc.SyscallConn(); err != nil {
			c.raw = nil
		}
	}
	c.alive = c.isAlive
	if !l.connections.add(c) {
		_ = nc.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// conn is a connection that can be asked whether its client is still there.
type conn struct {
	net.Conn
	connections *connections
	raw         syscall.RawConn // nil if there is no socket
	alive       func() bool     // isAlive, made once
	lingers     atomic.Bool
	reads       deadline
	writes      deadline
}

// SetDeadline implements net.Conn. What holds of deadline holds here.
func (c *conn) SetDeadline(t time.Time) error {
	c.reads.want(t)
	c.writes.want(t)
	return nil
}

// SetReadDeadline implements net.Conn, as SetDeadline does.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reads.want(t)
	return nil
}

// SetWriteDeadline implements net.Conn, as SetDeadline does.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.want(t)
	return nil
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.reads.apply(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.writes.apply(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.lingers.Load() {
		c.linger()
	}
	c.connections.remove(c)
	return c.Conn.Close()
}

// linger takes what the client still sends, to its end. A socket that is closed
// over unread bytes resets the connection, and a client that has not read its
// answer by then, since it is still writing, never sees it.
func (c *conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	end := time.AfterFunc(lingerTime, func() { _ = c.Conn.Close() })
	defer end.Stop()
	_, _ = io.Copy(io.Discard, c.Conn) // however it ends
}

// isAlive looks whether the client has closed the connection, or its half of
// it, which no client does that waits for an answer. Bytes that were sent ahead
// stay where they are and prove nothing: over TLS, the last word of a client
// that leaves is such bytes.
func (c *conn) isAlive() bool {
	if c.raw == nil {
		return true
	}
	gone := false
	// Control, not Read: a read would fail once the read deadline of the
	// request is over, which a long poll outlives.
	err := c.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0
	})
	return err == nil && !gone
}

// alwaysAlive stands for isAlive on a connection that is not a conn.
func alwaysAlive() bool { return true }

// aliveFunc returns the isAlive of a connection that the HTTP server has.
func aliveFunc(nc net.Conn) func() bool {
	if c := connOf(nc); c != nil {
		return c.alive
	}
	return alwaysAlive
}

// lingerOn has a connection that the HTTP server is about to close linger.
func lingerOn(nc net.Conn) {
	if c := connOf(nc); c != nil {
		c.lingers.Store(true)
	}
}

// connOf returns the conn behind a connection of the HTTP server; nil if there is
// none.
func connOf(nc net.Conn) *conn {
	if wrapped, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = wrapped.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}
