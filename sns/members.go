package sns

import (
	"slices"
	"strconv"
)

// members are the members of a JSON object, in their order, each with its value as
// JSON without white space. Those that are null are not there.
type members []member

type member struct{ name, value string }

// compactJSON is a JSON text without white space.
func compactJSON(text string) (string, *syntaxError) {
	for s := (scanner{text: text}); ; {
		t, err := s.next()
		if err != nil {
			return "", err
		}
		if t.kind == endOfText {
			break
		}
	}
	compact := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			compact = append(compact, c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		compact = append(compact, c)
	}
	return string(compact), nil
}

// What parseMembers takes at most: some of it is read while log entries are applied.
const (
	maxDocument = MaxPolicySize // bytes
	maxMembers  = 64            // of an object
)

// parseMembers reads a JSON object of moderate size. Of two members of one name the
// last counts.
func parseMembers(text string) (m members, ok bool) {
	if len(text) > maxDocument {
		return nil, false
	}
	text, err := compactJSON(text)
	if err != nil || text == "" || text[0] != '{' {
		return nil, false
	}
	s := scanner{text: text}
	_, _ = s.next()
	for {
		name, _ := s.next()
		if name.kind != memberName {
			return slices.DeleteFunc(m, func(v member) bool { return v.value == "null" }), true
		}
		v := member{name: unquoted(text[name.from:name.to]), value: s.raw()}
		m = slices.DeleteFunc(m, func(before member) bool { return before.name == v.name })
		if m = append(m, v); len(m) > maxMembers {
			return nil, false
		}
	}
}

// raw reads one value of a text that is known to be JSON, and returns it as it is;
// empty at the end of an array.
func (s *scanner) raw() string {
	t, _ := s.next()
	from, depth := t.from, 0
	if t.kind == stringValue {
		from--
	}
	for {
		switch t.kind {
		case objectStart, arrayStart:
			depth++
		case objectEnd, arrayEnd:
			depth--
		case endOfText, memberName, stringValue, numberValue, trueValue, falseValue, nullValue:
		}
		if depth < 0 {
			return ""
		}
		if depth == 0 {
			return s.text[from:t.end()]
		}
		t, _ = s.next()
	}
}

// elements are the values of a JSON array; false for what is none.
func elements(value string) (list []string, ok bool) {
	if value == "" || value[0] != '[' {
		return nil, false
	}
	s := scanner{text: value}
	_, _ = s.next()
	for {
		v := s.raw()
		if v == "" {
			return list, true
		}
		list = append(list, v)
	}
}

// plain is the text of a JSON string; false for what is none.
func plain(value string) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return unquoted(value[1 : len(value)-1]), true
}

// value is a member's; empty if it is not there.
func (m members) value(name string) string {
	for i := range m {
		if m[i].name == name {
			return m[i].value
		}
	}
	return ""
}

// or is value with another for what is not there.
func (m members) or(name, otherwise string) string {
	if v := m.value(name); v != "" {
		return v
	}
	return otherwise
}

// number is a member that is an integer; otherwise if it is not there.
func (m members) number(name string, otherwise int) (int, bool) {
	v := m.value(name)
	if v == "" {
		return otherwise, true
	}
	n, err := strconv.Atoi(v)
	return n, err == nil
}

// unexpected is the first member that is none of the given.
func (m members) unexpected(names ...string) (string, bool) {
	for i := range m {
		if !slices.Contains(names, m[i].name) {
			return m[i].name, true
		}
	}
	return "", false
}
