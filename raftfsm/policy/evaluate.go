package policy

import (
	"slices"
	"strings"
)

// Decision is what a policy says to a request.
type Decision byte

// The decisions. An explicit Deny counts more than any Allow.
const (
	NoMatch Decision = iota // nothing is said: denied unless something else allows
	Allow
	Deny
)

// Context has the values of a request's condition keys, as aws:SourceArn. Case
// does not count in the keys.
type Context []ContextValue

// ContextValue is a key with a value; a key that has several is there several
// times.
type ContextValue struct{ Key, Value string }

func (c Context) values(key string) []string {
	var values []string
	for i := range c {
		if strings.EqualFold(c[i].Key, key) {
			values = append(values, c[i].Value)
		}
	}
	return values
}

// Request is a question to a policy.
type Request struct {
	Principal Principal // an AWS one as an account id or an ARN; empty: nobody knows who it is
	Action    string    // such as sqs:SendMessage; case does not count
	Resource  string    // ARN
	Context   Context

	work int // see AllowsSend
}

// Evaluate decides by the statements of the document alone.
func (d *Document) Evaluate(r Request) Decision { return d.evaluate(&r) }

func (d *Document) evaluate(r *Request) Decision {
	decision := NoMatch
	for i := range d.Statements {
		s := &d.Statements[i]
		if !s.applies(r, d.variables) {
			continue
		}
		if s.Deny {
			return Deny
		}
		decision = Allow
	}
	return decision
}

func (s *Statement) applies(r *Request, variables bool) bool {
	r.work += len(s.Principals)
	if slices.ContainsFunc(s.Principals, r.Principal.is) == s.NotPrincipal {
		return false
	}
	if slices.ContainsFunc(s.Actions, func(a string) bool { return r.compare(likeFold, r.Action, a) }) == s.NotAction {
		return false
	}
	if len(s.Resources) > 0 {
		resources := s.Resources
		if variables {
			var known bool
			if resources, known = r.resolveAll(resources, true); !known {
				return s.Deny
			}
		}
		if slices.ContainsFunc(resources, func(p string) bool { return r.compare(like, r.Resource, p) }) == s.NotResource {
			return false
		}
	}
	for i := range s.Conditions {
		holds, known := s.Conditions[i].holds(r, variables)
		if !known {
			return s.Deny
		}
		if !holds {
			return false
		}
	}
	return true
}

// workUnit is how many pairs of characters are compared in the time of a simple test.
const workUnit = 1024

// compare is a test, and counts what it may take.
func (r *Request) compare(t test, given, wanted string) bool {
	r.work++
	if given != wanted {
		r.work += len(given) * len(wanted) / workUnit
	}
	return t(given, wanted)
}

// is reports whether the principal is one that a statement names: everybody, an
// account for all in it, a role for all of its sessions, or itself.
func (p Principal) is(named Principal) bool {
	if named.Kind == AWS && named.Name == "*" {
		return true
	}
	if named.Kind != p.Kind {
		return false
	}
	if p.Kind != AWS {
		return strings.EqualFold(named.Name, p.Name)
	}
	if account := named.Account(); isAccount(named.Name) || strings.HasSuffix(named.Name, ":root") {
		return account == p.Account()
	}
	return like(p.Name, named.Name) || like(p.role(), named.Name)
}

// role returns the ARN of the role whose session the principal is; empty if it is
// none.
func (p Principal) role() string {
	parts := strings.SplitN(p.Name, ":", arnParts)
	if len(parts) != arnParts || parts[2] != "sts" {
		return ""
	}
	name, found := strings.CutPrefix(parts[5], "assumed-role/")
	if !found {
		return ""
	}
	name, _, _ = strings.Cut(name, "/")
	return strings.Join([]string{parts[0], parts[1], "iam", "", parts[4], "role/" + name}, ":")
}

// workOfVariable is how many simple tests take the time in which a variable is
// resolved.
const workOfVariable = 4

// resolveAll puts the values of variables into texts; false if one has none. In
// patterns, a wildcard of a value is none.
func (r *Request) resolveAll(texts []string, patterns bool) ([]string, bool) {
	if !slices.ContainsFunc(texts, hasVariable) {
		return texts, true
	}
	resolved := make([]string, len(texts))
	for i, text := range texts {
		var ok bool
		if resolved[i], ok = r.resolve(text, patterns); !ok {
			return nil, false
		}
	}
	return resolved, true
}

// resolve puts the values of variables into a text (IAM user guide, "IAM policy
// elements: Variables and tags"). A variable may have a default: ${key, 'text'}.
func (r *Request) resolve(text string, pattern bool) (string, bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, behind, found := strings.Cut(rest, "}")
		if !found {
			return "", false
		}
		text = behind
		r.work += workOfVariable
		value, ok := r.variable(name)
		if !ok {
			return "", false
		}
		if pattern {
			value = literal.Replace(value)
		}
		b.WriteString(value)
	}
}

func (r *Request) variable(name string) (value string, ok bool) {
	if name == "*" || name == "?" || name == "$" { // these stand for themselves
		return name, true
	}
	key, fallback, hasFallback := strings.Cut(name, ",")
	if values := r.Context.values(strings.TrimSpace(key)); len(values) == 1 {
		return values[0], true
	}
	return strings.Trim(strings.TrimSpace(fallback), "'"), hasFallback
}
