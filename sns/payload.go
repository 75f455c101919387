package sns

import "strings"

// Payload is a message as filter policies see it. Attributes and body are taken
// apart when the first policy looks at them, and only once.
type Payload struct {
	attributes []PayloadAttribute
	body       string
	views      [2]view // by FilterScope
	work       int
}

// PayloadAttribute is a message attribute. Those of the type Binary are not
// looked at.
type PayloadAttribute struct {
	Name     string
	DataType string // with its label, as in "Number.int" or "String.Array"
	Value    string
}

// view is one way to see a message.
type view struct {
	document *document     // nil: not looked at yet, or unfit
	unfit    FilterOutcome // Matched if it is fit
}

// NewPayload returns a message for filter policies; body is the text for the
// protocol of the subscriptions at hand, which MessageStructure may make
// different ones.
func NewPayload(attributes []PayloadAttribute, body string) *Payload {
	return &Payload{attributes: attributes, body: body}
}

// document returns what the scope looks at, or why no policy can match it.
func (m *Payload) document(scope FilterScope) (*document, FilterOutcome) {
	v := &m.views[scope]
	if v.document == nil && v.unfit == Matched {
		*v = m.look(scope)
	}
	return v.document, v.unfit
}

func (m *Payload) look(scope FilterScope) view {
	if scope == MessageAttributesScope {
		if len(m.attributes) == 0 {
			return view{unfit: FilteredOutNoMessageAttributes}
		}
		if d, ok := parseAttributes(m.attributes); ok {
			return view{document: d}
		}
		return view{unfit: FilteredOutInvalidAttributes}
	}
	if d, ok := parseBody(m.body); ok {
		return view{document: d}
	}
	return view{unfit: FilteredOutInvalidMessageBody}
}

// Work returns how many values the evaluations of this message have looked at so
// far, more for long ones and for many patterns, and one for each evaluation: the
// same on every replica, and in proportion to the time that they took. Who
// evaluates many policies in one go can stop by it.
func (m *Payload) Work() int { return m.work }

// arrayType is the type of attributes whose value is a JSON array.
const arrayType = "String.Array"

// parseAttributes makes a document of attributes: each has one value or, a
// String.Array, any number of them.
func parseAttributes(attributes []PayloadAttribute) (*document, bool) {
	d := newDocument()
	for i := range attributes {
		a := &attributes[i]
		base, _, _ := strings.Cut(a.DataType, ".")
		switch {
		case base == "Binary":
		case a.DataType == arrayType:
			if !d.addArray(d.paths.to(rootPath, a.Name), a.Value) {
				return nil, false
			}
		case base == "Number":
			d.add(value{path: d.paths.to(rootPath, a.Name), kind: numberValue}, a.Value, false)
		default:
			d.addAttributeText(d.paths.to(rootPath, a.Name), a.Value)
		}
	}
	d.group()
	return d, true
}

// addAttributeText adds a string. AWS compares with its escaped form (SNS
// developer guide, "String value exact matching"); the plain one matches too.
func (d *document) addAttributeText(path int32, text string) {
	v := d.add(value{path: path, kind: stringValue}, text, false)
	if escaped, differs := escapeText(text); differs {
		d.texts = append(d.texts, escaped)
		v.escaped = int32(len(d.texts))
	}
}

func (d *document) addArray(path int32, text string) bool {
	s := scanner{text: text}
	t, err := s.next()
	if err != nil || t.kind != arrayStart {
		return false
	}
	for {
		if t, err = s.next(); err != nil {
			return false
		}
		switch {
		case t.kind == arrayEnd:
			t, err = s.next()
			return err == nil && t.kind == endOfText
		case t.kind == stringValue:
			d.addAttributeText(path, unquoted(text[t.from:t.to]))
		case t.isScalar():
			d.add(value{path: path, kind: t.kind}, text[t.from:t.to], false)
		default:
			return false
		}
	}
}
