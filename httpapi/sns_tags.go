package httpapi

import (
	"fmt"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
)

var (
	topicTags    = wire.List{Query: "Tags", Member: "member"}
	topicTagKeys = wire.List{Query: "TagKeys", Member: "member"}
)

// The longest key and value of a tag, in characters.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// readTags reads tags, sorted by key, or what is wrong with them.
func (r *request) readTags() ([]sns.Tag, error) {
	entries, _ := r.in.Structs(topicTags)
	var tags []sns.Tag
	var found violations
	for i, in := range entries {
		key, _ := in.Text("Key")
		value, _ := in.Text("Value")
		found.length(fmt.Sprintf("tags.%d.member.key", i+1), key, maxTagKey)
		found.notEmpty(fmt.Sprintf("tags.%d.member.key", i+1), key)
		found.length(fmt.Sprintf("tags.%d.member.value", i+1), value, maxTagValue)
		tags = append(tags, sns.Tag{Key: key, Value: value})
	}
	if err := r.in.Err(); err != nil {
		return nil, malformed(err)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	if refusal := sns.SortTags(tags); refusal != nil {
		return nil, refusal
	}
	return tags, nil
}

// violations are what the framework of AWS finds before the service sees a
// request.
type violations []string

func (v *violations) length(path, value string, most int) {
	if utf8.RuneCountInString(value) > most {
		*v = append(*v, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: Member must have length less than or equal to %d",
			value, path, most))
	}
}

func (v *violations) notEmpty(path, value string) {
	if value == "" {
		*v = append(*v, fmt.Sprintf("Value '' at '%s' failed to satisfy constraint: Member must have length greater than or equal to 1", path))
	}
}

// missing notes that a member has no value.
func (v *violations) missing(path string) {
	*v = append(*v, fmt.Sprintf("Value null at '%s' failed to satisfy constraint: Member must not be null", path))
}

func (v violations) err() error {
	if len(v) == 0 {
		return nil
	}
	text := "1 validation error detected: "
	if len(v) > 1 {
		text = fmt.Sprintf("%d validation errors detected: ", len(v))
	}
	for i, one := range v {
		if i > 0 {
			text += "; "
		}
		text += one
	}
	return &sns.Error{Code: sns.ValidationError, Message: text}
}

// resource reads the topic that a request about tags or data protection is about.
func (r *request) resource() (sns.TopicKey, error) {
	if !r.caller.signed {
		return sns.TopicKey{}, errUnsigned
	}
	text, err := r.arnParameter("ResourceArn")
	if err != nil {
		return sns.TopicKey{}, err
	}
	topic, ok := r.topicOf(text)
	if !ok {
		return topic, sns.Invalid("ResourceArn")
	}
	if topic.Account != r.caller.account {
		return topic, r.notAuthorized(text)
	}
	return topic, nil
}

func tagResource(r *request) error {
	tags, err := r.readTags()
	if err != nil {
		return err
	}
	topic, err := r.resource()
	if err != nil {
		return err
	}
	_, err = r.tell(sns.TagResource{Topic: topic, Tags: tags})
	return err
}

func untagResource(r *request) error {
	keys, _ := r.in.Texts(topicTagKeys)
	topic, err := r.resource()
	if err != nil {
		return err
	}
	_, err = r.tell(sns.UntagResource{Topic: topic, Keys: keys})
	return err
}

func listTagsForResource(r *request) error {
	topic, err := r.resource()
	if err != nil {
		return err
	}
	listed, err := inquire[sns.ListTagsForResourceResult](r, sns.ListTagsForResource{Topic: topic})
	if err != nil {
		return err
	}
	r.out.OpenList(topicTags)
	for _, tag := range listed.Tags {
		r.out.OpenStruct(topicTags)
		r.out.Text("Key", tag.Key)
		r.out.Text("Value", tag.Value)
		r.out.CloseStruct(topicTags)
	}
	r.out.CloseList(topicTags)
	return nil
}

func putDataProtectionPolicy(r *request) error {
	text, _ := r.in.Text("DataProtectionPolicy")
	topic, err := r.resource()
	if err != nil {
		return err
	}
	policy, refusal := sns.CanonicalDataProtectionPolicy(topic, text)
	if refusal != nil {
		return r.refuseTo(topic, refusal)
	}
	if _, err := r.tell(sns.PutDataProtectionPolicy{Topic: topic, Policy: policy}); err != nil {
		return err
	}
	r.logProtection(topic, policy)
	return nil
}

// logProtection warns of a data protection policy that a topic was given: somebody
// expects what it says to happen.
func (r *request) logProtection(topic sns.TopicKey, policy string) {
	if policy != "" {
		r.server.config.Logger.Warn("data protection policy kept, and not enforced", "account", topic.Account, "topic", topic.Name)
	}
}

func getDataProtectionPolicy(r *request) error {
	topic, err := r.resource()
	if err != nil {
		return err
	}
	found, err := inquire[sns.GetDataProtectionPolicyResult](r, sns.GetDataProtectionPolicy{Topic: topic})
	if err != nil {
		return err
	}
	r.out.Text("DataProtectionPolicy", found.Policy)
	return nil
}
