//go:build !linux

package fault

import "syscall"

// processAttributes leaves all as it is: only Linux can end a child with its
// parent.
func processAttributes() *syscall.SysProcAttr { return nil }

// awaitStopped does not wait: a child stops soon after it was asked to.
func awaitStopped(int) error { return nil }
