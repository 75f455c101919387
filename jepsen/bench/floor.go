package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"time"
)

// floorCalls returns the calls that a phase makes; none for a phase without a
// floor.
func floorCalls(phase string, o Options) []call {
	switch phase {
	case phaseSend:
		return []call{sendCall(o)}
	case phaseBatch:
		return []call{callSendBatch}
	case phaseDrain, phaseDeliver:
		return []call{callReceiveBatch, callDeleteBatch}
	case phaseCycle:
		return []call{callSend, callReceive, callDelete}
	case phasePublish:
		return []call{callPublish}
	}
	return nil // what the others measure is mostly waiting
}

// floor is a running echo server.
type floor struct {
	target *target
	cmd    *exec.Cmd
}

// startFloor runs the echo server, a process of its own.
func startFloor(ctx context.Context, binary string) (*floor, error) {
	cmd := exec.CommandContext(ctx, binary, EchoCommand)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to echo server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start echo server: %w", err)
	}
	var announced struct{ API string }
	if err := json.NewDecoder(stdout).Decode(&announced); err != nil {
		return nil, errors.Join(fmt.Errorf("start echo server: %w", err), stopProcess(cmd))
	}
	t, err := newTarget([]string{announced.API}, cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, stopProcess(cmd))
	}
	t.echo = true
	return &floor{target: t, cmd: cmd}, nil
}

// stopProcess ends a process that has nothing to lose.
func stopProcess(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process: %w", err)
	}
	_ = cmd.Wait() // it was killed: its exit code says nothing
	return nil
}

func (f *floor) stop() error { return stopProcess(f.cmd) }

// learn makes each call of a phase once at the broker and gives the answers to
// the echo server. The queue URLs are taken over, so that the requests are the
// same.
func (f *floor) learn(ctx context.Context, product *target, phase string, o Options) error {
	if phase == phaseBatch {
		o.Batch = maxBatch
	}
	cleanup, err := product.createQueues(ctx, o)
	if err != nil {
		return err
	}
	defer cleanup()
	if phase == phasePublish { // deliver receives what is like any other message
		cleanup, err := product.createTopic(ctx)
		if err != nil {
			return err
		}
		defer cleanup()
	}
	f.target.queues, f.target.topic = slices.Clone(product.queues), product.topic
	raw := newConnection(product.endpoints[0]) // which has the head of an answer
	raw.until(time.Now().Add(patience))
	defer raw.close()
	w := newWorker(product, 0, o)
	w.conn = raw
	for range max(2*maxBatch/o.Batch, 1) { // something to receive, twice
		w.send(ctx, sendCall(o))
	}
	for _, c := range floorCalls(phase, o) {
		body := w.sample(ctx, c)
		if w.first != nil {
			return fmt.Errorf("take sample of %s: %w", actions[c], w.first)
		}
		if err := f.teach(ctx, c, bytes.Clone(raw.head), body); err != nil {
			return err
		}
	}
	return nil
}

// sample makes a call once and returns the body of its answer.
func (w *worker) sample(ctx context.Context, c call) []byte {
	bytesToSend := w.requests[c].bytes
	if c == callDelete || c == callDeleteBatch {
		receive := callReceive
		if c == callDeleteBatch {
			receive = callReceiveBatch
		}
		handles := w.receive(ctx, receive)
		if len(handles) == 0 {
			w.fail(errors.New("nothing to receive"))
			return nil
		}
		bytesToSend = w.shape.fillDelete(w.requests[c], c, handles)
	}
	return bytes.Clone(w.do(ctx, bytesToSend))
}

// teach sets the answer of the echo server to a call.
func (f *floor) teach(ctx context.Context, c call, head, body []byte) error {
	address := url.URL{Scheme: "http", Host: f.target.endpoints[0].Host, Path: fmt.Sprintf("/%c", firstCall+c)}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address.String(), bytes.NewReader(slices.Concat(head, body)))
	if err != nil {
		return fmt.Errorf("teach echo server: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("teach echo server: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("teach echo server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("teach echo server: status %d", response.StatusCode)
	}
	return nil
}
