package sns

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNesting is how deep objects and arrays may lie in each other, in policies
// and in bodies (the limit of the JSON parser that AWS uses).
const maxNesting = 1000

// tokenKind says what a JSON token is.
type tokenKind byte

const (
	endOfText tokenKind = iota
	objectStart
	objectEnd
	arrayStart
	arrayEnd
	memberName
	stringValue
	numberValue
	trueValue
	falseValue
	nullValue
)

// token is one JSON token: text[from:to], for strings and names without their
// quotes and still escaped.
type token struct {
	kind     tokenKind
	from, to int
}

// end is the offset behind the token, its closing quote included.
func (t token) end() int {
	if t.kind == stringValue || t.kind == memberName {
		return t.to + 1
	}
	return t.to
}

// isScalar reports whether the token is a value that holds no others.
func (t token) isScalar() bool { return t.kind >= stringValue }

// syntaxError says what is wrong with a JSON text, in the words of the parser
// that AWS uses, and at which offset.
type syntaxError struct {
	message string
	at      int
}

func (e *syntaxError) Error() string { return e.message }

// in is the error of a document, which tells the line and the column.
func (e *syntaxError) in(text string) *FilterError {
	line, column := position(text, e.at)
	return &FilterError{Detail: e.message, Line: line, Column: column, Syntax: true}
}

// expectation is what may come next in a JSON text.
type expectation byte

const (
	aValue       expectation = iota
	aFirstValue              // of an array, which may also end
	aFirstName               // of an object, which may also end
	aCommaOrEnd              // of the array or object that is open
	aColon                   // behind a name
	nothingElse              // the text is over
	aNameOnly                // behind a comma
	aValueOfList             // behind a comma
)

// scanner reads the tokens of a JSON text one by one.
type scanner struct {
	text    string
	at      int
	expects expectation
	inside  []tokenKind // objectStart or arrayStart for each that is open
}

// next returns the next token; endOfText comes behind the only value.
func (s *scanner) next() (token, *syntaxError) {
	s.skipSpace()
	if s.at >= len(s.text) {
		return s.end()
	}
	c := s.text[s.at]
	switch s.expects {
	case aFirstName, aNameOnly:
		return s.name(c)
	case aColon:
		if c != ':' {
			return token{}, s.unexpected("was expecting a colon to separate field name and value")
		}
		s.at++
		s.expects = aValue
		return s.next()
	case aCommaOrEnd:
		return s.separator(c)
	case aFirstValue:
		if c == ']' {
			return s.close(arrayEnd)
		}
	case nothingElse:
		return s.trailing(c)
	case aValue, aValueOfList:
	}
	return s.value(c)
}

// trailing refuses what follows the value that a text is.
func (s *scanner) trailing(c byte) (token, *syntaxError) {
	at := s.at
	if _, err := s.value(c); err != nil {
		return token{}, err
	}
	return token{}, &syntaxError{message: "Trailing token found after value", at: at}
}

func (s *scanner) skipSpace() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// end is what the end of the text means here.
func (s *scanner) end() (token, *syntaxError) {
	if len(s.inside) == 0 {
		return token{kind: endOfText, from: s.at, to: s.at}, nil
	}
	what := "Array"
	if s.inside[len(s.inside)-1] == objectStart {
		what = "Object"
	}
	return token{}, &syntaxError{message: "Unexpected end-of-input: expected close marker for " + what, at: s.at}
}

func (s *scanner) name(c byte) (token, *syntaxError) {
	if c == '}' && s.expects == aFirstName {
		return s.close(objectEnd)
	}
	if c != '"' {
		return token{}, s.unexpected("was expecting double-quote to start field name")
	}
	t, err := s.quoted(memberName)
	s.expects = aColon
	return t, err
}

