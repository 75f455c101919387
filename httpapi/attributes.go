package httpapi

import (
	"slices"
	"strings"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var attributeNames = wire.List{JSON: "AttributeNames", Query: "AttributeName"}

// parseAttributes checks the attributes of a CreateQueue or SetQueueAttributes
// and makes them canonical, sorted by name.
func (r *request) parseAttributes(queue sqs.QueueKey, pairs []wire.Pair) ([]sqs.Attribute, *sqs.Error) {
	fifo := sqs.IsFIFO(queue.Name)
	for _, p := range pairs {
		if err := sqs.ValidateAttributeName(sqs.AttributeName(p.Key), fifo); err != nil {
			return nil, err
		}
	}
	var attributes []sqs.Attribute
	for _, p := range pairs {
		a, err := r.parseAttribute(queue, sqs.AttributeName(p.Key), p.Value)
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, a)
	}
	if err := sqs.ValidateTogether(attributes); err != nil {
		return nil, err
	}
	sqs.SortAttributes(attributes)
	return attributes, nil
}

// parseAttribute makes one attribute of a name that the queue may have.
func (r *request) parseAttribute(queue sqs.QueueKey, name sqs.AttributeName, text string) (sqs.Attribute, *sqs.Error) {
	if !sqs.IsDocument(name) {
		value, err := sqs.CanonicalValue(name, text)
		return sqs.Attribute{Name: name, Value: value}, err
	}
	if text == "" {
		return sqs.Attribute{Name: name}, nil
	}
	switch name {
	case sqs.RedrivePolicyAttribute:
		return parseRedrivePolicy(text, queue, r.settings.Region)
	case sqs.RedriveAllowPolicyAttribute:
		return parseRedriveAllowPolicy(text, r.settings.Region)
	}
	return parsePolicy(text, queue.Account)
}

func setQueueAttributes(r *request) error {
	queue := r.queue()
	pairs, given := r.in.TextMap(attributesMap)
	if err := r.check(queue); err != nil {
		return err
	}
	if !given {
		return r.invalid(queue, sqs.MissingParameterError("Attributes"))
	}
	attributes, invalid := r.parseAttributes(queue, pairs)
	if invalid != nil {
		return r.invalid(queue, invalid)
	}
	_, err := r.do(sqs.SetQueueAttributes{Queue: queue, Attributes: attributes})
	return err
}

func getQueueAttributes(r *request) error {
	queue := r.queue()
	names, _ := r.in.Texts(attributeNames)
	if err := r.check(queue); err != nil {
		return err
	}
	for _, name := range names {
		if !sqs.KnownAttribute(name) {
			return r.invalid(queue, sqs.UnknownAttribute(name))
		}
	}
	found, err := ask[sqs.GetQueueAttributesResult](r, sqs.GetQueueAttributes{Queue: queue})
	if err != nil {
		return err
	}
	r.writeAttributes(queue, names, &found)
	return nil
}

// writeAttributes answers those attributes that were asked for and have a
// value; without any, there is no member for them.
func (r *request) writeAttributes(queue sqs.QueueKey, names []string, found *sqs.GetQueueAttributesResult) {
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
	}
	open := false
	wants := func(name sqs.AttributeName) bool {
		if !asked["All"] && !asked[string(name)] {
			return false
		}
		if !open {
			r.out.OpenMap(attributesMap)
			open = true
		}
		return true
	}
	for _, a := range found.Attributes {
		if wants(a.Name) {
			r.out.Pair(attributesMap, string(a.Name), a.Value)
		}
	}
	for _, n := range [...]struct {
		name  sqs.AttributeName
		value int64
	}{
		{sqs.ApproximateNumberOfMessages, int64(found.Visible)},
		{sqs.ApproximateNumberOfMessagesDelayed, int64(found.Delayed)},
		{sqs.ApproximateNumberOfMessagesNotVisible, int64(found.InFlight)},
		{sqs.CreatedTimestamp, int64(found.CreatedAt / 1000)},
		{sqs.LastModifiedTimestamp, int64(found.ModifiedAt / 1000)},
	} {
		if wants(n.name) {
			r.out.PairInt(attributesMap, string(n.name), n.value)
		}
	}
	if wants(sqs.QueueArn) {
		r.out.Pair(attributesMap, string(sqs.QueueArn), queueARN(queue, r.settings.Region))
	}
	if open {
		r.out.CloseMap(attributesMap)
	}
}

// queueARN is the Amazon Resource Name of a queue. A cluster is one region.
func queueARN(queue sqs.QueueKey, region string) string {
	return "arn:aws:sqs:" + region + ":" + queue.Account + ":" + queue.Name
}

// arn is an Amazon Resource Name in parts.
type arn struct{ service, region, account, resource string }

func parseARN(text string) (arn, bool) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || slices.Contains(parts, "") || !isLabel(parts[1]) || !isLabel(parts[3]) {
		return arn{}, false
	}
	return arn{parts[2], parts[3], parts[4], parts[5]}, true
}

// isLabel reports whether s may name a partition or a region. It bounds them,
// since an ARN is kept as it was given.
func isLabel(s string) bool {
	return len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
