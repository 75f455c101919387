package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

var (
	queueURLs       = wire.List{JSON: "QueueUrls", Query: "QueueUrl"}
	sourceQueueURLs = wire.List{JSON: "queueUrls", Query: "QueueUrl"} // AWS spells it so
	attributesMap   = wire.Map{JSON: "Attributes", Query: "Attribute", Key: "Name", Value: "Value"}
	createTagsMap   = wire.Map{JSON: "tags", Query: "Tag", Key: "Key", Value: "Value"} // AWS spells it so
	tagsMap         = wire.Map{JSON: "Tags", Query: "Tag", Key: "Key", Value: "Value"}
	tagKeys         = wire.List{JSON: "TagKeys", Query: "TagKey"}
)

func createQueue(r *request) error {
	name, named := r.in.Text("QueueName")
	pairs, _ := r.in.TextMap(attributesMap)
	tags, _ := r.in.TextMap(createTagsMap)
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if !named {
		return noQueueName()
	}
	queue := sqs.QueueKey{Account: r.caller.account, Name: name}
	if err := sqs.ValidateQueueName(name, wantsFIFO(pairs)); err != nil {
		return err
	}
	attributes, invalid := r.parseAttributes(queue, pairs)
	if invalid != nil {
		return invalid
	}
	c := sqs.CreateQueue{Queue: queue, Attributes: attributes, Tags: asTags(tags)}
	if err := sqs.ValidateTags(name, c.Tags); err != nil {
		return err
	}
	if err := r.takeEqualPolicy(queue, attributes); err != nil {
		return err
	}
	if _, err := r.do(c); err != nil {
		return err
	}
	r.out.Text("QueueUrl", r.queueURL(queue))
	return nil
}

// takeEqualPolicy replaces the Policy among the attributes of a CreateQueue by that
// of the queue, if there is one and the two are equal as JSON: the state compares
// texts, and members may be in another order.
func (r *request) takeEqualPolicy(queue sqs.QueueKey, attributes []sqs.Attribute) error {
	i := slices.IndexFunc(attributes, func(a sqs.Attribute) bool { return a.Name == sqs.Policy && a.Value != "" })
	if i < 0 {
		return nil
	}
	found, err := ask[sqs.GetQueueAttributesResult](r, sqs.GetQueueAttributes{Queue: queue})
	if refused, ok := errors.AsType[*sqs.Error](err); ok && refused.Code == sqs.QueueDoesNotExist {
		return nil
	}
	for _, a := range found.Attributes {
		if a.Name == sqs.Policy && equalJSON(a.Value, attributes[i].Value) {
			attributes[i].Value = a.Value
		}
	}
	return err
}

func equalJSON(a, b string) bool {
	var left, right any
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil && reflect.DeepEqual(left, right)
}

func noQueueName() *sqs.Error {
	return sqs.Invalidf("Value for parameter QueueName is invalid. Reason: Must specify a queue name.")
}

// wantsFIFO reports whether the attributes of a CreateQueue ask for a FIFO
// queue.
func wantsFIFO(pairs []wire.Pair) bool {
	for _, p := range pairs {
		if p.Key == string(sqs.FifoQueue) {
			return strings.EqualFold(p.Value, "true")
		}
	}
	return false
}

func asTags(pairs []wire.Pair) []sqs.Tag {
	var tags []sqs.Tag
	for _, p := range pairs {
		tags = append(tags, sqs.Tag{Key: p.Key, Value: p.Value})
	}
	sqs.SortTags(tags)
	return tags
}

func deleteQueue(r *request) error {
	queue := r.queue()
	if err := r.check(queue); err != nil {
		return err
	}
	_, err := r.do(sqs.DeleteQueue{Queue: queue})
	return err
}

func purgeQueue(r *request) error {
	queue := r.queue()
	if err := r.check(queue); err != nil {
		return err
	}
	_, err := r.do(sqs.PurgeQueue{Queue: queue})
	return err
}

func getQueueURL(r *request) error {
	name, named := r.in.Text("QueueName")
	owner, owned := r.in.Text("QueueOwnerAWSAccountId")
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	switch {
	case !named:
		return noQueueName()
	case name == "":
		return sqs.ValidateQueueName(name, false)
	case owned && owner != r.caller.account:
		return r.accessDenied()
	case !sqs.ValidQueueName(name):
		return sqs.NoSuchQueue()
	}
	queue := sqs.QueueKey{Account: r.caller.account, Name: name}
	if _, err := r.do(sqs.GetQueueUrl{Queue: queue}); err != nil {
		return err
	}
	r.out.Text("QueueUrl", r.queueURL(queue))
	return nil
}

