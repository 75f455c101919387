package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"holdfast.internal/sqs"
)

// The most of each that a policy may have (SQS developer guide, "Quotas related to
// policies").
const (
	maxStatements = 20
	maxPrincipals = 50
	maxConditions = 10
)

// parsePolicy checks the grammar of the access policy of a queue that the account
// owns (SQS developer guide, "Custom Amazon SQS access policy language"). It is
// kept as it was given, but for white space.
func parsePolicy(text, account string) (sqs.Attribute, *sqs.Error) {
	g := policyGrammar{account: account}
	var compact bytes.Buffer
	if len(text) > sqs.MaxPolicySize || !g.policy(text) || json.Compact(&compact, []byte(text)) != nil {
		return sqs.Attribute{}, sqs.InvalidValue(sqs.Policy)
	}
	return sqs.Attribute{Name: sqs.Policy, Value: compact.String()}, nil
}

// policyGrammar checks one policy, and counts what there is a limit for.
type policyGrammar struct {
	account    string // the owner of the queue
	principals int
	conditions int
}

func (g *policyGrammar) policy(text string) bool {
	d, ok := parseDocument(text)
	if !ok || !d.only("Version", "Id", "Statement") || len(parsePolicyText(text).members) > 3 { // one of them is there twice
		return false
	}
	version, ok := d.text("Version")
	if d.has("Version") && (!ok || version != "2012-10-17" && version != "2008-10-17") {
		return false
	}
	if _, ok := d.text("Id"); d.has("Id") && !ok {
		return false
	}
	statements := statementsOf(d["Statement"])
	if len(statements) < 1 || len(statements) > maxStatements {
		return false
	}
	for _, s := range statements {
		if !g.statement(string(s)) {
			return false
		}
	}
	return g.principals <= maxPrincipals && g.conditions <= maxConditions
}

func (g *policyGrammar) statement(text string) bool {
	d, ok := parseDocument(text)
	if !ok || !d.only("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition") {
		return false
	}
	effect, _ := d.text("Effect")
	if _, ok := d.text("Sid"); d.has("Sid") && !ok || effect != "Allow" && effect != "Deny" {
		return false
	}
	if d.has("Principal") == d.has("NotPrincipal") || d.has("Action") == d.has("NotAction") || d.has("Resource") && d.has("NotResource") {
		return false
	}
	if effect == "Allow" && d.has("NotPrincipal") { // it is never meant
		return false
	}
	principals, ok := g.principal(d.either("Principal", "NotPrincipal"))
	return ok && g.actions(d, effect, principals) && g.resource(d.either("Resource", "NotResource")) && g.condition(d["Condition"])
}

// either returns the member of one of two names.
func (d document) either(name, other string) json.RawMessage {
	if d.has(name) {
		return d[name]
	}
	return d[other]
}

// oneOrMore reads a text or a list of at least one.
func oneOrMore(raw json.RawMessage) ([]string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, one != ""
	}
	var texts []string
	err := json.Unmarshal(raw, &texts)
	return texts, err == nil && len(texts) > 0 && !slices.Contains(texts, "")
}

// principal reads "*", or a map of kinds of principals to some of each. It returns
// those of the kind AWS.
func (g *policyGrammar) principal(raw json.RawMessage) (accounts []string, ok bool) {
	var everybody string
	if json.Unmarshal(raw, &everybody) == nil {
		g.principals++
		return []string{everybody}, everybody == "*"
	}
	kinds, ok := parseDocument(string(raw))
	if !ok || len(kinds) == 0 || !kinds.only("AWS", "Service", "Federated") {
		return nil, false
	}
	for kind, raw := range kinds {
		names, ok := oneOrMore(raw)
		if !ok || kind == "AWS" && slices.ContainsFunc(names, func(name string) bool { return !isPrincipal(name) }) {
			return nil, false
		}
		g.principals += len(names)
		if kind == "AWS" {
			accounts = names
		}
	}
	return accounts, true
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

// actions checks the names of actions. To others, an Allow cannot give what only
// the owner may do.
func (g *policyGrammar) actions(d document, effect string, principals []string) bool {
	names, ok := oneOrMore(d.either("Action", "NotAction"))
	if !ok {
		return false
	}
	foreign := slices.ContainsFunc(principals, func(p string) bool { return !g.isOwner(p) })
	for _, name := range names {
		if name == "*" {
			continue
		}
		if len(name) < 5 || !strings.EqualFold(name[:4], "sqs:") {
			return false
		}
		if foreign && effect == "Allow" && d.has("Action") && containsFold(ownersOnly, name[4:]) {
			return false
		}
	}
	return true
}

// isOwner reports whether a principal is the owner's account or somebody in it.
func (g *policyGrammar) isOwner(principal string) bool {
	if parts := strings.SplitN(principal, ":", 6); len(parts) == 6 {
		principal = parts[4]
	}
	return principal == g.account
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func (g *policyGrammar) resource(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	_, ok := oneOrMore(raw)
	return ok
}

// conditionOperators are the operators of conditions, without their prefixes and
// suffix (IAM user guide, "Condition operators").
var conditionOperators = []string{
	"StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase", "StringLike", "StringNotLike",
	"NumericEquals", "NumericNotEquals", "NumericLessThan", "NumericLessThanEquals", "NumericGreaterThan", "NumericGreaterThanEquals",
	"DateEquals", "DateNotEquals", "DateLessThan", "DateLessThanEquals", "DateGreaterThan", "DateGreaterThanEquals",
	"Bool", "BinaryEquals", "IpAddress", "NotIpAddress", "ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike", "Null",
}

// condition reads a map of operators to maps of keys to values.
func (g *policyGrammar) condition(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	operators, ok := parseDocument(string(raw))
	if !ok {
		return false
	}
	for name, raw := range operators {
		keys, ok := parseDocument(string(raw))
		if !ok || !isOperator(name) {
			return false
		}
		for key, value := range keys {
			if !strings.Contains(key, ":") || !isConditionValue(value) {
				return false
			}
			g.conditions++
		}
	}
	return true
}

func isOperator(name string) bool {
	name = strings.TrimSuffix(name, "IfExists")
	for _, prefix := range []string{"ForAnyValue:", "ForAllValues:"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return slices.Contains(conditionOperators, name)
}

// isConditionValue reports whether a value is a scalar, or a list of them.
func isConditionValue(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		switch v.(type) {
		case string, bool, float64:
		default:
			return false
		}
	}
	return len(list) > 0
}
