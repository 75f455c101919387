package httpapi

import (
	"errors"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
)

var (
	topicAttributes = wire.Map{Query: "Attributes", Entry: "entry", Key: "key", Value: "value"}
	topicList       = wire.List{Query: "Topics", Member: "member"}
)

func createTopic(r *request) error {
	name, _ := r.in.Text("Name")
	pairs, _ := r.in.TextMap(topicAttributes)
	protection, _ := r.in.Text("DataProtectionPolicy")
	tags, err := r.readTags()
	if err != nil {
		return err
	}
	if !r.caller.signed {
		return errUnsigned
	}
	c := sns.CreateTopic{Topic: sns.TopicKey{Account: r.caller.account, Name: name}, Tags: tags}
	given := asAttributes(pairs)
	if err := sns.ValidateTopicName(name, sns.WantsFIFO(given)); err != nil {
		return err
	}
	attributes, refusal := sns.CanonicalTopicAttributes(given)
	if refusal != nil {
		return refusal
	}
	if text := storedPolicy(attributes); text != "" {
		if reason := checkTopicPolicy(text); reason != "" {
			return sns.Invalid("Attributes Reason: " + reason)
		}
	}
	c.Attributes = attributes
	if c.DataProtectionPolicy, refusal = sns.CanonicalDataProtectionPolicy(c.Topic, protection); refusal != nil {
		return refusal
	}
	if _, err := r.tell(c); err != nil {
		return err
	}
	r.logProtection(c.Topic, c.DataProtectionPolicy)
	r.out.Text("TopicArn", sns.TopicARN(r.settings.Region, c.Topic))
	return nil
}

func asAttributes(pairs []wire.Pair) []sns.Attribute {
	var attributes []sns.Attribute
	for _, p := range pairs {
		attributes = append(attributes, sns.Attribute{Name: sns.AttributeName(p.Key), Value: p.Value})
	}
	return attributes
}

func deleteTopic(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if answer, ok := errors.AsType[*sns.Error](err); ok && answer.Code == sns.NotFound {
		return r.notAuthorized(sns.TopicARN(r.settings.Region, topic)) // of somebody else, and without a policy that permits it
	}
	if err != nil {
		return err
	}
	_, err = r.tell(sns.DeleteTopic{Topic: topic})
	return err
}

func listTopics(r *request) error {
	after, err := r.readToken(topicsScope)
	if err != nil {
		return err
	}
	if !r.caller.signed {
		return errUnsigned
	}
	listed, err := inquire[sns.ListTopicsResult](r, sns.ListTopics{Account: r.caller.account, After: after, Limit: sns.MaxPage})
	if err != nil {
		return err
	}
	r.out.OpenList(topicList)
	for _, name := range listed.Names {
		r.out.OpenStruct(topicList)
		r.out.Text("TopicArn", sns.TopicARN(r.settings.Region, sns.TopicKey{Account: r.caller.account, Name: name}))
		r.out.CloseStruct(topicList)
	}
	r.out.CloseList(topicList)
	if listed.More {
		r.out.Text("NextToken", pageToken(topicsScope, listed.Names[len(listed.Names)-1]))
	}
	return nil
}

// The lists that a NextToken may be of.
const (
	topicsScope        = "topics"
	subscriptionsScope = "subscriptions"
)

// readToken reads what a list goes on behind; empty for the start. Some clients
// send an empty token for the first page.
func (r *request) readToken(scope string) (string, error) {
	token, _ := r.in.Text("NextToken")
	if err := r.in.Err(); err != nil {
		return "", malformed(err)
	}
	if token == "" {
		return "", nil
	}
	last, ok := readPageToken(token, scope)
	if !ok {
		return "", sns.Invalid("NextToken")
	}
	return last, nil
}

func getTopicAttributes(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	found, err := inquire[sns.GetTopicAttributesResult](r, sns.GetTopicAttributes{Topic: topic})
	if err != nil {
		return err
	}
	r.writeSNSAttributes(sns.TopicAttributes(r.settings.Region, topic, found))
	return nil
}

func (r *request) writeSNSAttributes(attributes []sns.Attribute) {
	r.out.OpenMap(topicAttributes)
	for _, a := range attributes {
		r.out.Pair(topicAttributes, string(a.Name), a.Value)
	}
	r.out.CloseMap(topicAttributes)
}

func setTopicAttributes(r *request) error {
	topic, err := r.topicParameter("TopicArn")
	if err != nil {
		return err
	}
	a, _, err := r.readAttribute() // without a value it is reset, as with an empty one
	if err != nil {
		return err
	}
	canonical, refusal := sns.CanonicalTopicAttribute(topic, a)
	if refusal != nil {
		return r.refuseTo(topic, refusal)
	}
	if canonical.Name == sns.Policy {
		if reason := checkTopicPolicy(canonical.Value); reason != "" {
			return r.refuseTo(topic, sns.Invalid(reason))
		}
	}
	_, err = r.tell(sns.SetTopicAttributes{Topic: topic, Attribute: canonical})
	return err
}

// readAttribute reads the attribute that a Set action is about, and whether a value
// was given.
func (r *request) readAttribute() (a sns.Attribute, given bool, err error) {
	name, _ := r.in.Text("AttributeName")
	value, given := r.in.Text("AttributeValue")
	if err := r.in.Err(); err != nil {
		return a, false, malformed(err)
	}
	return sns.Attribute{Name: sns.AttributeName(name), Value: value}, given, nil
}
