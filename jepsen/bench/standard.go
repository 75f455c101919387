package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// standardClient is the client Standard: it sends requests with net/http, over one
// connection.
type standardClient struct {
	endpoint  *url.URL
	deadline  time.Time // of every request; zero for none
	transport http.Transport
	heads     map[string]*http.Request // what the headers of a request mean
	answer    bytes.Buffer
}

func newStandardClient(endpoint *url.URL) *standardClient {
	return &standardClient{
		endpoint:  endpoint,
		transport: http.Transport{MaxConnsPerHost: 1, DisableCompression: true},
		heads:     map[string]*http.Request{},
	}
}

// until implements client.
func (s *standardClient) until(deadline time.Time) { s.deadline = deadline }

// close implements client.
func (s *standardClient) close() { s.transport.CloseIdleConnections() }

// roundTrip implements client.
func (s *standardClient) roundTrip(ctx context.Context, request []byte) (status int, body []byte, err error) {
	if !s.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.deadline)
		defer cancel()
	}
	r, err := s.build(request)
	if err != nil {
		return 0, nil, fmt.Errorf("build request: %w", err)
	}
	answer, err := s.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return 0, nil, fmt.Errorf("send request: %w", err)
	}
	s.answer.Reset()
	_, err = io.Copy(&s.answer, answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return answer.StatusCode, s.answer.Bytes(), nil
}

// build makes a request of bytes. What its headers mean is known from the second
// time on, because to read them is no part of a client's work.
func (s *standardClient) build(request []byte) (*http.Request, error) {
	head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	known := s.heads[string(head)]
	if known == nil {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return nil, err
		}
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", s.endpoint.Scheme, s.endpoint.Host
		s.heads[string(head)], known = r, r
	}
	r := *known
	r.Body = io.NopCloser(bytes.NewReader(body))
	return &r, nil
}
