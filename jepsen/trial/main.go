// Command trial runs three nodes of Holdfast on this machine, with a load
// balancer in front that follows their readiness (make cluster). It is for trying
// out what happens when nodes die; it ends all of them when it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast.internal/jepsen/balance"
)

// stopTimeout is how long a node may take to end.
const stopTimeout = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary := flag.String("binary", "bin/holdfast", "the `program` to run")
	data := flag.String("data", "holdfast-cluster", "`folder` of data and logs")
	listen := flag.String("listen", "127.0.0.1:4566", "where the balancer listens, `HOST:PORT`")
	admin := flag.String("admin", "127.0.0.1:4567", "where the balancer of the admin ports listens, `HOST:PORT`")
	base := flag.Int("base", 4570, "the nodes use the three `ports` after this one, and those 10 and 20 further on")
	insecure := flag.Bool("insecure", false, "listen on other addresses than loopback although nobody has to sign in")
	flag.Parse()
	t := trial{binary: *binary, data: *data, listen: *listen, adminListen: *admin, base: *base, insecure: *insecure}
	if err := t.check(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(2)
	}
	if err := t.run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(1)
	}
}

type trial struct {
	binary, data        string
	listen, adminListen string
	base                int
	insecure            bool
}

// check refuses ports that cannot be, and to serve a network unless that is wanted.
func (t *trial) check() error {
	if last := t.base + 20 + nodes; t.base < 0 || last > 65535 {
		return fmt.Errorf("-base %d: want 0 to %d", t.base, 65535-20-nodes)
	}
	for _, port := range []struct{ flag, address string }{{"-listen", t.listen}, {"-admin", t.adminListen}} {
		host, _, err := net.SplitHostPort(port.address)
		if err != nil {
			return fmt.Errorf("%s %q: want HOST:PORT", port.flag, port.address)
		}
		if ip := net.ParseIP(host); !t.insecure && host != "localhost" && !ip.IsLoopback() {
			return fmt.Errorf("%s %s is open to the network and nobody has to sign in: choose a loopback address, or say -insecure",
				port.flag, port.address)
		}
	}
	return nil
}

const nodes = 3

func (t *trial) api(i int) string   { return fmt.Sprintf("127.0.0.1:%d", t.base+i) }
func (t *trial) admin(i int) string { return fmt.Sprintf("127.0.0.1:%d", t.base+10+i) }
func (t *trial) peer(i int) string  { return fmt.Sprintf("127.0.0.1:%d", t.base+20+i) }

// run runs everything until ctx is done.
func (t *trial) run(ctx context.Context) error {
	if err := os.MkdirAll(t.data, 0o700); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", t.listen)
	if err != nil {
		return fmt.Errorf("open the balancer's port: %w", err)
	}
	adminListener, err := net.Listen("tcp", t.adminListen)
	if err != nil {
		return fmt.Errorf("open the balancer's admin port: %w", err)
	}
	balancer, admins, err := t.balancers()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i := 1; i <= nodes; i++ {
		running.Go(func() {
			if err := t.runNode(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() { balancer.Watch(ctx, t.announce) })
	defer serve(ln, balancer)()
	defer serve(adminListener, admins)()
	t.explain()
	<-ctx.Done()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// balancers are those of the API ports and of the admin ports.
func (t *trial) balancers() (api, admin *balance.Balancer, err error) {
	var apis, admins []string
	for i := 1; i <= nodes; i++ {
		apis, admins = append(apis, "http://"+t.api(i)), append(admins, "http://"+t.admin(i))
	}
	if api, err = balance.New(apis, balance.NewTransport()); err != nil {
		return nil, nil, err
	}
	admin, err = api.Beside(admins)
	return api, admin, err
}

// serve serves what comes to ln until the function that it returns is called.
func serve(ln net.Listener, handler http.Handler) (end func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }()
	return func() { _ = server.Close() }
}

// arguments is the command line of node i.
func (t *trial) arguments(i int) []string {
	var members []string
	for j := 1; j <= nodes; j++ {
		members = append(members, fmt.Sprintf("n%d=%s", j, t.peer(j)))
	}
	return []string{
		"serve", "--node", fmt.Sprintf("n%d", i), "--data", t.folder(i), "--listen", t.api(i), "--admin", t.admin(i),
		"--cluster", strings.Join(members, ","), "--insecure-peers", "--public-url", "http://" + t.listen,
	}
}

func (t *trial) folder(i int) string { return filepath.Join(t.data, fmt.Sprintf("n%d", i)) }

// runNode runs node i until it ends or ctx is done. Its end by itself ends nothing
// else: nodes are here to be killed.
func (t *trial) runNode(ctx context.Context, i int) error {
	output, err := os.OpenFile(t.folder(i)+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	began, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, t.binary, t.arguments(i)...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start n%d: %w", i, err)
	}
	say("n%d     process %d", i, cmd.Process.Pid)
	_ = cmd.Wait() // how it ended is in ProcessState
	if ctx.Err() == nil {
		say("n%d ended (%s)%s; to have it back, in another terminal:\n  %s %s",
			i, cmd.ProcessState, t.reason(i, cmd.ProcessState, began), t.binary, strings.Join(t.arguments(i), " "))
	}
	return nil
}

// reason is the last line that node i has logged, behind what was logged before it
// began, if it has ended itself; nothing of one that was killed.
func (t *trial) reason(i int, end *os.ProcessState, began int64) string {
	log, err := os.ReadFile(t.folder(i) + ".log")
	if err != nil || end.ExitCode() <= 0 || int64(len(log)) < began {
		return ""
	}
	said := strings.TrimSpace(string(log[began:]))
	if said == "" {
		return ""
	}
	return ": " + said[strings.LastIndexByte(said, '\n')+1:]
}

func (t *trial) announce(endpoint string, ready bool) {
	for i := 1; i <= nodes; i++ {
		if endpoint == "http://"+t.api(i) {
			say("n%d is %s", i, map[bool]string{true: "ready", false: "not ready"}[ready])
		}
	}
}

func (t *trial) explain() {
	var admins []string
	for i := 1; i <= nodes; i++ {
		admins = append(admins, "http://"+t.admin(i))
	}
	say(`data    %s, logs of the nodes beside them
api     http://%s, any node in turn
admin   http://%s, likewise, for %s queue, topic, settings
nodes   http://%s, http://%s, http://%s
status  %s status --admin %s
try     kill -9 a node. Ctrl-C ends all.`,
		t.data, t.listen, t.adminListen, t.binary, t.api(1), t.api(2), t.api(3), t.binary, strings.Join(admins, ","))
}

func say(format string, a ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", a...) }
