package peer

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// inbound answers the requests that come on one connection.
type inbound struct {
	port *Port
	conn net.Conn
	from hello
	out  *outbox
	ctx  context.Context // ends with the connection
	stop context.CancelFunc

	mu      sync.Mutex
	running map[uint64]context.CancelFunc
	bytes   int // of the requests that run
}

// Limits of what one connection may have running. A request beyond them is
// refused unexecuted.
const (
	maxRunning      = 1 << 16  // requests
	maxRunningBytes = 64 << 20 // of requests
)

func newInbound(p *Port, conn net.Conn, h hello) *inbound {
	ctx, stop := context.WithCancel(p.ctx)
	return &inbound{
		port: p, conn: conn, from: h, out: newOutbox(conn, p.config.Now),
		ctx: ctx, stop: stop, running: map[uint64]context.CancelFunc{},
	}
}

// serve reads requests until the connection breaks.
func (s *inbound) serve() {
	s.port.spawn(func() {
		_ = s.out.run()
		_ = closeNow(s.conn)
	})
	r := newFrameReader(s.conn, s.port.config.Now)
	for {
		f, err := r.next()
		if err == nil {
			err = s.take(f)
		}
		if err != nil {
			s.out.fail(err)
			s.stop()
			_ = s.port.drop(s.conn)
			return
		}
	}
}

func (s *inbound) take(f frame) error {
	switch f.kind {
	case frameVoid:
		return nil
	case frameRequest:
		return s.request(f)
	case frameCancel:
		s.mu.Lock()
		cancel := s.running[f.id]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return nil
	}
	return fmt.Errorf("read frame: unknown type %d", f.kind)
}

func (s *inbound) request(f frame) error {
	handler := s.port.handlers[f.method]
	if handler == nil || (f.method == MethodFormation) != (s.from.kind == kindFormation) {
		return s.refuse(f.id, fmt.Sprintf("no method %d", f.method))
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	_, used := s.running[f.id]
	busy := len(s.running) >= maxRunning || s.bytes+len(f.payload) > s.port.maxBytes
	if !busy && !used {
		s.running[f.id] = cancel
		s.bytes += len(f.payload)
	}
	s.mu.Unlock()
	if used {
		cancel()
		return fmt.Errorf("read frame: request %d is being answered", f.id)
	}
	if busy {
		cancel()
		return s.refuse(f.id, "too much in flight")
	}
	go func() {
		defer cancel()
		answer := frame{kind: frameAnswer, id: f.id, payload: handler(ctx, s.from.from, f.payload)}
		if len(answer.payload) > MaxFrame {
			answer.kind, answer.payload = frameFailed, []byte("answer too large")
		}
		if ctx.Err() == nil {
			_, _ = s.out.add(ctx, answer) // fails only if nobody waits for it
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, f.id)
		s.bytes -= len(f.payload)
	}()
	return nil
}

func (s *inbound) refuse(id uint64, reason string) error {
	_, err := s.out.add(s.ctx, frame{kind: frameRefused, id: id, payload: []byte(reason)})
	return err
}
