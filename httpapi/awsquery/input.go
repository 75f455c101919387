package awsquery

import (
	"encoding/base64"
	"errors"
	"strconv"

	"holdfast.internal/httpapi/wire"
)

// The type errors, in the words of the JSON protocol.
const (
	errBlob      = wire.ReadError("Invalid base64 encoding.")
	errInt       = wire.ReadError("STRING_VALUE can not be converted to an Integer")
	errIntRange  = wire.ReadError("NUMBER_VALUE is out of the range of an Integer")
	errIndex     = wire.ReadError("The elements of a list are numbered from 1.")
	errStructure = wire.ReadError("Start of structure or map found where not expected.")
)

// fail notes the first type error of the request.
func (n *node) fail(err error) {
	if n.form.err == nil {
		n.form.err = err
	}
}

// Err implements wire.Input.
func (n *node) Err() error { return n.form.err }

// Bytes implements wire.Input.
func (n *node) Bytes(name string) ([]byte, bool) {
	m := n.member(name)
	if m == nil {
		return nil, false
	}
	if !m.hasText {
		m.fail(errStructure)
	}
	return m.text, m.hasText
}

// Text implements wire.Input.
func (n *node) Text(name string) (string, bool) {
	b, ok := n.Bytes(name)
	return string(b), ok
}

// Int implements wire.Input.
func (n *node) Int(name string) (int64, bool) {
	text, ok := n.Bytes(name)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(string(text), 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		n.fail(errIntRange)
	case err != nil:
		n.fail(errInt)
	}
	return v, err == nil
}

// Blob implements wire.Input.
func (n *node) Blob(name string) ([]byte, bool) {
	text, ok := n.Bytes(name)
	if !ok {
		return nil, false
	}
	blob, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		n.fail(errBlob)
		return nil, false
	}
	return blob, true
}

// Texts implements wire.Input.
func (n *node) Texts(l wire.List) ([]string, bool) {
	elements, ok := n.elements(l.Query, l.Member)
	var texts []string
	for _, e := range elements {
		if !e.hasText {
			e.fail(errStructure)
			return nil, false
		}
		texts = append(texts, string(e.text))
	}
	return texts, ok
}

// Structs implements wire.Input.
func (n *node) Structs(l wire.List) ([]wire.Input, bool) {
	elements, ok := n.elements(l.Query, l.Member)
	var inputs []wire.Input
	for _, e := range elements {
		inputs = append(inputs, e)
	}
	return inputs, ok
}

// TextMap implements wire.Input. Of a repeated key the first value counts, as
// with parameters.
func (n *node) TextMap(m wire.Map) ([]wire.Pair, bool) {
	elements, ok := n.elements(m.Query, m.Entry)
	var pairs []wire.Pair
	for _, e := range elements {
		key, _ := e.Text(m.Key)
		value, _ := e.Text(m.Value)
		if !hasKey(pairs, key) {
			pairs = append(pairs, wire.Pair{Key: key, Value: value})
		}
	}
	return pairs, ok
}

func hasKey(pairs []wire.Pair, key string) bool {
	for i := range pairs {
		if pairs[i].Key == key {
			return true
		}
	}
	return false
}

// StructMap implements wire.Input.
func (n *node) StructMap(m wire.Map) ([]wire.Entry, bool) {
	elements, ok := n.elements(m.Query, m.Entry)
	var entries []wire.Entry
	for _, e := range elements {
		key, _ := e.Text(m.Key)
		value := e.member(m.Value)
		if value == nil {
			value = &n.form.none
		}
		entries = append(entries, wire.Entry{Key: key, Value: value})
	}
	return entries, ok
}
