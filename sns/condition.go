package sns

import (
	"slices"
	"sort"
	"strings"
)

// words is a set of the JSON words true, false and null.
type words byte

func wordOf(kind tokenKind) words { return 1 << (kind - trueValue) }

// conditions are those of one key of a policy; one of them must match.
type conditions struct {
	count     int // as they were written
	texts     []string
	addresses []address // texts that are addresses match all ways to write them
	numbers   []decimal
	words     words
	matchers  []matcher
	exists    bool
	absent    bool // the key need not be there
}

func (c *conditions) addText(text string) {
	if a, ok := parseAddress(text); ok {
		c.addresses = append(c.addresses, a)
		return
	}
	c.texts = append(c.texts, text)
}

func (c *conditions) add(m matcher) { c.matchers = append(c.matchers, m) }

// sort puts in order what is searched.
func (c *conditions) sort() {
	slices.Sort(c.texts)
	slices.SortFunc(c.numbers, decimal.compare)
	slices.SortFunc(c.addresses, func(a, b address) int { return a.compare(&b) })
}

// onlyAbsent reports whether no value can match.
func (c *conditions) onlyAbsent() bool {
	return len(c.texts)+len(c.addresses)+len(c.numbers)+len(c.matchers) == 0 && c.words == 0 && !c.exists
}

// patterns is how many patterns may have to be tried one by one.
func (c *conditions) patterns() (n int) {
	for i := range c.matchers {
		if m := &c.matchers[i]; m.kind != equals {
			n += len(m.texts) + len(m.wildcards)
		}
	}
	return n
}

// match reports whether a value of the key matches.
func (c *conditions) match(d *document, v *value) bool {
	if c.exists {
		return true
	}
	switch v.kind {
	case stringValue:
		if c.matchText(d, v) {
			return true
		}
	case numberValue:
		if len(c.numbers) > 0 && v.extra != 0 && containsNumber(c.numbers, d.decimal(v)) {
			return true
		}
	default:
		if c.words&wordOf(v.kind) != 0 {
			return true
		}
	}
	for i := range c.matchers {
		if c.matchers[i].match(d, v) {
			return true
		}
	}
	return false
}

func (c *conditions) matchText(d *document, v *value) bool {
	if len(c.texts) > 0 {
		if containsText(c.texts, d.textOf(v)) || v.escaped != 0 && containsText(c.texts, d.escaped(v)) {
			return true
		}
	}
	if len(c.addresses) == 0 || v.extra == 0 {
		return false
	}
	a := d.address(v)
	i := sort.Search(len(c.addresses), func(i int) bool { return c.addresses[i].compare(a) >= 0 })
	return i < len(c.addresses) && c.addresses[i] == *a
}

func containsText(sorted []string, text string) bool {
	if len(sorted) <= 8 { // looking at each is quicker
		return slices.Contains(sorted, text)
	}
	_, found := slices.BinarySearch(sorted, text)
	return found
}

func containsNumber(sorted []decimal, d decimal) bool {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i].compare(d) >= 0 })
	return i < len(sorted) && sorted[i].compare(d) == 0
}

// matchKind says what a matcher looks for.
type matchKind byte

const (
	equals matchKind = iota
	equalsNumber
	equalsIgnoreCase
	hasPrefix
	hasPrefixIgnoreCase
	hasSuffix
	hasSuffixIgnoreCase
	likeWildcard
	between // numbers
	inRange // addresses
)

// matcher is one operator of a policy.
type matcher struct {
	kind                    matchKind
	not                     bool     // anything but one of these; of what is no string, too
	texts                   []string // sorted if kind is equals
	numbers                 []decimal
	wildcards               []wildcard
	low, high               *bound // nil: there is none
	lowAddress, highAddress address
}

// bound is an end of a range of numbers; an open one does not belong to it.
type bound struct {
	value decimal
	open  bool
}

func (m *matcher) match(d *document, v *value) bool { return m.found(d, v) != m.not }

func (m *matcher) found(d *document, v *value) bool {
	switch {
	case m.kind == equalsNumber:
		return v.kind == numberValue && v.extra != 0 && containsNumber(m.numbers, d.decimal(v))
	case m.kind == between:
		return v.kind == numberValue && v.extra != 0 && m.spans(d.decimal(v))
	case v.kind != stringValue:
		return false
	case m.kind == inRange:
		return v.extra != 0 && m.covers(d.address(v))
	}
	return m.foundIn(d.textOf(v)) || v.escaped != 0 && m.foundIn(d.escaped(v))
}

func (m *matcher) spans(d decimal) bool {
	if m.low != nil {
		if c := d.compare(m.low.value); c < 0 || c == 0 && m.low.open {
			return false
		}
	}
	if m.high != nil {
		if c := d.compare(m.high.value); c > 0 || c == 0 && m.high.open {
			return false
		}
	}
	return true
}

// covers looks at addresses of the same version only.
func (m *matcher) covers(a *address) bool {
	return a.isV4() == m.lowAddress.isV4() && m.lowAddress.compare(a) <= 0 && a.compare(&m.highAddress) <= 0
}

func (m *matcher) foundIn(text string) bool {
	switch m.kind {
	case equals:
		return containsText(m.texts, text)
	case likeWildcard:
		for i := range m.wildcards {
			if m.wildcards[i].matches(text) {
				return true
			}
		}
		return false
	}
	for _, pattern := range m.texts {
		if m.foundPattern(text, pattern) {
			return true
		}
	}
	return false
}

func (m *matcher) foundPattern(text, pattern string) bool {
	switch m.kind {
	case hasPrefix:
		return strings.HasPrefix(text, pattern)
	case hasSuffix:
		return strings.HasSuffix(text, pattern)
	case hasPrefixIgnoreCase:
		_, found := hasPrefixFold(text, pattern)
		return found
	case hasSuffixIgnoreCase:
		return hasSuffixFold(text, pattern)
	default:
		return equalFold(text, pattern)
	}
}
