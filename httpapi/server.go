package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// Broker carries out commands. *cluster.Node is one.
type Broker interface {
	// Do carries out a command; bodies are kept, one for each message that it
	// sends. The error is one of cluster's sentinels, or a fault.
	Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error)
	// Receive waits for messages as long as wait says (negative: as long as the
	// queue says) and alive reports true.
	Receive(ctx context.Context, c sqs.ReceiveMessage, wait time.Duration, alive func() bool) (cluster.Delivery, error)
	// AwaitFormed waits until Settings and ParseHandle know the cluster. The error
	// is that of Do.
	AwaitFormed(ctx context.Context) error
	ParseHandle(text string) (sqs.Receipt, bool)
	Settings() raftfsm.Settings
	Now() sqs.Time
	// Ready reports whether the node can serve, and if not, why.
	Ready() (bool, []string)
}

// Config configures a Server. Zero values are replaced by defaults in New.
type Config struct {
	// Logger gets faults as errors and requests as debug records. Default:
	// discarded.
	Logger *slog.Logger
	// TrustedProxies are the peers whose X-Forwarded-* headers count in the
	// queue URLs that are answered, and in aws:SecureTransport. Default: none.
	TrustedProxies []netip.Prefix
	// NodeName is said in the x-holdfast-node header. Default: no header.
	NodeName string
	// MaxBody is the largest request body on the wire, in bytes. Default 7 MiB:
	// 1 MiB of text can be six times as long when it is escaped.
	MaxBody int
	// MaxBodies bounds the memory of all larger request bodies together, in
	// bytes. A request for which there is no room is throttled. Default
	// 256 MiB.
	MaxBodies int
	// ReadTimeout is how long a request may take to come in, from its first
	// byte to its last. Default 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read a response. Default
	// 60 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may be without a request. Default
	// 120 s.
	IdleTimeout time.Duration
	// MaxConnections is the most connections at a time; what comes beyond is
	// refused with a 503. Default 100,000.
	MaxConnections int
	// CertFile and KeyFile, PEM files, make the API https.
	CertFile, KeyFile string
	// Observe, if it is there, is told of every action that was answered: its
	// name ("" if there is no such action), the HTTP status, and the time from
	// the whole request to the response.
	Observe func(action string, status int, d time.Duration)
	// Now is the clock for Observe and for MaxBodies. Default time.Now.
	Now func() time.Time
	// NewID makes the ids of messages and requests. Default: random ones.
	NewID func() [16]byte
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBody == 0 {
		c.MaxBody = 7 << 20
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = 256 << 20
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 30 * time.Second
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = time.Minute
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 2 * time.Minute
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 100_000
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the one place where the clock comes in
	}
	if c.NewID == nil {
		c.NewID = wire.RandomUUID
	}
	return c
}

// Server is the API port. Its methods may be called concurrently.
type Server struct {
	broker  Broker
	config  Config
	http    *fasthttp.Server
	context context.Context // of all requests; ends when Shutdown gives up waiting
	cancel  context.CancelFunc

	requests    sync.Pool // of *request
	connections connections
	bodies      bodyBudget
	draining    atomic.Bool
	certificate atomic.Pointer[tls.Certificate]
	common      atomic.Pointer[commonHeaders]
}

// New returns a server in front of broker. It fails only if the certificate
// cannot be read.
func New(broker Broker, c Config) (*Server, error) {
	s := &Server{broker: broker, config: c.withDefaults()}
	s.bodies.limit, s.bodies.most, s.bodies.now = s.config.MaxBodies, s.config.ReadTimeout+longestCall, s.config.Now
	if s.config.CertFile != "" {
		if err := s.ReloadCertificate(); err != nil {
			return nil, err
		}
	}
	s.context, s.cancel = context.WithCancel(context.Background())
	s.requests.New = func() any { return &request{server: s} }
	s.http = &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleUnreadable,
		HeaderReceived:               s.admit,
		Concurrency:                  s.config.MaxConnections,
		ReadBufferSize:               8 << 10, // the longest head of a request; a parked poll holds it
		WriteBufferSize:              4 << 10,
		ReadTimeout:                  s.config.ReadTimeout,
		WriteTimeout:                 s.config.WriteTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		MaxRequestBodySize:           s.config.MaxBody,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       serverLog{s.config.Logger},
	}
	return s, nil
}

