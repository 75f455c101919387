package peer

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// raftLayer is a raft group's share of the port.
type raftLayer struct {
	port  *Port
	group byte
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Raft is the stream layer of a raft group: its connections are those whose
// hello was checked. Raft's server addresses are Target.RaftAddress. A second
// call for the same group ends the first layer; closing a layer leaves the port
// open.
func (p *Port) Raft(group byte) raft.StreamLayer {
	l := &raftLayer{port: p, group: group, conns: make(chan net.Conn), done: make(chan struct{})}
	p.mu.Lock()
	before := p.layers[group]
	if p.closed {
		l.end()
	} else {
		p.layers[group] = l
	}
	p.mu.Unlock()
	if before != nil {
		before.end()
	}
	return l
}

// deliver hands an accepted connection to its group, or drops it.
func (p *Port) deliver(group byte, conn net.Conn) {
	p.mu.Lock()
	l := p.layers[group]
	p.mu.Unlock()
	if l == nil {
		_ = p.drop(conn)
		return
	}
	select {
	case l.conns <- &raftConn{Conn: conn, port: p}:
	case <-l.done:
		_ = p.drop(conn)
	}
}

// Accept implements net.Listener.
func (l *raftLayer) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *raftLayer) Close() error {
	l.end()
	return nil
}

func (l *raftLayer) end() { l.once.Do(func() { close(l.done) }) }

// Addr implements net.Listener. It is the node's raft address.
func (l *raftLayer) Addr() net.Addr { return raftAddr(l.port.Self().RaftAddress()) }

// Dial implements raft.StreamLayer.
func (l *raftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to, err := ParseTarget(string(address))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(l.port.ctx, timeout)
	defer cancel()
	select {
	case <-l.done:
		return nil, fmt.Errorf("dial %s: %w", to, ErrClosed)
	default:
	}
	conn, err := l.port.dial(ctx, to, kindRaft, l.group)
	if err != nil {
		return nil, err
	}
	return &raftConn{Conn: conn, port: l.port}, nil
}

type raftAddr string

func (a raftAddr) Network() string { return "tcp" }
func (a raftAddr) String() string  { return string(a) }

// raftConn is a connection of raft's. Raft sets no deadline for what it answers,
// and one of hours for a large snapshot; no Write takes longer than stallTimeout.
type raftConn struct {
	net.Conn
	port *Port

	mu       sync.Mutex
	deadline time.Time // of writes, as raft wants it
}

func (c *raftConn) SetDeadline(t time.Time) error {
	c.setWriteDeadline(t)
	return c.Conn.SetDeadline(t)
}

func (c *raftConn) SetWriteDeadline(t time.Time) error {
	c.setWriteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *raftConn) setWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

func (c *raftConn) Write(b []byte) (int, error) {
	deadline := c.port.config.Now().Add(stallTimeout)
	c.mu.Lock()
	if !c.deadline.IsZero() && c.deadline.Before(deadline) {
		deadline = c.deadline
	}
	c.mu.Unlock()
	if err := c.Conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *raftConn) Close() error { return c.port.drop(c.Conn) }
