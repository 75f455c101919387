package bench

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc/PID/stat: USER_HZ, 100 on every machine that
// Linux runs on today.
const ticksPerSecond = 100

// peakMemory is the most memory that a process has had, in bytes; 0 if that is
// not known.
func peakMemory(pid int) int64 { return 1024 * procField(pid, "status", "VmHWM:") }

// readBytes is what a process has read from disks; 0 if that is not known.
func readBytes(pid int) int64 { return procField(pid, "io", "read_bytes:") }

// procField is the number behind a name in a file of /proc/PID.
func procField(pid int, file, name string) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name); found {
			n, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
			return n
		}
	}
	return 0
}

// processCPU returns the processor time that another process has used; 0 if that
// is not known.
func processCPU(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in parentheses may hold spaces; user and system time are the 12th
	// and 13th field after it.
	after := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(after) < 13 {
		return 0
	}
	user, userErr := strconv.ParseInt(string(after[11]), 10, 64)
	system, systemErr := strconv.ParseInt(string(after[12]), 10, 64)
	if userErr != nil || systemErr != nil {
		return 0
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
