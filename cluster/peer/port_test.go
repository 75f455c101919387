package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// noMethod has no handler.
const noMethod byte = 255

// patience is how long a test waits for a connection that must come, on a machine
// that may stand still for seconds.
const patience = time.Minute

// start serves a port on loopback until the test ends. With is called before
// Serve.
func start(t testing.TB, c Config, with func(*Port)) *Port {
	t.Helper()
	if c.ClusterID == nil {
		c.ClusterID = func() string { return "c" }
	}
	ln, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := New(ln, c)
	p.dialTimeout = patience
	if with != nil {
		with(p)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), <-served); err != nil {
			t.Errorf("close: got %v, want nil", err)
		}
	})
	return p
}

// echo answers with the sender's name and the request.
func echo(_ context.Context, from string, request []byte) []byte {
	return append([]byte(from+":"), request...)
}

func TestCall(t *testing.T) {
	n2 := start(t, Config{Name: "n2"}, func(p *Port) { p.Handle(MethodPropose, echo); p.Handle(MethodPing, echo) })
	n1 := start(t, Config{Name: "n1"}, nil)
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			request := bytes.Repeat([]byte{byte(i)}, i*i)
			method := MethodPropose
			if i%2 == 0 {
				method = MethodPing
			}
			answer, err := n1.Call(t.Context(), n2.Self(), method, request)
			if want := append([]byte("n1:"), request...); err != nil || !bytes.Equal(answer, want) {
				t.Errorf("call %d: got %d bytes, %v, want %d, nil", i, len(answer), err, len(want))
			}
		})
	}
	calls.Wait()
}

func TestCallLargest(t *testing.T) {
	n2 := start(t, Config{Name: "n2"}, func(p *Port) {
		p.Handle(MethodBody, func(_ context.Context, _ string, request []byte) []byte { return request })
		p.Handle(MethodPropose, func(context.Context, string, []byte) []byte { return make([]byte, MaxFrame+1) })
	})
	n1 := start(t, Config{Name: "n1"}, nil)
	largest := bytes.Repeat([]byte("0123456789abcdef"), MaxFrame/16)
	if answer, err := n1.Call(t.Context(), n2.Self(), MethodBody, largest); err != nil || !bytes.Equal(answer, largest) {
		t.Errorf("largest frame: got %d bytes, %v, want it back", len(answer), err)
	}
	if _, err := n1.Call(t.Context(), n2.Self(), MethodBody, append(largest, 0)); !errors.Is(err, ErrNotSent) {
		t.Errorf("too large a request: got %v, want ErrNotSent", err)
	}
	if _, err := n1.Call(t.Context(), n2.Self(), MethodPropose, nil); !errors.Is(err, ErrBroken) {
		t.Errorf("too large an answer: got %v, want ErrBroken", err)
	}
	if _, err := n1.Call(t.Context(), n2.Self(), noMethod, nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("method without handler: got %v, want ErrNotSent", err)
	}
}

// A caller who leaves ends the context of its handler, and of no other.
func TestCancel(t *testing.T) {
	began, ended := make(chan string, 2), make(chan string, 2)
	n2 := start(t, Config{Name: "n2"}, func(p *Port) {
		p.Handle(MethodReceive, func(ctx context.Context, _ string, request []byte) []byte {
			began <- string(request)
			<-ctx.Done()
			ended <- string(request)
			return nil
		})
		p.Handle(MethodPropose, echo)
	})
	n1 := start(t, Config{Name: "n1"}, nil)
	result := make(chan error, 2)
	call := func(ctx context.Context, name string) {
		_, err := n1.Call(ctx, n2.Self(), MethodReceive, []byte(name))
		result <- err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go call(ctx, "leaves")
	go call(t.Context(), "stays")
	<-began
	<-began
	cancel()
	if err := <-result; !errors.Is(err, ErrBroken) || !errors.Is(err, context.Canceled) {
		t.Errorf("call whose caller left: got %v, want ErrBroken and context.Canceled", err)
	}
	if got := <-ended; got != "leaves" {
		t.Errorf("handler that ended: got %q, want leaves", got)
	}
	if _, err := n1.Call(t.Context(), n2.Self(), MethodPropose, nil); err != nil {
		t.Errorf("call after a cancelled one: got %v, want nil", err)
	}
	select {
	case got := <-ended:
		t.Errorf("handler that ended: got %q, want none", got)
	default:
	}
	n2.closeConnections()
	if err := <-result; !errors.Is(err, ErrBroken) {
		t.Errorf("call whose connection broke: got %v, want ErrBroken", err)
	}
	if got := <-ended; got != "stays" {
		t.Errorf("handler that ended: got %q, want stays", got)
	}
	if _, err := n1.Call(t.Context(), n2.Self(), MethodPropose, nil); err != nil {
		t.Errorf("call after a break: got %v, want nil", err)
	}
}

func TestNobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := Target{"n2", ln.Addr().String()}
	ln.Close()
	n1 := start(t, Config{Name: "n1"}, nil)
	if _, err := n1.Call(t.Context(), gone, MethodPing, nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("call: got %v, want ErrNotSent", err)
	}
}

func TestHelloChecks(t *testing.T) {
	cluster := func(id string) func() string { return func() string { return id } }
	for _, c := range []struct {
		name         string
		ours, theirs string
		method       byte
		reach        string
		ok           bool
	}{
		{"one cluster", "c", "c", MethodPing, "n2", true},
		{"another cluster", "c", "d", MethodPing, "n2", false},
		{"not yet formed", "", "", MethodPing, "n2", false},
		{"we are not yet formed", "", "c", MethodPing, "n2", false},
		{"another node", "c", "c", MethodPing, "n3", false},
		{"formation of two blank nodes", "", "", MethodFormation, "n2", true},
		{"formation, they are formed", "", "c", MethodFormation, "n2", true},
		{"formation, we are formed", "c", "", MethodFormation, "n2", true},
		{"formation with another cluster", "c", "d", MethodFormation, "n2", false},
		{"formation with another node", "", "", MethodFormation, "n3", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n2 := start(t, Config{Name: "n2", ClusterID: cluster(c.theirs)}, func(p *Port) {
				p.Handle(MethodPing, echo)
				p.Handle(MethodFormation, echo)
			})
			n1 := start(t, Config{Name: "n1", ClusterID: cluster(c.ours)}, nil)
			_, err := n1.Call(t.Context(), Target{c.reach, n2.Addr().String()}, c.method, nil)
			if c.ok && err != nil {
				t.Errorf("call: got %v, want nil", err)
			}
			if !c.ok && (!errors.Is(err, ErrRefused) || !errors.Is(err, ErrNotSent)) {
				t.Errorf("call: got %v, want ErrRefused and ErrNotSent", err)
			}
		})
	}
}

func TestRaftLayer(t *testing.T) {
	n2 := start(t, Config{Name: "n2"}, nil)
	n1 := start(t, Config{Name: "n1"}, nil)
	here, there := n1.Raft(0), n2.Raft(0)
	if got, want := there.Addr().String(), fmt.Sprintf("n2=%s", n2.Addr()); got != want {
		t.Errorf("address: got %q, want %q", got, want)
	}
	conn, err := here.Dial(raft.ServerAddress(there.Addr().String()), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	accepted, err := there.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(conn, "hello")
		conn.Close()
	}()
	if got, err := io.ReadAll(accepted); err != nil || string(got) != "hello" {
		t.Errorf("read: got %q, %v, want hello", got, err)
	}
	accepted.Close()
	there.Close()
	if _, err := there.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept on a closed layer: got %v, want net.ErrClosed", err)
	}
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
