package bench

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answering serves one connection at a time: each request gets the next of the
// answers, written in the given pieces.
func answering(t *testing.T, answers ...[]string) *connection {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			for len(answers) > 0 {
				if _, err := http.ReadRequest(in); err != nil {
					break
				}
				for _, piece := range answers[0] {
					conn.Write([]byte(piece))
					time.Sleep(time.Millisecond) // so that the pieces arrive apart
				}
				last := strings.Contains(strings.Join(answers[0], ""), "close")
				answers = answers[1:]
				if last {
					break
				}
			}
			conn.Close()
		}
	}()
	c := newConnection(&url.URL{Scheme: "http", Host: l.Addr().String()})
	t.Cleanup(c.close)
	return c
}

var get = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

func TestRoundTripReadsAnswersInPieces(t *testing.T) {
	long := strings.Repeat("y", 100_000)
	c := answering(t,
		[]string{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		[]string{"HTTP/1.1 40", "3 Forbidden\r\ncontent-length:  2 \r\nX: y\r\n\r", "\nn", "o"},
		[]string{"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 100000\r\nConnection: keep-alive\r\n\r\n", long[:5], long[5:]},
		[]string{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		[]string{"HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\n!"},
	)
	for i, want := range []struct {
		status int
		body   string
	}{{200, "hello"}, {403, "no"}, {200, long}, {200, ""}, {500, "!"}} {
		status, body, err := c.roundTrip(t.Context(), get)
		if err != nil || status != want.status || string(body) != want.body {
			t.Fatalf("answer %d: got %d, %d bytes, %v; want %d, %d bytes", i, status, len(body), err, want.status, len(want.body))
		}
	}
}

func TestRoundTripRefusesWhatItCannotFrame(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"SSH-2.0-server\r\n\r\n",
		"HTTP/1.1 20x OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
	} {
		c := answering(t, []string{answer})
		if _, _, err := c.roundTrip(t.Context(), get); !errors.Is(err, errAnswer) {
			t.Errorf("%q: got %v", answer, err)
		}
		if c.conn != nil {
			t.Errorf("%q: the connection is kept", answer)
		}
	}
}

func TestRoundTripDialsAgainAfterTheConnectionBroke(t *testing.T) {
	c := answering(t,
		[]string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nclose"}, // and breaks
		[]string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	)
	if _, _, err := c.roundTrip(t.Context(), get); err == nil {
		t.Error("half an answer was accepted")
	}
	if _, body, err := c.roundTrip(t.Context(), get); err != nil || string(body) != "ok" {
		t.Errorf("got %q %v", body, err)
	}
}
