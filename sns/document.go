package sns

import "strings"

// document is the flattened form of the attributes or of the body of a message:
// the values of each path. What there is one of for each value has no pointers,
// so that a body of many values costs little.
type document struct {
	source    string  // the body; empty for attributes
	values    []value // those of a path together, in the order of the text
	spans     []span  // of the paths
	paths     pathTree
	texts     []string // those that do not stand in source as they are
	numbers   []number
	addresses []address
	elements  []element // 0 is what is in no array
	parts     []part    // scratch space of branch.matchesConsistently
	inner     []int32   // scratch space of document.enter
}

func newDocument() *document {
	return &document{paths: newPathTree(), elements: make([]element, 1)}
}

// value is a string, a number, a boolean or a null. Its text is source[from:to],
// or one of texts.
type value struct {
	from, to int32
	path     int32
	element  int32 // the innermost object or array that is an element of an array
	extra    int32 // of a number or an address, its place in numbers or addresses, from 1
	text     int32 // place in texts, from 1
	escaped  int32 // place of its escaped form in texts, from 1
	kind     tokenKind
}

// number is a decimal whose digits are those from an offset of its text on.
type number struct {
	exponent int64
	from, to int32
	negative bool
}

// element is an element of an array, if it is an object or an array.
type element struct {
	parent int32 // the next element around it
	array  int32
	depth  int32 // the number of elements around it, the root included
}

// span are the values of a path.
type span struct {
	from, to int32
	bytes    int32 // of their texts
	nested   bool  // one of them is in an element
}

func (s span) empty() bool { return s.from >= s.to }
func (s span) len() int    { return int(s.to - s.from) }

// find returns the values of a path.
func (d *document) find(names []string) span {
	path, ok := d.paths.find(names)
	if !ok {
		return span{}
	}
	return d.spans[path]
}

// order is where the next value of a span stands.
func (d *document) order(s span) int32 { return d.values[s.from].from }

// textOf returns the text of a value, a string's unescaped.
func (d *document) textOf(v *value) string {
	if v.text > 0 {
		return d.texts[v.text-1]
	}
	return d.source[v.from:v.to]
}

func (d *document) address(v *value) *address { return &d.addresses[v.extra-1] }
func (d *document) escaped(v *value) string   { return d.texts[v.escaped-1] }

func (d *document) decimal(v *value) decimal {
	n := &d.numbers[v.extra-1]
	return decimal{digits: d.textOf(v)[n.from:n.to], exponent: n.exponent, negative: n.negative}
}

// add adds a value, whose text is given, too, if it does not stand in source.
func (d *document) add(v value, text string, inSource bool) *value {
	if !inSource {
		d.texts = append(d.texts, text)
		v.text = int32(len(d.texts))
	}
	switch v.kind {
	case numberValue:
		if n, ok := parseDecimal(text); ok {
			from := strings.Index(text, n.digits) // the digits are a part of it
			d.numbers = append(d.numbers, number{n.exponent, int32(from), int32(from + len(n.digits)), n.negative})
			v.extra = int32(len(d.numbers))
		}
	case stringValue:
		if a, ok := parseAddress(text); ok {
			d.addresses = append(d.addresses, a)
			v.extra = int32(len(d.addresses))
		}
	}
	d.values = append(d.values, v)
	return &d.values[len(d.values)-1]
}

// group puts the values of each path together.
func (d *document) group() {
	d.spans = make([]span, len(d.paths.origins))
	grouped := true // as they are
	for i := range d.values {
		s := &d.spans[d.values[i].path]
		grouped = grouped && (s.to == 0 || d.values[i-1].path == d.values[i].path)
		s.to++
		s.bytes += int32(len(d.textOf(&d.values[i])))
		s.nested = s.nested || d.values[i].element != 0
	}
	if grouped {
		d.keepOrder()
		return
	}
	var start int32
	for i := range d.spans {
		s := &d.spans[i]
		start, s.from, s.to = start+s.to, start, start
	}
	values := make([]value, len(d.values))
	for i := range d.values {
		s := &d.spans[d.values[i].path]
		values[s.to] = d.values[i]
		s.to++
	}
	d.values = values
}

// keepOrder makes the spans of values that are grouped as they are.
func (d *document) keepOrder() {
	for i := int32(0); i < int32(len(d.values)); {
		s := &d.spans[d.values[i].path]
		s.from, s.to = i, i+s.to
		i = s.to
	}
}

// level is an object or array of a body that is open.
type level struct {
	path    int32
	element int32 // what its values are in
	array   int32 // -1 if it is an object
}

// bodyReader flattens a body.
type bodyReader struct {
	*document
	scanner scanner
	open    []level
	arrays  int32
}

// parseBody flattens a JSON object, and returns false if the text is none.
func parseBody(text string) (*document, bool) {
	r := bodyReader{document: newDocument(), scanner: scanner{text: text}}
	r.source = text
	r.values = make([]value, 0, 1+strings.Count(text, ",")) // no more are possible
	t, err := r.scanner.next()
	if err != nil || t.kind != objectStart {
		return nil, false
	}
	r.open = append(r.open, level{path: rootPath, array: -1})
	for len(r.open) > 0 {
		if t, err = r.scanner.next(); err != nil || !r.read(t) {
			return nil, false
		}
	}
	if t, err = r.scanner.next(); err != nil || t.kind != endOfText {
		return nil, false
	}
	r.group()
	return r.document, true
}

// read takes one token, and with a name its value.
func (r *bodyReader) read(t token) bool {
	top := r.open[len(r.open)-1]
	switch t.kind {
	case objectEnd, arrayEnd:
		r.open = r.open[:len(r.open)-1]
	case memberName:
		path := r.paths.to(top.path, unquoted(r.scanner.text[t.from:t.to]))
		value, err := r.scanner.next()
		if err != nil || value.kind == endOfText {
			return false
		}
		r.value(value, path, top)
	default:
		r.value(t, top.path, top)
	}
	return true
}

func (r *bodyReader) value(t token, path int32, in level) {
	if t.isScalar() {
		raw := r.source[t.from:t.to]
		text := raw
		if t.kind == stringValue {
			text = unquoted(raw)
		}
		v := value{from: int32(t.from), to: int32(t.to), path: path, element: in.element, kind: t.kind}
		r.add(v, text, len(text) == len(raw))
		return
	}
	l := level{path: path, element: in.element, array: -1}
	if in.array >= 0 {
		l.element = int32(len(r.elements))
		around := r.elements[in.element]
		r.elements = append(r.elements, element{parent: in.element, array: in.array, depth: around.depth + 1})
	}
	if t.kind == arrayStart {
		l.array = r.arrays
		r.arrays++
	}
	r.open = append(r.open, l)
}

// escapeText is a text as it stands in JSON, if that is another.
func escapeText(text string) (escaped string, differs bool) {
	if strings.IndexByte(text, '"') < 0 && strings.IndexByte(text, '\\') < 0 {
		return "", false
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text), true
}
