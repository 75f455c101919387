package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ErrMalformed says that a text is no access policy, ErrPrincipal that a statement
// of one names an AWS principal that cannot exist.
var (
	ErrMalformed = errors.New("malformed access policy")
	ErrPrincipal = errors.New("no such principal")
)

// The versions of the language. A document without one is of the older, which
// has no policy variables.
const (
	oldVersion = "2008-10-17"
	newVersion = "2012-10-17"
)

// Document is a parsed access policy. It is not changed by use.
type Document struct {
	Statements []Statement

	variables bool // ${…} in resources and conditions stands for a value of the request
	timed     bool // a condition may look at the time
}

// Statement is one rule of a policy. Names with Not apply to all but those that
// are listed.
type Statement struct {
	Deny         bool
	Principals   []Principal
	NotPrincipal bool
	Actions      []string // with wildcards
	NotAction    bool
	Resources    []string // with wildcards; none: the resource that the policy is attached to
	NotResource  bool
	Conditions   []Condition // all must hold
}

// PrincipalKind says what the name of a principal is.
type PrincipalKind string

// The kinds of principals.
const (
	AWS       PrincipalKind = "AWS" // an account id, an ARN, or * for everybody
	Service   PrincipalKind = "Service"
	Federated PrincipalKind = "Federated"
)

// Principal is somebody who makes requests, or to whom a statement applies.
type Principal struct {
	Kind PrincipalKind
	Name string
}

// Parse reads a policy (IAM user guide, "Grammar of the IAM JSON policy
// language"; SQS developer guide, "Custom Amazon SQS access policy language"). A
// policy without statements is malformed: SNS refuses one with "Policy Error: null"
// (cloud-custodian issue 1779). An error is ErrMalformed or ErrPrincipal.
func Parse(text string) (*Document, error) {
	o, ok := parseObject(text)
	if !ok || !o.only("Version", "Id", "Statement") {
		return nil, ErrMalformed
	}
	version, _ := o.text("Version")
	if o.has("Version") && version != newVersion && version != oldVersion {
		return nil, ErrMalformed
	}
	if _, ok = o.text("Id"); o.has("Id") && !ok {
		return nil, ErrMalformed
	}
	d := &Document{}
	for _, raw := range listOf(o["Statement"]) {
		s, err := parseStatement(string(raw))
		if err != nil {
			return nil, err
		}
		d.Statements = append(d.Statements, s)
		d.variables = d.variables || version == newVersion && s.hasVariables()
		d.timed = d.timed || d.variables || slices.ContainsFunc(s.Conditions, Condition.timed)
	}
	if len(d.Statements) == 0 {
		return nil, ErrMalformed
	}
	return d, nil
}

func parseStatement(text string) (s Statement, err error) {
	o, ok := parseObject(text)
	if !ok || !o.only("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition") {
		return s, ErrMalformed
	}
	if _, ok = o.text("Sid"); o.has("Sid") && !ok {
		return s, ErrMalformed
	}
	switch effect, _ := o.text("Effect"); effect {
	case "Allow":
	case "Deny":
		s.Deny = true
	default:
		return s, ErrMalformed
	}
	principal, ok := o.either("Principal", &s.NotPrincipal)
	if !ok || s.NotPrincipal && !s.Deny { // to allow all but one is never meant
		return s, ErrMalformed
	}
	if s.Principals, err = parsePrincipals(principal); err != nil {
		return s, err
	}
	action, ok := o.either("Action", &s.NotAction)
	if !ok {
		return s, ErrMalformed
	}
	if s.Actions, ok = oneOrMore(action); !ok {
		return s, ErrMalformed
	}
	if o.has("Resource") || o.has("NotResource") {
		resource, ok := o.either("Resource", &s.NotResource)
		if !ok {
			return s, ErrMalformed
		}
		if s.Resources, ok = oneOrMore(resource); !ok {
			return s, ErrMalformed
		}
	}
	if s.Conditions, ok = parseConditions(o["Condition"]); !ok {
		return s, ErrMalformed
	}
	return s, nil
}

