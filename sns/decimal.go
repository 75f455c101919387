package sns

import "strings"

// maxExponent bounds the exponents that decimals tell apart; what is larger
// counts as this.
const maxExponent = 1 << 40

// decimal is a number as its text says it, without rounding:
// 0.digits × 10^exponent.
type decimal struct {
	digits   string // no zero at its ends; a point in it means nothing; "" is zero
	exponent int64
	negative bool
}

// parseDecimal reads a number of JSON, or one that is written more freely: with
// a plus, with leading zeros, without a digit before or behind the point.
func parseDecimal(text string) (d decimal, ok bool) {
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		d.negative = rest[0] == '-'
		rest = rest[1:]
	}
	digits := rest
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		digits = rest[:i]
		if d.exponent, ok = parseExponent(rest[i+1:]); !ok {
			return decimal{}, false
		}
	}
	point := len(digits)
	count := 0
	for i := range len(digits) {
		switch c := digits[i]; {
		case c == '.' && point == len(digits):
			point = i
		case c >= '0' && c <= '9':
			count++
		default:
			return decimal{}, false
		}
	}
	if count == 0 {
		return decimal{}, false
	}
	first, last := 0, len(digits)
	for first < last && (digits[first] == '0' || digits[first] == '.') {
		first++
	}
	for last > first && (digits[last-1] == '0' || digits[last-1] == '.') {
		last--
	}
	if d.digits = digits[first:last]; d.digits == "" {
		return decimal{}, true
	}
	if first < point {
		d.exponent += int64(point - first)
	} else {
		d.exponent -= int64(first - point - 1)
	}
	return d, true
}

func parseExponent(text string) (exponent int64, ok bool) {
	negative := false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		exponent = min(exponent*10+int64(text[i]-'0'), maxExponent)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, text != ""
}

// compare returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d decimal) compare(e decimal) int {
	if ds, es := d.sign(), e.sign(); ds != es || ds == 0 {
		return max(-1, min(1, ds-es))
	}
	c := compareMagnitudes(d, e)
	if d.negative {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func compareMagnitudes(d, e decimal) int {
	if d.exponent != e.exponent {
		if d.exponent < e.exponent {
			return -1
		}
		return 1
	}
	i, j := 0, 0
	for {
		if i < len(d.digits) && d.digits[i] == '.' {
			i++
		}
		if j < len(e.digits) && e.digits[j] == '.' {
			j++
		}
		switch {
		case i == len(d.digits) && j == len(e.digits):
			return 0
		case i == len(d.digits):
			return -1
		case j == len(e.digits):
			return 1
		case d.digits[i] < e.digits[j]:
			return -1
		case d.digits[i] > e.digits[j]:
			return 1
		}
		i++
		j++
	}
}

// IsNumber reports whether a text is a number that filter policies can compare: the
// value of a message attribute of the type Number must be one.
func IsNumber(text string) bool {
	_, ok := parseDecimal(text)
	return ok
}
