package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAdminAnswer bounds what is read from an admin port.
const maxAdminAnswer = 64 << 20

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
		return fmt.Errorf("reach node: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end, or abandoned
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", url, err)
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

func refusal(status string, data []byte) error {
	var problem struct{ Error string }
	if json.Unmarshal(data, &problem) == nil && problem.Error != "" {
		return fmt.Errorf("%s", problem.Error)
	}
	return fmt.Errorf("node answers %s", status)
}
