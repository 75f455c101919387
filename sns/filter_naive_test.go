package sns_test

import (
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"holdfast.internal/sns"
)

// This is a second engine for filter policies, straight from their grammar: it
// compiles nothing, knows no shortcut, and tries all there is to try.

// node is a JSON value.
type node struct {
	names  []string // of members; nil unless an object
	values []node   // of members or elements
	scalar any      // string, json.Number, bool, nil
	kind   byte     // o, a or s
}

func parseNode(text string) (node, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	n, ok := readNode(d)
	if !ok {
		return n, false
	}
	_, err := d.Token()
	return n, err == io.EOF
}

func readNode(d *json.Decoder) (node, bool) {
	t, err := d.Token()
	if err != nil {
		return node{}, false
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return node{scalar: t, kind: 's'}, true
	}
	n := node{kind: 'a'}
	if delim == '{' {
		n.kind = 'o'
	}
	for d.More() {
		if n.kind == 'o' {
			name, err := d.Token()
			if err != nil {
				return n, false
			}
			n.names = append(n.names, name.(string))
		}
		v, ok := readNode(d)
		if !ok {
			return n, false
		}
		n.values = append(n.values, v)
	}
	_, err = d.Token()
	return n, err == nil
}

// wish is what one branch of a policy wants: conditions by path.
type wish map[string]node

// naiveBranches lists the branches of a policy.
func naiveBranches(policy node, path string, branches []wish) []wish {
	for i, name := range policy.names {
		v := policy.values[i]
		switch {
		case name == "$or" && naiveAlternatives(v):
			var all []wish
			for _, alternative := range v.values {
				var copied []wish
				for _, b := range branches {
					c := wish{}
					maps.Copy(c, b)
					copied = append(copied, c)
				}
				all = append(all, naiveBranches(alternative, path, copied)...)
			}
			branches = all
		case v.kind == 'o':
			branches = naiveBranches(v, path+name+".", branches)
		default:
			for _, b := range branches {
				b[path+name] = v
			}
		}
	}
	return branches
}

func naiveAlternatives(v node) bool {
	if v.kind != 'a' || len(v.values) < 2 {
		return false
	}
	for _, o := range v.values {
		if o.kind != 'o' || len(o.names) == 0 || slices.Contains(o.names, "prefix") {
			return false
		}
	}
	return true
}

// leaf is a scalar of a message, and in which element of which array it is.
type leaf struct {
	path    string
	value   any
	in      map[int]int // array → index
	escaped bool        // compare strings in their escaped form, too
}

// naiveLeaves lists the leaves of a document.
func naiveLeaves(n node, path string, in map[int]int, arrays *int, leaves []leaf) []leaf {
	switch n.kind {
	case 's':
		return append(leaves, leaf{path: path, value: n.scalar, in: in})
	case 'o':
		for i, name := range n.names {
			p := name
			if arraysAbove := path != "\x00"; arraysAbove {
				p = path + "." + name
			}
			leaves = naiveLeaves(n.values[i], p, in, arrays, leaves)
		}
		return leaves
	}
	*arrays++
	id := *arrays
	for i, v := range n.values {
		inside := in
		if v.kind != 's' {
			inside = map[int]int{id: i}
			maps.Copy(inside, in)
		}
		leaves = naiveLeaves(v, path, inside, arrays, leaves)
	}
	return leaves
}

// naiveMessage is a message in the form that the naive engine looks at.
type naiveMessage struct {
	unfit  sns.FilterOutcome
	leaves []leaf
}

func naiveBody(body string) naiveMessage {
	n, ok := parseNode(body)
	if !ok || n.kind != 'o' {
		return naiveMessage{unfit: sns.FilteredOutInvalidMessageBody}
	}
	var arrays int
	return naiveMessage{leaves: naiveLeaves(n, "\x00", nil, &arrays, nil)}
}

func naiveAttributes(attributes []sns.PayloadAttribute) naiveMessage {
	if len(attributes) == 0 {
		return naiveMessage{unfit: sns.FilteredOutNoMessageAttributes}
	}
	var m naiveMessage
	for _, a := range attributes {
		switch {
		case strings.HasPrefix(a.DataType, "Binary"):
		case a.DataType == "String.Array":
			n, ok := parseNode(a.Value)
			if !ok || n.kind != 'a' {
				return naiveMessage{unfit: sns.FilteredOutInvalidAttributes}
			}
			for _, v := range n.values {
				if v.kind != 's' {
					return naiveMessage{unfit: sns.FilteredOutInvalidAttributes}
				}
				m.leaves = append(m.leaves, leaf{path: a.Name, value: v.scalar, escaped: true})
			}
		case strings.HasPrefix(a.DataType, "Number"):
			m.leaves = append(m.leaves, leaf{path: a.Name, value: json.Number(a.Value)})
		default:
			m.leaves = append(m.leaves, leaf{path: a.Name, value: a.Value, escaped: true})
		}
	}
	return m
}

// naiveMatches tries each branch, and in it each way to choose a leaf or the
// absence for each key.
func naiveMatches(branches []wish, leaves []leaf) bool {
	return slices.ContainsFunc(branches, func(b wish) bool {
		keys := make([]string, 0, len(b))
		for k := range b {
			keys = append(keys, k)
		}
		return naiveChoose(b, keys, leaves, nil, nil)
	})
}

