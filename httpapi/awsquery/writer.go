package awsquery

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
)

// ContentType is the media type of responses.
const ContentType = "text/xml"

// header opens every document.
const header = `<?xml version="1.0"?>`

// Writer builds one response. It is a wire.Output.
type Writer struct {
	buf   []byte
	start int // where the result's content begins
}

// Begin starts the response to an action, to be appended to buf. namespace is
// that of the service; result says that the action has output.
func (w *Writer) Begin(buf []byte, action, namespace string, result bool) {
	w.buf = append(buf, header...)
	w.buf = append(append(append(w.buf, '<'), action...), `Response xmlns="`...)
	w.buf = append(append(w.buf, namespace...), `">`...)
	if result {
		w.buf = append(append(append(w.buf, '<'), action...), `Result>`...)
	}
	w.start = len(w.buf)
}

// End finishes what Begin began, with the same action and result, and returns
// the buffer. The Writer forgets it.
func (w *Writer) End(action, requestID string, result bool) []byte {
	switch {
	case result && len(w.buf) == w.start:
		w.buf = append(w.buf[:w.start-1], `/>`...)
	case result:
		w.buf = append(append(append(w.buf, `</`...), action...), `Result>`...)
	}
	w.buf = append(w.buf, `<ResponseMetadata><RequestId>`...)
	w.buf = append(append(w.buf, requestID...), `</RequestId></ResponseMetadata></`...)
	buf := append(append(w.buf, action...), `Response>`...)
	w.buf = nil
	return buf
}

// Fault is an error answer.
type Fault struct {
	Code      string
	Message   string
	Sender    bool // the client's fault
	RequestID string
	Detail    bool // there is an element for details, as in SQS
}

// AppendFault appends an error document. namespace is that of the service.
func AppendFault(buf []byte, namespace string, f Fault) []byte {
	party := "Receiver"
	if f.Sender {
		party = "Sender"
	}
	buf = append(append(append(buf, header...), `<ErrorResponse xmlns="`...), namespace...)
	buf = append(append(append(buf, `"><Error><Type>`...), party...), `</Type><Code>`...)
	buf = append(AppendText(buf, f.Code), `</Code><Message>`...)
	buf = append(AppendText(buf, f.Message), `</Message>`...)
	if f.Detail {
		buf = append(buf, `<Detail/>`...)
	}
	buf = append(buf, `</Error><RequestId>`...)
	return append(append(buf, f.RequestID...), `</RequestId></ErrorResponse>`...)
}

func (w *Writer) open(name string) {
	w.buf = append(append(append(w.buf, '<'), name...), '>')
}

func (w *Writer) close(name string) {
	w.buf = append(append(append(w.buf, '<', '/'), name...), '>')
}

// Text implements wire.Output.
func (w *Writer) Text(name, value string) {
	w.open(name)
	w.buf = AppendText(w.buf, value)
	w.close(name)
}

// Bytes implements wire.Output.
func (w *Writer) Bytes(name string, text []byte) {
	w.open(name)
	w.buf = appendBytes(w.buf, text)
	w.close(name)
}

