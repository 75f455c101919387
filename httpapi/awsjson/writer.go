package awsjson

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
)

// ContentType is the media type of requests and responses.
const ContentType = "application/x-amz-json-1.0"

// Writer builds one response. It is a wire.Output.
type Writer struct {
	buf   []byte
	comma bool // a value stands before
}

// Begin starts a response, to be appended to buf.
func (w *Writer) Begin(buf []byte) {
	w.buf, w.comma = append(buf, '{'), false
}

// End finishes the response and returns the buffer. The Writer forgets it.
func (w *Writer) End() []byte {
	buf := append(w.buf, '}')
	w.buf = nil
	return buf
}

// name writes what stands before the value of a member.
func (w *Writer) name(name string) {
	w.separate()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *Writer) separate() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

func (w *Writer) open(c byte) {
	w.buf = append(w.buf, c)
	w.comma = false
}

func (w *Writer) close(c byte) {
	w.buf = append(w.buf, c)
	w.comma = true
}

// Text implements wire.Output.
func (w *Writer) Text(name, value string) {
	w.name(name)
	w.buf = AppendString(w.buf, value)
}

// Bytes implements wire.Output.
func (w *Writer) Bytes(name string, text []byte) {
	w.name(name)
	w.buf = appendBytes(w.buf, text)
}

// Int implements wire.Output.
func (w *Writer) Int(name string, value int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// Bool implements wire.Output.
func (w *Writer) Bool(name string, value bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, value)
}

// Blob implements wire.Output.
func (w *Writer) Blob(name string, value []byte) {
	w.name(name)
	w.buf = append(w.buf, '"')
	w.buf = base64.StdEncoding.AppendEncode(w.buf, value)
	w.buf = append(w.buf, '"')
}

// Hex implements wire.Output.
func (w *Writer) Hex(name string, digest [16]byte) {
	w.name(name)
	w.buf = append(w.buf, '"')
	w.buf = hex.AppendEncode(w.buf, digest[:])
	w.buf = append(w.buf, '"')
}

// UUID implements wire.Output.
func (w *Writer) UUID(name string, id [16]byte) {
	w.name(name)
	w.buf = append(w.buf, '"')
	w.buf = wire.AppendUUID(w.buf, id)
	w.buf = append(w.buf, '"')
}

// OpenList implements wire.Output.
func (w *Writer) OpenList(l wire.List) {
	w.name(l.JSON)
	w.open('[')
}

// Item implements wire.Output.
func (w *Writer) Item(_ wire.List, text string) {
	w.separate()
	w.buf = AppendString(w.buf, text)
}

// OpenStruct implements wire.Output.
func (w *Writer) OpenStruct(wire.List) {
	w.separate()
	w.open('{')
}

// CloseStruct implements wire.Output.
func (w *Writer) CloseStruct(wire.List) { w.close('}') }

// CloseList implements wire.Output.
func (w *Writer) CloseList(wire.List) { w.close(']') }

// OpenMap implements wire.Output.
func (w *Writer) OpenMap(m wire.Map) {
	w.name(m.JSON)
	w.open('{')
}

// Pair implements wire.Output.
func (w *Writer) Pair(_ wire.Map, key, value string) {
	w.key(key)
	w.buf = AppendString(w.buf, value)
}

// PairInt implements wire.Output.
func (w *Writer) PairInt(_ wire.Map, key string, value int64) {
	w.key(key)
	w.buf = append(w.buf, '"')
	w.buf = strconv.AppendInt(w.buf, value, 10)
	w.buf = append(w.buf, '"')
}

// OpenEntry implements wire.Output.
func (w *Writer) OpenEntry(_ wire.Map, key string) {
	w.key(key)
	w.open('{')
}

// CloseEntry implements wire.Output.
func (w *Writer) CloseEntry(wire.Map) { w.close('}') }

// CloseMap implements wire.Output.
func (w *Writer) CloseMap(wire.Map) { w.close('}') }

// key writes a name that came from a client.
func (w *Writer) key(key string) {
	w.separate()
	w.buf = AppendString(w.buf, key)
	w.buf = append(w.buf, ':')
}

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < ' ' {
			dst = appendEscape(append(dst, s[from:i]...), c)
			from = i + 1
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// appendBytes is AppendString for long texts, which it looks at eight bytes at
// a time.
func appendBytes(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	dst = append(dst, '"')
	for {
		n := plainLength(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[n])
		s = s[n+1:]
	}
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
