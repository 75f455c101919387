package sns

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

const onlyOneKey = "Only one key allowed in match expression"

// operator reads the object that starts at the current token, and adds what it
// says to the conditions.
func (p *filterParser) operator(c *conditions) error {
	if p.next().kind != memberName {
		return p.errorHere("Match expression name not found")
	}
	name := p.take()
	switch name {
	case "exactly":
		return p.textOperator(c, equals, "exact")
	case "prefix", "suffix":
		return p.affix(c, name)
	case "equals-ignore-case":
		return p.textOperator(c, equalsIgnoreCase, name)
	case "wildcard":
		return p.wildcard(c)
	case "numeric":
		return p.numeric(c)
	case "anything-but":
		return p.anythingBut(c)
	case "exists":
		return p.exists(c)
	case "cidr":
		return p.cidr(c)
	}
	return p.errorHere("Unrecognized match type " + name)
}

// close ends the operator's object.
func (p *filterParser) close(detail string) error {
	if p.next().kind != objectEnd {
		return p.errorHere(detail)
	}
	return nil
}

// textOperator reads a string; shown names the operator in errors.
func (p *filterParser) textOperator(c *conditions, kind matchKind, shown string) error {
	if p.next().kind != stringValue {
		return p.errorHere(shown + " match pattern must be a string")
	}
	c.add(matcher{kind: kind, texts: []string{p.take()}})
	return p.close(onlyOneKey)
}

// affix reads a prefix or suffix, which may be one that ignores case.
func (p *filterParser) affix(c *conditions, name string) error {
	kind, folded, title := hasPrefix, hasPrefixIgnoreCase, "Prefix"
	if name == "suffix" {
		kind, folded, title = hasSuffix, hasSuffixIgnoreCase, "Suffix"
	}
	if p.tokens[p.at+1].kind != objectStart {
		return p.textOperator(c, kind, name)
	}
	p.next()
	if p.next().kind != memberName {
		return p.errorHere(title + " expression name not found")
	}
	if nested := p.take(); nested != "equals-ignore-case" {
		return p.errorHere("Unsupported " + name + " pattern: " + nested)
	}
	if err := p.textOperator(c, folded, "equals-ignore-case"); err != nil {
		return err
	}
	return p.close(onlyOneKey)
}

func (p *filterParser) wildcard(c *conditions) error {
	if p.next().kind != stringValue {
		return p.errorHere("wildcard match pattern must be a string")
	}
	w, problem := parseWildcard(p.take())
	if problem != "" {
		return p.errorHere(problem)
	}
	c.add(matcher{kind: likeWildcard, wildcards: []wildcard{w}})
	return p.close(onlyOneKey)
}

func (p *filterParser) exists(c *conditions) error {
	switch p.next().kind {
	case trueValue:
		c.exists = true
	case falseValue:
		c.absent = true
	default:
		return p.errorHere("exists match pattern must be either true or false.")
	}
	return p.close(onlyOneKey)
}

func (p *filterParser) cidr(c *conditions) error {
	if p.next().kind != stringValue {
		return p.errorHere("prefix match pattern must be a string") // so says AWS
	}
	low, high, err := parseCIDR(p.take())
	if err != nil {
		return err
	}
	c.add(matcher{kind: inRange, lowAddress: low, highAddress: high})
	return p.close(onlyOneKey)
}

// parseCIDR returns the first and the last address of a block. The first is the
// given one, even if it lies amid the block.
func parseCIDR(text string) (low, high address, err error) {
	parts := strings.Split(text, "/")
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if len(parts) != 2 {
		return low, high, &FilterError{Detail: "Malformed CIDR, one '/' required"}
	}
	bits, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return low, high, &FilterError{Detail: "Malformed CIDR, mask bits must be an integer"}
	}
	if bits < 0 {
		return low, high, &FilterError{Detail: "Malformed CIDR, mask bits must not be negative"}
	}
	low, ok := parseAddress(parts[0])
	switch {
	case !ok && looksLikeAddress(parts[0]):
		return low, high, &FilterError{Detail: "Invalid IP address: " + parts[0]}
	case !ok:
		return low, high, &FilterError{Detail: "Nonstandard IP address: " + parts[0]}
	case low.isV4() && bits > 31:
		return low, high, &FilterError{Detail: "IPv4 mask bits must be < 32"}
	case bits > 127:
		return low, high, &FilterError{Detail: "IPv6 mask bits must be < 128"}
	case low.isV4():
		bits += 96
	}
	high = low
	for i := bits; i < 128; i++ {
		high[i/8] |= 0x80 >> (i % 8)
	}
	return low, high, nil
}

// numeric reads an equation or a range.
func (p *filterParser) numeric(c *conditions) error {
	if p.next().kind != arrayStart {
		return p.errorHere("Value of numeric must be an array.")
	}
	if p.next().kind != stringValue {
		return p.errorHere("Invalid member in numeric match: " + p.take())
	}
	const tooMany = "Too many elements in numeric expression"
	m := matcher{kind: between}
	operator := p.take()
	p.next()
	d, err := p.bound(operator)
	if err != nil {
		return err
	}
	switch operator {
	case "=":
		m.low, m.high = &bound{value: d}, &bound{value: d}
	case "<", "<=":
		m.high = &bound{value: d, open: operator == "<"}
	default:
		m.low = &bound{value: d, open: operator == ">"}
		if p.tokens[p.at+1].kind != arrayEnd {
			if err := p.upperBound(&m); err != nil {
				return err
			}
			c.add(m)
			return p.close(tooMany)
		}
	}
	if p.next().kind != arrayEnd {
		return p.errorHere(tooMany)
	}
	c.add(m)
	return p.close(tooMany)
}

