package sns

import (
	"bytes"
	"strings"
)

// address is an IP address; one of version 4 is mapped into version 6.
type address [16]byte

// compare orders addresses as numbers.
func (a *address) compare(b *address) int { return bytes.Compare(a[:], b[:]) }

var mapped = [12]byte{10: 0xff, 11: 0xff}

func (a *address) isV4() bool { return [12]byte(a[:12]) == mapped }

// looksLikeAddress reports whether a text has the characters of an address of
// version 4 (four numbers) or 6 (hexadecimal digits and a colon). It need not be
// one: see parseAddress.
func looksLikeAddress(text string) bool {
	if strings.IndexByte(text, ':') >= 0 {
		for i := range len(text) {
			if _, ok := hexDigit(text[i]); !ok && text[i] != ':' {
				return false
			}
		}
		return true
	}
	numbers, digits := 1, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && digits > 0:
			numbers, digits = numbers+1, 0
		default:
			return false
		}
	}
	return numbers == 4 && digits > 0
}

// parseAddress reads an address. Numbers may have leading zeros, which mean
// nothing.
func parseAddress(text string) (a address, ok bool) {
	if !looksLikeAddress(text) {
		return a, false
	}
	if strings.IndexByte(text, ':') < 0 {
		return parseV4(text)
	}
	return parseV6(text)
}

// maxV4Text is the longest text of an address of version 4.
const maxV4Text = len("255.255.255.255")

func parseV4(text string) (a address, ok bool) {
	if len(text) > maxV4Text {
		return a, false
	}
	copy(a[:], mapped[:])
	part, value := 12, 0
	for i := range len(text) {
		if text[i] == '.' {
			part, value = part+1, 0
			continue
		}
		if value = value*10 + int(text[i]-'0'); value > 255 {
			return address{}, false
		}
		a[part] = byte(value)
	}
	return a, true
}

func parseV6(text string) (a address, ok bool) {
	head, tail, shortened := strings.Cut(text, "::")
	groups, ok := appendGroups(nil, head)
	if !ok {
		return a, false
	}
	if !shortened {
		copy(a[:], groups)
		return a, len(groups) == len(a)
	}
	end, ok := appendGroups(nil, tail)
	if !ok || len(groups)+len(end) > len(a)-2 {
		return a, false
	}
	copy(a[:], groups)
	copy(a[len(a)-len(end):], end)
	return a, true
}

// appendGroups reads groups of hexadecimal digits with colons between them.
func appendGroups(dst []byte, text string) ([]byte, bool) {
	if text == "" {
		return dst, true
	}
	for group := range strings.SplitSeq(text, ":") {
		value := 0
		for i := range len(group) {
			digit, ok := hexDigit(group[i])
			if value = value<<4 + int(digit); !ok || value > 0xffff {
				return nil, false
			}
		}
		if group == "" || len(dst) == len(address{}) {
			return nil, false
		}
		dst = append(dst, byte(value>>8), byte(value))
	}
	return dst, true
}