// Serve answers requests that come in through ln until Shutdown, which makes it
// return nil.
func (s *Server) Serve(ln net.Listener) error {
	counted := &listener{ln, &s.connections}
	if !s.connections.listen(counted) {
		return fmt.Errorf("serve %s: %w", ln.Addr(), net.ErrClosed)
	}
	ln = counted
	if s.config.CertFile != "" {
		ln = tls.NewListener(ln, &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return s.certificate.Load(), nil
			},
		})
	}
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// ReloadCertificate reads the certificate again, for connections to come. On an
// error the old one stays.
func (s *Server) ReloadCertificate() error {
	if s.config.CertFile == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(s.config.CertFile, s.config.KeyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s: %w", s.config.CertFile, err)
	}
	s.certificate.Store(&certificate)
	return nil
}

// Certificate is the one that is shown from now on; nil without TLS.
func (s *Server) Certificate() *x509.Certificate {
	if c := s.certificate.Load(); c != nil {
		return c.Leaf
	}
	return nil
}

// Drain has every response from now on ask its client to connect anew, which
// leads it to another node once the port is out of the load balancer.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops listening, lets the requests that are being carried out end,
// and closes the connections. When ctx ends before that, all that is left is
// broken off, and ctx's error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	defer s.cancel()
	if err := s.http.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		s.Abort()
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}

// Abort closes all listeners and connections at once, so that no answer can go
// out any more. It is what a node does when it can no longer trust its log.
func (s *Server) Abort() {
	s.connections.closeAll()
	s.cancel() // afterwards: who is woken by it has nobody left to answer
}

// handle serves one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer s.bodies.release(&ctx.Request.Header)
	if s.serveHealth(ctx) || s.serveCertificate(ctx) {
		return
	}
	r := s.requests.Get().(*request)
	r.begin(ctx)
	s.run(r)
	r.finish()
	r.release()
	s.requests.Put(r)
}

// run carries out a request. A panic is the request's own failure: the
// connection and all others go on.
func (s *Server) run(r *request) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Logger.Error("request panicked", "action", r.name, "panic", p, "stack", string(debug.Stack()))
			r.fail(errPanicked)
		}
	}()
	if err := r.serve(); err != nil {
		r.fail(err)
	}
}

// commonHeaders are those that every answer of a second has.
type commonHeaders struct {
	second sqs.Time
	header fasthttp.ResponseHeader
}

// setCommonHeaders begins the head of a response. Its Date is cluster time,
// since clients correct their clocks by it when they sign.
func (s *Server) setCommonHeaders(h *fasthttp.ResponseHeader) {
	second := s.broker.Now() / 1000
	common := s.common.Load()
	if common == nil || common.second != second {
		common = s.newCommonHeaders(second, h)
		s.common.Store(common)
	}
	common.header.CopyTo(h)
	if s.draining.Load() {
		h.SetConnectionClose()
	}
}

// newCommonHeaders makes the headers of a second, with the options of h. The
// library sets a Date of its own and refuses any other, but for one in a head
// that it has read.
func (s *Server) newCommonHeaders(second sqs.Time, h *fasthttp.ResponseHeader) *commonHeaders {
	c := &commonHeaders{second: second}
	h.CopyTo(&c.header)
	c.header.DisableNormalizing()
	text := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: " + time.Unix(int64(second), 0).UTC().Format(http.TimeFormat) + "\r\n\r\n"
	if err := c.header.Read(bufio.NewReader(strings.NewReader(text))); err != nil {
		panic("httpapi: read common headers: " + err.Error())
	}
	c.header.SetProtocol(nil) // or every status line would say "OK"
	c.header.SetStatusMessage(nil)
	if s.config.NodeName != "" {
		c.header.Set("x-holdfast-node", s.config.NodeName)
	}
	return c
}

// serverLog passes on what the HTTP server has to say: connections that broke.
type serverLog struct{ logger *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	l.logger.Debug("connection failed", "err", fmt.Sprintf(format, args...))
}
