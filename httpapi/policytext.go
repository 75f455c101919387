package httpapi

import (
	"encoding/json"
	"slices"
	"strings"

	"holdfast.internal/httpapi/awsjson"
)

// policyText is an access policy in parts, each as it was written and in its
// place: what AddPermission and RemovePermission do not change reads back as it
// was given.
type policyText struct {
	members    []policyMember // in order; the value of Statement is in statements
	statements []json.RawMessage
}

type policyMember struct {
	name  string
	value json.RawMessage
}

// parsePolicyText takes a policy apart that parsePolicy has accepted; an empty
// one has no members.
func parsePolicyText(text string) (p policyText) {
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		return p
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return policyText{}
		}
		m := policyMember{name: name.(string)} // the key of an object is a text
		if err := d.Decode(&m.value); err != nil {
			return policyText{}
		}
		p.members = append(p.members, m)
		if m.name == "Statement" {
			p.statements = statementsOf(m.value)
		}
	}
	return p
}

// statementsOf returns the statements of a policy, which may be one alone.
func statementsOf(value json.RawMessage) []json.RawMessage {
	var statements []json.RawMessage
	if json.Unmarshal(value, &statements) != nil {
		return []json.RawMessage{value}
	}
	return statements
}

// newPolicy is the policy without statements that AddPermission starts from (AWS
// recording test_sqs_permission_lifecycle).
func newPolicy(arn string) policyText {
	return policyText{members: []policyMember{
		{name: "Version", value: json.RawMessage(`"2008-10-17"`)},
		{name: "Id", value: awsjson.AppendString(nil, arn+"/SQSDefaultPolicy")},
		{name: "Statement"},
	}}
}

// statement is the statement that permits actions of a service to the accounts, in
// the form of AWS: one is a text, several are a list. The account * is everybody.
func (p *permission) statement(service, arn string) json.RawMessage {
	principals := make([]string, len(p.accounts))
	for i, account := range p.accounts {
		principals[i] = account
		if account != "*" {
			principals[i] = "arn:aws:iam::" + account + ":root"
		}
	}
	actions := make([]string, len(p.actions))
	for i, name := range p.actions {
		actions[i] = service + ":" + name
	}
	text := awsjson.AppendString([]byte(`{"Sid":`), p.label)
	text = append(text, `,"Effect":"Allow","Principal":{"AWS":`...)
	text = appendOneOrMore(text, principals)
	text = append(text, `},"Action":`...)
	text = appendOneOrMore(text, actions)
	text = append(text, `,"Resource":`...)
	return append(awsjson.AppendString(text, arn), '}')
}

func appendOneOrMore(dst []byte, texts []string) []byte {
	if len(texts) == 1 {
		return awsjson.AppendString(dst, texts[0])
	}
	separator := byte('[')
	for _, text := range texts {
		dst = awsjson.AppendString(append(dst, separator), text)
		separator = ','
	}
	return append(dst, ']')
}

func hasLabel(statement json.RawMessage, label string) bool {
	var s struct{ Sid string }
	return json.Unmarshal(statement, &s) == nil && s.Sid == label
}

// find reports whether a statement has the label.
func (p policyText) find(label string) bool {
	return slices.ContainsFunc(p.statements, func(s json.RawMessage) bool { return hasLabel(s, label) })
}

// with is the policy with one more statement.
func (p policyText) with(statement json.RawMessage) policyText {
	p.statements = append(slices.Clip(p.statements), statement)
	return p
}

// without is the policy without the statements of the label. Without any
// statement there is no policy.
func (p policyText) without(label string) policyText {
	p = p.leave(label)
	if len(p.statements) == 0 {
		return policyText{}
	}
	return p
}

// leave is the policy without the statements of the label, which may leave none.
func (p policyText) leave(label string) policyText {
	p.statements = slices.DeleteFunc(slices.Clone(p.statements), func(s json.RawMessage) bool { return hasLabel(s, label) })
	return p
}

// String is the text of the policy, without white space; empty if there is none.
func (p policyText) String() string {
	if len(p.members) == 0 {
		return ""
	}
	var text []byte
	separator := byte('{')
	for _, m := range p.members {
		text = awsjson.AppendString(append(text, separator), m.name)
		text = append(text, ':')
		separator = ','
		if m.name != "Statement" {
			text = append(text, m.value...)
			continue
		}
		text = append(text, '[')
		for i, s := range p.statements {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, s...)
		}
		text = append(text, ']')
	}
	return string(append(text, '}'))
}
