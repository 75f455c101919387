//go:build !linux

package fault

// DropCache does nothing here: the kernel cannot be asked to forget.
func DropCache(string) error { return nil }
