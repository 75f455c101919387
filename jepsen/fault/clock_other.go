//go:build !(linux && amd64)

package fault

import (
	"fmt"
	"time"
)

// SkewClock would set the wall clock of a running node off; it can do so on
// Linux on amd64 only.
func (n *Node) SkewClock(time.Duration) error {
	return fmt.Errorf("skew clock: %w", ErrUnavailable)
}
