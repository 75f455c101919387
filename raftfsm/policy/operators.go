package policy

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// test holds a value of the request against one of the policy.
type test func(given, wanted string) bool

func stringEquals(given, wanted string) bool           { return given == wanted }
func stringEqualsIgnoreCase(given, wanted string) bool { return strings.EqualFold(given, wanted) }
func stringLike(given, wanted string) bool             { return like(given, wanted) }
func boolEquals(given, wanted string) bool             { return strings.EqualFold(given, wanted) }

// In a pattern, these stand for characters that are no wildcards. No policy and
// no request has them: JSON and ARNs have no control characters in clear.
const (
	literalStar     = '\x01'
	literalQuestion = '\x02'
)

// literal makes a text a pattern for itself.
var literal = strings.NewReplacer("*", string(literalStar), "?", string(literalQuestion))

// matches reports whether the character of the pattern is the one of the text.
func matches(text, pattern byte) bool {
	switch pattern {
	case '?':
		return true
	case literalStar:
		return text == '*'
	case literalQuestion:
		return text == '?'
	}
	return pattern == text
}

// like reports whether a text is the pattern, in which * is any characters and ?
// is any one. Its time is at most the product of the two lengths.
func like(text, pattern string) bool {
	return text == pattern || isLike(text, pattern, matches) // most patterns have no wildcards
}

// likeFold is like, but for the case of ASCII letters.
func likeFold(text, pattern string) bool {
	return isLike(text, pattern, func(text, pattern byte) bool { return matches(lower(text), lower(pattern)) })
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func isLike(text, pattern string, matches func(text, pattern byte) bool) bool {
	t, p := 0, 0
	star, after := -1, 0 // the last * and the place in the text that it is tried up to
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, after = p, t
			p++
		case p < len(pattern) && matches(text[t], pattern[p]):
			t += width(text[t:], pattern[p])
			p++
		case star < 0:
			return false
		default:
			after++
			p, t = star+1, after
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// width is how many bytes of the text a character of the pattern takes.
func width(text string, pattern byte) int {
	if pattern != '?' {
		return 1
	}
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}

// arnParts is how many parts an ARN has; the last may have colons in it.
const arnParts = 6

// arnLike compares the parts of two ARNs one by one, so a * does not go over a
// colon.
func arnLike(given, wanted string) bool {
	if wanted == "*" {
		return true
	}
	if given == wanted {
		return strings.HasPrefix(given, "arn:") && strings.Count(given, ":") >= arnParts-1
	}
	g, w := strings.SplitN(given, ":", arnParts), strings.SplitN(wanted, ":", arnParts)
	if len(g) != arnParts || len(w) != arnParts || g[0] != "arn" {
		return false
	}
	for i := range g {
		if !like(g[i], w[i]) {
			return false
		}
	}
	return true
}

// numeric makes a test of numbers.
func numeric(fits func(given, wanted float64) bool) test {
	return func(given, wanted string) bool {
		g, err := strconv.ParseFloat(given, 64)
		if err != nil {
			return false
		}
		w, err := strconv.ParseFloat(wanted, 64)
		return err == nil && fits(g, w)
	}
}

var (
	numericEquals         = numeric(func(given, wanted float64) bool { return given == wanted })
	numericLess           = numeric(func(given, wanted float64) bool { return given < wanted })
	numericLessOrEqual    = numeric(func(given, wanted float64) bool { return given <= wanted })
	numericGreater        = numeric(func(given, wanted float64) bool { return given > wanted })
	numericGreaterOrEqual = numeric(func(given, wanted float64) bool { return given >= wanted })
)

// dateForms are the forms of dates in policies (W3C, "Date and Time Formats").
var dateForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02", "2006-01", "2006",
}

// parseDate reads a date, or a number of seconds since 1970 of more digits than a
// year has.
func parseDate(text string) (time.Time, bool) {
	for _, form := range dateForms {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// date makes a test of dates; order is -1, 0 or 1 if the given one is earlier
// than, the same as or later than the wanted one.
func date(fits func(order int) bool) test {
	return func(given, wanted string) bool {
		g, ok := parseDate(given)
		if !ok {
			return false
		}
		w, ok := parseDate(wanted)
		return ok && fits(g.Compare(w))
	}
}

var (
	dateEquals         = date(func(order int) bool { return order == 0 })
	dateLess           = date(func(order int) bool { return order < 0 })
	dateLessOrEqual    = date(func(order int) bool { return order <= 0 })
	dateGreater        = date(func(order int) bool { return order > 0 })
	dateGreaterOrEqual = date(func(order int) bool { return order >= 0 })
)

// addressIn reports whether an address is in a block, or is the wanted address.
func addressIn(given, wanted string) bool {
	a, err := netip.ParseAddr(given)
	if err != nil {
		return false
	}
	a = a.Unmap()
	if block, err := netip.ParsePrefix(wanted); err == nil {
		return block.Contains(a)
	}
	w, err := netip.ParseAddr(wanted)
	return err == nil && w.Unmap() == a
}
