package awsjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends what the escape that begins here stands for to the scratch.
// A surrogate without its other half is an error: it has no UTF-8.
func (d *Document) unescape() error {
	if d.at+1 >= len(d.data) {
		return errSyntax
	}
	c := d.data[d.at+1]
	d.at += 2
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return d.unescapeUnicode()
	default:
		return errSyntax
	}
	d.scratch = append(d.scratch, c)
	return nil
}

func (d *Document) unescapeUnicode() error {
	r, ok := d.hex4()
	if !ok {
		return errSyntax
	}
	if utf16.IsSurrogate(r) {
		if d.at+1 >= len(d.data) || d.data[d.at] != '\\' || d.data[d.at+1] != 'u' {
			return errEncoding
		}
		d.at += 2
		low, ok := d.hex4()
		if !ok {
			return errSyntax
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return errEncoding
		}
	}
	d.scratch = utf8.AppendRune(d.scratch, r)
	return nil
}

// hex4 reads four hexadecimal digits.
func (d *Document) hex4() (rune, bool) {
	if len(d.data)-d.at < 4 {
		return 0, false
	}
	var r rune
	for _, c := range d.data[d.at : d.at+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	d.at += 4
	return r, true
}
