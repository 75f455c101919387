package cluster

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"holdfast.internal/raftfsm"
	"holdfast.internal/wal"
)

// VerifyData reads all that is in the data directory of a node and changes nothing: it
// checks what a start checks, but for what the command line must fit (name, members).
// The error is for what could not be read, for another version's format and for a
// directory that is none of a node (wal.ErrNoData); what is wrong is in the report.
func VerifyData(dir string) (wal.Report, error) {
	report, err := wal.Verify(dir, decodeState)
	if err != nil {
		return report, err
	}
	_, _, err = loadIdentity(dir)
	switch {
	case err == nil:
	case errors.Is(err, ErrIdentity) && !errors.Is(err, wal.ErrFormat):
		report.Problems = append(report.Problems, openError(dir, err).Error())
	default:
		return report, openError(dir, err)
	}
	return report, nil
}

// openError says which directory cannot be opened.
func openError(dir string, err error) error { return fmt.Errorf("open %s: %w", dir, err) }

// decodeState restores a state into a machine, as a start does.
func decodeState(state io.Reader) (live iter.Seq2[uint64, uint64], err error) {
	machine := raftfsm.NewShadow()
	if err := machine.Restore(io.NopCloser(state)); err != nil {
		return nil, err
	}
	return machine.LiveBodies(), nil
}
