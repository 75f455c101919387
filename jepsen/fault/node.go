package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNotReady says that a node ran but did not become ready in time.
var ErrNotReady = errors.New("node not ready in time")

// ErrEnded says that a node ended by itself before it was ready.
var ErrEnded = errors.New("node ended before it was ready")

// ErrUnavailable says that a fault cannot be injected on this machine, and why.
var ErrUnavailable = errors.New("fault not available on this machine")

// readyPoll is how often a starting node is asked whether it is ready.
const readyPoll = 5 * time.Millisecond

// Options say which node to run.
type Options struct {
	Binary       string        // path of the holdfast binary
	DataDir      string        // --data
	Flags        []string      // more flags of `holdfast serve`
	Env          []string      // more environment, KEY=VALUE
	Output       io.Writer     // gets a copy of all that the process writes; nil for none
	ReadyTimeout time.Duration // how long a start may take; default 2 min
	Host         *Host         // where the process runs; nil: on this machine
	Client       *Host         // from where it is asked whether it is ready; nil: from this machine
}

// Node is one broker, whose process may come and go. Its methods may be called
// by several goroutines, but those that start and end the process by one at a
// time.
type Node struct {
	options Options
	output  tail
	http    *http.Client

	mu       sync.Mutex
	endpoint string // kept over restarts
	admin    string
	process  *process // the newest one; nil before the first
}

// process is one run of the binary.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
}

// NewNode returns a node whose process has yet to be started, by Launch or
// Restart.
func NewNode(o Options) *Node {
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = 2 * time.Minute
	}
	n := &Node{options: o, http: http.DefaultClient}
	if o.Client != nil {
		n.http = &http.Client{Transport: &http.Transport{DialContext: o.Client.Dial}}
	}
	return n
}

// Start runs a new node on ports that the kernel chooses and waits until it is
// ready. If it is not, the process is gone when Start returns. The process ends
// with the one that started it.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := NewNode(o)
	if err := n.Restart(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// Restart starts the process again, on the same data and ports, and waits until
// it is ready. If it is not, the process is gone when Restart returns; the error
// wraps ErrEnded or ErrNotReady and has the end of the output in its text.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.Launch(ctx); err != nil {
		return err
	}
	return n.AwaitReady(ctx)
}

// Launch starts the process again without waiting until it is ready, only until
// it listens. The process must not be running.
func (n *Node) Launch(ctx context.Context) error {
	if n.Running() {
		return fmt.Errorf("launch node in %s: it runs", n.options.DataDir)
	}
	ctx, cancel := context.WithTimeout(ctx, n.options.ReadyTimeout)
	defer cancel()
	p, announced, err := n.spawn()
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process = p
	n.mu.Unlock()
	select {
	case a, ok := <-announced:
		if ok {
			n.mu.Lock()
			n.endpoint, n.admin = a.API, a.Admin
			n.mu.Unlock()
			return nil
		}
		<-p.ended
		return n.startError(ErrEnded)
	case <-ctx.Done():
		return errors.Join(n.startError(ErrNotReady), n.Kill())
	}
}

// announcement is what `holdfast serve --json` writes when it listens.
type announcement struct {
	API   string `json:"api"`
	Admin string `json:"admin"`
}

// spawn starts the process. The channel yields its announcement and is closed.
func (n *Node) spawn() (*process, <-chan announcement, error) {
	cmd := exec.Command(n.options.Binary, n.arguments()...)
	cmd.Env = append(os.Environ(), n.options.Env...)
	cmd.SysProcAttr = processAttributes()
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("open pipe to node: %w", err)
	}
	cmd.Stdout = stdoutWriter
	cmd.Stderr = n.sink()
	if n.options.Host == nil {
		err = cmd.Start()
	} else {
		err = n.options.Host.inside(cmd.Start)
	}
	closeErr := stdoutWriter.Close()
	if err = errors.Join(err, closeErr); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start node: %w", err), stdout.Close())
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	announced := make(chan announcement, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		n.readStdout(stdout, announced)
	}()
	go func() {
		_ = cmd.Wait() // the exit code is in ProcessState
		<-read
		close(p.ended)
	}()
	return p, announced, nil
}

