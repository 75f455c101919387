package sns

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longForms are the characters whose upper-case or lower-case form is several
// characters (Unicode, SpecialCasing, without conditions).
var longForms = map[rune]string{
	'\u00df': "\u0053\u0053", '\u0130': "\u0069\u0307", '\u0149': "\u02bc\u004e", '\u01f0': "\u004a\u030c",
	'\u0390': "\u0399\u0308\u0301", '\u03b0': "\u03a5\u0308\u0301", '\u0587': "\u0535\u0552", '\u1e96': "\u0048\u0331",
	'\u1e97': "\u0054\u0308", '\u1e98': "\u0057\u030a", '\u1e99': "\u0059\u030a", '\u1e9a': "\u0041\u02be",
	'\u1f50': "\u03a5\u0313", '\u1f52': "\u03a5\u0313\u0300", '\u1f54': "\u03a5\u0313\u0301",
	'\u1f56': "\u03a5\u0313\u0342", '\u1f80': "\u1f08\u0399", '\u1f81': "\u1f09\u0399", '\u1f82': "\u1f0a\u0399",
	'\u1f83': "\u1f0b\u0399", '\u1f84': "\u1f0c\u0399", '\u1f85': "\u1f0d\u0399", '\u1f86': "\u1f0e\u0399",
	'\u1f87': "\u1f0f\u0399", '\u1f88': "\u1f08\u0399", '\u1f89': "\u1f09\u0399", '\u1f8a': "\u1f0a\u0399",
	'\u1f8b': "\u1f0b\u0399", '\u1f8c': "\u1f0c\u0399", '\u1f8d': "\u1f0d\u0399", '\u1f8e': "\u1f0e\u0399",
	'\u1f8f': "\u1f0f\u0399", '\u1f90': "\u1f28\u0399", '\u1f91': "\u1f29\u0399", '\u1f92': "\u1f2a\u0399",
	'\u1f93': "\u1f2b\u0399", '\u1f94': "\u1f2c\u0399", '\u1f95': "\u1f2d\u0399", '\u1f96': "\u1f2e\u0399",
	'\u1f97': "\u1f2f\u0399", '\u1f98': "\u1f28\u0399", '\u1f99': "\u1f29\u0399", '\u1f9a': "\u1f2a\u0399",
	'\u1f9b': "\u1f2b\u0399", '\u1f9c': "\u1f2c\u0399", '\u1f9d': "\u1f2d\u0399", '\u1f9e': "\u1f2e\u0399",
	'\u1f9f': "\u1f2f\u0399", '\u1fa0': "\u1f68\u0399", '\u1fa1': "\u1f69\u0399", '\u1fa2': "\u1f6a\u0399",
	'\u1fa3': "\u1f6b\u0399", '\u1fa4': "\u1f6c\u0399", '\u1fa5': "\u1f6d\u0399", '\u1fa6': "\u1f6e\u0399",
	'\u1fa7': "\u1f6f\u0399", '\u1fa8': "\u1f68\u0399", '\u1fa9': "\u1f69\u0399", '\u1faa': "\u1f6a\u0399",
	'\u1fab': "\u1f6b\u0399", '\u1fac': "\u1f6c\u0399", '\u1fad': "\u1f6d\u0399", '\u1fae': "\u1f6e\u0399",
	'\u1faf': "\u1f6f\u0399", '\u1fb2': "\u1fba\u0399", '\u1fb3': "\u0391\u0399", '\u1fb4': "\u0386\u0399",
	'\u1fb6': "\u0391\u0342", '\u1fb7': "\u0391\u0342\u0399", '\u1fbc': "\u0391\u0399", '\u1fc2': "\u1fca\u0399",
	'\u1fc3': "\u0397\u0399", '\u1fc4': "\u0389\u0399", '\u1fc6': "\u0397\u0342", '\u1fc7': "\u0397\u0342\u0399",
	'\u1fcc': "\u0397\u0399", '\u1fd2': "\u0399\u0308\u0300", '\u1fd3': "\u0399\u0308\u0301", '\u1fd6': "\u0399\u0342",
	'\u1fd7': "\u0399\u0308\u0342", '\u1fe2': "\u03a5\u0308\u0300", '\u1fe3': "\u03a5\u0308\u0301",
	'\u1fe4': "\u03a1\u0313", '\u1fe6': "\u03a5\u0342", '\u1fe7': "\u03a5\u0308\u0342", '\u1ff2': "\u1ffa\u0399",
	'\u1ff3': "\u03a9\u0399", '\u1ff4': "\u038f\u0399", '\u1ff6': "\u03a9\u0342", '\u1ff7': "\u03a9\u0342\u0399",
	'\u1ffc': "\u03a9\u0399", '\ufb00': "\u0046\u0046", '\ufb01': "\u0046\u0049", '\ufb02': "\u0046\u004c",
	'\ufb03': "\u0046\u0046\u0049", '\ufb04': "\u0046\u0046\u004c", '\ufb05': "\u0053\u0054", '\ufb06': "\u0053\u0054",
	'\ufb13': "\u0544\u0546", '\ufb14': "\u0544\u0535", '\ufb15': "\u0544\u053b", '\ufb16': "\u054e\u0546",
	'\ufb17': "\u0544\u053d",
}

