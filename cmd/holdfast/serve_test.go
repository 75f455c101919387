package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast.internal/httpapi/admin"
	"holdfast.internal/wal"
)

// served is a whole broker, run in this process as main would.
type served struct {
	API, Admin string // URLs
	SQS        *sqs.Client

	t      *testing.T
	data   string
	cancel context.CancelFunc
	code   chan int
	log    *lockedBuffer
}

// serve starts a broker on a data folder and waits until it says where it
// listens. It is stopped at the end of the test, if not before.
func serve(t *testing.T, data string, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // t.Context ends before the clean-up
	stdout, stdoutWriter := io.Pipe()
	s := &served{t: t, data: data, cancel: cancel, code: make(chan int, 1), log: &lockedBuffer{}}
	args = append([]string{
		"serve", "--json", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--disk-reserve", "1MiB",
	}, args...)
	go func() {
		code := run(ctx, args, strings.NewReader(""), stdoutWriter, s.log)
		_ = stdoutWriter.Close()
		s.code <- code
	}()
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("log of the broker:\n%s", s.log)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("start broker: got no address: %v\n%s", err, s.log)
	}
	if err := json.Unmarshal(line, s); err != nil {
		t.Fatalf("start broker: got %q: %v", line, err)
	}
	s.SQS = sqs.NewFromConfig(aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
	}, func(o *sqs.Options) { o.BaseEndpoint = aws.String(s.API) })
	return s
}

// stop is SIGTERM; it returns the exit code. A stop that takes too long leaves the
// node behind, to end with the process: here the next owner of the folder waits.
func (s *served) stop() int {
	s.t.Helper()
	s.cancel()
	code := <-s.code
	s.code <- code
	if err := awaitUnlocked(filepath.Join(s.data, wal.StableFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("wait for the end of the node: %v", err)
	}
	return code
}

// awaitUnlocked returns when nobody has the file's lock, which a node gives back last.
func awaitUnlocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	return errors.Join(err, f.Close())
}

// checkNothingHeldUp holds that the stop did not give up waiting for an answer.
func (s *served) checkNothingHeldUp() {
	s.t.Helper()
	if strings.Contains(s.log.String(), "connections broken before their answers") {
		s.t.Error("an answer held up the stop until it was given up")
	}
}

// command runs another command line in this process and wants it to end with
// code. It returns what it printed.
func command(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); got != code {
		t.Errorf("%v: got exit %d, want %d: %s", args, got, code, stderr.String())
	}
	return stdout.String() + stderr.String()
}

// A variable that is misspelt is told of, without its value, and one that other
// commands know is not.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("HOLDFAST_PURGE_WIAT", "secret")
	t.Setenv("HOLDFAST_BENCH_JSON", "report.json")
	t.Setenv("HOLDFAST_PURGE_WAIT", "2s")
	t.Setenv("HOLDFASTER", "1")
	s := serve(t, t.TempDir())
	var told []string
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"WARN","msg":"environment variable ignored`) {
			told = append(told, line)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], `"variable":"HOLDFAST_PURGE_WIAT"`) || strings.Contains(told[0], "secret") {
		t.Errorf("got %q, want one warning of HOLDFAST_PURGE_WIAT", told)
	}
}

// get reads a page and wants the status.
func get(t *testing.T, client *http.Client, url string, status int) string {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Errorf("GET %s: got %s, want %d: %s", url, response.Status, status, body)
	}
	return string(body)
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// A stopped broker goes on where it was: messages, leases, handles, settings.
func TestRestart(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	first := serve(t, data, "--account", "111122223333")
	queue := createQueue(t, first, "orders", map[string]string{"VisibilityTimeout": "600"})
	for _, body := range []string{"held", "waiting"} {
		send(t, first, queue, body)
	}
	held := receive(t, first, queue, 1)[0]
	if code := first.stop(); code != 0 {
		t.Fatalf("stop: got exit %d, want 0", code)
	}

	second := serve(t, data, "--account", "444455556666") // a flag does not change a cluster that is formed
	url, err := second.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	queue = *url.QueueUrl
	if want := second.API + "/111122223333/orders"; queue != want {
		t.Errorf("queue URL: got %s, want %s", queue, want)
	}
	rest := receive(t, second, queue, 10)
	if len(rest) != 1 || *rest[0].Body != opposite(*held.Body) {
		t.Errorf("got %d messages, want only the one that nobody held", len(rest))
	}
	_, err = second.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: held.ReceiptHandle})
	if err != nil {
		t.Errorf("delete with the handle of before: %v", err)
	}
	attributes := getAttributes(t, second, queue)
	if got := attributes["ApproximateNumberOfMessagesNotVisible"]; got != "1" {
		t.Errorf("messages in flight: got %s, want 1", got)
	}
}

func opposite(body string) string {
	if body == "held" {
		return "waiting"
	}
	return "held"
}

func TestDataFolderInUse(t *testing.T) {
	data := t.TempDir()
	serve(t, data)
	var stdout, stderr bytes.Buffer
	args := []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	if code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code == 0 {
		t.Error("second node on the folder: got exit 0, want an error")
	}
	if !strings.Contains(stderr.String(), "another process") {
		t.Errorf("got %q, want a word about another process", stderr.String())
	}
}

