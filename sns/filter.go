package sns

// FilterScope says what a filter policy looks at.
type FilterScope byte

// The scopes, with the values of the FilterPolicyScope attribute as their
// String.
const (
	MessageAttributesScope FilterScope = iota // the default
	MessageBodyScope
)

func (s FilterScope) String() string {
	if s == MessageBodyScope {
		return "MessageBody"
	}
	return "MessageAttributes"
}

// FilterOutcome says whether a subscription gets a message, and if not, which
// CloudWatch metric counts it (SNS developer guide, "Monitoring Amazon SNS topics
// using CloudWatch").
type FilterOutcome byte

// The outcomes of FilterPolicy.Evaluate.
const (
	// Matched: the message is to be delivered.
	Matched FilterOutcome = iota
	// FilteredOutMessageAttributes: the attributes do not match.
	FilteredOutMessageAttributes
	// FilteredOutMessageBody: the body does not match.
	FilteredOutMessageBody
	// FilteredOutNoMessageAttributes: the policy looks at attributes, and there
	// are none; not even {"exists": false} matches then.
	FilteredOutNoMessageAttributes
	// FilteredOutInvalidAttributes: a String.Array is not a JSON array of
	// strings, numbers, booleans and nulls.
	FilteredOutInvalidAttributes
	// FilteredOutInvalidMessageBody: the body is not a JSON object.
	FilteredOutInvalidMessageBody
)

// FilterPolicy is a compiled filter policy. It is not changed by use, so several
// may read it at once; nil is the policy of a subscription that has none, and
// lets everything through.
type FilterPolicy struct {
	scope    FilterScope
	keys     [][]string // the paths that it looks at, as names; at most maxFilterKeys
	branches []branch   // what $or expands to; one of them must match
	costs    [maxFilterKeys]cost
}

// cost is the work of looking at a key's values: for each of them, and for each
// bytesPerWork bytes of their texts.
type cost struct{ value, text int }

// What else is as much work as one value: bytes of text to search, patterns to try,
// names of a path to follow.
const (
	bytesPerWork    = 256
	patternsPerWork = 8
	namesPerWork    = 16
)

// branch is one way to match: each of terms must match a value, all of them in
// the same elements of arrays, where no value of the absent keys may be.
type branch struct {
	terms  []term
	absent keySet
}

type term struct {
	key        int // index into FilterPolicy.keys
	conditions *conditions
}

// Evaluate holds the message against the policy. Its time grows linearly with
// the values of the message that the keys of the policy name, and with the patterns
// times the bytes that they are searched in (Payload.Work), and it allocates
// nothing once m was looked at in this scope. It uses m as scratch space: no two
// evaluations of one m at the same time.
func (p *FilterPolicy) Evaluate(m *Payload) FilterOutcome {
	if p == nil {
		return Matched
	}
	d, unfit := m.document(p.scope)
	if unfit != Matched {
		return unfit
	}
	m.work++
	var found [maxFilterKeys]span
	for i, key := range p.keys {
		found[i] = d.find(key)
		m.work += len(key)/namesPerWork + found[i].len()*p.costs[i].value + int(found[i].bytes)/bytesPerWork*p.costs[i].text
	}
	for i := range p.branches {
		if p.branches[i].matches(d, &found) {
			return Matched
		}
	}
	if p.scope == MessageBodyScope {
		return FilteredOutMessageBody
	}
	return FilteredOutMessageAttributes
}

// matches is the quick way: it is enough for values outside of arrays of objects
// and of arrays.
func (b *branch) matches(d *document, found *[maxFilterKeys]span) bool {
	nested := false
	for _, t := range b.terms {
		at := found[t.key]
		if !t.matchesAny(d, at) {
			return false
		}
		nested = nested || at.nested
	}
	for key := range b.absent.all() {
		if found[key].empty() {
			continue
		}
		if !found[key].nested || !nested { // nothing can be chosen that it would not belong to
			return false
		}
	}
	return !nested || len(b.terms) == 1 && b.absent == 0 || b.matchesConsistently(d, found)
}

func (t *term) matchesAny(d *document, at span) bool {
	for i := at.from; i < at.to; i++ {
		if t.conditions.match(d, &d.values[i]) {
			return true
		}
	}
	return false
}
