package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network of net.Pipe, which works in virtual time: a listener whose
// connections are made by dial.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipes) Addr() net.Addr { return raftAddr("pipe") }

func (l *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// virtual serves a port named n2 on pipes. Its dials lead to itself.
func virtual(t *testing.T, with func(*Port)) (*Port, *pipes) {
	t.Helper()
	network := newPipes()
	p := New(network, Config{Name: "n2", ClusterID: func() string { return "c" }, Dial: network.dial})
	if with != nil {
		with(p)
	}
	go p.Serve()
	t.Cleanup(func() { p.Close() })
	return p, network
}

// greet dials and goes through the hello as n1.
func greet(t *testing.T, network *pipes, k kind) net.Conn {
	t.Helper()
	conn, err := network.dial(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(hello{kind: k, cluster: "c", from: "n1", to: "n2"}.encode()); err != nil {
		t.Fatal(err)
	}
	if a, err := readAnswer(conn); err != nil || a.verdict != accepted {
		t.Fatalf("hello: got %v, %v, want accepted", a.verdict, err)
	}
	return conn
}

// lives is how long the other side keeps conn.
func lives(conn net.Conn) time.Duration {
	began := time.Now()
	_, _ = io.Copy(io.Discard, conn)
	return time.Since(began)
}

func TestStalls(t *testing.T) {
	request := appendFrame(nil, frame{kind: frameRequest, method: MethodPropose, id: 1, payload: make([]byte, 100)})
	for _, c := range []struct {
		name   string
		writes func(conn net.Conn)
		want   time.Duration
	}{
		{"half a header", func(conn net.Conn) { conn.Write(request[:5]) }, stallTimeout},
		{"half a payload", func(conn net.Conn) { conn.Write(request[:50]) }, stallTimeout},
		{"a byte every four seconds", func(conn net.Conn) {
			for i := range 10 {
				conn.Write(request[i : i+1])
				time.Sleep(4 * time.Second)
			}
		}, stallTimeout - 4*time.Second},
		{"does not read its answers", func(conn net.Conn) {
			for range 3 {
				conn.Write(request)
			}
			time.Sleep(stallTimeout + time.Millisecond)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, network := virtual(t, func(p *Port) { p.Handle(MethodPropose, echo) })
				conn := greet(t, network, kindRequests)
				c.writes(conn)
				if got := lives(conn); got != c.want {
					t.Errorf("connection: got closed after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// Raft's writes end when nobody reads, whatever deadline raft has set.
func TestRaftWriteStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, network := virtual(t, nil)
		layer := p.Raft(0)
		greet(t, network, kindRaft)
		answering, err := layer.Accept()
		if err != nil {
			t.Fatal(err)
		}
		asking, err := layer.Dial(Target{"n2", "x"}.RaftAddress(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			conn     net.Conn
			deadline time.Duration
			want     time.Duration
		}{{answering, 0, stallTimeout}, {asking, time.Hour, stallTimeout}, {asking, time.Second, time.Second}} {
			if c.deadline > 0 {
				c.conn.SetDeadline(time.Now().Add(c.deadline))
			}
			began := time.Now()
			if _, err := c.conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != c.want {
				t.Errorf("write with a deadline of %v: got %v after %v, want a timeout after %v", c.deadline, err, time.Since(began), c.want)
			}
		}
	})
}

// A connection on which nobody asks anything stays.
func TestIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := virtual(t, func(p *Port) { p.Handle(MethodPropose, echo) })
		for range 3 {
			if _, err := p.Call(t.Context(), Target{"n2", "x"}, MethodPropose, make([]byte, 3*frameBuffer)); err != nil {
				t.Errorf("call: got %v, want nil", err)
			}
			time.Sleep(time.Hour)
		}
		if got := len(p.conns); got != 2 {
			t.Errorf("connections: got %d ends, want 2", got)
		}
	})
}

func TestHelloTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, network := virtual(t, nil)
		conn, err := network.dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		good := hello{kind: kindRequests, cluster: "c", from: "n1", to: "n2"}.encode()
		for _, b := range good {
			time.Sleep(700 * time.Millisecond)
			if _, err = conn.Write([]byte{b}); err != nil {
				break
			}
		}
		if got := time.Since(began); err == nil || got > helloTimeout+time.Second {
			t.Errorf("connection: got %v after %v, want it closed after %v", err, got, helloTimeout)
		}
	})
}

// A node that stands still accepts connections, and says nothing: calls to it do not
// wait for the hello to be given up.
func TestCallOfNodeThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		p := New(network, Config{Name: "n1", ClusterID: func() string { return "c" }, Dial: network.dial})
		t.Cleanup(func() { p.Close() })
		go func() {
			conn, _ := network.Accept()
			io.Copy(io.Discard, conn)
		}()
		for range 3 {
			began := time.Now()
			_, err := p.Call(t.Context(), Target{"n2", "x"}, MethodPropose, nil)
			if took := time.Since(began); !errors.Is(err, ErrNotSent) || took > dialTimeout {
				t.Errorf("call: got %v after %v, want %v within %v", err, took, ErrNotSent, dialTimeout)
			}
		}
	})
}

