package peer

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// MaxFrame is the size in bytes of the longest request or answer.
const MaxFrame = 16 << 20

const (
	frameTypeAt = 4             // where the type of a frame is
	frameHeader = 4 + 1 + 1 + 8 // the size of what precedes the payload
)

// frameType is what a frame is.
type frameType byte

const (
	frameVoid    frameType = iota // is skipped: its caller left before it was written
	frameRequest                  // payload for the handler of the method
	frameAnswer                   // what the handler returned
	frameRefused                  // the request was not executed; the payload says why
	frameFailed                   // it was, but there is no answer; the payload says why
	frameCancel                   // whoever asked has left
)

// frame is one unit of a connection that carries requests.
type frame struct {
	kind    frameType
	method  byte // of a request
	id      uint64
	payload []byte
}

func appendFrame(b []byte, f frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.payload)))
	b = append(b, byte(f.kind), f.method)
	b = binary.LittleEndian.AppendUint64(b, f.id)
	return append(b, f.payload...)
}

// frameReader reads frames from a connection. Between frames it waits for ever
// (the connection's keep-alive notices a dead peer); once a frame has begun it
// fails when nothing comes for a while.
type frameReader struct {
	conn  net.Conn
	now   func() time.Time
	buf   []byte // what was read and not yet used is buf[start:end]
	start int
	end   int
	armed bool // a deadline is set
}

const frameBuffer = 64 << 10

func newFrameReader(conn net.Conn, now func() time.Time) *frameReader {
	return &frameReader{conn: conn, now: now, buf: make([]byte, frameBuffer)}
}

// next reads a frame. Its payload is the caller's to keep.
func (r *frameReader) next() (frame, error) {
	for r.end-r.start < frameHeader {
		if err := r.fill(); err != nil {
			return frame{}, err
		}
	}
	h := r.buf[r.start:r.end]
	size := binary.LittleEndian.Uint32(h)
	f := frame{kind: frameType(h[frameTypeAt]), method: h[5], id: binary.LittleEndian.Uint64(h[6:])}
	if size > MaxFrame {
		return frame{}, fmt.Errorf("read frame: %w: %d bytes", errTooLarge, size)
	}
	r.start += frameHeader
	if size == 0 {
		return f, nil
	}
	f.payload = make([]byte, size)
	n := copy(f.payload, r.buf[r.start:r.end])
	r.start += n
	for n < len(f.payload) {
		got, err := r.read(f.payload[n:], true)
		if err != nil {
			return frame{}, err
		}
		n += got
	}
	return f, nil
}

// fill reads more bytes into buf.
func (r *frameReader) fill() error {
	copy(r.buf, r.buf[r.start:r.end])
	r.end -= r.start
	r.start = 0
	n, err := r.read(r.buf[r.end:], r.end > 0)
	r.end += n
	return err
}

// read waits for bytes: within a frame for stallTimeout at most.
func (r *frameReader) read(b []byte, within bool) (int, error) {
	if within != r.armed || within {
		var deadline time.Time
		if within {
			deadline = r.now().Add(stallTimeout)
		}
		if err := r.conn.SetReadDeadline(deadline); err != nil {
			return 0, fmt.Errorf("read frame: %w", err)
		}
		r.armed = within
	}
	n, err := r.conn.Read(b)
	if n > 0 {
		return n, nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return 0, fmt.Errorf("read frame: %w", err)
}