// hasVariables reports whether a text of the statement may be one with variables.
func (s *Statement) hasVariables() bool {
	return slices.ContainsFunc(s.Resources, hasVariable) ||
		slices.ContainsFunc(s.Conditions, func(c Condition) bool { return slices.ContainsFunc(c.Values, hasVariable) })
}

func hasVariable(text string) bool { return strings.Contains(text, "${") }

// parsePrincipals reads "*", or an object of kinds of principals to some of each.
func parsePrincipals(raw json.RawMessage) ([]Principal, error) {
	var everybody string
	if json.Unmarshal(raw, &everybody) == nil && everybody == "*" {
		return []Principal{{Kind: AWS, Name: everybody}}, nil
	}
	o, ok := parseObject(string(raw))
	if !ok || len(o) == 0 || !o.only(string(AWS), string(Service), string(Federated)) {
		return nil, ErrMalformed
	}
	var principals []Principal
	for _, kind := range []PrincipalKind{AWS, Service, Federated} {
		if !o.has(string(kind)) {
			continue
		}
		names, ok := oneOrMore(o[string(kind)])
		if !ok {
			return nil, ErrMalformed
		}
		if kind == AWS && slices.ContainsFunc(names, func(name string) bool { return !isPrincipal(name) }) {
			return nil, ErrPrincipal
		}
		for _, name := range names {
			principals = append(principals, Principal{Kind: kind, Name: name})
		}
	}
	return principals, nil
}

// isPrincipal reports whether a name may be that of an AWS principal: anybody, an
// account, or the ARN of somebody in one.
func isPrincipal(name string) bool {
	if name == "*" || isAccount(name) {
		return true
	}
	parts := strings.SplitN(name, ":", 6)
	return len(parts) == 6 && parts[0] == "arn" && (parts[2] == "iam" || parts[2] == "sts") && parts[4] != "" && parts[5] != ""
}

// isAccount reports whether a text is an account id: 12 digits.
func isAccount(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789") == ""
}

// Account returns the account of an AWS principal; empty if it is of no account.
func (p Principal) Account() string {
	if p.Kind != AWS {
		return ""
	}
	if isAccount(p.Name) {
		return p.Name
	}
	if parts := strings.SplitN(p.Name, ":", 6); len(parts) == 6 {
		return parts[4]
	}
	return ""
}

// object is a JSON object whose members are looked at one by one.
type object map[string]json.RawMessage

// parseObject reads an object. A member that is null is not there; no member may
// be there twice, since it would be a matter of taste which one counts.
func parseObject(text string) (object, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	o := object{}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || seen[name.(string)] { // the name of a member is a string
			return nil, false
		}
		seen[name.(string)] = true
		if string(value) != "null" {
			o[name.(string)] = value
		}
	}
	_, err := d.Token()
	return o, err == nil && !d.More()
}

func (o object) has(name string) bool { return len(o[name]) > 0 }

// only reports whether the object has no members but these.
func (o object) only(names ...string) bool {
	for name := range o {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

func (o object) text(name string) (string, bool) {
	var s string
	err := json.Unmarshal(o[name], &s)
	return s, err == nil && o.has(name)
}

// either returns the one of two members, of which one has Not before its name,
// that the object has.
func (o object) either(name string, not *bool) (json.RawMessage, bool) {
	*not = o.has("Not" + name)
	if *not {
		return o["Not"+name], !o.has(name)
	}
	return o[name], o.has(name)
}

// listOf returns the elements of an array, or the value if it is none.
func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return []json.RawMessage{raw}
	}
	return list
}

// oneOrMore reads a text or a list of at least one. None may be empty.
func oneOrMore(raw json.RawMessage) ([]string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, one != ""
	}
	var texts []string
	err := json.Unmarshal(raw, &texts)
	return texts, err == nil && len(texts) > 0 && !slices.Contains(texts, "")
}