func TestPortInUse(t *testing.T) {
	first := serve(t, t.TempDir())
	out := command(t, exitNo, "serve", "--data", t.TempDir(), "--listen", strings.TrimPrefix(first.API, "http://"))
	if !strings.Contains(out, "address already in use") {
		t.Errorf("got %q, want a word about the address", out)
	}
}

// At a stop, parked polls get an empty answer, soon, and their connections end.
func TestStopAnswersParkedPolls(t *testing.T) {
	const polls = 50
	s := serve(t, t.TempDir())
	queue := createQueue(t, s, "quiet", nil)
	answers := make(chan error, polls)
	for range polls {
		go func() {
			out, err := s.SQS.ReceiveMessage(context.Background(),
				&sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20}, withoutRetry)
			if err == nil && len(out.Messages) > 0 {
				t.Errorf("got %d messages, want none", len(out.Messages))
			}
			answers <- err
		}()
	}
	waitForPolls(t, s, polls)
	if code := s.stop(); code != 0 {
		t.Errorf("got exit %d, want 0", code)
	}
	for range polls {
		if err := <-answers; err != nil {
			t.Errorf("parked poll: got %v, want an empty answer", err)
		}
	}
	s.checkNothingHeldUp()
}

func withoutRetry(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }

// waitForPolls waits until so many receives are parked.
func waitForPolls(t *testing.T, s *served, count int) {
	t.Helper()
	waitForGroup(t, s, fmt.Sprintf("%d parked polls", count), func(g admin.Group) bool { return g.ParkedPolls == count })
}

// patience is how long a test waits for what should come at once: a machine that has
// stood still, or has ten times too much to do, is no fault of the broker.
const patience = time.Minute

// waitForGroup waits until the status of the raft group is as it should be.
func waitForGroup(t *testing.T, s *served, what string, is func(admin.Group) bool) admin.Group {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var status admin.Status
		if err := json.Unmarshal([]byte(get(t, http.DefaultClient, s.Admin+"/status", http.StatusOK)), &status); err != nil {
			t.Fatal(err)
		}
		if is(status.Groups[0]) {
			return status.Groups[0]
		}
	}
	t.Fatalf("got no %s in %v", what, patience)
	panic("unreachable")
}

func TestSettingsAndStatusCommands(t *testing.T) {
	s := serve(t, t.TempDir(), "--purge-wait", "17s")
	if got := command(t, 0, "settings", "get", "purge-wait", "--admin", s.Admin); got != "17s\n" {
		t.Errorf("settings get: got %q, want 17s", got)
	}
	if got, want := command(t, 0, "settings", "set", "purge-wait", "5s", "--admin", s.Admin), "purge-wait is 5s\n"; got != want {
		t.Errorf("settings set: got %q, want %q", got, want)
	}
	host := strings.TrimPrefix(s.Admin, "http://") // as serve --admin takes it
	if got := command(t, 0, "settings", "get", "--admin", host); !strings.Contains(got, "purge-wait ") {
		t.Errorf("settings get: got %q, want all settings", got)
	}
	if got := command(t, exitNo, "settings", "set", "colour", "red", "--admin", s.Admin); !strings.Contains(got, "colour") {
		t.Errorf("settings set of an unknown one: got %q, want its name", got)
	}
	if got := command(t, exitNo, "settings", "set", "purge-wait", "soon", "--admin", s.Admin); !strings.Contains(got, "soon") {
		t.Errorf("settings set of a bad value: got %q, want the value", got)
	}
	if got := command(t, 0, "status", "--admin", s.Admin); !strings.Contains(got, "leader") {
		t.Errorf("status: got %q, want a table", got)
	}
	both := command(t, exitNo, "status", "--json", "--admin", s.Admin+",http://127.0.0.1:1")
	var nodes []nodeStatus
	if err := json.Unmarshal([]byte(both), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 2 || nodes[0].Status == nil || nodes[1].Error == "" {
		t.Errorf("status of one node up and one down: got %s", both)
	}
}

// A node that is told to stop while it starts ends cleanly.
func TestStopDuringStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	args := []string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	if code := run(ctx, args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Errorf("got exit %d, want 0: %s", code, stderr.String())
	}
}

// TestAnnouncedRegion is the one in force, which the flag has only seeded.
func TestAnnouncedRegion(t *testing.T) {
	data := t.TempDir()
	serve(t, data, "--region", "eu-west-1").stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		args := []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--disk-reserve", "1MiB", "--region", "us-west-2"}
		code <- run(ctx, args, strings.NewReader(""), writer, io.Discard)
		_ = writer.Close()
	}()
	var try string
	for lines := bufio.NewScanner(stdout); try == "" && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "try ") {
			try = lines.Text()
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // whatever else it says
	if got := <-code; got != 0 || !strings.Contains(try, " --region eu-west-1 ") {
		t.Errorf("got exit %d and %q, want the region in force", got, try)
	}
	if err := awaitUnlocked(filepath.Join(data, wal.StableFile)); err != nil {
		t.Error(err)
	}
}
