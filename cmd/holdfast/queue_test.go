package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/cockroachdb/datadriven"

	"holdfast.internal/httpapi/admin"
)

// queueScript is a conversation with a broker: SQS actions, and commands of
// which the output is compared.
type queueScript struct {
	*served
	t       *testing.T
	data    string
	ids     map[string]string // MessageIds by body
	handles map[string]string // the newest, by body
}

// TestQueueCommand plays testdata/queue against a broker of its own.
//
//	create NAME [Attribute=VALUE]…   with dlq=NAME:COUNT for a RedrivePolicy
//	send NAME BODY [delay=SECONDS] [group=G] [dedup=ID]
//	receive NAME [wait=SECONDS], delete NAME BODY, release NAME BODY
//	delete-queue NAME
//	run                              a command line; $BODY stands for a MessageId
//	metrics NAME                     the numbers of a queue that are not 0
//	stop                             the broker
func TestQueueCommand(t *testing.T) {
	datadriven.Walk(t, "testdata/queue", func(t *testing.T, path string) {
		data := t.TempDir()
		s := &queueScript{served: serve(t, data, "--purge-wait", "1h"), t: t, data: data, ids: map[string]string{}, handles: map[string]string{}}
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return s.play(d) })
	})
}

func (s *queueScript) play(d *datadriven.TestData) string {
	ctx := s.t.Context()
	switch d.Cmd {
	case "run":
		return s.run(d.Input)
	case "stop":
		return fmt.Sprintf("exit %d\n", s.stop())
	case "metrics":
		return s.metrics(d.CmdArgs[0].Key)
	case "create":
		_, err := s.SQS.CreateQueue(ctx, s.createInput(d))
		return said(err)
	}
	url := aws.String(s.API + "/000000000000/" + d.CmdArgs[0].Key)
	body := ""
	if len(d.CmdArgs) > 1 {
		body = d.CmdArgs[1].Key
	}
	switch d.Cmd {
	case "delete-queue":
		_, err := s.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url})
		return said(err)
	case "send":
		return s.send(d, url, body)
	case "receive":
		return s.receive(d, url)
	case "delete":
		_, err := s.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: aws.String(s.handles[body])})
		return said(err)
	case "release":
		_, err := s.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: aws.String(s.handles[body])})
		return said(err)
	}
	s.t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

func said(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return "ok\n"
}

func (s *queueScript) createInput(d *datadriven.TestData) *sqs.CreateQueueInput {
	input := &sqs.CreateQueueInput{QueueName: aws.String(d.CmdArgs[0].Key), Attributes: map[string]string{}, Tags: map[string]string{}}
	for _, arg := range d.CmdArgs[1:] {
		switch name, tag := strings.CutPrefix(arg.Key, "tag."); {
		case tag:
			input.Tags[name] = arg.Vals[0]
		case arg.Key == "dlq":
			target, count, _ := strings.Cut(arg.Vals[0], ":")
			input.Attributes["RedrivePolicy"] = fmt.Sprintf(
				`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:%s","maxReceiveCount":%s}`, target, count)
		default:
			input.Attributes[arg.Key] = arg.Vals[0]
		}
	}
	return input
}

func (s *queueScript) send(d *datadriven.TestData, url *string, body string) string {
	input := &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body}
	if d.Input != "" {
		input.MessageBody = &d.Input
	}
	if d.HasArg("repeat") {
		n := 0
		d.ScanArgs(s.t, "repeat", &n)
		input.MessageBody = aws.String(strings.Repeat(body, n))
	}
	if d.HasArg("delay") {
		d.ScanArgs(s.t, "delay", &input.DelaySeconds)
	}
	for name, field := range map[string]**string{"group": &input.MessageGroupId, "dedup": &input.MessageDeduplicationId} {
		if d.HasArg(name) {
			*field = new(string)
			d.ScanArgs(s.t, name, *field)
		}
	}
	sent, err := s.SQS.SendMessage(s.t.Context(), input)
	if err == nil {
		s.ids[body] = *sent.MessageId
	}
	return said(err)
}

func (s *queueScript) receive(d *datadriven.TestData, url *string) string {
	input := &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount"},
	}
	if d.HasArg("wait") {
		d.ScanArgs(s.t, "wait", &input.WaitTimeSeconds)
	}
	got, err := s.SQS.ReceiveMessage(s.t.Context(), input)
	if err != nil {
		return said(err)
	}
	var b strings.Builder
	for _, m := range got.Messages {
		s.handles[*m.Body] = *m.ReceiptHandle
		fmt.Fprintf(&b, "%s count=%s\n", *m.Body, m.Attributes["ApproximateReceiveCount"])
	}
	fmt.Fprintf(&b, "%d received\n", len(got.Messages))
	return b.String()
}

