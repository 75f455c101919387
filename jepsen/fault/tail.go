package fault

import "sync"

// tailSize is how much output of a process is kept.
const tailSize = 64 << 10

// tail is an io.Writer that keeps the last tailSize bytes.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if len(t.bytes) > 2*tailSize {
		t.bytes = append([]byte(nil), t.bytes[len(t.bytes)-tailSize:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes[max(0, len(t.bytes)-tailSize):])
}
