package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A duration has its unit in both forms of the log, wherever it is.
func TestDurationsAreSpelled(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		logger, err := newLogger(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		logger.With("every", 250*time.Millisecond).Info("stalled", "for", 1500*time.Millisecond,
			slog.Group("disk", "p99", any(2*time.Microsecond)))
		for _, want := range []string{"1.5s", "250ms", "2µs"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %s, want %s in it", format, out.String(), want)
			}
		}
	}
}
