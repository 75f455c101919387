package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// The names that a replacement of the whole log uses beside its directory.
const (
	newSuffix = ".new"
	oldSuffix = ".old"
)

// layout is what the files in a log's directory mean, with a truncation that
// was interrupted already carried out in thought.
type layout struct {
	dir      string
	segments []segment // ascending; name is the name now
	remove   []string  // names to be removed
	finish   string    // name of a .START or .END file that becomes a segment
}

// The suffixes of the files that tidwall leaves when it is interrupted: a
// START file stands for all segments with indexes up to its own, an END file
// for all from its own on; a TEMP file is not complete.
const (
	startSuffix = ".START"
	endSuffix   = ".END"
	tempSuffix  = ".TEMP"

	segmentDigits = 20
)

// readLayout lists dir and changes nothing. Names that are none of ours are
// left alone.
func readLayout(dir string) (layout, error) {
	l := layout{dir: dir}
	entries, err := os.ReadDir(dir) // sorted, so ascending by index
	if err != nil {
		return l, err
	}
	var start, end *segment
	for _, entry := range entries {
		first, suffix, ok := parseSegmentName(entry.Name())
		if !ok {
			continue
		}
		s := segment{name: entry.Name(), first: first}
		switch {
		case suffix == "":
			l.segments = append(l.segments, s)
		case suffix == startSuffix:
			start = &s
		case suffix == endSuffix:
			end = &s
		case strings.HasSuffix(suffix, tempSuffix):
			l.remove = append(l.remove, s.name)
		}
	}
	if start != nil && end != nil {
		return l, corrupt(filepath.Join(dir, end.name), 0, "a START and an END file at once")
	}
	l.applyStart(start)
	l.applyEnd(end)
	return l, nil
}

func parseSegmentName(name string) (first uint64, suffix string, ok bool) {
	if len(name) < segmentDigits {
		return 0, "", false
	}
	first, err := strconv.ParseUint(name[:segmentDigits], 10, 64)
	return first, name[segmentDigits:], err == nil && first > 0
}

// applyStart puts an interrupted truncation of the front into effect.
func (l *layout) applyStart(start *segment) {
	if start == nil {
		return
	}
	kept := []segment{*start}
	for _, s := range l.segments {
		if s.first <= start.first {
			l.remove = append(l.remove, s.name)
		} else {
			kept = append(kept, s)
		}
	}
	l.segments, l.finish = kept, start.name
}

// applyEnd puts an interrupted truncation of the back into effect.
func (l *layout) applyEnd(end *segment) {
	if end == nil {
		return
	}
	var kept []segment
	for _, s := range l.segments {
		if s.first >= end.first {
			l.remove = append(l.remove, s.name)
		} else {
			kept = append(kept, s)
		}
	}
	l.segments, l.finish = append(kept, *end), end.name
}

