package bench

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

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
