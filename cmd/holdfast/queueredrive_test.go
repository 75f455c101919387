package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast.internal/httpapi/admin"
)

// Told to stop, the command says how to look, and the task goes on.
func TestQueueRedriveStopped(t *testing.T) {
	s := serve(t, t.TempDir())
	dead := createQueue(t, s, "dead", nil)
	createQueue(t, s, "orders", map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`,
	})
	for range 20 {
		send(t, s, dead, "x")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr, writer := io.Pipe()
	args := []string{"queue", "redrive", "dead", "--to", "arn:aws:sqs:us-east-1:000000000000:orders", "--rate", "1", "--admin", s.Admin}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, strings.NewReader(""), &stdout, writer)
		_ = writer.Close()
	}()
	lines := bufio.NewReader(stderr)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasSuffix(line, "of 20 moved\n") {
		t.Errorf("got %q (%v), want progress", line, err)
	}
	cancel()
	rest, err := io.ReadAll(lines)
	target := s.Admin + "/queues/000000000000/dead/redrive"
	if err != nil || !strings.Contains(string(rest), "goes on: GET "+target) {
		t.Errorf("got %q (%v), want how to look", rest, err)
	}
	if got := <-code; got != exitNo || stdout.Len() > 0 {
		t.Errorf("got exit %d and %q, want %d and nothing", got, stdout.String(), exitNo)
	}
	var tasks []admin.MoveTask
	if err := json.Unmarshal([]byte(get(t, http.DefaultClient, target, http.StatusOK)), &tasks); err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 1 || !tasks[0].Active() || tasks[0].Moved == 20 {
		t.Errorf("got %+v, want the task under way", tasks)
	}
	cancelRedrive(t, s)
}

// cancelRedrive ends the task that moves dead letters; a second time there is none.
func cancelRedrive(t *testing.T, s *served) {
	t.Helper()
	for _, want := range []struct {
		code         int
		stdout, fail string
	}{
		{0, "cancelled after ", ""},
		{exitNo, "", "no move task of this queue is running"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"queue", "redrive", "dead", "--cancel", "--admin", s.Admin}, strings.NewReader(""), &stdout, &stderr)
		if code != want.code || !strings.HasPrefix(stdout.String(), want.stdout) || !strings.Contains(stderr.String(), want.fail) {
			t.Errorf("got exit %d, %q, %q; want %+v", code, stdout.String(), stderr.String(), want)
		}
	}
}
