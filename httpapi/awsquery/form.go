package awsquery

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
)

const (
	// maxPairs is the most parameters of one request; a batch of ten messages
	// with ten attributes each has about 450.
	maxPairs = 2000
	// maxParts is how many parts of a parameter's name are told apart; no
	// action has names of more than seven.
	maxParts = 8
	// keptNodes and keptBytes bound what a Form keeps from one request for the
	// next.
	keptNodes = 1024
	keptBytes = 64 << 10
)

// node is a part of a parameter's name, and what the parameters of that name
// mean. A.1.B=x makes three nodes, of which the last has the text x.
type node struct {
	form    *Form
	name    []byte
	text    []byte
	hasText bool
	child   int32 // index of the first one inside; 0 for none
	next    int32 // index of the next one beside; 0 for none
}

// Form is the parameters of a request as a tree. It may be used again for
// another request; what was read from it with Bytes is invalid then.
type Form struct {
	nodes   []node
	pairs   int
	scratch []byte // of what was escaped
	err     error  // the first type error
	none    node   // stands for a structure that is not there
}

// The errors of Add. Their texts are for the client.
const (
	errEscape   = wire.ReadError("The query string is malformed.")
	errEncoding = wire.ReadError("The request is not valid UTF-8.")
	errTooMany  = wire.ReadError("The request has too many parameters.")
)

// Reset forgets all parameters.
func (f *Form) Reset() {
	f.nodes = append(f.nodes[:0], node{form: f})
	f.scratch = f.scratch[:0]
	f.pairs, f.err = 0, nil
	f.none.form = f
}

// Release drops what refers to the request, and buffers that grew large.
func (f *Form) Release() {
	clear(f.nodes)
	if cap(f.nodes) > keptNodes {
		f.nodes = nil
	}
	if cap(f.scratch) > keptBytes {
		f.scratch = nil
	}
}

// Add reads parameters in the form of a query string. Of a repeated parameter
// the first one counts. The form refers to query until the next Reset. The
// error's text may be shown to the client; after one, the form has those
// parameters that can be read, which tell what the client has asked for.
func (f *Form) Add(query []byte) (unreadable error) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if f.pairs++; f.pairs > maxPairs {
			return errTooMany
		}
		if err := f.addPair(pair); err != nil && unreadable == nil {
			unreadable = err
		}
	}
	return unreadable
}

func (f *Form) addPair(pair []byte) error {
	rawName, rawText, _ := bytes.Cut(pair, []byte{'='})
	name, err := f.decode(rawName)
	if err != nil {
		return err
	}
	text, err := f.decode(rawText)
	if err != nil {
		return err
	}
	f.insert(name, text)
	return nil
}

// decode undoes the escapes of a name or a text, which is returned as it is if
// it has none.
func (f *Form) decode(s []byte) ([]byte, error) {
	n := bytes.IndexAny(s, "%+")
	if n < 0 {
		if !utf8.Valid(s) {
			return nil, errEncoding
		}
		return s, nil
	}
	start := len(f.scratch)
	f.scratch = append(f.scratch, s[:n]...)
	for n < len(s) {
		c := s[n]
		switch c {
		case '+':
			c = ' '
		case '%':
			if len(s)-n < 3 || unhex[s[n+1]] == 0 || unhex[s[n+2]] == 0 {
				return nil, errEscape
			}
			c = (unhex[s[n+1]]-1)<<4 | (unhex[s[n+2]] - 1)
			n += 2
		}
		f.scratch = append(f.scratch, c)
		n++
	}
	decoded := f.scratch[start:len(f.scratch):len(f.scratch)]
	if !utf8.Valid(decoded) {
		return nil, errEncoding
	}
	return decoded, nil
}

// unhex is one more than the value of a hexadecimal digit, and 0 for what is
// none.
var unhex = func() (table [256]byte) {
	for i, c := range []byte("0123456789abcdef") {
		table[c] = byte(i) + 1
		table[bytes.ToUpper([]byte{c})[0]] = byte(i) + 1
	}
	return table
}()

// insert adds a parameter to the tree, unless it is there.
func (f *Form) insert(name, text []byte) {
	at := int32(0)
	for part := 1; ; part++ {
		rest := name
		var more bool
		if part < maxParts {
			name, rest, more = bytes.Cut(name, []byte{'.'})
		}
		at = f.inside(at, name)
		if !more {
			break
		}
		name = rest
	}
	if n := &f.nodes[at]; !n.hasText {
		n.text, n.hasText = text, true
	}
}

// inside returns the node of that name inside another, and makes it first if
// there is none.
func (f *Form) inside(parent int32, name []byte) int32 {
	last := int32(0)
	for i := f.nodes[parent].child; i != 0; i = f.nodes[i].next {
		if bytes.Equal(f.nodes[i].name, name) {
			return i
		}
		last = i
	}
	i := int32(len(f.nodes))
	f.nodes = append(f.nodes, node{form: f, name: name})
	if last == 0 {
		f.nodes[parent].child = i
	} else {
		f.nodes[last].next = i
	}
	return i
}

// Root returns the request itself. It is valid until the next Add.
func (f *Form) Root() wire.Input { return &f.nodes[0] }

// member returns the node of that name inside n, nil if there is none.
func (n *node) member(name string) *node {
	nodes := n.form.nodes
	for i := n.child; i != 0; i = nodes[i].next {
		if m := &nodes[i]; string(m.name) == name {
			return m
		}
	}
	return nil
}

// indexed is an element of a list.
type indexed struct {
	index uint64
	node  *node
}

// elements returns the elements of the flattened list of that name, in the
// order of their numbers, however large those are: A.1=x, A.5=y has two. Without
// numbers, A=x and A.Name=x stand for A.1 (the latter is in the examples of the
// SQS developer guide), and A= for a list of none. It reports false if there is
// no such list, and fails at what is neither: A.0=x, or both ways at once.
// If inner is not empty the elements are A.inner.1 and so on; those of a flattened
// list are taken, too.
func (n *node) elements(name, inner string) ([]*node, bool) {
	list := n.member(name)
	if list == nil {
		return nil, false
	}
	if inner != "" {
		if in := list.member(inner); in != nil {
			list = in
		}
	}
	var found []indexed
	named := len(list.text) > 0
	nodes := n.form.nodes
	for i := list.child; i != 0; i = nodes[i].next {
		index, err := strconv.ParseUint(string(nodes[i].name), 10, 63)
		switch {
		case errors.Is(err, strconv.ErrSyntax):
			named = true
		case err != nil || index == 0:
			n.fail(errIndex)
			return nil, false
		default:
			found = append(found, indexed{index, &nodes[i]})
		}
	}
	if named && len(found) > 0 {
		n.fail(errIndex)
		return nil, false
	}
	if named {
		return []*node{list}, true
	}
	slices.SortStableFunc(found, func(a, b indexed) int { return cmp.Compare(a.index, b.index) })
	elements := make([]*node, len(found))
	for i, e := range found {
		elements[i] = e.node
	}
	return elements, true
}