// Strangers who connect and say nothing do not keep a node out.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, network := virtual(t, func(p *Port) { p.Handle(MethodPropose, echo) })
		for range 3 * maxStrangers {
			conn, err := network.dial(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
		}
		synctest.Wait()
		if got := len(p.conns); got != maxStrangers {
			t.Errorf("connections: got %d, want %d", got, maxStrangers)
		}
		if _, err := p.Call(t.Context(), Target{"n2", "x"}, MethodPropose, nil); err != nil {
			t.Errorf("call: got %v, want nil", err)
		}
	})
}

func TestHostileFrames(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"too large":       {1, 0, 0, 1, byte(frameRequest), MethodPropose, 1, 0, 0, 0, 0, 0, 0, 0},
		"largest number":  {255, 255, 255, 255, byte(frameRequest), MethodPropose, 1, 0, 0, 0, 0, 0, 0, 0},
		"unknown type":    appendFrame(nil, frame{kind: 99}),
		"an answer":       appendFrame(nil, frame{kind: frameAnswer, id: 1}),
		"a number in use": append(appendFrame(nil, frame{kind: frameRequest, method: MethodReceive, id: 1}), appendFrame(nil, frame{kind: frameRequest, method: MethodReceive, id: 1})...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, network := virtual(t, func(p *Port) {
					p.Handle(MethodReceive, func(ctx context.Context, _ string, _ []byte) []byte { <-ctx.Done(); return nil })
				})
				conn := greet(t, network, kindRequests)
				conn.Write(bytes)
				if got := lives(conn); got != 0 {
					t.Errorf("connection: got closed after %v, want at once", got)
				}
			})
		})
	}
}

// A node that answers with what nobody asked for, or asks back, is cut off.
func TestHostileAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		want   error
	}{
		"a request":   {appendFrame(nil, frame{kind: frameRequest, id: 1}), ErrBroken},
		"too large":   {[]byte{1, 0, 0, 1, byte(frameAnswer), 0, 1, 0, 0, 0, 0, 0, 0, 0}, ErrBroken},
		"to nobody":   {append(appendFrame(nil, frame{kind: frameAnswer, id: 7}), appendFrame(nil, frame{kind: frameAnswer, id: 1})...), nil},
		"half of one": {appendFrame(nil, frame{kind: frameAnswer, id: 1, payload: []byte("x")})[:14], ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := callsTo(t, func(conn net.Conn) {
					newFrameReader(conn, time.Now).next()
					conn.Write(c.answer)
					io.Copy(io.Discard, conn)
				})
				if _, err := p.Call(t.Context(), Target{"n2", "x"}, MethodPropose, nil); !errors.Is(err, c.want) {
					t.Errorf("call: got %v, want %v", err, c.want)
				}
			})
		})
	}
}

// More than a connection may have running is refused, not executed.
func TestTooMuchInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := virtual(t, func(p *Port) {
			p.maxBytes = 250
			p.Handle(MethodReceive, func(ctx context.Context, _ string, _ []byte) []byte { <-ctx.Done(); return nil })
		})
		ctx, cancel := context.WithCancel(t.Context())
		call := func() error {
			_, err := p.Call(ctx, Target{"n2", "x"}, MethodReceive, make([]byte, 100))
			return err
		}
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if err := call(); !errors.Is(err, ErrBroken) {
					t.Errorf("call: got %v, want ErrBroken", err)
				}
			})
		}
		synctest.Wait()
		if err := call(); !errors.Is(err, ErrNotSent) {
			t.Errorf("call beyond the limit: got %v, want ErrNotSent", err)
		}
		cancel()
		calls.Wait()
	})
}

// callsTo is a port named n1 whose first connection is answered by n2, and then served
// as told.
func callsTo(t *testing.T, serve func(net.Conn)) *Port {
	t.Helper()
	network := newPipes()
	p := New(network, Config{Name: "n1", ClusterID: func() string { return "c" }, Dial: network.dial})
	t.Cleanup(func() { p.Close() })
	go func() {
		conn, _ := network.Accept()
		readHello(conn)
		conn.Write(helloAnswer{accepted, "c", "n2"}.encode())
		serve(conn)
	}()
	return p
}

