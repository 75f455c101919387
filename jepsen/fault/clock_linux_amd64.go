package fault

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// skewedClock replaces clock_gettime in the kernel's page of code that every
// process has (the vDSO). It asks the kernel, and adds the seconds in the word
// behind it to CLOCK_REALTIME alone:
//
//	mov  eax, 228        ; clock_gettime(edi, rsi)
//	syscall
//	test edi, edi        ; CLOCK_REALTIME is 0
//	jne  out
//	mov  rcx, [rip+…]    ; the word
//	add  [rsi], rcx
//	out: ret
var skewedClock = []byte{
	0xb8, 0xe4, 0, 0, 0,
	0x0f, 0x05,
	0x85, 0xff,
	0x75, 0x0a,
	0x48, 0x8b, 0x0d, 0, 0, 0, 0, // the distance to the word is filled in
	0x48, 0x01, 0x0e,
	0xc3,
}

const (
	skewDistance = 14 // offset of the distance in skewedClock
	skewLoaded   = 18 // offset that the distance counts from
	skewTries    = 100
)

// SkewClock sets the wall clock of a running node off by whole seconds, from now
// on until the next call or until the process ends. Its other clocks, and those
// of all other processes, stay right. The node stands still for some milliseconds.
// It returns an error that wraps ErrUnavailable where that cannot be done.
func (n *Node) SkewClock(by time.Duration) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("skew clock: not root: %w", ErrUnavailable)
	}
	for range skewTries {
		done, err := n.skewOnce(by)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("skew clock of node %d: %w: %w", n.PID(), ErrUnavailable, err)
		}
		if err != nil {
			return fmt.Errorf("skew clock of node %d: %w", n.PID(), err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("skew clock of node %d: it was reading it %d times", n.PID(), skewTries)
}

// skewOnce stops the process and writes, unless a thread is reading the clock.
func (n *Node) skewOnce(by time.Duration) (done bool, err error) {
	if err := n.Pause(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, n.Resume()) }()
	v, err := openVDSO(n.PID())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.memory.Close()) }()
	if inside, err := v.occupied(n.PID()); inside || err != nil {
		return false, err
	}
	return true, v.skew(int64(by / time.Second))
}

// vdso is the vDSO of a process.
type vdso struct {
	memory    *os.File
	low, high uint64
	function  uint64 // address of clock_gettime
	size      uint64
}

func openVDSO(pid int) (*vdso, error) {
	v := &vdso{}
	if err := v.find(pid); err != nil {
		return nil, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	v.memory = memory
	if err := v.locate(); err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	return v, nil
}

// find reads where the vDSO lies.
func (v *vdso) find(pid int) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return fmt.Errorf("read mappings: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		if !strings.HasSuffix(lines.Text(), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &v.low, &v.high); err != nil {
			return fmt.Errorf("parse mapping %q: %w", lines.Text(), err)
		}
		return nil
	}
	return fmt.Errorf("no vDSO: %w", ErrUnavailable)
}

// locate finds clock_gettime by the symbols of the vDSO.
func (v *vdso) locate() error {
	image := make([]byte, v.high-v.low)
	if _, err := v.memory.ReadAt(image, int64(v.low)); err != nil {
		return fmt.Errorf("read vDSO: %w", err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return fmt.Errorf("parse vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("parse symbols of the vDSO: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			v.function, v.size = v.low+s.Value, s.Size
		}
	}
	if word := v.word() + 8; v.function == 0 || v.size < word-v.function {
		return fmt.Errorf("clock_gettime of %d bytes in the vDSO: %w", v.size, ErrUnavailable)
	}
	return nil
}

// word is the address of the seconds to add: aligned, so that no reader ever
// sees half of a change.
func (v *vdso) word() uint64 {
	return (v.function + uint64(len(skewedClock)) + 7) &^ 7
}

// occupied reports whether a thread of the stopped process is in the vDSO, where
// its code must not change.
func (v *vdso) occupied(pid int) (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil || len(tasks) == 0 {
		return false, fmt.Errorf("list threads: %d, %w", len(tasks), err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			return false, fmt.Errorf("read where a thread is: %w", err)
		}
		fields := strings.Fields(string(text))
		at, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
		if err != nil { // "running": it has not stopped yet
			return true, nil
		}
		if at >= v.low && at < v.high {
			return true, nil
		}
	}
	return false, nil
}

func (v *vdso) skew(seconds int64) error {
	word := make([]byte, 8)
	binary.LittleEndian.PutUint64(word, uint64(seconds))
	if _, err := v.memory.WriteAt(word, int64(v.word())); err != nil {
		return fmt.Errorf("write skew: %w", err)
	}
	code := bytes.Clone(skewedClock)
	binary.LittleEndian.PutUint32(code[skewDistance:], uint32(v.word()-v.function-skewLoaded))
	if _, err := v.memory.WriteAt(code, int64(v.function)); err != nil {
		return fmt.Errorf("write code: %w", err)
	}
	return nil
}
