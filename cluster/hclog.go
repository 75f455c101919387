package cluster

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// newRaftLogger is a logger for raft that writes to l: warnings and errors as
// such, all else as debug, since what raft calls info helps only those who debug
// raft.
func newRaftLogger(l *slog.Logger) hclog.Logger {
	level := hclog.Warn
	if l.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: level, Output: io.Discard})
	logger.RegisterSink(raftSink{l})
	return logger
}

// raftSink gets every message that raft logs.
type raftSink struct{ log *slog.Logger }

// Accept implements hclog.SinkAdapter.
func (s raftSink) Accept(name string, level hclog.Level, text string, args ...any) {
	to := slog.LevelDebug
	switch {
	case isFirstElection(text, args), toldElsewhere[text]:
	case level == hclog.Warn:
		to = slog.LevelWarn
	case level == hclog.Error:
		to = slog.LevelError
	}
	if !s.log.Enabled(context.Background(), to) {
		return
	}
	attrs := []slog.Attr{slog.String("logger", name), slog.String("text", text)}
	for i := 0; i+1 < len(args); i += 2 {
		key, _ := args[i].(string)
		attrs = append(attrs, slog.Any(strings.ReplaceAll(key, "-", "_"), args[i+1]))
	}
	s.log.LogAttrs(context.Background(), to, "raft reports", attrs...)
}

// toldElsewhere is what raft says, many times a second, of members that it cannot
// reach and of connections that end, which the pings tell operators once; and of
// snapshots, which the snapshotter tells.
var toldElsewhere = map[string]bool{
	"failed to take snapshot":                                   true,
	"Election timeout reached, restarting election":             true,
	"failed to accept connection":                               true,
	"failed to decode incoming command":                         true,
	"failed to flush response":                                  true,
	"failed to start pipeline replication to":                   true,
	"failed to appendEntries to":                                true,
	"failed to pipeline appendEntries":                          true,
	"failed to heartbeat to":                                    true,
	"failed to make requestVote RPC":                            true,
	"failed to contact":                                         true,
	"target does not support pre-vote RPC, treating as granted": true,
	"no known peers, aborting election":                         true,
	"rejecting pre-vote request since we have a leader":         true,
	"rejecting vote request since we have a leader":             true,
	"appendEntries rejected, sending older logs":                true,
}

// isFirstElection reports whether raft warns that it found no leader though it
// never knew one: so begins every start of a node that is alone.
func isFirstElection(text string, args []any) bool {
	if text != "heartbeat timeout reached, starting election" {
		return false
	}
	for i := 0; i+1 < len(args); i += 2 {
		if id, ok := args[i+1].(raft.ServerID); ok && args[i] == "last-leader-id" {
			return id == ""
		}
	}
	return false
}
