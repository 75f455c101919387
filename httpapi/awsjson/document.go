package awsjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
)

const (
	// maxValues is the most values of one request; a batch of ten messages with
	// ten attributes each has about 450.
	maxValues = 16_384
	// maxDepth is how deep values may nest; no action needs more than seven.
	maxDepth = 32
	// keptValues and keptBytes bound what a Document keeps from one request for
	// the next.
	keptValues = 1024
	keptBytes  = 64 << 10
)

// kind is the type of a value.
type kind uint8

const (
	nullKind kind = iota + 1
	trueKind
	falseKind
	numberKind
	stringKind
	listKind
	structKind
)

// value is one value of a request. Values of a list or structure are linked in
// their order.
type value struct {
	document *Document
	key      []byte // unescaped; of a structure's member
	text     []byte // of a scalar: a number as written, a string unescaped
	kind     kind
	child    int32 // index of the first one inside; 0 for none
	next     int32 // index of the next one beside; 0 for none
}

// Document is a parsed request. It may be used again for another one; what was
// read from it with Bytes is invalid then.
type Document struct {
	values  []value
	data    []byte
	at      int
	scratch []byte // of strings that had escapes
	err     error  // the first type error
}

// The errors of Parse. Their texts are for the client.
const (
	errSyntax   = wire.ReadError("The request is not valid JSON.")
	errEncoding = wire.ReadError("The request is not valid UTF-8.")
	errTooMany  = wire.ReadError("The request has too many values.")
	errTooDeep  = wire.ReadError("The request nests too deep.")
	errObject   = wire.ReadError("The request is not a JSON object.")
)

// Parse reads a request, which must be one JSON object; an empty one stands for
// an object without members. The document refers to body until the next Parse.
// The error's text may be shown to the client.
func (d *Document) Parse(body []byte) (wire.Input, error) {
	d.values = d.values[:0]
	d.scratch = d.scratch[:0]
	d.data, d.at, d.err = body, 0, nil
	if !utf8.Valid(body) {
		return nil, errEncoding
	}
	d.skipSpace()
	if d.at == len(body) {
		d.values = append(d.values, value{document: d, kind: structKind})
		return &d.values[0], nil
	}
	if err := d.parseValue(nil, 0); err != nil {
		return nil, err
	}
	d.skipSpace()
	if d.at != len(body) {
		return nil, errSyntax
	}
	if d.values[0].kind != structKind {
		return nil, errObject
	}
	return &d.values[0], nil
}

// Release drops what refers to the request, and buffers that grew large.
func (d *Document) Release() {
	d.data, d.err = nil, nil
	clear(d.values)
	if cap(d.values) > keptValues {
		d.values = nil
	}
	if cap(d.scratch) > keptBytes {
		d.scratch = nil
	}
}

func (d *Document) skipSpace() {
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte after spaces, and 0 at the end.
func (d *Document) peek() byte {
	d.skipSpace()
	if d.at == len(d.data) {
		return 0
	}
	return d.data[d.at]
}

// parseValue appends the value that begins here, and all inside it.
func (d *Document) parseValue(key []byte, depth int) (err error) {
	switch {
	case depth > maxDepth:
		return errTooDeep
	case len(d.values) == maxValues:
		return errTooMany
	}
	i := len(d.values)
	d.values = append(d.values, value{document: d, key: key})
	v := value{document: d, key: key}
	switch c := d.peek(); {
	case c == '{':
		d.values[i].kind = structKind
		return d.parseMembers(i, depth, '}')
	case c == '[':
		d.values[i].kind = listKind
		return d.parseMembers(i, depth, ']')
	case c == '"':
		v.kind = stringKind
		v.text, err = d.parseString()
	case c == '-' || '0' <= c && c <= '9':
		v.kind = numberKind
		v.text, err = d.parseNumber()
	default:
		v.kind, v.text, err = d.parseLiteral()
	}
	d.values[i] = v
	return err
}

// parseMembers reads the inside of a structure or a list, up to its end.
func (d *Document) parseMembers(parent, depth int, end byte) error {
	d.at++
	if d.peek() == end {
		d.at++
		return nil
	}
	last := -1
	for {
		var key []byte
		if end == '}' {
			if d.peek() != '"' {
				return errSyntax
			}
			var err error
			if key, err = d.parseString(); err != nil {
				return err
			}
			if d.peek() != ':' {
				return errSyntax
			}
			d.at++
		}
		i := len(d.values)
		if err := d.parseValue(key, depth+1); err != nil {
			return err
		}
		if last < 0 {
			d.values[parent].child = int32(i)
		} else {
			d.values[last].next = int32(i)
		}
		last = i
		c := d.peek()
		d.at++
		switch c {
		case ',':
		case end:
			return nil
		default:
			return errSyntax
		}
	}
}

func (d *Document) parseLiteral() (kind, []byte, error) {
	for _, l := range [...]struct {
		text string
		kind kind
	}{{"null", nullKind}, {"true", trueKind}, {"false", falseKind}} {
		end := d.at + len(l.text)
		if end <= len(d.data) && string(d.data[d.at:end]) == l.text {
			text := d.data[d.at:end]
			d.at = end
			return l.kind, text, nil
		}
	}
	return 0, nil, errSyntax
}

func (d *Document) parseNumber() ([]byte, error) {
	from := d.at
	if d.data[d.at] == '-' {
		d.at++
	}
	if d.at < len(d.data) && d.data[d.at] == '0' {
		d.at++
	} else if !d.digits() {
		return nil, errSyntax
	}
	if d.at < len(d.data) && d.data[d.at] == '.' {
		d.at++
		if !d.digits() {
			return nil, errSyntax
		}
	}
	if d.at < len(d.data) && (d.data[d.at] == 'e' || d.data[d.at] == 'E') {
		d.at++
		if d.at < len(d.data) && (d.data[d.at] == '+' || d.data[d.at] == '-') {
			d.at++
		}
		if !d.digits() {
			return nil, errSyntax
		}
	}
	return d.data[from:d.at], nil
}

// digits skips digits, and reports whether there was one.
func (d *Document) digits() bool {
	from := d.at
	for d.at < len(d.data) && '0' <= d.data[d.at] && d.data[d.at] <= '9' {
		d.at++
	}
	return d.at > from
}

// parseString returns the string that begins here, unescaped: a part of the
// request if there was nothing to unescape.
func (d *Document) parseString() ([]byte, error) {
	from := d.at + 1
	n := plainLength(d.data[from:])
	d.at = from + n
	if d.at == len(d.data) {
		return nil, errSyntax
	}
	if d.data[d.at] == '"' {
		d.at++
		return d.data[from : d.at-1 : d.at-1], nil
	}
	start := len(d.scratch)
	d.scratch = append(d.scratch, d.data[from:d.at]...)
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			d.at++
			return d.scratch[start:len(d.scratch):len(d.scratch)], nil
		case c != '\\':
			return nil, errSyntax // a control character
		}
		if err := d.unescape(); err != nil {
			return nil, err
		}
		n := plainLength(d.data[d.at:])
		d.scratch = append(d.scratch, d.data[d.at:d.at+n]...)
		d.at += n
	}
	return nil, errSyntax
}

// plainLength returns how many bytes of s stand for themselves in a string: up
// to a quote, a backslash, or a control character.
func plainLength(s []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(s[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		stop := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & tops
		if stop != 0 {
			return n + bits.TrailingZeros64(stop)/8
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c == '"' || c == '\\' || c < ' ' {
			return n
		}
	}
	return n
}
