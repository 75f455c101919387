package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast.internal/cluster"
	"holdfast.internal/cluster/peer"
	"holdfast.internal/httpapi"
	"holdfast.internal/httpapi/admin"
)

const (
	// A stop takes at most stopTimeout, of which answers under way get
	// answerTimeout.
	stopTimeout   = 4 * time.Second
	answerTimeout = 2 * time.Second

	// noticeTime is how long a member that stops goes on answering, each time with
	// Connection: close, so that load balancers notice that it is not ready. Closed
	// at once, an idle connection may just have been chosen for a request. It is time
	// in which the process runs: it passes in so many steps, of which a pause takes one.
	noticeTime  = time.Second
	noticeSteps = 10

	// adminHeaderTimeout bounds how long a client of the admin port may take
	// over its headers.
	adminHeaderTimeout = 10 * time.Second

	// lastWordTimeout is how long the log may take over the last line of a
	// node that ends itself.
	lastWordTimeout = time.Second
)

// broker is a node with its two ports.
type broker struct {
	log   *slog.Logger
	exit  func(code int) // does not return
	https bool

	apiPort   net.Listener
	adminPort net.Listener
	peerPort  net.Listener // nil if the node is alone
	node      *cluster.Node
	api       *httpapi.Server
	admin     *http.Server
	peers     *peer.Credentials         // nil: in the clear, or alone
	ended     chan error                // from a port that stopped serving by itself
	failed    atomic.Pointer[exitError] // why failStop ends the process
	hangup    chan os.Signal            // SIGHUP
}

// startBroker looks at the certificate and opens the ports first: what is wrong
// with them is noticed before the data folder is touched, and early clients wait
// instead of being refused.
func startBroker(ctx context.Context, f *serveFlags, logger *slog.Logger) (*broker, error) {
	if f.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey); err != nil {
			return nil, fmt.Errorf("load certificate %s: %w", f.TLSCert, err)
		}
	}
	b := &broker{
		log: logger, exit: os.Exit, https: f.TLSCert != "", ended: make(chan error, 2), hangup: make(chan os.Signal, 1),
	}
	signal.Notify(b.hangup, syscall.SIGHUP) // one that comes while the node starts must not end the process
	err := b.listen(f)
	if err == nil {
		err = b.start(ctx, f)
	}
	if err != nil {
		signal.Stop(b.hangup)
		return nil, errors.Join(err, closePorts(b.apiPort, b.adminPort, b.peerPort))
	}
	go func() { b.ended <- b.api.Serve(b.apiPort) }()
	go func() { b.ended <- b.admin.Serve(b.adminPort) }()
	return b, nil
}

func (b *broker) listen(f *serveFlags) (err error) {
	if b.apiPort, err = net.Listen("tcp", f.Listen); err != nil {
		return fmt.Errorf("open API port: %w", err)
	}
	b.apiPort = &patientListener{Listener: b.apiPort, log: b.log}
	if b.adminPort, err = net.Listen("tcp", f.Admin); err != nil {
		return fmt.Errorf("open admin port: %w", err)
	}
	members, err := f.members()
	if err != nil || len(members) == 0 {
		return err
	}
	peerPort, err := peer.ListenTCP(f.peerAddress(members))
	if err != nil {
		return err
	}
	b.peerPort = &patientListener{Listener: peerPort, log: b.log}
	return nil
}