func (s *scanner) separator(c byte) (token, *syntaxError) {
	open := s.inside[len(s.inside)-1]
	switch {
	case c == '}' && open == objectStart:
		return s.close(objectEnd)
	case c == ']' && open == arrayStart:
		return s.close(arrayEnd)
	case c != ',' && open == objectStart:
		return token{}, s.unexpected("was expecting comma to separate Object entries")
	case c != ',':
		return token{}, s.unexpected("was expecting comma to separate Array entries")
	}
	s.at++
	s.expects = aValueOfList
	if open == objectStart {
		s.expects = aNameOnly
	}
	return s.next()
}

func (s *scanner) value(c byte) (token, *syntaxError) {
	switch {
	case c == '{':
		return s.open(objectStart, aFirstName)
	case c == '[':
		return s.open(arrayStart, aFirstValue)
	case c == '"':
		t, err := s.quoted(stringValue)
		s.valueDone()
		return t, err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	return s.word()
}

func (s *scanner) open(kind tokenKind, expects expectation) (token, *syntaxError) {
	if len(s.inside) >= maxNesting {
		return token{}, &syntaxError{at: s.at, message: fmt.Sprintf(
			"Document nesting depth (%d) exceeds the maximum allowed (%d, from `StreamReadConstraints.getMaxNestingDepth()`)",
			maxNesting+1, maxNesting)}
	}
	s.inside = append(s.inside, kind)
	s.expects = expects
	s.at++
	return token{kind: kind, from: s.at - 1, to: s.at}, nil
}

func (s *scanner) close(kind tokenKind) (token, *syntaxError) {
	s.inside = s.inside[:len(s.inside)-1]
	s.at++
	s.valueDone()
	return token{kind: kind, from: s.at - 1, to: s.at}, nil
}

// valueDone is called behind each value.
func (s *scanner) valueDone() {
	s.expects = aCommaOrEnd
	if len(s.inside) == 0 {
		s.expects = nothingElse
	}
}

// quoted reads a string, which starts here, and checks its escapes.
func (s *scanner) quoted(kind tokenKind) (token, *syntaxError) {
	from := s.at + 1
	for i := from; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return token{kind: kind, from: from, to: i}, nil
		case c < ' ':
			return token{}, &syntaxError{at: i, message: fmt.Sprintf("Illegal unquoted character ((CTRL-CHAR, code %d)): "+
				"has to be escaped using backslash to be included in string value", c)}
		case c == '\\':
			n, err := s.escape(i)
			if err != nil {
				return token{}, err
			}
			i += n
		}
	}
	message := "Unexpected end-of-input: was expecting closing quote for a string value"
	if kind == memberName {
		message = "Unexpected end-of-input in field name"
	}
	return token{}, &syntaxError{message: message, at: len(s.text)}
}

// escape checks the escape whose backslash is at offset i, and returns how many
// bytes it has beside the backslash.
func (s *scanner) escape(i int) (int, *syntaxError) {
	if i+1 >= len(s.text) {
		return 0, &syntaxError{message: "Unexpected end-of-input in character escape sequence", at: len(s.text)}
	}
	c := s.text[i+1]
	if strings.IndexByte(`"\/bfnrt`, c) >= 0 {
		return 1, nil
	}
	if c != 'u' {
		return 0, &syntaxError{message: "Unrecognized character escape " + described(s.text[i+1:]), at: i + 1}
	}
	for n := 2; n < 6; n++ {
		if i+n >= len(s.text) {
			return 0, &syntaxError{message: "Unexpected end-of-input in character escape sequence", at: len(s.text)}
		}
		if _, ok := hexDigit(s.text[i+n]); !ok {
			return 0, &syntaxError{
				at:      i + n,
				message: "Unexpected character (" + described(s.text[i+n:]) + "): expected a hex-digit for character escape sequence",
			}
		}
	}
	return 5, nil
}

