package jepsen_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
	"holdfast.internal/jepsen/workload"
)

// poller is a long poll on a raw connection, which can leave in ways that an
// HTTP client does not offer.
type poller struct{ *net.TCPConn }

// park sends a ReceiveMessage that waits 20 s.
func park(t *testing.T, endpoint string, q workload.Queue) poller {
	t.Helper()
	address := strings.TrimPrefix(endpoint, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	body := fmt.Sprintf(`{"QueueUrl":%q,"WaitTimeSeconds":20}`, q.URL)
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-amz-json-1.0\r\n"+
		"X-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return poller{conn.(*net.TCPConn)}
}

// The ways to leave.
var departures = []struct {
	name  string
	leave func(poller) error
}{
	{"closed", func(p poller) error { return p.Close() }},
	{"half-closed", func(p poller) error { return p.CloseWrite() }},
	{"reset", func(p poller) error {
		if err := p.SetLinger(0); err != nil {
			return err
		}
		return p.Close()
	}},
}

// A message must not be handed out to a client that has left its long poll: it
// would be hidden for a visibility timeout, and its receive count raised, for
// nobody.
func TestClientLeavesLongPoll(t *testing.T) {
	stays := []time.Duration{0, 1500 * time.Millisecond}
	if *long {
		stays = append(stays, 5*time.Second)
	}
	node := startNode(t)
	client := newClient(t, node)
	for _, departure := range departures {
		for _, stay := range stays {
			t.Run(fmt.Sprintf("%s after %v", departure.name, stay), func(t *testing.T) {
				q := createQueue(t, client, fmt.Sprintf("%s-%d", departure.name, stay.Milliseconds()), "300")
				p := park(t, node.Endpoint(), q)
				awaitParked(t, node, 1)
				time.Sleep(stay)
				if err := departure.leave(p); err != nil {
					t.Fatal(err)
				}
				send(t, client, q, "m")
				expectAtOnce(t, client, q)
				awaitParked(t, node, 0)
			})
		}
	}
}

// expectAtOnce receives, and expects the one message as if nobody had been there
// before.
func expectAtOnce(t *testing.T, client *workload.Client, q workload.Queue) {
	t.Helper()
	start := time.Now()
	m := receive(t, client, q, 1, 5*time.Second)[0]
	if took := time.Since(start); took > bar(500*time.Millisecond, patience) {
		t.Errorf("received after %v", took)
	}
	if m.Count != 1 {
		t.Errorf("receive count %d, want 1", m.Count)
	}
}

// Those who left stand in line before one who stays.
func TestClientsLeaveLongPollBeforeOneWhoStays(t *testing.T) {
	node := startNode(t)
	client := newClient(t, node)
	q := createQueue(t, client, "q", "300")
	var leavers []poller
	for i := range 3 * len(departures) {
		leavers = append(leavers, park(t, node.Endpoint(), q))
		awaitParked(t, node, i+1)
	}
	stayer := newClient(t, node)
	got := make(chan history.Operation)
	go func() { got <- stayer.Receive(t.Context(), q, 1, history.QueueDefault, 20*time.Second) }()
	awaitParked(t, node, len(leavers)+1)
	for i, p := range leavers {
		if err := departures[i%len(departures)].leave(p); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	send(t, client, q, "m")
	o := succeed(t, <-got)
	if took := time.Since(start); took > bar(time.Second, patience) {
		t.Errorf("received after %v", took)
	}
	if len(o.Messages) != 1 || o.Messages[0].Count != 1 {
		t.Errorf("got %+v, want one message with receive count 1", o.Messages)
	}
	awaitParked(t, node, 0)
}
