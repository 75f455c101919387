package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"holdfast.internal/raftfsm/policy"
	"holdfast.internal/sqs"
)

// The most of each that the policy of a queue may have (SQS developer guide,
// "Quotas related to policies").
const (
	maxStatements = 20
	maxPrincipals = 50
	maxConditions = 10
)

// The most of each that the policy of a topic may have (SNS endpoints and quotas).
const (
	maxTopicStatements = 100
	maxTopicPrincipals = 200
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
	conditions := 0
	for i := range d.Statements {
		s := &d.Statements[i]
		conditions += len(s.Conditions)
		foreign := slices.ContainsFunc(s.Principals, func(p policy.Principal) bool { return p.Kind == policy.AWS && p.Account() != account })
		gives := foreign && !s.Deny && !s.NotAction
		if slices.ContainsFunc(s.Actions, func(name string) bool { return !isQueueAction(name, gives) }) {
			return false
		}
	}
	return len(d.Statements) <= maxStatements && countPrincipals(d) <= maxPrincipals && conditions <= maxConditions
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

func countPrincipals(d *policy.Document) (n int) {
	for i := range d.Statements {
		n += len(d.Statements[i].Principals)
	}
	return n
}

// topicScope has the actions that the policy of a topic may name, in lower case.
var topicScope = []string{
	"addpermission", "deletetopic", "getdataprotectionpolicy", "gettopicattributes", "listsubscriptionsbytopic",
	"listtagsforresource", "publish", "putdataprotectionpolicy", "receive", "removepermission", "settopicattributes",
	"subscribe", "tagresource", "untagresource",
}

// isTopicAction reports whether the policy of a topic may name the action, without
// its prefix.
func isTopicAction(name string) bool { return slices.Contains(topicScope, strings.ToLower(name)) }

const outOfScope = "Policy statement action out of service scope!"

// checkTopicPolicy says what is wrong with the access policy of a topic, in the
// words of AWS where they are known; empty if nothing is. What would be evaluated
// as a policy that allows nothing is not stored in the first place.
func checkTopicPolicy(text string) (reason string) {
	const refused = "Policy Error: "
	d, err := policy.Parse(text)
	switch {
	case errors.Is(err, policy.ErrPrincipal):
		return refused + "PrincipalNotFound"
	case err != nil:
		return refused + "null"
	case len(d.Statements) > maxTopicStatements:
		return refused + "policy has more than " + strconv.Itoa(maxTopicStatements) + " statements"
	case countPrincipals(d) > maxTopicPrincipals:
		return refused + "policy has more than " + strconv.Itoa(maxTopicPrincipals) + " principals"
	}
	for i := range d.Statements {
		s := &d.Statements[i]
		if !s.NotAction && slices.ContainsFunc(s.Actions, func(a string) bool { return !inTopicScope(a) }) {
			return outOfScope
		}
	}
	return ""
}

// inTopicScope reports whether an action of a statement, which may have wildcards,
// is one of SNS.
func inTopicScope(action string) bool {
	service, name, ok := strings.Cut(action, ":")
	return action == "*" || ok && strings.EqualFold(service, "sns") && (strings.ContainsAny(name, "*?") || isTopicAction(name))
}
