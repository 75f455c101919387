package peer

import (
	"net"
	"sync"
	"time"
)

// outbox holds what waits to be written to a connection. One goroutine writes
// all of it at once, so that many small frames cost one system call.
type outbox struct {
	conn net.Conn
	now  func() time.Time

	mu     sync.Mutex
	room   sync.Cond // waiting became shorter, or the outbox failed
	buf    []byte    // frames that are not yet being written
	batch  uint64    // how many buffers were taken for writing
	spare  []byte    // a buffer to use again
	failed error
	wake   chan struct{}
}

// outboxLimit is the size of the frames that may wait, in bytes, before whoever
// adds more has to wait, too.
const outboxLimit = MaxFrame

// writePiece is how much is written under one deadline.
const writePiece = 256 << 10

func newOutbox(conn net.Conn, now func() time.Time) *outbox {
	o := &outbox{conn: conn, now: now, wake: make(chan struct{}, 1)}
	o.room.L = &o.mu
	return o
}

// ticket is where a frame is while it waits.
type ticket struct {
	batch  uint64
	offset int
}

// add appends f. It waits while too much is waiting, unless f is urgent (a
// cancel frame, which is small and makes room). It fails once the connection
// has.
func (o *outbox) add(f frame, urgent bool) (ticket, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !urgent && o.failed == nil && len(o.buf) > outboxLimit {
		o.room.Wait()
	}
	if o.failed != nil {
		return ticket{}, o.failed
	}
	t := ticket{o.batch, len(o.buf)}
	if o.buf == nil {
		o.buf, o.spare = o.spare, nil
	}
	o.buf = appendFrame(o.buf, f)
	if t.offset == 0 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	return t, nil
}

// recall takes a frame back; false if it may have been written, in part at
// least.
func (o *outbox) recall(t ticket) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch != t.batch {
		return false
	}
	if t.offset < len(o.buf) {
		o.buf[t.offset+4] = byte(frameVoid)
	}
	return true
}

// run writes until the outbox fails, and returns why.
func (o *outbox) run() error {
	for {
		<-o.wake
		buf, err := o.take()
		if err == nil {
			err = o.write(buf)
		}
		if err != nil {
			o.fail(err)
			return err
		}
		o.giveBack(buf)
	}
}

func (o *outbox) take() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return nil, o.failed
	}
	buf := o.buf
	if len(buf) > 0 {
		o.buf = nil
		o.batch++
		o.room.Broadcast()
	}
	return buf, nil
}

func (o *outbox) write(buf []byte) error {
	for len(buf) > 0 {
		n := min(len(buf), writePiece)
		if err := o.conn.SetWriteDeadline(o.now().Add(stallTimeout)); err != nil {
			return err
		}
		if _, err := o.conn.Write(buf[:n]); err != nil {
			return err
		}
		buf = buf[n:]
	}
	return nil
}

// giveBack keeps buf for later use unless it is large.
func (o *outbox) giveBack(buf []byte) {
	if cap(buf) > 1<<20 {
		return
	}
	o.mu.Lock()
	o.spare = buf[:0]
	o.mu.Unlock()
}

// fail ends the outbox. What waits is not written; recall still tells what that
// was.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	if o.failed == nil {
		o.failed = err
	}
	o.room.Broadcast()
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