// hasPrefixFold reports whether a text starts with the pattern, each character of
// it in its lower-case or its upper-case form, and returns the rest. Characters
// outside the basic plane have one form only, as in the engine of AWS, which looks
// at UTF-16 units.
func hasPrefixFold(text, pattern string) (rest string, ok bool) {
	for _, c := range pattern {
		n := foldAtStart(text, c)
		if n < 0 {
			return "", false
		}
		text = text[n:]
	}
	return text, true
}

// hasSuffixFold is hasPrefixFold from the end.
func hasSuffixFold(text, pattern string) bool {
	for len(pattern) > 0 {
		c, size := utf8.DecodeLastRuneInString(pattern)
		pattern = pattern[:len(pattern)-size]
		n := foldAtEnd(text, c)
		if n < 0 {
			return false
		}
		text = text[:len(text)-n]
	}
	return true
}

// equalFold reports whether the text is the pattern in any mixture of cases.
func equalFold(text, pattern string) bool {
	rest, ok := hasPrefixFold(text, pattern)
	return ok && rest == ""
}

// foldAtStart returns the size of the form of c that the text starts with, -1
// if it starts with none.
func foldAtStart(text string, c rune) int {
	lower, upper, long := forms(c)
	if long != "" && strings.HasPrefix(text, long) {
		return len(long)
	}
	found, size := utf8.DecodeRuneInString(text)
	if size > 0 && (found == lower || found == upper) {
		return size
	}
	return -1
}

func foldAtEnd(text string, c rune) int {
	lower, upper, long := forms(c)
	if long != "" && strings.HasSuffix(text, long) {
		return len(long)
	}
	found, size := utf8.DecodeLastRuneInString(text)
	if size > 0 && (found == lower || found == upper) {
		return size
	}
	return -1
}

// forms returns the two forms of a character. If one of them is long, lower and
// upper are both the other.
func forms(c rune) (lower, upper rune, long string) {
	switch {
	case c >= 'a' && c <= 'z':
		return c, c - 'a' + 'A', ""
	case c >= 'A' && c <= 'Z':
		return c - 'A' + 'a', c, ""
	case c < utf8.RuneSelf || c > 0xFFFF:
		return c, c, ""
	}
	lower, upper = unicode.ToLower(c), unicode.ToUpper(c)
	long = longForms[c]
	switch {
	case c == 'İ': // the only one with a long lower-case form
		lower = upper
	case long != "":
		upper = lower
	}
	return lower, upper, long
}