// Int implements wire.Output.
func (w *Writer) Int(name string, value int64) {
	w.open(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
	w.close(name)
}

// Bool implements wire.Output.
func (w *Writer) Bool(name string, value bool) {
	w.open(name)
	w.buf = strconv.AppendBool(w.buf, value)
	w.close(name)
}

// Blob implements wire.Output.
func (w *Writer) Blob(name string, value []byte) {
	w.open(name)
	w.buf = base64.StdEncoding.AppendEncode(w.buf, value)
	w.close(name)
}

// Hex implements wire.Output.
func (w *Writer) Hex(name string, digest [16]byte) {
	w.open(name)
	w.buf = hex.AppendEncode(w.buf, digest[:])
	w.close(name)
}

// UUID implements wire.Output.
func (w *Writer) UUID(name string, id [16]byte) {
	w.open(name)
	w.buf = wire.AppendUUID(w.buf, id)
	w.close(name)
}

// element is the name of one element of a list; around it, unless the list is
// flattened, is its own name.
func element(name, inner string) string {
	if inner != "" {
		return inner
	}
	return name
}

// openAround opens a list or map; there is nothing around flattened elements.
func (w *Writer) openAround(name, inner string) {
	if inner != "" {
		w.open(name)
	}
}

func (w *Writer) closeAround(name, inner string) {
	if inner != "" {
		w.close(name)
	}
}

// OpenList implements wire.Output.
func (w *Writer) OpenList(l wire.List) { w.openAround(l.Query, l.Member) }

// Item implements wire.Output.
func (w *Writer) Item(l wire.List, text string) { w.Text(element(l.Query, l.Member), text) }

// OpenStruct implements wire.Output.
func (w *Writer) OpenStruct(l wire.List) { w.open(element(l.Query, l.Member)) }

// CloseStruct implements wire.Output.
func (w *Writer) CloseStruct(l wire.List) { w.close(element(l.Query, l.Member)) }

// CloseList implements wire.Output.
func (w *Writer) CloseList(l wire.List) { w.closeAround(l.Query, l.Member) }

// OpenMap implements wire.Output.
func (w *Writer) OpenMap(m wire.Map) { w.openAround(m.Query, m.Entry) }

// Pair implements wire.Output.
func (w *Writer) Pair(m wire.Map, key, value string) {
	name := element(m.Query, m.Entry)
	w.open(name)
	w.Text(m.Key, key)
	w.Text(m.Value, value)
	w.close(name)
}

// PairInt implements wire.Output.
func (w *Writer) PairInt(m wire.Map, key string, value int64) {
	name := element(m.Query, m.Entry)
	w.open(name)
	w.Text(m.Key, key)
	w.Int(m.Value, value)
	w.close(name)
}

// OpenEntry implements wire.Output.
func (w *Writer) OpenEntry(m wire.Map, key string) {
	w.open(element(m.Query, m.Entry))
	w.Text(m.Key, key)
	w.open(m.Value)
}

// CloseEntry implements wire.Output.
func (w *Writer) CloseEntry(m wire.Map) {
	w.close(m.Value)
	w.close(element(m.Query, m.Entry))
}

// CloseMap implements wire.Output.
func (w *Writer) CloseMap(m wire.Map) { w.closeAround(m.Query, m.Entry) }

// AppendText appends s as the content of an XML element. A carriage return is
// escaped, since a parser would make a line feed of it and the MD5 of the body
// would not fit (AWS recording test_message_with_carriage_return). What no XML
// document may hold, not even escaped, becomes U+FFFD.
func AppendText(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	from := 0
	for i := 0; i < len(s); i++ {
		if !special[s[i]] {
			continue
		}
		escape, size := escapeOf(s[i:])
		dst = append(append(dst, s[from:i]...), escape...)
		i += size - 1
		from = i + 1
	}
	return append(dst, s[from:]...)
}

// appendBytes is AppendText for long texts, which it looks at eight bytes at a
// time.
func appendBytes(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	for {
		n := plainLength(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst
		}
		escape, size := escapeOf(s[n:])
		dst = append(dst, escape...)
		s = s[n+size:]
	}
}

// plainLength returns how many bytes of s stand for themselves.
func plainLength(s []byte) int {
	n := 0
	for n < len(s) {
		if len(s)-n >= 8 && plainWord(binary.LittleEndian.Uint64(s[n:])) {
			n += 8
			continue
		}
		for end := min(n+8, len(s)); n < end; n++ {
			if special[s[n]] {
				return n
			}
		}
	}
	return n
}

// plainWord reports whether none of eight bytes is special; it may be false
// though none is.
func plainWord(w uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	angle := (w | ones*2) ^ ones*'>' // < and > differ in one bit
	quote := (w | ones*4) ^ ones*'&' // " and & as well
	last := w ^ ones*0xEF
	return ((angle-ones)&^angle|(quote-ones)&^quote|(last-ones)&^last|(w-ones*' ')&^w)&tops == 0
}

// special has the bytes at which escapeOf must look.
var special = func() (table [256]bool) {
	for c := range byte(' ') {
		table[c] = c != '\t' && c != '\n'
	}
	for _, c := range []byte(`&<>"`) {
		table[c] = true
	}
	table[0xEF] = true // U+FFFE and U+FFFF begin with it
	return table
}()

// escapeOf returns what the special character that s begins with is written as,
// and how many bytes it has.
func escapeOf[T string | []byte](s T) (string, int) {
	switch c := s[0]; {
	case c == '&':
		return "&amp;", 1
	case c == '<':
		return "&lt;", 1
	case c == '>':
		return "&gt;", 1
	case c == '"':
		return "&quot;", 1
	case c == '\r':
		return "&#xD;", 1
	case c < ' ' || s[1] == 0xBF && s[2] >= 0xBE:
		if c < ' ' {
			return "\uFFFD", 1
		}
		return "\uFFFD", 3
	}
	return string(s[:3]), 3
}