// readStdout reads until the process ends: a pipe that nobody reads would stop it.
func (n *Node) readStdout(stdout io.ReadCloser, announced chan<- announcement) {
	defer func() { _ = stdout.Close() }()
	copied := io.TeeReader(stdout, n.sink())
	var a announcement
	if err := json.NewDecoder(copied).Decode(&a); err == nil {
		announced <- a
	}
	close(announced)
	_, _ = io.Copy(io.Discard, copied)
}

func (n *Node) arguments() []string {
	listen := "127.0.0.1:0"
	if n.options.Host != nil {
		listen = n.options.Host.Address() + ":0"
	}
	admin := listen
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.endpoint != "" {
		listen, admin = host(n.endpoint), host(n.admin)
	}
	arguments := []string{"serve", "--json", "--data", n.options.DataDir, "--listen", listen, "--admin", admin}
	return append(arguments, n.options.Flags...)
}

// command runs a program to its end.
func command(ctx context.Context, name string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

func (n *Node) sink() io.Writer {
	if n.options.Output == nil {
		return &n.output
	}
	return io.MultiWriter(&n.output, n.options.Output)
}

func (n *Node) startError(reason error) error {
	return fmt.Errorf("start node in %s: %w; its output ends:\n%s", n.options.DataDir, reason, n.Output())
}

// AwaitReady waits until GET /health/ready says 200. If that takes longer than
// Options.ReadyTimeout or ctx, the process is killed.
func (n *Node) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.options.ReadyTimeout)
	defer cancel()
	p := n.current()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		if n.Ready(ctx) {
			return nil
		}
		select {
		case <-p.ended:
			return n.startError(ErrEnded)
		case <-ctx.Done():
			return errors.Join(n.startError(ErrNotReady), n.Kill())
		case <-ticker.C:
		}
	}
}

// Ready reports whether the node says that it is ready.
func (n *Node) Ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Endpoint()+"/health/ready", nil)
	if err != nil {
		return false
	}
	request.Close = true
	response, err := n.http.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Endpoint returns the URL of the API port, the same after every restart.
func (n *Node) Endpoint() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endpoint
}

// Admin returns the URL of the admin port, the same after every restart.
func (n *Node) Admin() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.admin
}

// DataDir returns the data folder.
func (n *Node) DataDir() string { return n.options.DataDir }

// Output returns the last 64 KiB that the node wrote, all its processes taken
// together.
func (n *Node) Output() string { return n.output.String() }

// PID returns the id of the newest process, 0 before the first.
func (n *Node) PID() int {
	if p := n.current(); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Running reports whether the process is there, paused or not.
func (n *Node) Running() bool {
	p := n.current()
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (n *Node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *Node) signal(s syscall.Signal) error {
	p := n.current()
	if p == nil {
		return fmt.Errorf("send %v to node: %w", s, os.ErrProcessDone)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %v to node: %w", s, err)
	}
	return nil
}

// Kill ends the process with SIGKILL and waits until it is gone. It is no error
// if it was gone already.
func (n *Node) Kill() error {
	if err := n.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if p := n.current(); p != nil {
		<-p.ended
	}
	return nil
}

// Pause stops the process with SIGSTOP, until Resume. When it returns, nothing of
// the process runs any more.
func (n *Node) Pause() error {
	if err := n.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(n.PID())
}

// Resume lets a paused process go on.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

// Terminate asks the process to stop, with SIGTERM, and does not wait.
func (n *Node) Terminate() error { return n.signal(syscall.SIGTERM) }

// Wait waits until the process is gone and returns its exit code; -1 if a signal
// ended it.
func (n *Node) Wait(ctx context.Context) (int, error) {
	p := n.current()
	if p == nil {
		return 0, fmt.Errorf("wait for node: %w", os.ErrProcessDone)
	}
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for node: %w", ctx.Err())
	}
}

// Stop asks the process to stop and returns its exit code. If ctx ends first,
// the process is killed.
func (n *Node) Stop(ctx context.Context) (int, error) {
	if err := n.Terminate(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	code, err := n.Wait(ctx)
	if err != nil {
		return 0, errors.Join(err, n.Kill())
	}
	return code, nil
}
