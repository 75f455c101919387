//go:build !linux

package main

import "syscall"

// childAttributes keeps Ctrl-C of the terminal from a node, which is told by its
// parent.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