func naiveChoose(b wish, keys []string, leaves, chosen []leaf, absent []string) bool {
	if len(keys) == 0 {
		return !slices.ContainsFunc(leaves, func(l leaf) bool {
			return slices.Contains(absent, l.path) && !slices.ContainsFunc(chosen, func(c leaf) bool { return naiveConflict(l, c) })
		})
	}
	for _, condition := range b[keys[0]].values {
		if condition.kind == 'o' && condition.names[0] == "exists" && condition.values[0].scalar == false {
			if naiveChoose(b, keys[1:], leaves, chosen, append(slices.Clone(absent), keys[0])) {
				return true
			}
			continue
		}
		for _, l := range leaves {
			if l.path != keys[0] || slices.ContainsFunc(chosen, func(c leaf) bool { return naiveConflict(l, c) }) {
				continue
			}
			if naiveCondition(condition, l) && naiveChoose(b, keys[1:], leaves, append(slices.Clone(chosen), l), absent) {
				return true
			}
		}
	}
	return false
}

func naiveConflict(a, b leaf) bool {
	for array, index := range a.in {
		if other, ok := b.in[array]; ok && other != index {
			return true
		}
	}
	return false
}

func rat(n any) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n.(json.Number)))
	if !ok {
		panic("no number: " + n.(json.Number))
	}
	return r
}

func naiveAddress(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	for i, p := range parts { // netip takes no leading zeros
		if n, err := strconv.Atoi(p); err == nil && len(parts) == 4 {
			parts[i] = strconv.Itoa(n)
		}
	}
	a, err := netip.ParseAddr(strings.Join(parts, "."))
	return a.Unmap(), err == nil
}

func naiveCondition(condition node, l leaf) bool {
	if condition.kind == 'o' {
		return naiveOperator(condition.names[0], condition.values[0], l)
	}
	switch want := condition.scalar.(type) {
	case json.Number:
		got, ok := l.value.(json.Number)
		return ok && rat(got).Cmp(rat(want)) == 0
	case string:
		a, ok := naiveAddress(want)
		return naiveText(l, func(text string) bool {
			b, isAddress := naiveAddress(text)
			return text == want || ok && isAddress && a == b
		})
	}
	return condition.scalar == l.value
}

// naiveText holds a string, in both of its forms, against f.
func naiveText(l leaf, f func(string) bool) bool {
	text, ok := l.value.(string)
	if !ok {
		return false
	}
	escaped := strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`)
	return f(text) || l.escaped && f(escaped)
}

func naiveOperator(name string, want node, l leaf) bool {
	switch name {
	case "exists":
		return want.scalar == true
	case "anything-but":
		return !naiveAny(want, l)
	case "cidr":
		prefix, err := netip.ParsePrefix(want.scalar.(string))
		if err != nil {
			panic(err)
		}
		return naiveText(l, func(text string) bool {
			a, ok := naiveAddress(text)
			return ok && prefix.Contains(a)
		})
	case "numeric":
		return naiveNumeric(want.values, l)
	}
	if want.kind == 'o' {
		return naiveText(l, func(text string) bool {
			return naivePattern(name+"-"+want.names[0], want.values[0].scalar.(string), text)
		})
	}
	return naiveText(l, func(text string) bool { return naivePattern(name, want.scalar.(string), text) })
}

func naiveNumeric(terms []node, l leaf) bool {
	got, ok := l.value.(json.Number)
	if !ok {
		return false
	}
	for i := 0; i < len(terms); i += 2 {
		c := rat(got).Cmp(rat(terms[i+1].scalar))
		fits := map[any]bool{"=": c == 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}
		if !fits[terms[i].scalar] {
			return false
		}
	}
	return true
}

// naiveAny reports whether the value is one of those of an anything-but.
func naiveAny(want node, l leaf) bool {
	switch want.kind {
	case 'a':
		return slices.ContainsFunc(want.values, func(v node) bool { return naiveAny(v, l) })
	case 'o':
		list := want.values[0].values
		if want.values[0].kind == 's' {
			list = want.values
		}
		return slices.ContainsFunc(list, func(v node) bool {
			return naiveText(l, func(text string) bool { return naivePattern(want.names[0], v.scalar.(string), text) })
		})
	}
	if n, ok := want.scalar.(json.Number); ok {
		got, ok := l.value.(json.Number)
		return ok && rat(got).Cmp(rat(n)) == 0
	}
	return naiveText(l, func(text string) bool { return text == want.scalar })
}

func naivePattern(name, pattern, text string) bool {
	switch name {
	case "prefix":
		return strings.HasPrefix(text, pattern)
	case "suffix":
		return strings.HasSuffix(text, pattern)
	case "exactly":
		return text == pattern
	case "wildcard":
		parts := strings.Split(strings.NewReplacer(`\\`, "\x01", `\*`, "\x02").Replace(pattern), "*")
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(strings.NewReplacer("\x01", `\`, "\x02", "*").Replace(p))
		}
		return naiveRegexp("(?s)^" + strings.Join(parts, ".*") + "$").MatchString(text)
	case "equals-ignore-case":
		return naiveRegexp("^" + naiveFolded(pattern) + "$").MatchString(text)
	case "prefix-equals-ignore-case":
		return naiveRegexp("^" + naiveFolded(pattern)).MatchString(text)
	case "suffix-equals-ignore-case":
		return naiveRegexp(naiveFolded(pattern) + "$").MatchString(text)
	}
	panic(name)
}

// naiveFolded is a regular expression for the pattern in any case.
func naiveFolded(pattern string) string {
	var b strings.Builder
	for _, c := range pattern {
		upper := string(unicode.ToUpper(c))
		if c == 'ß' {
			upper = "SS"
		}
		b.WriteString("(" + regexp.QuoteMeta(string(unicode.ToLower(c))) + "|" + regexp.QuoteMeta(upper) + ")")
	}
	return b.String()
}

var regexps = map[string]*regexp.Regexp{}

func naiveRegexp(text string) *regexp.Regexp {
	r := regexps[text]
	if r == nil {
		r = regexp.MustCompile(text)
		regexps[text] = r
	}
	return r
}
