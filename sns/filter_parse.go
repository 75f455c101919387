package sns

import (
	"slices"
	"strings"
)

// orKey joins alternatives if its value is fit for it; else it is a key like
// others.
const orKey = "$or"

// reservedKeys are the keys that no alternative of an $or may have (event-ruler,
// "$or").
var reservedKeys = []string{
	"<", "<=", "=", ">", ">=", "anything-but", "cidr", "date-after", "date-before", "date-on-or-after", "date-on-or-before",
	"equals-ignore-case", "exactly", "exists", "in-date-range", "ip-address-in-range", "ip-address-not-in-range",
	"not-equals-ignore-case", "not-wildcard", "numeric", "prefix", "regex", "suffix", "wildcard",
}

// EmptyFilterPolicy reports whether the text of a FilterPolicy attribute means
// that there is no policy: it is empty or an empty object.
func EmptyFilterPolicy(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	return text == "" || ok && strings.TrimSpace(rest) == "}"
}

// ParseFilterPolicy compiles a filter policy (SNS developer guide, "Amazon SNS
// message filtering"). An error is a *FilterError. Its time grows linearly with
// the text.
func ParseFilterPolicy(text string, scope FilterScope) (*FilterPolicy, error) {
	if len(text) > maxFilterPolicySize {
		return nil, &FilterError{Detail: "Filter policy is too long"}
	}
	p := filterParser{text: text}
	if err := p.scan(); err != nil {
		return nil, err
	}
	root, err := p.policy()
	if err != nil {
		return nil, err
	}
	if scope == MessageAttributesScope && root.nested() {
		return nil, &FilterError{Detail: "Filter policy scope MessageAttributes does not support nested filter policy", Bare: true}
	}
	compiled := &FilterPolicy{scope: scope}
	if err := compiled.expand(root); err != nil {
		return nil, err
	}
	return compiled, nil
}

// filterObject is an object of a policy; all of its members must match.
type filterObject struct{ members []filterMember }

// filterMember has one of three values.
type filterMember struct {
	name         string
	conditions   *conditions
	object       *filterObject
	alternatives []*filterObject // of $or
}

// nested reports whether an object lies in an object other than by $or.
func (o *filterObject) nested() bool {
	return slices.ContainsFunc(o.members, func(m filterMember) bool {
		return m.object != nil || slices.ContainsFunc(m.alternatives, (*filterObject).nested)
	})
}

// filterParser goes through the tokens of a policy. Errors are at the place
// where the parser of AWS is when it finds them: behind the current token; but
// behind the opening quote only of a string that nobody has read yet, and behind
// what follows a name.
type filterParser struct {
	text   string
	tokens []token // all of them; endOfText is the last
	closes []int   // for each token that opens something the index of its end
	at     int     // index of the current token
	read   bool    // the current token is a string whose text was taken
}

// scan finds the tokens, or what is wrong with the JSON.
func (p *filterParser) scan() error {
	s := scanner{text: p.text}
	var open []int
	for {
		t, err := s.next()
		if err != nil {
			return err.in(p.text)
		}
		switch t.kind {
		case objectStart, arrayStart:
			open = append(open, len(p.tokens))
		case objectEnd, arrayEnd:
			p.closes[open[len(open)-1]] = len(p.tokens)
			open = open[:len(open)-1]
		case endOfText, memberName, stringValue, numberValue, trueValue, falseValue, nullValue:
		}
		p.tokens = append(p.tokens, t)
		p.closes = append(p.closes, len(p.closes))
		if t.kind == endOfText {
			return nil
		}
	}
}

func (p *filterParser) current() token { return p.tokens[p.at] }

// next goes to the next token.
func (p *filterParser) next() token {
	p.at++
	p.read = false
	return p.tokens[p.at]
}

// take returns the text of the current token, a string's unescaped.
func (p *filterParser) take() string {
	t := p.current()
	if t.kind == stringValue {
		p.read = true
	}
	if t.kind == stringValue || t.kind == memberName {
		return unquoted(p.text[t.from:t.to])
	}
	return p.text[t.from:t.to]
}

func (p *filterParser) errorHere(detail string) *FilterError {
	t := p.current()
	offset := t.to
	switch {
	case t.kind == stringValue && p.read:
		offset = t.end()
	case t.kind == stringValue:
		offset = t.from
	case t.kind == memberName:
		value := p.tokens[p.at+1]
		offset = value.to
		if value.kind == stringValue {
			offset = value.from
		}
	}
	line, column := position(p.text, offset)
	return &FilterError{Detail: detail, Line: line, Column: column}
}

func (p *filterParser) policy() (*filterObject, error) {
	if p.current().kind != objectStart {
		return nil, p.errorHere("Filter is not an object")
	}
	return p.object()
}

// object reads an object whose start is the current token.
func (p *filterParser) object() (*filterObject, error) {
	o := &filterObject{}
	for p.next().kind != objectEnd {
		m, err := p.member()
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, m)
	}
	if len(o.members) == 0 {
		return nil, p.errorHere("Empty objects are not allowed")
	}
	return o, nil
}

func (p *filterParser) member() (m filterMember, err error) {
	m.name = p.take()
	switch kind := p.next().kind; {
	case kind == arrayStart && m.name == orKey && p.alternatives(p.at):
		for p.next().kind != arrayEnd {
			o, err := p.object()
			if err != nil {
				return m, err
			}
			m.alternatives = append(m.alternatives, o)
		}
	case kind == arrayStart:
		m.conditions, err = p.conditions()
	case kind == objectStart:
		m.object, err = p.object()
	default:
		err = p.errorHere(`"` + m.name + `" must be an object or an array`)
	}
	return m, err
}

// alternatives reports whether the array that starts at a token is fit for $or:
// at least two objects, none empty, without reserved keys.
func (p *filterParser) alternatives(start int) bool {
	count := 0
	for i := start + 1; i < p.closes[start]; i = p.closes[i] + 1 {
		if p.tokens[i].kind != objectStart || p.closes[i] == i+1 {
			return false
		}
		for name := i + 1; name < p.closes[i]; name = p.closes[name+1] + 1 {
			t := p.tokens[name]
			if slices.Contains(reservedKeys, unquoted(p.text[t.from:t.to])) {
				return false
			}
		}
		count++
	}
	return count >= 2
}

// conditions reads the array that starts at the current token.
func (p *filterParser) conditions() (*conditions, error) {
	c := &conditions{}
	for p.next().kind != arrayEnd {
		c.count++
		switch t := p.current(); t.kind {
		case stringValue:
			c.addText(p.take())
		case numberValue:
			d, _ := parseDecimal(p.take()) // every number of JSON is one
			c.numbers = append(c.numbers, d)
		case trueValue, falseValue, nullValue:
			c.words |= wordOf(t.kind)
		case objectStart:
			if err := p.operator(c); err != nil {
				return nil, err
			}
		default:
			return nil, p.errorHere("Match value must be String, number, true, false, or null")
		}
	}
	if c.count == 0 {
		return nil, p.errorHere("Empty arrays are not allowed")
	}
	c.sort()
	return c, nil
}
