package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Condition is a test of one key of the request's context.
type Condition struct {
	Key    string // case does not count
	Values []string

	test     test
	pattern  bool   // the values may have wildcards
	negated  bool   // it holds if no value is as tested
	ifExists bool   // it holds if the key is not there
	of       sortOf // which of the key's values are tested
}

// sortOf says how the values of a key that has several are tested.
type sortOf byte

const (
	oneValue sortOf = iota // without a prefix: one value; of several, any
	forAnyValue
	forAllValues
)

// operators are the operators of conditions, without their prefixes and suffix
// (IAM user guide, "IAM JSON policy elements: Condition operators").
var operators = map[string]struct {
	test             test // nil: is the key there at all?
	negated, pattern bool
}{
	"StringEquals":              {test: stringEquals},
	"StringNotEquals":           {test: stringEquals, negated: true},
	"StringEqualsIgnoreCase":    {test: stringEqualsIgnoreCase},
	"StringNotEqualsIgnoreCase": {test: stringEqualsIgnoreCase, negated: true},
	"StringLike":                {test: stringLike, pattern: true},
	"StringNotLike":             {test: stringLike, negated: true, pattern: true},
	"NumericEquals":             {test: numericEquals},
	"NumericNotEquals":          {test: numericEquals, negated: true},
	"NumericLessThan":           {test: numericLess},
	"NumericLessThanEquals":     {test: numericLessOrEqual},
	"NumericGreaterThan":        {test: numericGreater},
	"NumericGreaterThanEquals":  {test: numericGreaterOrEqual},
	"DateEquals":                {test: dateEquals},
	"DateNotEquals":             {test: dateEquals, negated: true},
	"DateLessThan":              {test: dateLess},
	"DateLessThanEquals":        {test: dateLessOrEqual},
	"DateGreaterThan":           {test: dateGreater},
	"DateGreaterThanEquals":     {test: dateGreaterOrEqual},
	"Bool":                      {test: boolEquals},
	"BinaryEquals":              {test: stringEquals},
	"IpAddress":                 {test: addressIn},
	"NotIpAddress":              {test: addressIn, negated: true},
	"ArnEquals":                 {test: arnLike, pattern: true}, // the two do the same
	"ArnLike":                   {test: arnLike, pattern: true},
	"ArnNotEquals":              {test: arnLike, negated: true, pattern: true},
	"ArnNotLike":                {test: arnLike, negated: true, pattern: true},
	"Null":                      {},
}

// timed reports whether the condition looks at the time.
func (c Condition) timed() bool {
	return strings.EqualFold(c.Key, currentTime) || strings.EqualFold(c.Key, epochTime)
}

// parseConditions reads an object of operators to objects of keys to values.
func parseConditions(raw json.RawMessage) ([]Condition, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	o, ok := parseObject(string(raw))
	if !ok {
		return nil, false
	}
	var conditions []Condition
	for _, name := range slices.Sorted(maps.Keys(o)) {
		template, ok := parseOperator(name)
		if !ok {
			return nil, false
		}
		keys, ok := parseObject(string(o[name]))
		if !ok {
			return nil, false
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c := template
			c.Key = key
			if c.Values, ok = scalars(keys[key]); !ok || !strings.Contains(key, ":") {
				return nil, false
			}
			conditions = append(conditions, c)
		}
	}
	return conditions, true
}

func parseOperator(name string) (c Condition, ok bool) {
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	if rest, found := strings.CutPrefix(name, "ForAnyValue:"); found {
		name, c.of = rest, forAnyValue
	} else if rest, found := strings.CutPrefix(name, "ForAllValues:"); found {
		name, c.of = rest, forAllValues
	}
	operator, ok := operators[name]
	c.test, c.negated, c.pattern = operator.test, operator.negated, operator.pattern
	return c, ok
}

// scalars reads a string, number or boolean, or a list of at least one, as texts.
func scalars(raw json.RawMessage) ([]string, bool) {
	var texts []string
	for _, value := range listOf(raw) {
		var text string
		switch {
		case json.Unmarshal(value, &text) == nil && string(value) != "null":
		case string(value) == "true" || string(value) == "false" || len(value) > 0 && strings.Contains("-0123456789", string(value[:1])):
			text = string(value)
		default:
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, len(texts) > 0
}

// holds reports whether the condition is true for the request. known is false if
// a value of it has a variable that the request has no value for.
func (c *Condition) holds(r *Request, variables bool) (holds, known bool) {
	values := c.Values
	if variables {
		if values, known = r.resolveAll(values, c.pattern); !known {
			return false, false
		}
	}
	given := r.Context.values(c.Key)
	if c.test == nil {
		return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, "true") == (len(given) == 0) }), true
	}
	if len(given) == 0 {
		return c.ifExists || c.of == forAllValues || c.of == oneValue && c.negated, true
	}
	fits := func(text string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return r.compare(c.test, text, v) }) != c.negated
	}
	if c.of == forAllValues || c.of == oneValue && c.negated {
		return !slices.ContainsFunc(given, func(text string) bool { return !fits(text) }), true
	}
	return slices.ContainsFunc(given, fits), true
}
