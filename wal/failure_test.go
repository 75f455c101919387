package wal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// failing opens a log with entries 1 to 50 in many segments, of which the
// engine's next call of that name fails, and collects the calls of Fatal.
func failing(t *testing.T, call string) (l *Log, e *faultyEngine, fatal *[]error) {
	t.Helper()
	e, fatal = &faultyEngine{}, new([]error)
	l = openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{
		SegmentSize: 500, RingBytes: 1000, RetainBytes: 1,
		Fatal: func(err error) { *fatal = append(*fatal, err) },
		engine: func(dir string, s []segment, last uint64, size int, f files) (engine, error) {
			inner, err := openTidwall(dir, s, last, size, f)
			e.engine = inner
			return e, err
		},
	})
	store(t, l, entries(1, 50, 1, 100))
	e.fail = call
	return l, e, fatal
}

func TestFirstErrorStopsTheLog(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail string
		call func(l *Log) error
	}{
		{"write", "flush", func(l *Log) error { return l.StoreLogs(entries(51, 52, 1, 10)) }},
		{"sync", "sync", func(l *Log) error { return l.StoreLogs(entries(51, 52, 1, 10)) }},
		{"read", "read", func(l *Log) error { return l.GetLog(3, &raft.Log{}) }},
		{"truncation of the back", "truncateBack", func(l *Log) error { return l.DeleteRange(40, 50) }},
		{"removal of segments", "remove", func(l *Log) error { return l.DeleteRange(1, 30) }},
		{"reset", "close", func(l *Log) error { return l.DeleteRange(1, 50) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, e, fatal := failing(t, tt.fail)
			if err := tt.call(l); !errors.Is(err, errDisk) {
				t.Errorf("got %v, want the error of the disk", err)
			}
			for _, again := range []func() error{
				func() error { return l.StoreLogs(entries(51, 51, 1, 10)) },
				func() error { return l.DeleteRange(1, 2) },
				func() error { return l.GetLog(35, &raft.Log{}) },
				func() error { return tt.call(l) },
			} {
				if err := again(); !errors.Is(err, errDisk) {
					t.Errorf("after the error: got %v, want it again", err)
				}
			}
			if e.hits != 1 {
				t.Errorf("the call that failed was made %d times", e.hits)
			}
			if len(*fatal) != 1 || !errors.Is((*fatal)[0], errDisk) {
				t.Errorf("got Fatal calls %v, want one with the error of the disk", *fatal)
			}
			if err := l.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// shiftedEngine reads the record beside the one that is asked for, as an engine
// does whose table of places is wrong.
type shiftedEngine struct{ engine }

func (e shiftedEngine) read(index uint64) ([]byte, error) { return e.engine.read(index + 1) }

func TestIntactRecordOfAnotherIndexIsRefused(t *testing.T) {
	l, e, fatal := failing(t, "")
	e.engine = shiftedEngine{e.engine}
	if err := l.GetLog(3, &raft.Log{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if len(*fatal) != 1 {
		t.Errorf("got Fatal calls %v, want one", *fatal)
	}
}

// Entries that were durable before the failure stay readable from memory, so
// that raft, which panics when it cannot read, lets Fatal end the process.
func TestRecentEntriesOutliveAFailure(t *testing.T) {
	l, _, _ := failing(t, "sync")
	if err := l.StoreLogs(entries(51, 51, 1, 10)); err == nil {
		t.Fatal("want an error")
	}
	checkEntry(t, l, entry(50, 1, 100))
	if err := l.GetLog(51, &raft.Log{}); err == nil {
		t.Error("an entry that was not stored can be read")
	}
	checkBounds(t, l, 1, 50)
}

func TestFatalMayUseTheLog(t *testing.T) {
	l, _, _ := failing(t, "sync")
	done := make(chan error, 1)
	l.options.Fatal = func(error) { done <- l.Close() }
	if err := l.StoreLogs(entries(51, 51, 1, 10)); err == nil {
		t.Fatal("want an error")
	}
	if err := <-done; err != nil {
		t.Errorf("close: %v", err)
	}
}

// hangingEngine is a disk on which a sync takes until told otherwise.
type hangingEngine struct {
	engine
	syncing, release chan struct{}
}

func (e *hangingEngine) sync() error {
	e.syncing <- struct{}{}
	<-e.release
	return e.engine.sync()
}

func TestReadersDoNotWaitForADiskThatHangs(t *testing.T) {
	e := &hangingEngine{syncing: make(chan struct{}, 9), release: make(chan struct{}, 9)}
	now := time.Unix(1000, 0)
	var fsyncs []time.Duration
	l := openLog(t, filepath.Join(t.TempDir(), "wal"), LogOptions{
		Now:     func() time.Time { return now },
		Observe: func(d time.Duration) { fsyncs = append(fsyncs, d) },
		engine: func(dir string, s []segment, last uint64, size int, f files) (engine, error) {
			inner, err := openTidwall(dir, s, last, size, f)
			e.engine = inner
			return e, err
		},
	})
	e.release <- struct{}{}
	store(t, l, entries(1, 9, 1, 10))
	<-e.syncing
	if got := l.Busy(); got != 0 {
		t.Errorf("idle: got Busy %v, want 0", got)
	}
	stored := make(chan error)
	go func() { stored <- l.StoreLogs(entries(10, 10, 1, 10)) }()
	<-e.syncing
	now = now.Add(7 * time.Second)
	if got := l.Busy(); got != 7*time.Second {
		t.Errorf("hanging: got Busy %v, want 7s", got)
	}
	checkEntry(t, l, entry(9, 1, 10))
	checkBounds(t, l, 1, 9)
	e.release <- struct{}{}
	if err := <-stored; err != nil {
		t.Error(err)
	}
	if got := l.Busy(); got != 0 {
		t.Errorf("idle: got Busy %v, want 0", got)
	}
	checkBounds(t, l, 1, 10)
	if len(fsyncs) != 2 || fsyncs[1] != 7*time.Second {
		t.Errorf("got fsyncs of %v, want the second one to take 7s", fsyncs)
	}
}

// TestFileSizeLimit fills the disk, as far as one process can: a write beyond
// RLIMIT_FSIZE is cut short with EFBIG. The process that met it must have
// stopped, and the next one must find what was acknowledged and no more than
// what was written.
func TestFileSizeLimit(t *testing.T) {
	const variable = "WAL_TEST_FILE_SIZE_LIMIT"
	if dir := os.Getenv(variable); dir != "" {
		fillUntilRefused(dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "wal")
	child := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$")
	child.Env = append(os.Environ(), variable+"="+dir)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var acked uint64
	var fatal, retries int
	if _, err := fmt.Sscanf(lineOf(string(out), "result "), "result %d %d %d", &acked, &fatal, &retries); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if acked == 0 || fatal != 1 || retries != 0 {
		t.Errorf("%d entries were acknowledged, Fatal was called %d times, %d later calls succeeded; want some, 1, 0", acked, fatal, retries)
	}
	l := openLog(t, dir, LogOptions{})
	last, _ := l.LastIndex()
	if last < acked || last > acked+3 {
		t.Errorf("the log ends at entry %d, %d were acknowledged", last, acked)
	}
	for i := uint64(1); i <= last; i++ {
		checkEntry(t, l, entry(i, 1, 1000))
	}
	store(t, l, entries(last+1, last+1, 1, 1000))
}

func lineOf(out, prefix string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

func fillUntilRefused(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	var fatal, retries int
	l, err := OpenLog(dir, LogOptions{Fatal: func(error) { fatal++ }})
	if err != nil {
		panic(err)
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		panic(err)
	}
	limit := old
	limit.Cur = 55_500
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	acked := uint64(0)
	for l.StoreLogs(entries(acked+1, acked+3, 1, 1000)) == nil {
		acked += 3
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		panic(err)
	}
	for range 3 { // there is room again, and still nothing may be written
		if l.StoreLogs(entries(acked+1, acked+1, 9, 1000)) == nil {
			retries++
		}
	}
	fmt.Printf("\nresult %d %d %d\n", acked, fatal, retries)
}

// TestPowerCutDuringReset cuts the power after each call that a reset makes:
// the next start finds all of the old log or the empty new one.
func TestPowerCutDuringReset(t *testing.T) {
	whole := writeLog(t, 30, 200, 2000)
	outcomes := map[uint64]int{}
	for calls := 0; ; calls++ {
		dir := copyLog(t, whole)
		f := newFaultyFiles(-1)
		l := openLog(t, dir, LogOptions{SegmentSize: 2000, files: f})
		f.count, f.calls = 0, calls
		err := l.StoreLogs(entries(100, 101, 2, 10))
		if err == nil && calls < f.count {
			t.Fatal("the power cut was not noticed")
		}
		settle(t, l) // without power no zeros are written behind the next one's back
		if cutErr := f.cut(); cutErr != nil {
			t.Fatal(cutErr)
		}
		l = openLog(t, dir, LogOptions{SegmentSize: 2000})
		first, _ := l.FirstIndex()
		outcomes[first]++
		switch {
		case first == 1:
			checkBounds(t, l, 1, 30)
			checkEntry(t, l, entry(30, 1, 200))
		case err == nil:
			checkBounds(t, l, 100, 101)
		default:
			checkBounds(t, l, 0, 0)
		}
		if t.Failed() {
			t.Fatalf("power cut after %d calls", calls)
		}
		if err == nil {
			if first != 100 {
				t.Errorf("an acknowledged entry is lost")
			}
			break
		}
	}
	if outcomes[1] == 0 || outcomes[0] == 0 {
		t.Errorf("got outcomes %v, want power cuts before and after the point of no return", outcomes)
	}
}
