package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAdminAnswer bounds what is read from an admin port.
const maxAdminAnswer = 64 << 20

// lookTimeout is how long a look at a node may take.
const lookTimeout = 10 * time.Second

// errSilent says that a node has not answered in time.
var errSilent = errors.New("does not answer")

// adminURL accepts an admin port as a URL or, as serve takes it, HOST:PORT.
func adminURL(address string) string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimSuffix(address, "/")
}

// callAdmin does one request on an admin port and decodes the JSON answer into
// answer, unless that is nil. The body of a POST is JSON. A refusal becomes an error
// with the server's text.
func callAdmin(ctx context.Context, method, url string, body io.Reader, timeout time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return fmt.Errorf("address %s: %w", url, err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return unreached(request, err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end, or abandoned
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAdminAnswer))
	if err != nil {
		return unreached(request, err)
	}
	if response.StatusCode >= 400 {
		return refusal(response.Status, data)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("decode answer of %s: %w", url, err)
	}
	return nil
}

// unreached says why there is no answer to the request.
func unreached(request *http.Request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("reach node: %w", err)
	}
	if request.Method == http.MethodGet {
		return fmt.Errorf("the node at %s %w", request.URL.Host, errSilent)
	}
	return fmt.Errorf("the node at %s %w; it may still do what it was told", request.URL.Host, errSilent)
}

func refusal(status string, data []byte) error {
	var problem struct{ Error string }
	if json.Unmarshal(data, &problem) == nil && problem.Error != "" {
		return fmt.Errorf("%s", problem.Error)
	}
	return fmt.Errorf("node answers %s", status)
}