// bound reads the number, the current token, of an operator.
func (p *filterParser) bound(operator string) (decimal, error) {
	shown := operator
	switch operator {
	case "=":
		shown = "equals"
	case "<", "<=", ">", ">=":
	default:
		return decimal{}, p.errorHere("Unrecognized numeric range operator: " + operator)
	}
	if p.current().kind != numberValue {
		return decimal{}, p.errorHere("Value of " + shown + " must be numeric")
	}
	return p.comparable()
}

// comparable reads a number, the current token, that is compared with others.
// Refused is one that is not what its text says when it is read as a double.
func (p *filterParser) comparable() (decimal, error) {
	text := p.take()
	d, _ := parseDecimal(text) // every number of JSON is one
	double, err := strconv.ParseFloat(text, 64)
	read, readable := parseDecimal(strconv.FormatFloat(double, 'e', -1, 64))
	if err != nil && !errors.Is(err, strconv.ErrRange) || !readable || d.compare(read) != 0 {
		return decimal{}, p.errorHere("Cannot compare number : " + text)
	}
	return d, nil
}

// upperBound reads the second half of a range, up to the end of its array.
func (p *filterParser) upperBound(m *matcher) error {
	if p.next().kind != stringValue {
		return p.errorHere("Bad value in numeric range: " + p.take())
	}
	operator := p.take()
	if operator != "<" && operator != "<=" {
		return p.errorHere("Bad numeric range operator: " + operator)
	}
	p.next()
	d, err := p.bound(operator)
	if err != nil {
		return err
	}
	m.high = &bound{value: d, open: operator == "<"}
	if p.next().kind != arrayEnd {
		return p.errorHere("Too many terms in numeric range expression")
	}
	if m.low.value.compare(d) >= 0 {
		return p.errorHere("Bottom must be less than top")
	}
	return nil
}

// anythingBut reads what a value must not be.
func (p *filterParser) anythingBut(c *conditions) error {
	const tooMany = "Too many elements in numeric expression" // so says AWS
	switch p.next().kind {
	case objectStart:
		if err := p.anythingButNested(c); err != nil {
			return err
		}
		if err := p.close(tooMany); err != nil {
			return err
		}
	case arrayStart:
		if err := p.anythingButList(c); err != nil {
			return err
		}
	case stringValue:
		c.add(matcher{kind: equals, not: true, texts: []string{p.take()}})
	case numberValue:
		d, err := p.comparable()
		if err != nil {
			return err
		}
		c.add(matcher{kind: equalsNumber, not: true, numbers: []decimal{d}})
	default:
		return p.errorHere("Value of anything-but must be an array or single string/number value.")
	}
	return p.close(tooMany)
}

// anythingButList reads a list of strings or of numbers.
func (p *filterParser) anythingButList(c *conditions) error {
	m := matcher{kind: equals, not: true}
	for p.next().kind != arrayEnd {
		switch p.current().kind {
		case stringValue:
			m.texts = append(m.texts, p.take())
		case numberValue:
			d, err := p.comparable()
			if err != nil {
				return err
			}
			m.kind, m.numbers = equalsNumber, append(m.numbers, d)
		default:
			err := p.errorHere("Inside anything but list, start|null|boolean is not supported.")
			err.twice = true
			return err
		}
	}
	if (len(m.texts) == 0) == (len(m.numbers) == 0) {
		return p.errorHere("Inside anything but list, either all values are number or string, mixed type is not supported")
	}
	slices.Sort(m.texts)
	slices.SortFunc(m.numbers, decimal.compare)
	c.add(m)
	return nil
}

// anythingButNested reads a pattern, or a list of patterns, that must not match.
func (p *filterParser) anythingButNested(c *conditions) error {
	if p.next().kind != memberName {
		return p.errorHere("Anything-But expression name not found")
	}
	m := matcher{not: true}
	notText := "prefix/suffix match pattern must be a string"
	switch name := p.take(); name {
	case "prefix":
		m.kind = hasPrefix
	case "suffix":
		m.kind = hasSuffix
	case "equals-ignore-case":
		m.kind = equalsIgnoreCase
		notText = "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported."
	case "wildcard":
		m.kind = likeWildcard
		notText = "wildcard match pattern must be a string"
	default:
		return p.errorHere("Unsupported anything-but pattern: " + name)
	}
	isList := p.next().kind == arrayStart
	first, last := p.at, p.at
	if isList {
		first, last = p.at+1, p.closes[p.at]-1
	}
	for _, t := range p.tokens[first : last+1] {
		if t.kind != stringValue {
			return p.errorHere(notText)
		}
	}
	for i := first; i <= last; i++ {
		p.at, p.read = i, false
		if err := p.forbidden(&m); err != nil {
			return err
		}
	}
	if isList && p.next().kind == arrayEnd && first > last {
		return p.errorHere("Empty arrays are not allowed")
	}
	c.add(m)
	return nil
}

// forbidden adds the current token to the patterns that must not match.
func (p *filterParser) forbidden(m *matcher) error {
	text := p.take()
	switch m.kind {
	case likeWildcard:
		w, problem := parseWildcard(text)
		if problem != "" {
			return p.errorHere(problem)
		}
		m.wildcards = append(m.wildcards, w)
		return nil
	case hasPrefix, hasSuffix:
		if text == "" {
			return p.errorHere("Null prefix/suffix not allowed")
		}
	}
	m.texts = append(m.texts, text)
	return nil
}
