package fault

import "syscall"

// processAttributes makes a node end with the process that started it, even if
// that is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
