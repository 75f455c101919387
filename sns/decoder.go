package sns

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrVersion says that a state was encoded by another version of this package.
var ErrVersion = errors.New("sns: state of another version")

// errThaw is wrapped by every other error of Thaw.
var errThaw = errors.New("sns: malformed state")

// maxTime bounds the times in what is decoded, so that sums of them do not
// overflow.
const maxTime = 1 << 60

// decoder reads what was encoded. After an error all it reads is zero.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{errThaw}, args...)...)
	}
	d.data = nil
}

// number reads a number of at most most.
func (d *decoder) number(most uint64) uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || v > most {
		d.fail("bad number")
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) time() Time { return Time(d.number(maxTime)) }

// count reads how many things follow, each of at least one byte.
func (d *decoder) count() int { return int(d.number(uint64(len(d.data)))) }

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.fail("short")
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) bool() bool { return d.number(1) == 1 }

// bytes reads a part of the input, which is not copied.
func (d *decoder) bytes() []byte {
	n := d.count()
	if n > len(d.data) {
		d.fail("short text")
		return nil
	}
	b := d.data[:n:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes()) }

// fixed reads as many bytes as there are in b.
func (d *decoder) fixed(b []byte) {
	if len(d.data) < len(b) {
		d.fail("short array")
		return
	}
	d.data = d.data[copy(b, d.data):]
}