func listQueues(r *request) error {
	prefix, _ := r.in.Text("QueueNamePrefix")
	page := r.readPage()
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	after, invalid := page.after(prefix)
	if invalid != nil {
		return invalid
	}
	listed, err := ask[sqs.ListQueuesResult](r, sqs.ListQueues{
		Account: r.caller.account, Prefix: prefix, After: after, Limit: page.limit(),
	})
	if err != nil || len(listed.Names) == 0 {
		return err
	}
	base := r.baseURL() + "/" + r.caller.account + "/"
	r.out.OpenList(queueURLs)
	for _, name := range listed.Names {
		r.out.Item(queueURLs, base+name)
	}
	r.out.CloseList(queueURLs)
	if listed.More && page.limited {
		r.out.Text("NextToken", pageToken(prefix, listed.Names[len(listed.Names)-1]))
	}
	return nil
}

func listDeadLetterSourceQueues(r *request) error {
	queue := r.queue()
	page := r.readPage()
	if err := r.check(queue); err != nil {
		return err
	}
	token, invalid := page.after(queue.Name)
	if invalid != nil {
		return r.invalid(queue, invalid)
	}
	c := sqs.ListDeadLetterSourceQueues{Queue: queue, Limit: page.limit()}
	c.After.Account, c.After.Name, _ = strings.Cut(token, "/")
	listed, err := ask[sqs.ListDeadLetterSourceQueuesResult](r, c)
	if err != nil || len(listed.Queues) == 0 {
		return err
	}
	r.out.OpenList(sourceQueueURLs)
	for _, source := range listed.Queues {
		r.out.Item(sourceQueueURLs, r.queueURL(source))
	}
	r.out.CloseList(sourceQueueURLs)
	if last := listed.Queues[len(listed.Queues)-1]; listed.More && page.limited {
		r.out.Text("NextToken", pageToken(queue.Name, last.Account+"/"+last.Name))
	}
	return nil
}

// page is what a request says about which part of a list it wants.
type page struct {
	size    int64
	limited bool   // the size was given
	token   string // empty: the first page; clients that go round a loop begin so
}

func (r *request) readPage() (p page) {
	p.size, p.limited = r.in.Int("MaxResults")
	p.token, _ = r.in.Text("NextToken")
	return p
}

// limit returns how many names the page may have.
func (p page) limit() int {
	if !p.limited {
		return sqs.MaxPageSize
	}
	return int(p.size)
}

// after checks the page and returns what it begins after; empty for the start.
// scope is what must be the same on all pages of a list.
func (p page) after(scope string) (string, *sqs.Error) {
	if p.limited && (p.size < 1 || p.size > sqs.MaxPageSize) {
		return "", sqs.Invalidf("Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000.")
	}
	if p.token == "" {
		return "", nil
	}
	if !p.limited {
		return "", sqs.Invalidf("MaxResults is a mandatory parameter when you provide a value for NextToken.")
	}
	if last, ok := readPageToken(p.token, scope); ok {
		return last, nil
	}
	return "", sqs.Invalidf("Invalid NextToken value. If you are passing in NextToken, you must not change the other request parameters.")
}

// pageToken makes the token for the page after last, of a list of SQS or SNS.
func pageToken(scope, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenHead(scope) + last))
}

// readPageToken reads what the page with the token comes after; false if it is no
// token of this list.
func readPageToken(token, scope string) (last string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(text), tokenHead(scope))
}

func tokenHead(scope string) string { return "1\x00" + scope + "\x00" }

func tagQueue(r *request) error {
	queue := r.queue()
	pairs, given := r.in.TextMap(tagsMap)
	if err := r.check(queue); err != nil {
		return err
	}
	if len(pairs) == 0 {
		missing := sqs.MissingParameterError("Tags")
		if given {
			missing.Code = sqs.InvalidParameterValue
		}
		return r.invalid(queue, missing)
	}
	c := sqs.TagQueue{Queue: queue, Tags: asTags(pairs)}
	if err := sqs.ValidateTags(queue.Name, c.Tags); err != nil {
		return r.invalid(queue, err)
	}
	_, err := r.do(c)
	return err
}

func untagQueue(r *request) error {
	queue := r.queue()
	keys, given := r.in.Texts(tagKeys)
	if err := r.check(queue); err != nil {
		return err
	}
	if !given {
		return r.invalid(queue, sqs.MissingParameterError("TagKeys"))
	}
	if len(keys) == 0 {
		return r.invalid(queue, sqs.ValidateTagKey(""))
	}
	for _, key := range keys {
		if err := sqs.ValidateTagKey(key); err != nil {
			return r.invalid(queue, err)
		}
	}
	_, err := r.do(sqs.UntagQueue{Queue: queue, Keys: keys})
	return err
}

func listQueueTags(r *request) error {
	queue := r.queue()
	if err := r.check(queue); err != nil {
		return err
	}
	listed, err := ask[sqs.ListQueueTagsResult](r, sqs.ListQueueTags{Queue: queue})
	if err != nil || len(listed.Tags) == 0 {
		return err
	}
	r.out.OpenMap(tagsMap)
	for _, tag := range listed.Tags {
		r.out.Pair(tagsMap, tag.Key, tag.Value)
	}
	r.out.CloseMap(tagsMap)
	return nil
}
