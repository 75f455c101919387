package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout is for the connection to be made, and how long a call waits for
	// one. A process that stands still accepts connections and answers none of them.
	dialTimeout  = time.Second
	helloTimeout = 5 * time.Second // for TLS and the hello, both ways
	stallTimeout = 5 * time.Second // without a byte within a frame, or of a write
	redialAfter  = 50 * time.Millisecond
)

// keepAlive closes connections to machines that are gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3}

// Methods of requests. Numbers are never used again; 6 is free.
const (
	MethodPing      byte = 1
	MethodFormation byte = 2 // the only one that is answered before both nodes have a cluster
	MethodPropose   byte = 3
	MethodReceive   byte = 4
	MethodBody      byte = 5
	MethodTurn      byte = 7
)

// Config configures a Port.
type Config struct {
	// Name is this node's. With TLS its certificate has it as a DNS name.
	Name string
	// Advertise is the host:port at which the other nodes reach this port.
	// Default: the address of the listener.
	Advertise string
	// ClusterID is the cluster that the node belongs to, "" until it is formed.
	// It is asked for each connection. At most 255 bytes.
	ClusterID func() string
	// Credentials are for both directions. Nil: connections are in the clear, and
	// names and cluster are believed.
	Credentials *Credentials
	// Logger gets what operators want to know. Default: discarded.
	Logger *slog.Logger
	// Now is the clock of deadlines. Default time.Now.
	Now func() time.Time
	// Dial makes a connection, for tests on other networks than TCP. Default:
	// TCP with keep-alive.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Handler answers a request of the node named from. It runs in its own goroutine
// and may take long; answers go back in the order in which handlers return. ctx
// ends when the caller has left or its connection broke; nobody gets the answer
// then. The handler may keep request; the answer is not changed after it was
// returned, and has at most MaxFrame bytes.
type Handler func(ctx context.Context, from string, request []byte) []byte

// Port is a node's peer port: the listener, what was accepted from it, and the
// connections to other nodes. Its methods may be called from any goroutine.
type Port struct {
	config   Config
	listener net.Listener
	log      *slog.Logger
	refusals refusals
	handlers [256]Handler

	ctx  context.Context // ends with the port
	stop context.CancelFunc
	done sync.WaitGroup // goroutines of connections

	maxBytes    int           // maxRunningBytes, but in tests
	dialTimeout time.Duration // dialTimeout, but in tests

	mu        sync.Mutex
	closed    bool
	conns     map[net.Conn]string    // that are open, and the node at the other end ("" if not known)
	strangers []net.Conn             // accepted, hello not yet read; oldest first
	layers    map[byte]*raftLayer    // by group
	links     map[linkName]*linkSlot // to other nodes
}

// unacknowledged is how long the other side's kernel may leave what was sent without
// acknowledgement. Without a limit a connection over a link that was cut tries
// again ever more rarely, and is deaf for as long again after the link has healed.
const unacknowledged = 3 * time.Second

// limitSilence sets unacknowledged on a socket; those that a listener accepts
// inherit it.
func limitSilence(_, _ string, conn syscall.RawConn) error {
	var err error
	controlErr := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
	return errors.Join(controlErr, err)
}

// ListenTCP opens addr, a host:port, for a Port; port 0 takes a free one.
func ListenTCP(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitSilence}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open peer port: %w", err)
	}
	return ln, nil
}

// New makes a port of a listener, which it closes in the end.
func New(ln net.Listener, c Config) *Port {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default of the injected clock; it decides nothing
	}
	if c.Dial == nil {
		d := &net.Dialer{KeepAliveConfig: keepAlive, Control: limitSilence}
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Port{
		config: c, listener: ln, log: c.Logger, refusals: refusals{log: c.Logger, now: c.Now},
		ctx: ctx, stop: stop, maxBytes: maxRunningBytes, dialTimeout: dialTimeout,
		conns:  map[net.Conn]string{},
		layers: map[byte]*raftLayer{},
		links:  map[linkName]*linkSlot{},
	}
}

// Addr is the listener's address.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Self is this node as others reach it.
func (p *Port) Self() Target {
	if p.config.Advertise != "" {
		return Target{p.config.Name, p.config.Advertise}
	}
	return Target{p.config.Name, p.listener.Addr().String()}
}

// Handle sets who answers requests of a method. All are set before Serve.
func (p *Port) Handle(method byte, h Handler) { p.handlers[method] = h }

// Serve accepts connections until Close, and returns nil then.
func (p *Port) Serve() error {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept on peer port: %w", err)
		}
		if p.track(conn) {
			p.queue(conn)
			p.spawn(func() { p.welcome(conn) })
		}
	}
}

// closeConnections breaks every connection at once, in both directions. The port
// goes on listening: who ends the process calls Close as well.
func (p *Port) closeConnections() { p.closeIf(func(string) bool { return true }) }

// CloseConnectionsOf breaks the connections with one node, in both directions.
func (p *Port) CloseConnectionsOf(name string) {
	p.closeIf(func(at string) bool { return at == name })
}

func (p *Port) closeIf(chosen func(name string) bool) {
	p.mu.Lock()
	var conns []net.Conn
	for conn, name := range p.conns {
		if chosen(name) {
			conns = append(conns, conn)
		}
	}
	p.mu.Unlock()
	for _, conn := range conns {
		_ = closeNow(conn)
	}
}

// closeNow closes a connection without the farewell of TLS, which may wait for
// a peer that does not read.
func closeNow(conn net.Conn) error {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn().Close()
	}
	return conn.Close()
}

// Close is Abort, and waits until the port's goroutines have ended, handlers
// excepted: their contexts are done.
func (p *Port) Close() error {
	err := p.Abort()
	p.done.Wait()
	return err
}

// Abort closes the listener and breaks all connections, and waits for nothing. No
// connection is made any more, in either direction.
func (p *Port) Abort() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	layers := p.layers
	p.layers = map[byte]*raftLayer{}
	p.mu.Unlock()
	if again {
		return nil
	}
	p.stop()
	err := p.listener.Close()
	for _, l := range layers {
		l.end()
	}
	p.closeConnections()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// spawn runs f in a goroutine that Close waits for; false if it is too late.
func (p *Port) spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.done.Go(f)
	return true
}

// track notes an open connection. A port that is closed closes it at once.
func (p *Port) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = ""
	return true
}

// replace notes that conn is over inner now, and that the node at its other end
// is name.
func (p *Port) replace(inner, conn net.Conn, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, inner)
	p.conns[conn] = name
}

// drop closes a connection and forgets it.
func (p *Port) drop(conn net.Conn) error {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	return closeNow(conn)
}
