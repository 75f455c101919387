package main

import "syscall"

// childAttributes keeps Ctrl-C of the terminal from a node, which is told by its
// parent, and makes it end with its parent even if that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