func hexDigit(c byte) (digit byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// number reads a number, which starts here.
func (s *scanner) number() (token, *syntaxError) {
	from, i := s.at, s.at
	if s.text[i] == '-' {
		i++
	}
	digits := s.digits(i)
	if digits == 0 {
		return token{}, s.inNumber(i, "expected digit (0-9) to follow minus sign, for valid numeric value")
	}
	if digits > 1 && s.text[i] == '0' {
		return token{}, &syntaxError{message: "Invalid numeric value: Leading zeroes not allowed", at: i + 1}
	}
	i += digits
	if i < len(s.text) && s.text[i] == '.' {
		if digits = s.digits(i + 1); digits == 0 {
			return token{}, s.inNumber(i+1, "Decimal point not followed by a digit")
		}
		i += 1 + digits
	}
	if i < len(s.text) && (s.text[i] == 'e' || s.text[i] == 'E') {
		i++
		if i < len(s.text) && (s.text[i] == '+' || s.text[i] == '-') {
			i++
		}
		if digits = s.digits(i); digits == 0 {
			return token{}, s.inNumber(i, "Exponent indicator not followed by a digit")
		}
		i += digits
	}
	s.at = i
	s.valueDone()
	return token{kind: numberValue, from: from, to: i}, nil
}

// digits counts the digits from an offset on.
func (s *scanner) digits(from int) int {
	i := from
	for i < len(s.text) && s.text[i] >= '0' && s.text[i] <= '9' {
		i++
	}
	return i - from
}

func (s *scanner) inNumber(at int, reason string) *syntaxError {
	if at >= len(s.text) {
		return &syntaxError{message: "Unexpected end-of-input in numeric value", at: at}
	}
	return &syntaxError{message: "Unexpected character (" + described(s.text[at:]) + ") in numeric value: " + reason, at: at}
}

// word reads true, false or null.
func (s *scanner) word() (token, *syntaxError) {
	i := s.at
	for i < len(s.text) && (s.text[i] >= utf8.RuneSelf || isWordByte(s.text[i])) {
		i++
	}
	t := token{from: s.at, to: i}
	switch word := s.text[s.at:i]; word {
	case "true":
		t.kind = trueValue
	case "false":
		t.kind = falseValue
	case "null":
		t.kind = nullValue
	case "":
		return token{}, s.unexpected("expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')")
	default:
		return token{}, &syntaxError{at: i, message: "Unrecognized token '" + word +
			"': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"}
	}
	s.at = i
	s.valueDone()
	return t, nil
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$'
}

func (s *scanner) unexpected(reason string) *syntaxError {
	return &syntaxError{message: "Unexpected character (" + described(s.text[s.at:]) + "): " + reason, at: s.at}
}

// described shows the first character of a text as errors do: 'i' (code 105).
func described(text string) string {
	c, _ := utf8.DecodeRuneInString(text)
	return fmt.Sprintf("'%c' (code %d)", c, c)
}

// unquoted returns the characters of a string token. It allocates only if there
// are escapes.
func unquoted(text string) string {
	first := strings.IndexByte(text, '\\')
	if first < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:first]...)
	for i := first; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := escapedRune(text[i+1:])
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// escapedRune reads what follows a \u, another escape included if the two are a
// pair of surrogates. A surrogate alone is no character.
func escapedRune(text string) (r rune, n int) {
	r = hexRune(text)
	if r < 0xD800 || r > 0xDBFF || len(text) < 10 || text[4:6] != `\u` {
		if r >= 0xD800 && r <= 0xDFFF {
			r = utf8.RuneError
		}
		return r, 4
	}
	low := hexRune(text[6:])
	if low < 0xDC00 || low > 0xDFFF {
		return utf8.RuneError, 4
	}
	return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 10
}

func hexRune(text string) (r rune) {
	for i := range 4 {
		digit, _ := hexDigit(text[i])
		r = r<<4 + rune(digit)
	}
	return r
}

// position gives the line and the column, both from one, of an offset in a
// text. Characters outside the basic plane count as two columns.
func position(text string, offset int) (line, column int) {
	line, column = 1, 1
	for i, c := range text[:offset] {
		switch {
		case c == '\n' && i > 0 && text[i-1] == '\r':
			column = 1
		case c == '\n' || c == '\r':
			line, column = line+1, 1
		case c > 0xFFFF:
			column += 2
		default:
			column++
		}
	}
	return line, column
}