// carryOut makes the directory what the layout says.
func (l *layout) carryOut(f files) error {
	if len(l.remove) == 0 && l.finish == "" {
		return nil
	}
	for _, name := range l.remove {
		if err := f.removeAll(filepath.Join(l.dir, name)); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	for i := range l.segments {
		s := &l.segments[i]
		if s.name != l.finish {
			continue
		}
		if err := f.rename(filepath.Join(l.dir, s.name), filepath.Join(l.dir, segmentName(s.first))); err != nil {
			return fmt.Errorf("finish truncation: %w", err)
		}
		s.name = segmentName(s.first)
	}
	return f.syncDir(l.dir)
}

// settle makes the last segment durable as it will be read. The process that wrote
// its last records may have been killed before their sync, or by its error; raft
// takes what OpenLog finds for durable.
func (l *layout) settle(f files) error {
	if len(l.segments) == 0 {
		return nil
	}
	if err := f.settle(filepath.Join(l.dir, l.segments[len(l.segments)-1].name)); err != nil {
		return fmt.Errorf("sync last segment: %w", err)
	}
	return nil
}

// torn is what a crash left behind the last record.
type torn struct {
	path  string // before an interrupted truncation is carried out
	at    int64  // where the last record ends
	size  int64  // bytes from there to the end of the file
	blank bool   // they are zeros, written ahead of records that never came
}

// scanned is what reading the whole log gave.
type scanned struct {
	first, last uint64 // last is first-1 for an empty log; both 0 without a segment
	torn        *torn
}

// scan reads and verifies every record, calls visit for each, and fills in the
// sizes of the segments. The entry given to visit is valid during the call.
// It changes nothing on disk.
func (l *layout) scan(visit func(*raft.Log) error) (scanned, error) {
	var result scanned
	var buf []byte
	for i := range l.segments {
		s := &l.segments[i]
		path := filepath.Join(l.dir, s.name)
		if i == 0 {
			result.first, result.last = s.first, s.first-1
		}
		if s.first != result.last+1 {
			return result, corrupt(path, 0, "entry %d is expected, the segment begins with %d: a segment is missing", result.last+1, s.first)
		}
		r := reading{path: path, buf: buf, next: s.first, isLast: i == len(l.segments)-1}
		if err := r.read(visit); err != nil {
			return result, err
		}
		buf, result.torn = r.buf, r.torn
		s.size, result.last = int64(r.end), r.next-1
	}
	return result, nil
}

// reading is how far the scan of one segment has come.
type reading struct {
	path   string
	isLast bool
	buf    []byte
	end    int    // of the intact records
	next   uint64 // the index behind them
	torn   *torn
}

// read reads the segment, and again from where it seems damaged as long as there are
// more intact records: a node may be writing the last one in place of zeros, so that
// what was read first is older than what was read last. The second look begins when
// all is written that precedes what the first one has seen.
func (r *reading) read(visit func(*raft.Log) error) error {
	for seen := -1; ; seen = r.end {
		r.torn = nil
		data, err := readFile(r.path, r.buf)
		if err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		r.buf = data
		if len(data) <= r.end {
			return nil
		}
		end, next, err := scanSegment(data[r.end:], r.next, visit, r.path)
		if err != nil {
			return err
		}
		r.end, r.next = r.end+end, next
		if r.end == len(data) {
			return nil
		}
		r.torn, err = tornTail(r.path, data, r.end, r.next, r.isLast)
		if err == nil || !r.isLast || r.end == seen {
			return err
		}
	}
}

// visitError carries an error of the visitor through the scan, so that it is
// not taken for damage.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }
func (e *visitError) Unwrap() error { return e.err }

// scanSegment is scanRecords, whose error it returns only if it is visit's.
func scanSegment(data []byte, first uint64, visit func(*raft.Log) error, path string) (end int, next uint64, err error) {
	end, next, err = scanRecords(data, first, func(e *raft.Log) error {
		if err := visit(e); err != nil {
			return &visitError{err}
		}
		return nil
	})
	if v := (*visitError)(nil); errors.As(err, &v) {
		return end, next, fmt.Errorf("visit entry %d in %s: %w", next, path, v.err)
	}
	return end, next, nil
}

// tornTail says whether the damage at end is the torn tail of the log.
func tornTail(path string, data []byte, end int, index uint64, isLast bool) (*torn, error) {
	_, _, reason := scanRecords(data[end:], index, func(*raft.Log) error { return nil })
	if !isLast {
		return nil, corrupt(path, int64(end), "entry %d: %v", index, reason)
	}
	if err := checkTorn(data, end, index); err != nil {
		return nil, corrupt(path, int64(end), "entry %d: %v: %v", index, reason, err)
	}
	return &torn{path: path, at: int64(end), size: int64(len(data) - end), blank: isZero(data[end:])}, nil
}

// readFile reads a file whole, into buf if it is large enough.
func readFile(path string, buf []byte) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if int64(cap(buf)) < info.Size() {
		buf = make([]byte, info.Size())
	}
	data = buf[:info.Size()]
	for n := 0; n < len(data); {
		m, err := f.Read(data[n:])
		if errors.Is(err, io.EOF) { // a node that stops took its zeros off
			return data[:n], nil
		}
		if err != nil {
			return nil, err
		}
		n += m
	}
	return data, nil
}

// finishReset completes a replacement of the whole log that was interrupted:
// forward if the old directory was already moved away, else back.
func finishReset(f files, dir string) error {
	replacement, old := dir+newSuffix, dir+oldSuffix
	_, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && exists(replacement) && exists(old):
		if err := f.rename(replacement, dir); err != nil {
			return fmt.Errorf("finish reset of log: %w", err)
		}
	case errors.Is(err, fs.ErrNotExist) && exists(old):
		return corrupt(old, 0, "the log was moved away and nothing took its place")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !exists(replacement) && !exists(old) {
		return nil
	}
	if err := f.syncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := f.removeAll(replacement); err != nil {
		return fmt.Errorf("remove unfinished log: %w", err)
	}
	if err := f.removeAll(old); err != nil {
		return fmt.Errorf("remove old log: %w", err)
	}
	return f.syncDir(filepath.Dir(dir))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
