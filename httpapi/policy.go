package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"holdfast.internal/raftfsm/policy"
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
	var compact bytes.Buffer
	d, err := policy.Parse(text)
	if len(text) > sqs.MaxPolicySize || err != nil || !isQueuePolicy(d, account) || json.Compact(&compact, []byte(text)) != nil {
		return sqs.Attribute{}, sqs.InvalidValue(sqs.Policy)
	}
	return sqs.Attribute{Name: sqs.Policy, Value: compact.String()}, nil
}

// isQueuePolicy reports whether a policy may be one of a queue that the account
// owns.
func isQueuePolicy(d *policy.Document, account string) bool {
	principals, conditions := 0, 0
	for i := range d.Statements {
		s := &d.Statements[i]
		principals += len(s.Principals)
		conditions += len(s.Conditions)
		foreign := slices.ContainsFunc(s.Principals, func(p policy.Principal) bool { return p.Kind == policy.AWS && p.Account() != account })
		gives := foreign && !s.Deny && !s.NotAction
		if slices.ContainsFunc(s.Actions, func(name string) bool { return !isQueueAction(name, gives) }) {
			return false
		}
	}
	return len(d.Statements) <= maxStatements && principals <= maxPrincipals && conditions <= maxConditions
}

// isQueueAction reports whether a statement may have the action. To others, an
// Allow cannot give what only the owner may do.
func isQueueAction(name string, toOthers bool) bool {
	if name == "*" {
		return true
	}
	if len(name) < 5 || !strings.EqualFold(name[:4], "sqs:") {
		return false
	}
	return !toOthers || !slices.ContainsFunc(ownersOnly, func(n string) bool { return strings.EqualFold(n, name[4:]) })
}
