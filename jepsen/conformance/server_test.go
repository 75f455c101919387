package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

var long = flag.Bool("long", os.Getenv("HOLDFAST_LONG") != "", "also play the cases that take a minute")

// setting is a way of starting the broker. Most cases want the defaults.
type setting int

const (
	defaults setting = iota // or HOLDFAST_ENDPOINT
	strict                  // names wait after a delete, few messages may be in flight, a trusted proxy in front
	public                  // queue URLs have a public host
	quick                   // deduplication ids are known for three seconds
)

const publicURL = "https://queues.example.com"

var settingFlags = map[setting][]string{
	defaults: {"--region", "eu-west-1"},
	strict:   {"--delete-wait", "60s", "--inflight-limit", "5", "--trusted-proxy", "127.0.0.0/8"},
	public:   {"--public-url", publicURL},
	quick:    {"--test-mode", "--test-dedup-window", "3s"},
}

// brokers starts each setting once, when the first case asks for it. What went
// wrong then is told to all that ask later.
var brokers = struct {
	sync.Mutex
	scratch string
	build   func() (string, error)
	started map[setting]started
}{started: map[setting]started{}}

type started struct {
	node *fault.Node
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// The slow cases wait; they do not work.
		_ = f.Value.Set("48")
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	brokers.scratch = scratch
	brokers.build = sync.OnceValues(buildBroker)
	code := m.Run()
	for s, b := range brokers.started {
		if b.err != nil {
			continue
		}
		if err := stop(b.node); err != nil {
			fmt.Fprintf(os.Stderr, "broker %v: %v\n", settingFlags[s], err)
			code = 1
		}
		if code != 0 {
			fmt.Fprintf(os.Stderr, "broker %v wrote:\n%s\n", settingFlags[s], b.node.Output())
		}
	}
	return code
}

func stop(b *fault.Node) error {
	if !b.Running() {
		return fmt.Errorf("it ended during the tests")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // how soon it is, TestGracefulStop says
	defer cancel()
	code, err := b.Stop(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	return err
}

// endpoint is the base URL of a broker with the given setting.
func endpoint(t *testing.T, s setting) string {
	t.Helper()
	if url := os.Getenv("HOLDFAST_ENDPOINT"); url != "" {
		if s != defaults {
			t.Skip("needs a broker with other flags than that of HOLDFAST_ENDPOINT")
		}
		return strings.TrimRight(url, "/")
	}
	brokers.Lock()
	defer brokers.Unlock()
	b, ok := brokers.started[s]
	if !ok {
		b.node, b.err = startBroker(s)
		brokers.started[s] = b
	}
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.node.Endpoint()
}

func startBroker(s setting) (*fault.Node, error) {
	binary, err := brokers.build()
	if err != nil {
		return nil, err
	}
	return fault.Start(context.Background(), fault.Options{
		Binary:  binary,
		DataDir: filepath.Join(brokers.scratch, fmt.Sprint("data-", s)),
		// The first requests of all cases come at once, to what may be a slow machine.
		Flags: append([]string{"--request-timeout", "1m"}, settingFlags[s]...),
	})
}

func buildBroker() (string, error) {
	binary := filepath.Join(brokers.scratch, "holdfast")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/holdfast")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, output)
	}
	return binary, lookAtSources()
}

// lookAtSources opens the folders that the broker is built from. go test
// remembers what a test opened and plays it again when that has changed; what a
// compiler read that the test ran it does not see.
func lookAtSources() error {
	const form = "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"
	folders, err := exec.Command("go", "list", "-deps", "-f", form, "../../cmd/holdfast").Output()
	if err != nil {
		return fmt.Errorf("list the sources of the broker: %w", err)
	}
	for folder := range strings.FieldsSeq(string(folders)) {
		if _, err := os.ReadDir(folder); err != nil {
			return fmt.Errorf("look at the sources of the broker: %w", err)
		}
	}
	return nil
}