// A peer that does not read fills the outbox; then callers wait, each as long as
// it likes, and what was not written is known not to be.
func TestPeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := callsTo(t, func(net.Conn) {})
		results := make(chan error, 4)
		call := func(within time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := p.Call(ctx, Target{"n2", "x"}, MethodPropose, make([]byte, 12<<20))
			results <- err
		}
		expect := func(wants ...error) {
			t.Helper()
			err := <-results
			for _, want := range wants {
				if !errors.Is(err, want) {
					t.Errorf("call: got %v, want %v", err, want)
				}
			}
		}
		go call(time.Hour) // is being written
		synctest.Wait()
		go call(time.Hour) // waits
		go call(time.Hour) // waits, beyond the limit
		synctest.Wait()
		go call(time.Second / 2) // finds no room
		expect(ErrNotSent, context.DeadlineExceeded)
		go call(time.Hour) // finds no room
		var broken int
		for range 4 {
			err := <-results
			if errors.Is(err, ErrBroken) {
				broken++
			} else if !errors.Is(err, ErrNotSent) {
				t.Errorf("call: got %v, want ErrNotSent", err)
			}
		}
		if broken != 1 {
			t.Errorf("calls that may have been executed: got %d, want 1", broken)
		}
	})
}

// A peer that reads slowly keeps nobody waiting for room for longer than it takes to
// know that there is none, whatever a caller's patience.
func TestPeerReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := callsTo(t, func(conn net.Conn) {
			for b := make([]byte, writePiece); t.Context().Err() == nil; {
				_, _ = io.ReadFull(conn, b)
				select {
				case <-time.After(time.Second):
				case <-t.Context().Done():
				}
			}
		})
		start := func() error {
			_, err := p.Start(t.Context(), Target{"n2", "x"}, MethodPropose, make([]byte, 12<<20))
			synctest.Wait()
			return err
		}
		for range 3 { // one is being written, two wait, beyond the limit
			if err := start(); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := start(); !errors.Is(err, ErrNotSent) || time.Since(began) != roomTimeout {
			t.Errorf("got %v after %v, want ErrNotSent after %v", err, time.Since(began), roomTimeout)
		}
	})
}

// A request whose caller left while it waited is not executed when it arrives.
func TestRecalledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []frameType
		p := callsTo(t, func(conn net.Conn) {
			time.Sleep(2 * time.Second) // it reads nothing for so long
			for r := newFrameReader(conn, time.Now); ; {
				f, err := r.next()
				if err != nil {
					return
				}
				seen = append(seen, f.kind)
			}
		})
		call := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := p.Call(ctx, Target{"n2", "x"}, MethodPropose, []byte("request"))
			return err
		}
		go call(time.Hour) // is being written
		synctest.Wait()
		if err := call(time.Second); !errors.Is(err, ErrNotSent) {
			t.Errorf("call that waits: got %v, want ErrNotSent", err)
		}
		go call(time.Hour)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if want := []frameType{frameRequest, frameVoid, frameRequest}; !slices.Equal(seen, want) {
			t.Errorf("frames: got %v, want %v", seen, want)
		}
	})
}

// What is refused is logged, but not more than once a minute.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		network := newPipes()
		p := New(network, Config{
			Name: "n2", ClusterID: func() string { return "c" }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		go p.Serve()
		t.Cleanup(func() { p.Close() })
		for range 150 {
			conn, _ := network.dial(t.Context(), "")
			conn.Write(hello{kind: kindRaft, cluster: "d", from: "n1", to: "n2"}.encode())
			if a, err := readAnswer(conn); err != nil || a.verdict != refusedCluster {
				t.Fatalf("hello: got %v, %v, want refusedCluster", a.verdict, err)
			}
			conn.Close()
			time.Sleep(time.Second)
		}
		if got := strings.Count(log.String(), "\n"); got != 3 || !strings.Contains(log.String(), "refused_since_last=59") {
			t.Errorf("log: got %s, want a line each minute and the number of the others", log.String())
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{kind: kindRaft, group: 3, cluster: "c", from: "n1", to: "n2"}.encode())
	f.Add(helloAnswer{refusedName, "c", "n1"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if h, err := readHello(r); err == nil && !bytes.Equal(h.encode(), b[:len(b)-r.Len()]) {
			t.Errorf("hello: got %+v, which is encoded otherwise", h)
		}
		r = bytes.NewReader(b)
		if a, err := readAnswer(r); err == nil && !bytes.Equal(a.encode(), b[:len(b)-r.Len()]) {
			t.Errorf("answer: got %+v, which is encoded otherwise", a)
		}
	})
}

// bytesConn is a connection from which bytes can be read, in pieces.
type bytesConn struct {
	net.Conn
	b     []byte
	piece int
}

func (c *bytesConn) SetReadDeadline(time.Time) error { return nil }
func (c *bytesConn) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), c.piece)], c.b)
	c.b = c.b[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func FuzzFrames(f *testing.F) {
	two := appendFrame(nil, frame{kind: frameRequest, method: 3, id: 1, payload: []byte("payload")})
	two = appendFrame(two, frame{kind: frameCancel, id: 1})
	f.Add(two, 3)
	f.Add(two[:20], 100)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		r := newFrameReader(&bytesConn{b: b, piece: 1 + piece&0xff}, time.Now)
		var again []byte
		for {
			read, err := r.next()
			if err != nil {
				break
			}
			again = appendFrame(again, read)
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("frames: got %x, want a prefix of %x", again, b)
		}
	})
}