// What is different in every run.
var (
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	anyMS   = regexp.MustCompile(`("t"|"\w+_ms"):[1-9]\d*`)
	anyAge  = regexp.MustCompile(`\b(\d+m)?\d+s\b *`)
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// grow gives everything an age: they are in whole milliseconds, and 0 says that
// there is none.
func grow() { time.Sleep(5 * time.Millisecond) }

// run runs one command line on the broker.
func (s *queueScript) run(line string) string {
	grow()
	for body, id := range s.ids {
		line = strings.ReplaceAll(line, "$"+body, id)
	}
	args := strings.Fields(strings.ReplaceAll(line, "DATA", s.data))
	if !strings.Contains(line, "--data") {
		args = append(args, "--admin", s.Admin)
	}
	var stdout, stderr bytes.Buffer
	code := run(s.t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	var out strings.Builder
	fmt.Fprintf(&out, "exit %d\n", code)
	for line := range strings.Lines(stderr.String()) {
		out.WriteString("stderr: " + line)
	}
	out.WriteString(stdout.String())
	text := strings.ReplaceAll(out.String(), s.data, "DATA")
	for body, id := range s.ids {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("%-36.36s", "id-of-"+body))
	}
	text = anyAge.ReplaceAllStringFunc(text, func(age string) string { // in a table, with the room behind it
		if !strings.HasSuffix(age, " ") {
			return "0s"
		}
		return fmt.Sprintf("%-*s", len(age), "0s")
	})
	text = anyTime.ReplaceAllString(text, "<---------time--------->")
	return anyMS.ReplaceAllString(anyID.ReplaceAllString(text, "<----------------id---------------->"), "$1:1")
}

// metrics are the numbers of a queue that are not 0, without their long names'
// beginning. An age is only said to be there: it differs from run to run.
func (s *queueScript) metrics(queue string) string {
	grow()
	var b strings.Builder
	for line := range strings.Lines(get(s.t, http.DefaultClient, s.Admin+"/metrics", http.StatusOK)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "holdfast_sqs_"), "{")
		_, value, ok := strings.Cut(rest, fmt.Sprintf("queue=%q} ", queue))
		if !ok || value == "0\n" {
			continue
		}
		if strings.HasPrefix(name, "approximate_age") {
			value = "more than 0\n"
		}
		fmt.Fprintf(&b, "%s %s", name, value)
	}
	return b.String()
}

// tail prints from the moment on at which it is connected.
func TestQueueTail(t *testing.T) {
	s := serve(t, t.TempDir())
	queue := createQueue(t, s, "orders", nil)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			args := []string{"queue", "tail", "orders", "--admin", s.Admin}
			if format == "json" {
				args = append(args, "--json")
			}
			stdout, writer := io.Pipe()
			code := make(chan int, 1)
			go func() {
				code <- run(ctx, args, strings.NewReader(""), writer, io.Discard)
				_ = writer.Close()
			}()
			line := firstLine(t, s, queue, stdout)
			if format == "json" {
				var step admin.Step
				if err := json.Unmarshal([]byte(line), &step); err != nil || step.Event != "sent" || step.Queue != "orders" {
					t.Errorf("got %s (%v), want a send", line, err)
				}
			} else if !strings.Contains(line, "  sent  ") || !anyID.MatchString(line) {
				t.Errorf("got %q, want a send", line)
			}
			cancel()
			go io.Copy(io.Discard, stdout) // it must not hold up the command
			if got := <-code; got != 0 {
				t.Errorf("told to stop: got exit %d, want 0", got)
			}
		})
	}
}

// firstLine sends messages until the tail says that it has seen one: the first
// may come before the tail is connected.
func firstLine(t *testing.T, s *served, queue string, stdout io.Reader) string {
	t.Helper()
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- line
	}()
	for range 200 {
		send(t, s, queue, "x")
		select {
		case line := <-lines:
			return line
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("tail printed nothing")
	return ""
}

// The end of the node ends a tail, at once and with a no.
func TestQueueTailOfStoppedNode(t *testing.T) {
	s := serve(t, t.TempDir())
	queue := createQueue(t, s, "orders", nil)
	stdout, writer := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	args := []string{"queue", "tail", "orders", "--admin", s.Admin}
	go func() { code <- run(t.Context(), args, strings.NewReader(""), writer, &stderr) }()
	firstLine(t, s, queue, stdout)
	go io.Copy(io.Discard, stdout) // it must not hold up the command
	s.stop()
	if got := <-code; got != exitNo || !strings.Contains(stderr.String(), "ended the stream") {
		t.Errorf("got exit %d, %q; want %d and the reason", got, stderr.String(), exitNo)
	}
	s.checkNothingHeldUp()
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a\nb\tc": `a\nb\tc`, "\x1b[2J": `\x1b[2J`, "ä 漢": "ä 漢", "\u202e": `\u202e`,
		`"quoted" \n`: `"quoted" \n`,
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestStepTextOfLosses(t *testing.T) {
	var out bytes.Buffer
	c := &queueTail{}
	if err := c.printStep(&out, &admin.Step{Event: "purged", Dropped: 3}); err != nil {
		t.Fatal(err)
	}
	want := "… 3 events lost: they came faster than this command reads\n1970-01-01T00:00:00.000Z  purged         -  -\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
