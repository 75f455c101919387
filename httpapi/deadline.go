package httpapi

import (
	"sync"
	"time"
)

// deadlineSlack is how far the deadline that a socket has may be from the one
// that was asked for. The shortest deadline of the server is 30 s.
const deadlineSlack = time.Second

// deadline is the read or the write deadline of a connection. It is put on the
// socket by the next call that may block, and only if it is not about what the
// socket has: the HTTP server renews deadlines three times a request, of which a
// busy connection now pays for one in a second. It does not end a call that
// blocks already; for that, the server closes connections.
type deadline struct {
	mu     sync.Mutex
	wanted time.Time
	set    time.Time // what the socket has
}

// want takes note of a deadline; the zero Time is none.
func (d *deadline) want(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
}

// apply puts the deadline that is wanted on the socket.
func (d *deadline) apply(set func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted.IsZero() == d.set.IsZero() && d.wanted.Sub(d.set).Abs() < deadlineSlack {
		return nil
	}
	d.set = d.wanted
	return set(d.wanted)
}
