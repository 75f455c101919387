package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"holdfast.internal/httpapi/awsjson"
	"holdfast.internal/sqs"
)

// document is a JSON object whose members are looked at one by one.
type document map[string]json.RawMessage

// parseDocument reads a JSON object. A member that is null is not there.
func parseDocument(text string) (document, bool) {
	d, ok := parseMembers(text)
	maps.DeleteFunc(d, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return d, ok
}

// parseMembers reads a JSON object with all its members, those that are null too.
func parseMembers(text string) (document, bool) {
	var d document
	err := json.Unmarshal([]byte(text), &d)
	return d, err == nil && d != nil
}

// has reports whether the document has the member.
func (d document) has(name string) bool { return len(d[name]) > 0 }

// only reports whether the document has no members but these.
func (d document) only(names ...string) bool {
	for name := range d {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// text returns a member that is a string.
func (d document) text(name string) (string, bool) {
	var s string
	err := json.Unmarshal(d[name], &s)
	return s, err == nil && d.has(name)
}

// parseRedrivePolicy reads the RedrivePolicy of a queue.
func parseRedrivePolicy(text string, queue sqs.QueueKey, region string) (sqs.Attribute, *sqs.Error) {
	refuse := func(reason string) (sqs.Attribute, *sqs.Error) {
		return sqs.Attribute{}, sqs.Invalidf("Value %s for parameter RedrivePolicy is invalid. Reason: %s", text, reason)
	}
	d, ok := parseDocument(text)
	if !ok {
		return sqs.Attribute{}, sqs.Invalidf("Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a valid JSON map.")
	}
	switch {
	case !d.has("maxReceiveCount"):
		return refuse("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	case !d.has("deadLetterTargetArn"):
		return refuse("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	case !d.only("maxReceiveCount", "deadLetterTargetArn"):
		return refuse("Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn].")
	}
	count, shown, ok := receiveCount(d["maxReceiveCount"])
	if !ok {
		return refuse("Invalid value for maxReceiveCount: " + shown + ", valid values are from 1 to 1000 both inclusive.")
	}
	targetText, _ := d.text("deadLetterTargetArn")
	target, ok := parseARN(targetText)
	switch {
	case !ok:
		return refuse("Dead-letter target ARN should be fully qualified ARN.")
	case target.service != "sqs":
		return refuse("Only SQS queues are valid resources for deadLetterTargetArn.")
	case target.account != queue.Account || target.region != region:
		return refuse("Dead-letter target owner should be same as the source.")
	case !sqs.ValidQueueName(target.resource):
		return refuse("Dead letter target does not exist.")
	}
	value := awsjson.AppendString([]byte(`{"deadLetterTargetArn":`), targetText)
	value = strconv.AppendInt(append(value, `,"maxReceiveCount":`...), int64(count), 10)
	return sqs.Attribute{
		Name:  sqs.RedrivePolicyAttribute,
		Value: string(append(value, '}')),
		Redrive: &sqs.RedrivePolicy{
			Target:          sqs.QueueKey{Account: target.account, Name: target.resource},
			MaxReceiveCount: count,
		},
	}, nil
}

// receiveCount reads a maxReceiveCount, a number or a string of one. shown is
// its text for an error.
func receiveCount(raw json.RawMessage) (count int, shown string, ok bool) {
	shown = string(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		shown = s
	}
	count, err := strconv.Atoi(shown)
	return count, shown, err == nil && count >= 1 && count <= sqs.MaxRedriveCount
}

// parseRedriveAllowPolicy reads the RedriveAllowPolicy of a dead-letter queue. Its
// value has the members of the text, a list that is empty or null too: Terraform
// waits until it reads what it set.
func parseRedriveAllowPolicy(text, region string) (sqs.Attribute, *sqs.Error) {
	const cannot = "Amazon SQS can't create the redrive allow policy"
	malformed := sqs.Invalidf("Invalid value for the parameter RedriveAllowPolicy. Reason: %s, as it’s in an unsupported format.", cannot)
	refuse := func(reason string) (sqs.Attribute, *sqs.Error) {
		return sqs.Attribute{}, sqs.Invalidf("Value %s for parameter RedriveAllowPolicy is invalid. Reason: %s. %s", text, cannot, reason)
	}
	d, ok := parseMembers(text)
	if !ok || !d.only("redrivePermission", "sourceQueueArns") {
		return sqs.Attribute{}, malformed
	}
	permissions := map[string]sqs.RedrivePermission{"allowAll": sqs.AllowAll, "denyAll": sqs.DenyAll, "byQueue": sqs.ByQueue}
	name, _ := d.text("redrivePermission")
	policy := &sqs.RedriveAllowPolicy{Permission: permissions[name]}
	var arns []string
	if d.has("sourceQueueArns") && json.Unmarshal(d["sourceQueueArns"], &arns) != nil || policy.Permission == 0 {
		return sqs.Attribute{}, malformed
	}
	switch {
	case policy.Permission == sqs.ByQueue && len(arns) == 0:
		return refuse("When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.")
	case policy.Permission != sqs.ByQueue && len(arns) > 0:
		return refuse("To specify one or more source queue ARNs, you must set redrivePermission to byQueue.")
	case len(arns) > sqs.MaxRedriveSources:
		return refuse("The maximum number of source queue ARNs you can specify is 10.")
	}
	if policy.Sources, ok = sourceQueues(arns, region); !ok {
		return sqs.Attribute{}, malformed
	}
	value := `{"redrivePermission":"` + name + `"`
	if d.has("sourceQueueArns") {
		value += `,"sourceQueueArns":` + listOf(arns)
	}
	return sqs.Attribute{Name: sqs.RedriveAllowPolicyAttribute, Value: value + "}", RedriveAllow: policy}, nil
}

// sourceQueues returns the queues of the ARNs that can be ours, those of the region.
// ok is false when one of the ARNs names no queue.
func sourceQueues(arns []string, region string) (sources []sqs.QueueKey, ok bool) {
	for _, text := range arns {
		source, ok := parseARN(text)
		if !ok || source.service != "sqs" || !isAccount(source.account) || !sqs.ValidQueueName(source.resource) {
			return nil, false
		}
		if source.region == region {
			sources = append(sources, sqs.QueueKey{Account: source.account, Name: source.resource})
		}
	}
	return sources, true
}

// listOf is the JSON of the texts, null for a nil slice.
func listOf(texts []string) string {
	if texts == nil {
		return "null"
	}
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = awsjson.AppendString(list, text)
	}
	return string(append(list, ']'))
}
