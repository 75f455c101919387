package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"
)

// errAnswer says that the other side does not speak the part of HTTP/1.1 that
// this client knows: answers with a Content-Length.
var errAnswer = errors.New("answer not understood")

// maxAnswer bounds the answers that are accepted, in bytes.
const maxAnswer = 16 << 20

// client sends requests to one endpoint, one at a time.
type client interface {
	// roundTrip sends a request, which is a whole HTTP/1.1 message, and returns status
	// and body of the answer. The body is valid until the next request.
	roundTrip(ctx context.Context, request []byte) (status int, body []byte, err error)
	// until has every request fail that has no answer by then.
	until(deadline time.Time)
	// close ends the connection; the next request dials anew.
	close()
}

func newClient(name string, endpoint *url.URL) client {
	if name == Standard {
		return newStandardClient(endpoint)
	}
	return newConnection(endpoint)
}

// connection is the client Raw: a keep-alive HTTP/1.1 connection with one request at a time. It
// dials when it is first used and again after it broke.
type connection struct {
	endpoint *url.URL
	deadline time.Time // of every read and write; zero for none
	conn     net.Conn
	buffer   []byte
	head     []byte // of the last answer: status line and headers
}

func newConnection(endpoint *url.URL) *connection {
	return &connection{endpoint: endpoint, buffer: make([]byte, 32<<10)}
}

func (c *connection) dial(ctx context.Context) error {
	var conn net.Conn
	var err error
	if c.endpoint.Scheme == "https" {
		conn, err = (&tls.Dialer{}).DialContext(ctx, "tcp", c.endpoint.Host)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.endpoint.Host)
	}
	if err != nil {
		return fmt.Errorf("dial endpoint: %w", err)
	}
	c.conn = conn
	if err := conn.SetDeadline(c.deadline); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	return nil
}

// until implements client, for a connection that has not been used.
func (c *connection) until(deadline time.Time) { c.deadline = deadline }

// close implements client.
func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// roundTrip implements client. After an error the connection is closed.
func (c *connection) roundTrip(ctx context.Context, request []byte) (status int, body []byte, err error) {
	if c.conn == nil {
		if err := c.dial(ctx); err != nil {
			return 0, nil, err
		}
	}
	if _, err := c.conn.Write(request); err != nil {
		c.close()
		return 0, nil, fmt.Errorf("write request: %w", err)
	}
	status, body, last, err := c.readAnswer()
	if err != nil || last {
		c.close()
	}
	return status, body, err
}

// readAnswer reads one answer. last says that the other side closes the
// connection after it.
func (c *connection) readAnswer() (status int, body []byte, last bool, err error) {
	filled, headEnd := 0, -1
	for headEnd < 0 {
		n, err := c.read(filled)
		if err != nil {
			return 0, nil, true, err
		}
		from := max(filled-3, 0)
		filled += n
		if i := bytes.Index(c.buffer[from:filled], []byte("\r\n\r\n")); i >= 0 {
			headEnd = from + i + 4
		}
	}
	status, length, last, err := parseHead(c.buffer[:headEnd])
	if err != nil {
		return 0, nil, true, err
	}
	end := headEnd + length
	for filled < end {
		n, err := c.read(filled)
		if err != nil {
			return 0, nil, true, err
		}
		filled += n
	}
	if filled > end {
		return 0, nil, true, fmt.Errorf("%w: %d bytes too many", errAnswer, filled-end)
	}
	c.head = c.buffer[:headEnd]
	return status, c.buffer[headEnd:end], last, nil
}

// read reads once into the buffer from filled on, and makes it larger if it is
// full.
func (c *connection) read(filled int) (int, error) {
	if filled == len(c.buffer) {
		if filled >= maxAnswer {
			return 0, fmt.Errorf("%w: more than %d bytes", errAnswer, maxAnswer)
		}
		c.buffer = append(c.buffer, make([]byte, filled)...)
	}
	n, err := c.conn.Read(c.buffer[filled:])
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	if n == 0 {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return n, nil
}

// parseHead returns what matters of a status line and headers.
func parseHead(head []byte) (status, length int, last bool, err error) {
	const statusAt = len("HTTP/1.1 ")
	if len(head) < statusAt+3 || !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) {
		return 0, 0, false, fmt.Errorf("%w: no status line", errAnswer)
	}
	if status, err = number(head[statusAt : statusAt+3]); err != nil {
		return 0, 0, false, err
	}
	length = -1
	for rest := head; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 || i+1 >= len(rest) {
			break
		}
		rest = rest[i+1:]
		switch rest[0] {
		case 'C', 'c':
			if v, ok := header(rest, "content-length:"); ok {
				if length, err = number(v); err != nil {
					return 0, 0, false, err
				}
			} else if v, ok := header(rest, "connection:"); ok {
				last = bytes.EqualFold(v, []byte("close"))
			}
		}
	}
	if length < 0 {
		return 0, 0, false, fmt.Errorf("%w: no Content-Length", errAnswer)
	}
	return status, length, last, nil
}

// header returns the value of the line that b begins with, if it is the header
// of the given name, which is in lower case and ends in a colon.
func header(b []byte, name string) ([]byte, bool) {
	if len(b) < len(name) || !bytes.EqualFold(b[:len(name)], []byte(name)) {
		return nil, false
	}
	value := b[len(name):]
	if i := bytes.IndexByte(value, '\n'); i >= 0 {
		value = value[:i]
	}
	return bytes.TrimSpace(value), true
}

func number(b []byte) (int, error) {
	if len(b) == 0 || len(b) > 9 {
		return 0, fmt.Errorf("%w: bad number", errAnswer)
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: bad number", errAnswer)
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}
