package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// newLogger logs to w: text when format says so or, format being empty, when w
// is a terminal; JSON otherwise. Durations are texts such as "1.5s" in both.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	options.Level = least
	options.ReplaceAttr = spellDuration
	if format == "" && isTerminal(w) || format == "text" {
		return slog.New(slog.NewTextHandler(w, &options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, &options)), nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// spellDuration gives a duration its unit, which JSON would leave out.
func spellDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
