package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

type walDump struct {
	Dir  string `arg:"" help:"Data folder of a node; it is not changed."`
	From uint64 `placeholder:"N" help:"Begin with entry N (the first)."`
	To   uint64 `placeholder:"N" help:"End with entry N (the last)."`
}

// dumpLine is one command of an entry, or an entry of raft's own. Result is
// missing where it cannot be known: before the snapshot, and beside a running
// node.
type dumpLine struct {
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	T       int64  `json:"t,omitempty"` // cluster time, ms since the Unix epoch
	Kind    string `json:"kind"`
	Account string `json:"account,omitempty"`
	Queue   string `json:"queue,omitempty"`
	Topic   string `json:"topic,omitempty"`
	Result  string `json:"result,omitempty"`
}

// Run prints the entries asked for. The log holds no results, so it works them
// out again, as a restart would: from the newest snapshot on.
func (c *walDump) Run(out *console) error {
	if c.To != 0 && c.To < c.From {
		return usageError("--to %d is before --from %d", c.To, c.From)
	}
	if err := wal.CheckDataDir(c.Dir); err != nil {
		return err
	}
	machine, err := replayFrom(c.Dir)
	if err != nil {
		return err
	}
	from := c.From
	if machine != nil {
		from = min(from, machine.AppliedIndex()+1)
	}
	return wal.Scan(filepath.Join(c.Dir, wal.LogDir), from, c.To, func(entry *raft.Log) error {
		lines, err := linesOf(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", entry.Index, err)
		}
		for i, result := range replay(machine, entry) {
			lines[i].Result = result
		}
		if entry.Index < c.From {
			return nil
		}
		return writeLines(out.stdout, lines)
	})
}

// replayFrom returns the state of the newest snapshot, or an empty one; nil if
// a running node may be changing the folder.
func replayFrom(dir string) (*raftfsm.Machine, error) {
	if _, err := os.Stat(filepath.Join(dir, wal.StableFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lock, err := wal.OpenStable(filepath.Join(dir, wal.StableFile))
	if errors.Is(err, wal.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	machine, err := restoreNewest(filepath.Join(dir, wal.SnapshotDir))
	return machine, errors.Join(err, lock.Close())
}

// restoreNewest returns a shadow of the newest snapshot: results are shown
// without the contents of messages.
func restoreNewest(dir string) (*raftfsm.Machine, error) {
	machine := raftfsm.NewShadow()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return machine, nil
	}
	snapshots, err := wal.OpenSnapshots(dir, wal.SnapshotOptions{})
	if err != nil {
		return nil, err
	}
	return machine, restore(machine, snapshots, 0)
}

// restore puts the snapshot into the machine, if there is one from which a log that
// begins with first goes on.
func restore(machine *raftfsm.Machine, snapshots *wal.Snapshots, first uint64) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 || list[0].Index+1 < first {
		return err
	}
	id := list[0].ID
	_, state, err := snapshots.Open(id)
	if err != nil {
		return fmt.Errorf("open snapshot %s: %w", id, err)
	}
	if err := errors.Join(machine.Restore(state), state.Close()); err != nil {
		return fmt.Errorf("restore snapshot %s: %w", id, err)
	}
	return nil
}

// replay applies an entry if it is the next one, and describes its outcomes.
func replay(machine *raftfsm.Machine, entry *raft.Log) []string {
	if machine == nil || entry.Index <= machine.AppliedIndex() || entry.Type != raft.LogCommand {
		return nil
	}
	kept := *entry
	kept.Data = append([]byte(nil), entry.Data...) // the state keeps bodies, the scan its buffer
	applied, ok := machine.Apply(&kept).(*raftfsm.Applied)
	if !ok {
		return nil
	}
	var results []string
	for _, outcome := range applied.Outcomes {
		results = append(results, resultText(outcome))
	}
	return results
}

func resultText(outcome raftfsm.Outcome) string {
	if outcome.Err != nil {
		return outcome.Err.Error()
	}
	switch result := outcome.Result.(type) {
	case sqs.ReceiveMessageResult:
		return fmt.Sprintf("ok, %d received", len(result.Messages))
	case sqs.SendMessageBatchResult:
		refused := 0
		for _, entry := range result.Entries {
			if entry.Err != nil {
				refused++
			}
		}
		return batchText(len(result.Entries), refused)
	case sqs.BatchResult:
		refused := 0
		for _, err := range result.Errors {
			if err != nil {
				refused++
			}
		}
		return batchText(len(result.Errors), refused)
	default:
		return "ok"
	}
}

func batchText(entries, refused int) string {
	if refused == 0 {
		return "ok"
	}
	return fmt.Sprintf("ok, %d of %d refused", refused, entries)
}

// linesOf describes an entry, but for its results.
func linesOf(entry *raft.Log) ([]dumpLine, error) {
	line := dumpLine{Index: entry.Index, Term: entry.Term, Kind: strings.TrimPrefix(entry.Type.String(), "Log")}
	if entry.Type != raft.LogCommand {
		return []dumpLine{line}, nil
	}
	t, operations, err := raftfsm.DecodeEntry(entry.Data)
	if err != nil {
		return nil, err
	}
	line.T = int64(t)
	lines := make([]dumpLine, 0, len(operations))
	for _, operation := range operations {
		command, _, err := raftfsm.DecodeCommand(operation.Command)
		if err != nil {
			return nil, err
		}
		line.Kind, line.Account, line.Queue, line.Topic = raftfsm.CommandName(command), "", "", ""
		switch c := command.(type) {
		case sqs.Command:
			line.Account, line.Queue = c.Target().Account, c.Target().Name
		case sns.Command:
			line.Account, line.Topic = c.Target().Account, c.Target().Name
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func writeLines(w io.Writer, lines []dumpLine) error {
	for _, line := range lines {
		if err := writeJSON(w, line); err != nil {
			return err
		}
	}
	return nil
}
