package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/raftfsm/policy"
	"holdfast.internal/sns"
)

var (
	topicAccounts = wire.List{Query: "AWSAccountId", Member: "member"}
	topicActions  = wire.List{Query: "ActionName", Member: "member"}
)

// checkPolicy asks the topic's access policy whether the caller may do what he
// asks for.
func (r *request) checkPolicy(topic sns.TopicKey) error {
	text, err := r.topicPolicy(topic)
	if err != nil {
		return err
	}
	by := policy.Principal{}
	if r.caller.signed {
		by = policy.Principal{Kind: policy.AWS, Name: r.caller.account}
	}
	arn := sns.TopicARN(r.settings.Region, topic)
	d, err := policy.Parse(text)
	if err == nil && d.Evaluate(r.topicRequest(by, arn)) == policy.Allow {
		return nil
	}
	return r.notAuthorized(arn)
}

// topicRequest is what a topic's policy is asked. A batch is a publish to it.
func (r *request) topicRequest(by policy.Principal, arn string) policy.Request {
	name := r.name
	if name == "PublishBatch" {
		name = "Publish"
	}
	q := policy.Request{Principal: by, Action: "SNS:" + name, Resource: arn}
	scheme, _ := r.sentTo()
	q.Context = append(q.Context, policy.ContextValue{Key: "aws:SecureTransport", Value: strconv.FormatBool(scheme == "https")},
		policy.ContextValue{Key: "aws:SourceIp", Value: r.http.RemoteIP().String()})
	if by.Name != "" {
		q.Context = append(q.Context, policy.ContextValue{Key: "aws:SourceOwner", Value: by.Name},
			policy.ContextValue{Key: "aws:SourceAccount", Value: by.Name}, policy.ContextValue{Key: "aws:PrincipalAccount", Value: by.Name})
	}
	return q
}

// topicPolicy returns the access policy that a topic has.
func (r *request) topicPolicy(topic sns.TopicKey) (string, error) {
	found, err := inquire[sns.GetTopicAttributesResult](r, sns.GetTopicAttributes{Topic: topic})
	if err != nil {
		return "", err
	}
	return policyOr(storedPolicy(found.Attributes), r.settings.Region, topic), nil
}

func storedPolicy(attributes []sns.Attribute) string {
	for _, a := range attributes {
		if a.Name == sns.Policy {
			return a.Value
		}
	}
	return ""
}

// policyOr is the policy, or the default one if there is none.
func policyOr(text, region string, topic sns.TopicKey) string {
	if text == "" {
		return sns.DefaultPolicy(region, topic)
	}
	return text
}

// addTopicPermission adds a statement to a topic's policy (AWS recordings
// test_topic_add_permission, test_topic_add_multiple_permissions,
// test_add_permission_errors).
func addTopicPermission(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	var p permission
	p.label, _ = r.in.Text("Label")
	p.accounts, _ = r.in.Texts(topicAccounts)
	p.actions, _ = r.in.Texts(topicActions)
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if refusal := p.validateForTopic(); refusal != nil {
		return r.refuseTo(topic, refusal)
	}
	statement := p.statement("SNS", sns.TopicARN(r.settings.Region, topic))
	return r.changeTopicPolicy(topic, func(old policyText) (policyText, error) {
		if old.find(p.label) {
			return old, sns.Invalid("Statement already exists")
		}
		return old.with(statement), nil
	})
}

func (p *permission) validateForTopic() error {
	switch {
	case p.label == "":
		return sns.Invalid("Label Reason: no value for required parameter")
	case len(p.actions) == 0 || slices.ContainsFunc(p.actions, func(name string) bool { return name != "*" && !isTopicAction(name) }):
		return sns.Invalid(outOfScope)
	case len(p.accounts) == 0 || slices.ContainsFunc(p.accounts, func(id string) bool { return id != "*" && !isAccount(id) }):
		return sns.Invalid("A provided account ID is not valid")
	}
	return nil
}

func removeTopicPermission(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	label, _ := r.in.Text("Label")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	return r.changeTopicPolicy(topic, func(old policyText) (policyText, error) { return old.leave(label), nil })
}

// changeTopicPolicy replaces the topic's policy by what change makes of it. The
// new one counts only if nobody has changed the old one meanwhile; else it is made
// again.
func (r *request) changeTopicPolicy(topic sns.TopicKey, change func(policyText) (policyText, error)) error {
	found, err := inquire[sns.GetTopicAttributesResult](r, sns.GetTopicAttributes{Topic: topic})
	if err != nil {
		return err
	}
	old := storedPolicy(found.Attributes)
	for range policyTries {
		changed, err := change(parsePolicyText(compactJSON(policyOr(old, r.settings.Region, topic))))
		if err != nil {
			return err
		}
		c := sns.ReplaceTopicPolicy{Topic: topic, Old: old, New: changed.String()}
		if len(c.New) > sns.MaxPolicySize {
			return sns.Invalid(fmt.Sprintf("Policy Error: policy is longer than %d bytes", sns.MaxPolicySize))
		}
		if reason := checkTopicPolicy(c.New); reason != "" && len(changed.statements) > 0 {
			return sns.Invalid(reason)
		}
		done, err := inquire[sns.ReplaceTopicPolicyResult](r, c)
		if err != nil || done.Replaced {
			return err
		}
		old = done.Policy
	}
	return &sns.Error{Code: sns.Throttling, Message: "Rate exceeded"}
}

// compactJSON takes the white space out of a document.
func compactJSON(text string) string {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) != nil {
		return text
	}
	return compact.String()
}
