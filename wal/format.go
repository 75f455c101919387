package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CheckFormat returns ErrFormat unless what, a file or directory, has a format that
// this program reads: oldest to newest.
func CheckFormat(what string, format, oldest, newest int) error {
	age := "a newer"
	switch {
	case format < oldest:
		age = "an older"
	case format <= newest:
		return nil
	}
	return fmt.Errorf("%s: %w: format %d, written by %s Holdfast; this one reads formats %d to %d",
		what, ErrFormat, format, age, oldest, newest)
}

// unmarked is the ErrFormat of data without a number.
func unmarked(what string) error {
	return fmt.Errorf("%s: %w: it has no number, so it is from before the first release, which no Holdfast reads", what, ErrFormat)
}

// formatFile names the file in a log's directory that says how its segments are to be
// read. It is there, durably, before the first record is.
const formatFile = "FORMAT"

// logFormat is the number in it that this program writes, and the only one it reads.
const logFormat = 1

// formatText is what the file holds.
const formatText = "holdfast raft log, format %d\n"

// checkFormat looks at the format of a log that holds records, and changes nothing.
func (l *layout) checkFormat() error {
	path := filepath.Join(l.dir, formatFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && l.isEmpty():
		return nil
	case errors.Is(err, os.ErrNotExist):
		return unmarked(l.dir)
	case err != nil:
		return err
	}
	var format int
	if _, err := fmt.Sscanf(string(text), formatText, &format); err != nil {
		return corrupt(path, 0, "it does not name a format")
	}
	return CheckFormat(l.dir, format, logFormat, logFormat)
}

// isEmpty reports whether the segments hold nothing: the directory is new, or a crash
// ended its creation.
func (l *layout) isEmpty() bool {
	for _, s := range l.segments {
		if info, err := os.Stat(filepath.Join(l.dir, s.name)); err == nil && info.Size() > 0 {
			return false
		}
	}
	return true
}

// markFormat writes the format of an empty log into its directory, for good, if it is
// not there yet.
func markFormat(f files, dir string) error {
	path := filepath.Join(dir, formatFile)
	if exists(path) {
		return nil
	}
	if exists(path + tmpSuffix) { // of a start that a crash ended
		if err := f.removeAll(path + tmpSuffix); err != nil {
			return fmt.Errorf("mark format of log: %w", err)
		}
	}
	out, err := f.create(path + tmpSuffix)
	if err != nil {
		return fmt.Errorf("mark format of log: %w", err)
	}
	_, err = fmt.Fprintf(out, formatText, logFormat)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("mark format of log: %w", err)
	}
	if err := f.rename(path+tmpSuffix, path); err != nil {
		return fmt.Errorf("mark format of log: %w", err)
	}
	return f.syncDir(dir)
}
