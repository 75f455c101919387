package wal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"holdfast.internal/jepsen/fault"
)

const cutVariable = "WAL_TEST_POWER_CUT"

// cutLog is what a log must hold: the terms of its entries, of which the oldest may
// have been deleted.
type cutLog struct {
	first, last uint64
	terms       map[uint64]uint64
}

// cutEntry is the entry that is stored under an index in a term.
func cutEntry(index, term uint64) *raft.Log {
	r := rand.New(rand.NewPCG(index, term))
	return entry(index, term, []int{0, r.IntN(200), r.IntN(3000), r.IntN(60_000)}[r.IntN(4)])
}

// cutStep is a call of the log: entries are stored, or deleted at the back or at the
// front.
type cutStep struct {
	kind     string
	from, to uint64
	term     uint64
}

func (s cutStep) run(l *Log) error {
	if s.kind != "store" {
		return l.DeleteRange(s.from, s.to)
	}
	var batch []*raft.Log
	for i := s.from; i <= s.to; i++ {
		batch = append(batch, cutEntry(i, s.term))
	}
	return l.StoreLogs(batch)
}

// step chooses the next call.
func (c *cutLog) step(r *rand.Rand, term uint64) cutStep {
	held := c.last - c.first
	switch n := r.IntN(40); {
	case n == 0 && held > 10: // the log of a leader that is none any more
		return cutStep{"back", c.last - r.Uint64N(held), c.last, term}
	case n == 1 && held > 10:
		return cutStep{"front", c.first, c.first + r.Uint64N(held), term}
	case n == 2 && r.IntN(3) == 0: // a snapshot came
		from := c.last + 2 + r.Uint64N(50)
		return cutStep{"store", from, from + r.Uint64N(3), term}
	}
	return cutStep{"store", c.last + 1, c.last + 1 + r.Uint64N(5), term}
}

func (c *cutLog) apply(s cutStep) {
	switch {
	case s.kind == "back":
		c.last = s.from - 1
		return
	case s.kind == "front":
		c.first = s.to + 1
		return
	case s.from > c.last+1 || c.first == 0:
		c.first = s.from
	}
	for i := s.from; i <= s.to; i++ {
		c.terms[i] = s.term
	}
	c.last = s.to
}

// runUntilCut makes calls for ever, and tells of each before and after it.
func runUntilCut(dir string) {
	l, err := OpenLog(dir, LogOptions{SegmentSize: 600 << 10, RetainBytes: 1, RingBytes: 1})
	if err != nil {
		panic(err)
	}
	seed, _ := strconv.ParseUint(os.Getenv(cutVariable+"_SEED"), 10, 64)
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	r, c := rand.New(rand.NewPCG(seed, 3)), &cutLog{first, last, map[uint64]uint64{}}
	for term := seed << 32; ; term++ {
		s := c.step(r, term)
		fmt.Printf("begin %s %d %d %d\n", s.kind, s.from, s.to, s.term)
		if err := s.run(l); err != nil {
			panic(err)
		}
		fmt.Println("done")
		c.apply(s)
	}
}

// TestPowerCuts cuts the power of a process that stores, truncates and resets, at
// any moment, on a file system with a journal, again and again on the same log.
func TestPowerCuts(t *testing.T) {
	if dir := os.Getenv(cutVariable); dir != "" {
		runUntilCut(dir)
	}
	cuts := uint64(3)
	if os.Getenv("HOLDFAST_LONG") != "" {
		cuts = 200
	}
	disk := mountDisk(t, 64<<20)
	c := &cutLog{terms: map[uint64]uint64{}}
	for seed := range cuts {
		c.cut(t, disk, seed+1)
		if t.Failed() {
			t.Fatalf("cut %d", seed+1)
		}
	}
}

// cut runs the calls of one seed for a while, and looks what the next start finds.
func (c *cutLog) cut(t *testing.T, disk *fault.Disk, seed uint64) {
	t.Helper()
	dir := filepath.Join(disk.Path(), "wal")
	child := exec.Command(os.Args[0], "-test.run=^TestPowerCuts$")
	child.Env = append(os.Environ(), cutVariable+"="+dir, fmt.Sprintf("%s_SEED=%d", cutVariable, seed))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	alarm := time.AfterFunc(time.Duration(100+seed*37%400)*time.Millisecond, func() {
		err := errors.Join(child.Process.Signal(syscall.SIGSTOP), awaitStopped(child.Process.Pid), disk.Break(), child.Process.Kill())
		if err != nil {
			t.Error(err)
		}
	})
	defer alarm.Stop()
	pending, calls, err := c.follow(out)
	if err != nil {
		t.Error(err)
	}
	_ = child.Wait() // it was killed
	if err := disk.Remount(); err != nil {
		t.Fatal(err)
	}
	t.Logf("cut %d after %d calls, in %v; %d to %d", seed, calls, pending, c.first, c.last)
	c.check(t, dir, pending)
}

// awaitStopped returns when every thread of a child has stopped: a sync that is under
// way when the power goes may be told success.
func awaitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// follow takes the calls that were made, until the power goes.
func (c *cutLog) follow(out io.Reader) (pending *cutStep, calls int, err error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line, s := lines.Text(), cutStep{}
		if line == "done" {
			c.apply(*pending)
			pending = nil
			calls++
			continue
		}
		if _, err := fmt.Sscanf(line, "begin %s %d %d %d", &s.kind, &s.from, &s.to, &s.term); err != nil {
			return pending, calls, fmt.Errorf("%w in %q", err, line)
		}
		pending = &s
	}
	return pending, calls, lines.Err()
}

// check opens the log, and expects all that was finished, and of the call that was
// not, all, nothing, or some of its entries.
func (c *cutLog) check(t *testing.T, dir string, pending *cutStep) {
	t.Helper()
	l, err := OpenLog(dir, LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	next := *c
	if pending != nil {
		for i := pending.from; pending.kind == "store" && i <= pending.to; i++ {
			next.terms[i] = pending.term
		}
		next.apply(*pending)
	}
	old := last == c.last && first <= c.first
	done := last == next.last && first <= next.first
	part := pending != nil && pending.kind == "store" && (last >= pending.from && last < pending.to || last == 0 && next.first == pending.from)
	if !old && !done && !part {
		t.Fatalf("entries %d to %d are there, want %d to %d, or %d to %d after %v", first, last, c.first, c.last, next.first, next.last, pending)
	}
	for i := max(first, min(c.first, next.first)); i <= last && i > 0; i++ {
		checkEntry(t, l, cutEntry(i, next.terms[i]))
	}
	c.first, c.last = first, last
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
