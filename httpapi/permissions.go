package httpapi

import (
	"slices"
	"strings"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/raftfsm/policy"
	"holdfast.internal/sqs"
)

var (
	accountIDs      = wire.List{JSON: "AWSAccountIds", Query: "AWSAccountId"}
	permittedAction = wire.List{JSON: "Actions", Query: "ActionName"}
)

// maxActions is the most actions of an AddPermission (SQS developer guide,
// "Quotas related to policies").
const maxActions = 7

// grantable are the actions that an owner may permit to others, ownersOnly those
// that he may not (SQS API reference, AddPermission; SQS developer guide,
// "Limitations of the access policy language").
var (
	grantable = []string{
		"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues",
		"PurgeQueue", "ReceiveMessage", "SendMessage",
	}
	ownersOnly = []string{
		"AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueues",
		"ListQueueTags", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
	}
)

// permission is an AddPermission as it was read.
type permission struct {
	label             string
	accounts, actions []string
}

func addPermission(r *request) error {
	queue := r.queue()
	var p permission
	p.label, _ = r.in.Text("Label")
	p.accounts, _ = r.in.Texts(accountIDs)
	p.actions, _ = r.in.Texts(permittedAction)
	if err := r.check(queue); err != nil {
		return err
	}
	if invalid := p.validate(r.protocol); invalid != nil {
		return r.invalid(queue, invalid)
	}
	arn := queueARN(queue, r.settings.Region)
	return r.changePolicy(queue, func(old policyText) (policyText, *sqs.Error) {
		if old.find(p.label) {
			return old, sqs.Invalidf("Value %s for parameter Label is invalid. Reason: Already exists.", p.label)
		}
		if n := len(old.statements) + 1; n > maxStatements {
			return old, overLimit(n, "Statements", maxStatements)
		}
		if len(old.members) == 0 {
			old = newPolicy(arn)
		}
		return old.with(p.statement("SQS", arn)), nil
	})
}

// validate makes the checks in the order of AWS.
func (p *permission) validate(protocol protocol) *sqs.Error {
	switch {
	case p.label == "":
		return sqs.MissingParameterError("Label")
	case len(p.actions) == 0 && protocol == queryProtocol:
		return sqs.MissingParameterError("ActionName")
	case len(p.actions) == 0:
		return sqs.MissingParameterError("Actions")
	case len(p.accounts) == 0 || slices.ContainsFunc(p.accounts, func(id string) bool { return !isAccount(id) }):
		return sqs.Invalidf("Value [%s] for parameter PrincipalId is invalid. Reason: Unable to verify.", strings.Join(p.accounts, ", "))
	case len(p.actions) > maxActions:
		return overLimit(len(p.actions), "Actions", maxActions)
	case !sqs.ValidBatchEntryID(p.label): // the same alphabet and length
		return sqs.Invalidf("Value %s for parameter Label is invalid. "+
			"Reason: Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length", p.label)
	}
	for _, name := range p.actions {
		switch {
		case slices.Contains(ownersOnly, name):
			return sqs.Invalidf("Value SQS:%s for parameter ActionName is invalid. "+
				"Reason: Only the queue owner is allowed to invoke this action.", name)
		case !slices.Contains(grantable, name):
			return sqs.Invalidf("Value SQS:%s for parameter ActionName is invalid. "+
				"Reason: Please refer to the appropriate WSDL for a list of valid actions.", name)
		}
	}
	return nil
}

func overLimit(found int, what string, most int) *sqs.Error {
	e := sqs.Invalidf("%d %s were found, maximum allowed is %d.", found, what, most)
	e.Code = sqs.OverLimit
	return e
}

func removePermission(r *request) error {
	queue := r.queue()
	label, _ := r.in.Text("Label")
	if err := r.check(queue); err != nil {
		return err
	}
	if label == "" {
		return r.invalid(queue, sqs.MissingParameterError("Label"))
	}
	return r.changePolicy(queue, func(old policyText) (policyText, *sqs.Error) {
		switch {
		case len(old.members) == 0:
			return old, sqs.Invalidf("Value %s for parameter Label is invalid. Reason: can't find label.", label)
		case !old.find(label):
			return old, sqs.Invalidf("Value %s for parameter Label is invalid. Reason: can't find label on existing policy.", label)
		}
		return old.without(label), nil
	})
}

// policyTries is how often a policy is changed anew because somebody else has
// changed it meanwhile.
const policyTries = 8

// changePolicy replaces the queue's policy by what change makes of it. The new
// one counts only if nobody has changed the old one meanwhile; else it is made
// again.
func (r *request) changePolicy(queue sqs.QueueKey, change func(policyText) (policyText, *sqs.Error)) error {
	found, err := ask[sqs.GetQueueAttributesResult](r, sqs.GetQueueAttributes{Queue: queue})
	if err != nil {
		return err
	}
	c := sqs.ReplacePolicy{Queue: queue}
	for _, a := range found.Attributes {
		if a.Name == sqs.Policy {
			c.Old = a.Value
		}
	}
	for range policyTries {
		changed, invalid := change(parsePolicyText(c.Old))
		if invalid != nil {
			return invalid
		}
		if c.New = changed.String(); len(c.New) > sqs.MaxPolicySize {
			return overLimit(len(c.New), "bytes of policy", sqs.MaxPolicySize)
		}
		if d, err := policy.Parse(c.New); err == nil && countPrincipals(d) > maxPrincipals {
			return overLimit(countPrincipals(d), "Principals", maxPrincipals)
		}
		done, err := ask[sqs.ReplacePolicyResult](r, c)
		if err != nil || done.Replaced {
			return err
		}
		c.Old = done.Policy
	}
	return &sqs.Error{Code: sqs.RequestThrottled, Message: "The policy of the queue is being changed by others. Try again."}
}
