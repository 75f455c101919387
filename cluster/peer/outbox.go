package peer

import (
	"context"
	"errors"
	"math"
	"net"
	"runtime"
	"sync"
	"time"
)

// outbox holds what waits to be written to a connection. One goroutine writes
// all of it at once, so that many small frames cost one system call.
type outbox struct {
	conn net.Conn
	now  func() time.Time
	wake chan struct{} // for the writer

	mu     sync.Mutex
	buf    []byte        // frames that are not yet being written
	batch  uint64        // how many buffers were taken for writing
	spare  []byte        // a buffer to use again
	room   chan struct{} // closed when buf is taken, or the outbox fails; nil if nobody waits
	failed error
}

// outboxLimit is the size in bytes of what may wait before whoever adds more has
// to wait, too. As much may be on its way.
const outboxLimit = MaxFrame

const (
	writePiece = 256 << 10 // is written under one deadline
	spareLimit = 1 << 20   // larger buffers are not kept
)

// roomTimeout is how long a request waits for room. Then it is known not to be sent,
// and its caller can see whether there is time for another try.
const roomTimeout = time.Second

var errNoRoom = errors.New("too much waits to be sent")

func newOutbox(conn net.Conn, now func() time.Time) *outbox {
	return &outbox{conn: conn, now: now, wake: make(chan struct{}, 1)}
}

// ticket is where a frame is while it waits.
type ticket struct {
	batch  uint64
	offset int
}

// add appends a copy of f, once there is room. It fails if ctx is done before,
// or the connection has failed; f will not be written then.
func (o *outbox) add(ctx context.Context, f frame) (ticket, error) {
	for {
		t, room, err := o.tryAdd(f, outboxLimit)
		if room == nil {
			return t, err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ticket{}, context.Cause(ctx)
		}
	}
}

// addSoon is add for a request: it waits for roomTimeout at most.
func (o *outbox) addSoon(ctx context.Context, f frame) (ticket, error) {
	t, room, err := o.tryAdd(f, outboxLimit)
	if room == nil {
		return t, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, roomTimeout, errNoRoom)
	defer cancel()
	return o.add(ctx, f)
}

// addNow appends a small frame even if there is no room. What comes of a failed
// connection is nobody's concern any more.
func (o *outbox) addNow(f frame) { _, _, _ = o.tryAdd(f, math.MaxInt) }

// tryAdd appends f, or returns a channel that is closed when it is worth another
// try.
func (o *outbox) tryAdd(f frame, limit int) (ticket, <-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return ticket{}, nil, o.failed
	}
	if len(o.buf) > limit {
		if o.room == nil {
			o.room = make(chan struct{})
		}
		return ticket{}, o.room, nil
	}
	if o.buf == nil {
		o.buf, o.spare = o.spare, nil
	}
	t := ticket{o.batch, len(o.buf)}
	o.buf = appendFrame(o.buf, f)
	if t.offset == 0 {
		o.wakeWriter()
	}
	return t, nil, nil
}

func (o *outbox) wakeWriter() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// recall takes a frame back; false if it was written, or part of it may have
// been.
func (o *outbox) recall(t ticket) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch != t.batch {
		return false
	}
	o.buf[t.offset+frameTypeAt] = byte(frameVoid)
	return true
}

// run writes until the outbox fails, and returns why.
func (o *outbox) run() error {
	for {
		<-o.wake
		runtime.Gosched() // whoever was woken together with the first one adds more
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
	o.buf = nil
	o.batch++
	o.makeRoom()
	return buf, nil
}

func (o *outbox) makeRoom() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
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
	if cap(buf) > spareLimit {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spare = buf[:0]
}

// fail ends the outbox. What waits is not written; recall still tells what that
// was.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
	o.makeRoom()
	o.wakeWriter()
}
