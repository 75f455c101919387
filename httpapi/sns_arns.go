package httpapi

import (
	"errors"
	"fmt"
	"strings"

	"holdfast.internal/sns"
)

// arnElements is how many parts AWS asks of an ARN.
const arnElements = 6

// arnParameter reads a parameter that must be an ARN of six parts or more.
func (r *request) arnParameter(name string) (string, error) {
	text, ok := r.in.Text(name)
	if err := r.in.Err(); err != nil {
		return "", malformed(err)
	}
	if !ok {
		return "", sns.Invalid(name + " Reason: no value for required parameter")
	}
	if n := strings.Count(text, ":") + 1; n < arnElements {
		return "", sns.Invalid(fmt.Sprintf("%s Reason: An ARN must have at least 6 elements, not %d", name, n))
	}
	return text, nil
}

// topicParameter reads a parameter that names a topic of this region.
func (r *request) topicParameter(name string) (sns.TopicKey, error) {
	text, err := r.arnParameter(name)
	if err != nil {
		return sns.TopicKey{}, err
	}
	topic, ok := r.topicOf(text)
	if !ok {
		return sns.TopicKey{}, sns.Invalid(name)
	}
	return topic, r.mayUse(topic)
}

// topicOf reads the ARN of a topic of this region.
func (r *request) topicOf(text string) (sns.TopicKey, bool) {
	a, ok := sns.ParseARN(text)
	if !ok || a.Service != "sns" || a.Region != r.settings.Region || !isAccount(a.Account) || a.Resource == "" || strings.Contains(a.Resource, ":") {
		return sns.TopicKey{}, false
	}
	return sns.TopicKey{Account: a.Account, Name: a.Resource}, true
}

// mayUse refuses who may not do what he asks for with the topic of another
// account, or has not signed. A topic's policy may allow it.
func (r *request) mayUse(topic sns.TopicKey) error {
	if r.action.open || r.caller.signed && r.caller.account == topic.Account {
		return nil
	}
	return r.checkPolicy(topic)
}

// subscriptionParameter reads the ARN of a subscription: that of its topic, a
// colon, and a UUID.
func (r *request) subscriptionParameter() (sns.TopicKey, sns.SubscriptionID, error) {
	const name = "SubscriptionArn"
	text, err := r.arnParameter(name)
	if err != nil {
		return sns.TopicKey{}, sns.SubscriptionID{}, err
	}
	i := strings.LastIndexByte(text, ':')
	if strings.Count(text, ":")+1 == arnElements {
		return sns.TopicKey{}, sns.SubscriptionID{}, sns.Invalid("SubscriptionId")
	}
	topic, ok := r.topicOf(text[:i])
	if !ok {
		return sns.TopicKey{}, sns.SubscriptionID{}, sns.Invalid(name)
	}
	id, ok := sns.ParseSubscriptionID(text[i+1:])
	if !ok {
		return topic, id, sns.Invalid("SubscriptionId")
	}
	return topic, id, r.mayManage(topic, id, text)
}

// mayManage refuses who may not manage a subscription: neither the topic nor the
// subscription belongs to his account, or the request is not signed.
func (r *request) mayManage(topic sns.TopicKey, id sns.SubscriptionID, arn string) error {
	switch {
	case r.action.open && !r.caller.signed, r.caller.signed && r.caller.account == topic.Account:
		return nil
	case !r.caller.signed:
		return errUnsigned
	}
	found, err := inquire[sns.GetSubscriptionAttributesResult](r, sns.GetSubscriptionAttributes{Topic: topic, Subscription: id})
	if err == nil && found.Owner == r.caller.account {
		return nil
	}
	if answer, ok := errors.AsType[*sns.Error](err); err != nil && (!ok || answer.Code != sns.NotFound) {
		return err
	}
	return r.notAuthorized(arn) // whether there is such a subscription is nobody's business
}

// errUnsigned refuses what nobody may do without saying who he is.
var errUnsigned = &sns.Error{Code: snsMissingToken, Message: "Request is missing Authentication Token"}

// notAuthorized is the refusal of a policy (AWS recording of an IAM denial; clients
// look for "is not authorized to perform").
func (r *request) notAuthorized(arn string) error {
	who := "arn:aws:iam::" + r.caller.account + ":root"
	if !r.caller.signed {
		who = "anonymous"
	}
	return &sns.Error{
		Code: sns.AuthorizationError,
		Message: "User: " + who + " is not authorized to perform: SNS:" + r.name + " on resource: " + arn +
			" because no resource-based policy allows the SNS:" + r.name + " action",
	}
}
