package awsjson

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"

	"holdfast.internal/httpapi/wire"
)

// The type errors of AWS (recorded by the LocalStack project as the texts of
// the service's framework).
const (
	errStruct    = wire.ReadError("Start of structure or map found where not expected.")
	errList      = wire.ReadError("Start of list found where not expected")
	errTextList  = wire.ReadError("Unrecognized collection type class java.lang.String")
	errBlob      = wire.ReadError("Invalid base64 encoding.")
	errIntRange  = wire.ReadError("NUMBER_VALUE is out of the range of an Integer")
	errIntFormat = wire.ReadError("NUMBER_VALUE can not be converted to an Integer")
)

// fail notes the first type error of the request.
func (v *value) fail(err error) {
	if v.document.err == nil {
		v.document.err = err
	}
}

// Err implements wire.Input.
func (v *value) Err() error { return v.document.err }

// member returns the last member of that name; nil if there is none or it is
// null.
func (v *value) member(name string) *value {
	var found *value
	values := v.document.values
	for i := v.child; i != 0; i = values[i].next {
		if m := &values[i]; string(m.key) == name {
			found = m
		}
	}
	if found == nil || found.kind == nullKind {
		return nil
	}
	return found
}

// token names the kind of a scalar as AWS does in its errors.
func (v *value) token() string {
	switch v.kind {
	case trueKind:
		return "TRUE_VALUE"
	case falseKind:
		return "FALSE_VALUE"
	case numberKind:
		return "NUMBER_VALUE"
	}
	return "STRING_VALUE"
}

// scalar reports whether v may be read as a scalar of that type.
func (v *value) scalar(target string, kinds ...kind) bool {
	if slices.Contains(kinds, v.kind) {
		return true
	}
	switch v.kind {
	case structKind:
		v.fail(errStruct)
	case listKind:
		v.fail(errList)
	default:
		v.fail(wire.ReadError(v.token() + " can not be converted to " + target))
	}
	return false
}

// Bytes implements wire.Input.
func (v *value) Bytes(name string) ([]byte, bool) {
	m := v.member(name)
	if m == nil || !m.scalar("a String", stringKind) {
		return nil, false
	}
	return m.text, true
}

// Text implements wire.Input.
func (v *value) Text(name string) (string, bool) {
	b, ok := v.Bytes(name)
	return string(b), ok
}

// Int implements wire.Input. A number may also be written as a string.
func (v *value) Int(name string) (int64, bool) {
	m := v.member(name)
	if m == nil || !m.scalar("an Integer", numberKind, stringKind) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(m.text), 10, 32)
	switch {
	case err == nil:
		return n, true
	case errors.Is(err, strconv.ErrRange):
		m.fail(errIntRange)
	case m.kind == numberKind:
		m.fail(errIntFormat)
	default:
		m.fail(wire.ReadError("STRING_VALUE can not be converted to an Integer"))
	}
	return 0, false
}

// Blob implements wire.Input.
func (v *value) Blob(name string) ([]byte, bool) {
	text, ok := v.Bytes(name)
	if !ok {
		return nil, false
	}
	blob, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		v.fail(errBlob)
		return nil, false
	}
	return blob, true
}

// collection returns the member if it is of the kind wanted, a list or a
// structure.
func (v *value) collection(name string, want kind) *value {
	m := v.member(name)
	switch {
	case m == nil || m.kind == want:
		return m
	case m.kind == structKind:
		m.fail(errStruct)
	case m.kind == listKind:
		m.fail(errList)
	case want == listKind:
		m.fail(wire.ReadError(m.token() + " can not be converted to a List"))
	default:
		m.fail(wire.ReadError(m.token() + " can not be converted to a Map"))
	}
	return nil
}

// Texts implements wire.Input.
func (v *value) Texts(l wire.List) ([]string, bool) {
	m := v.collection(l.JSON, listKind)
	if m == nil {
		return nil, false
	}
	var texts []string
	values := v.document.values
	for i := m.child; i != 0; i = values[i].next {
		item := &values[i]
		if item.kind == nullKind {
			continue
		}
		if !item.scalar("a String", stringKind) {
			return nil, false
		}
		texts = append(texts, string(item.text))
	}
	return texts, true
}

// Structs implements wire.Input.
func (v *value) Structs(l wire.List) ([]wire.Input, bool) {
	m := v.collection(l.JSON, listKind)
	if m == nil {
		return nil, false
	}
	var inputs []wire.Input
	values := v.document.values
	for i := m.child; i != 0; i = values[i].next {
		if item := &values[i]; item.structure() {
			inputs = append(inputs, item)
		}
	}
	return inputs, true
}

// structure reports whether v is a structure. Anything else but null is an
// error.
func (v *value) structure() bool {
	switch v.kind {
	case structKind:
		return true
	case nullKind:
	case listKind:
		v.fail(errList)
	default:
		v.fail(wire.ReadError(v.token() + " can not be converted to a Structure"))
	}
	return false
}

// TextMap implements wire.Input. Numbers and booleans count as their text; of
// a repeated key the last value counts.
func (v *value) TextMap(m wire.Map) ([]wire.Pair, bool) {
	of := v.collection(m.JSON, structKind)
	if of == nil {
		return nil, false
	}
	var pairs []wire.Pair
	values := v.document.values
	for i := of.child; i != 0; i = values[i].next {
		item := &values[i]
		switch item.kind {
		case nullKind:
			continue
		case structKind:
			item.fail(errStruct)
			return nil, false
		case listKind:
			item.fail(errTextList)
			return nil, false
		}
		if len(pairs) == maxPairs {
			v.fail(errTooMany)
			return nil, false
		}
		pairs = setPair(pairs, wire.Pair{Key: string(item.key), Value: string(item.text)})
	}
	return pairs, true
}

// maxPairs is the most entries of a map of texts; no action takes more than 50.
const maxPairs = 1024

// setPair adds p, or gives its key another value.
func setPair(pairs []wire.Pair, p wire.Pair) []wire.Pair {
	for i := range pairs {
		if pairs[i].Key == p.Key {
			pairs[i].Value = p.Value
			return pairs
		}
	}
	return append(pairs, p)
}

// StructMap implements wire.Input.
func (v *value) StructMap(m wire.Map) ([]wire.Entry, bool) {
	of := v.collection(m.JSON, structKind)
	if of == nil {
		return nil, false
	}
	var entries []wire.Entry
	values := v.document.values
	for i := of.child; i != 0; i = values[i].next {
		if item := &values[i]; item.structure() {
			entries = append(entries, wire.Entry{Key: string(item.key), Value: item})
		}
	}
	return entries, true
}
