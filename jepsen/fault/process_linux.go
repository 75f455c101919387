package fault

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes makes a node end with the process that started it, even if
// that is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when every thread of the child has stopped, or when the
// child has ended: SIGSTOP only asks for it. Nothing is taken from whoever waits
// for the end of the child.
func awaitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil && !errors.Is(err, unix.ECHILD) {
			return fmt.Errorf("wait until node %d has stopped: %w", pid, err)
		}
		return nil
	}
}
