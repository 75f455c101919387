package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// newRaftLogger is a logger for raft that writes to l: warnings and errors at the level
// that levelOf gives them, all else as debug, since what raft calls info helps only
// those who debug raft.
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
	to := levelOf(level, text, args)
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

// levelOf is the level of what raft says: an error is what needs hands, a warning what
// may. Raft calls errors what belongs to every change of the leader.
func levelOf(level hclog.Level, text string, args []any) slog.Level {
	ordinary, known := ordinaryLevels[text]
	switch {
	case isFirstElection(text, args), isMissingEntry(args):
		return slog.LevelDebug
	case known:
		return ordinary
	case level == hclog.Warn:
		return slog.LevelWarn
	case level == hclog.Error:
		return slog.LevelError
	}
	return slog.LevelDebug
}

// ordinaryLevels are those of what raft warns of, or calls an error, when a member
// dies, another one leads, or a link breaks.
var ordinaryLevels = map[string]slog.Level{
	// A leader was lost or replaced. Who leads then is logged by the node itself.
	"heartbeat timeout reached, starting election":               slog.LevelInfo,
	"Election timeout reached, restarting election":              slog.LevelDebug,
	"new leader elected, stepping down":                          slog.LevelDebug,
	"peer has newer term, stopping replication":                  slog.LevelDebug,
	"rejecting pre-vote request since we have a leader":          slog.LevelDebug,
	"rejecting vote request since we have a leader":              slog.LevelDebug,
	"rejecting pre-vote request since our last term is greater":  slog.LevelDebug,
	"rejecting vote request since our last term is greater":      slog.LevelDebug,
	"rejecting pre-vote request since our last index is greater": slog.LevelDebug,
	"rejecting vote request since our last index is greater":     slog.LevelDebug,
	"duplicate requestVote from":                                 slog.LevelDebug,
	"no known peers, aborting election":                          slog.LevelDebug,
	"target does not support pre-vote RPC, treating as granted":  slog.LevelDebug,

	// A follower's log is brought in line with the leader's.
	"appendEntries rejected, sending older logs": slog.LevelDebug,
	"previous log term mis-match":                slog.LevelDebug,
	"clearing log suffix":                        slog.LevelInfo,

	// Many times a second, of members that raft cannot reach and of connections that
	// end; the pings tell it once.
	"failed to accept connection":             slog.LevelDebug,
	"failed to decode incoming command":       slog.LevelDebug,
	"failed to flush response":                slog.LevelDebug,
	"failed to start pipeline replication to": slog.LevelDebug,
	"failed to appendEntries to":              slog.LevelDebug,
	"failed to pipeline appendEntries":        slog.LevelDebug,
	"failed to heartbeat to":                  slog.LevelDebug,
	"failed to make requestVote RPC":          slog.LevelDebug,
	"failed to contact":                       slog.LevelDebug,

	// Snapshots: the snapshotter tells of its own; one that is sent is sent again.
	"failed to take snapshot":          slog.LevelDebug,
	"failed to send snapshot to":       slog.LevelDebug, // the reason was said before
	"failed to install snapshot":       slog.LevelWarn,
	"failed to copy snapshot":          slog.LevelWarn,
	"failed to receive whole snapshot": slog.LevelWarn,
}

// isMissingEntry reports whether raft looked for an entry that is not in the log: then
// a member is too far behind, and gets older ones or a snapshot.
func isMissingEntry(args []any) bool {
	for i := 0; i+1 < len(args); i += 2 {
		if err, ok := args[i+1].(error); ok && errors.Is(err, raft.ErrLogNotFound) {
			return true
		}
	}
	return false
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