func closePorts(ports ...net.Listener) error {
	var errs []error
	for _, port := range ports {
		if port == nil {
			continue
		}
		if err := port.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// start starts the node and what serves on the ports.
func (b *broker) start(ctx context.Context, f *serveFlags) error {
	config, err := f.clusterConfig(b)
	if err != nil {
		return err
	}
	b.peers = config.PeerCredentials
	config.Seed.SNSURL = b.apiURL()
	if b.node, err = cluster.Start(ctx, config); err != nil {
		return &exitError{cluster.ExitCode(err), fmt.Errorf("start node: %w", err)}
	}
	metrics := admin.NewMetrics()
	if b.api, err = httpapi.New(b.node, f.apiConfig(b.log, metrics)); err != nil {
		return errors.Join(err, b.node.Close())
	}
	b.admin = &http.Server{
		Handler: admin.New(admin.Config{
			Node: b.node, Metrics: metrics, Certificates: b.shownCertificates, Logger: b.log, MetricsQueues: f.MetricsQueues,
		}),
		ReadHeaderTimeout: adminHeaderTimeout,
		ErrorLog:          slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
	}
	return nil
}

func (b *broker) apiURL() string {
	if b.https {
		return portURL("https", b.apiPort.Addr())
	}
	return portURL("http", b.apiPort.Addr())
}

func (b *broker) adminURL() string { return portURL("http", b.adminPort.Addr()) }

// wait returns when ctx is done and the broker has stopped, or when a port
// fails. On SIGHUP it rereads the certificates; without any it stops, since then a
// terminal was closed.
func (b *broker) wait(ctx context.Context) error {
	defer signal.Stop(b.hangup)
	expiry := time.NewTicker(expiryEvery)
	defer expiry.Stop()
	tellExpiry(b.certificates(), time.Now(), b.log)
	for {
		select {
		case <-ctx.Done():
			return b.end(nil)
		case err := <-b.ended:
			return b.end(fmt.Errorf("serve: %w", err))
		case <-b.hangup:
			if !b.https && b.peers == nil {
				return b.end(nil)
			}
			b.reread()
		case now := <-expiry.C:
			tellExpiry(b.certificates(), now, b.log)
		}
	}
}

// end stops the broker, and returns why it has ended. A node that ends itself has the
// last word on that, and time to say it.
func (b *broker) end(reason error) error {
	if b.failed.Load() == nil {
		b.stop()
	}
	if failed := b.failed.Load(); failed != nil {
		time.Sleep(2 * lastWordTimeout) // failStop is faster
		return failed
	}
	return reason
}

// stop answers what was begun and closes the node, or gives up on either when
// its time is over: all that was acknowledged is on disk already.
func (b *broker) stop() {
	b.log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	b.api.Drain()
	b.node.Drain()
	if b.peerPort != nil {
		for range noticeSteps {
			time.Sleep(noticeTime / noticeSteps)
		}
	}

	answers, cancelAnswers := context.WithTimeout(ctx, answerTimeout)
	defer cancelAnswers()
	if err := errors.Join(b.api.Shutdown(answers), b.admin.Shutdown(answers)); err != nil {
		b.log.Warn("connections broken before their answers", "err", err)
	}
	b.breakConnections()

	closed := make(chan error, 1)
	go func() { closed <- b.node.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			b.log.Error("node not closed cleanly", "err", err)
			return
		}
		b.log.Info("stopped")
	case <-ctx.Done():
		b.log.Warn("node still closing: left behind")
	}
}

// breakConnections ends API and admin port and every connection to them, at once.
// The peer port is the node's: it hands over the leadership through it.
func (b *broker) breakConnections() {
	_ = closePorts(b.apiPort, b.adminPort)
	if b.api != nil {
		b.api.Abort()
	}
	if b.admin != nil {
		_ = b.admin.Close()
	}
}

// failStop ends the process. Clients see their connections break first: the
// kernel would keep them open for as long as a thread hangs in fsync. It is
// called by whoever finds the reason, on any goroutine, and does not return.
func (b *broker) failStop(code int, reason error) {
	b.failed.Store(&exitError{code, reason}) // before the ports end, which wait sees
	b.breakConnections()
	time.AfterFunc(lastWordTimeout, func() { b.exit(code) }) // whoever reads the log may hang as well
	b.log.Error("node ends itself", "exit_code", code, "err", reason)
	b.exit(code)
}

func (f *serveFlags) clusterConfig(b *broker) (c cluster.Config, err error) {
	c = cluster.Config{
		DataDir:         f.Data,
		NodeName:        f.Node,
		PeerListener:    b.peerPort,
		RequestTimeout:  f.RequestTimeout,
		Logger:          b.log,
		Fatal:           b.failStop,
		Memory:          int64(f.Memory),
		DiskReserve:     int64(f.DiskReserve),
		SnapshotEntries: f.TestSnapshotEntries,
		Version:         buildVersion(),
	}
	if c.Seed, err = f.seed(); err != nil {
		return c, err
	}
	if c.Members, err = f.members(); err != nil {
		return c, err
	}
	c.PeerCredentials, err = f.peerCredentials(b.log)
	return c, err
}

func (f *serveFlags) apiConfig(logger *slog.Logger, metrics *admin.Metrics) httpapi.Config {
	return httpapi.Config{
		Logger:         logger,
		TrustedProxies: f.TrustedProxy,
		NodeName:       f.Node,
		CertFile:       f.TLSCert,
		KeyFile:        f.TLSKey,
		MaxConnections: maxConnections(),
		Observe:        metrics.ObserveRequest,
	}
}
