package conformance

import (
	"strings"
	"testing"
)

// perQueue are the actions about one queue, with what else they need.
var perQueue = map[string]in{
	"DeleteQueue":                  {},
	"GetQueueAttributes":           {"AttributeNames": []string{"All"}},
	"SetQueueAttributes":           {"Attributes": map[string]string{"DelaySeconds": "1"}},
	"TagQueue":                     {"Tags": map[string]string{"k": "v"}},
	"UntagQueue":                   {"TagKeys": []string{"k"}},
	"ListQueueTags":                {},
	"ListDeadLetterSourceQueues":   {},
	"PurgeQueue":                   {},
	"AddPermission":                {"Label": "l", "AWSAccountIds": []string{"111122223333"}, "Actions": []string{"SendMessage"}},
	"RemovePermission":             {"Label": "l"},
	"SendMessage":                  {"MessageBody": "x"},
	"SendMessageBatch":             {"Entries": []in{{"Id": "1", "MessageBody": "x"}}},
	"ReceiveMessage":               {},
	"DeleteMessage":                {"ReceiptHandle": "garbage"},
	"DeleteMessageBatch":           {"Entries": []in{{"Id": "1", "ReceiptHandle": "garbage"}}},
	"ChangeMessageVisibility":      {"ReceiptHandle": "garbage", "VisibilityTimeout": 1},
	"ChangeMessageVisibilityBatch": {"Entries": []in{{"Id": "1", "ReceiptHandle": "garbage", "VisibilityTimeout": 1}}},
}

// Every action about a queue answers QueueDoesNotExist for one that is not
// there, before it looks at anything but the types of the members.
func TestQueueDoesNotExist(t *testing.T) {
	var scripts []script
	for _, action := range sortedKeys(perQueue) {
		scripts = append(scripts, script{id: action, play: func(s *scene) {
			gone := s.queue()
			s.ok("DeleteQueue", in{"QueueUrl": gone})
			for _, url := range []string{gone, "", s.name()} {
				s.refused(action, perQueue[action].with(in{"QueueUrl": url}), queueMissing)
			}
			s.refused(action, perQueue[action], queueMissing)
			s.refused(action, in{"QueueUrl": gone}, queueMissing)
		}})
	}
	play(t, scripts)
}

// errorCase is one call that is refused. A QueueUrl is added where the action
// wants one.
type errorCase struct {
	name   string
	action string
	in     in
	want   failure
	only   wire
}

func manyTags(n int) map[string]string {
	tags := map[string]string{}
	for i := range n {
		tags[strings.Repeat("k", i+1)] = "v"
	}
	return tags
}

// errorCases are the errors of the actions that no case of a name covers.
var errorCases = []errorCase{
	{"entries missing in SendMessageBatch", "SendMessageBatch", in{}, fails(missingParameter, "The request must contain the parameter Entries."), jsonWire},
	{"entries missing in DeleteMessageBatch", "DeleteMessageBatch", in{}, fails(missingParameter, "The request must contain the parameter Entries."), jsonWire},
	{"entries missing in ChangeMessageVisibilityBatch", "ChangeMessageVisibilityBatch", in{}, fails(missingParameter, "The request must contain the parameter Entries."), jsonWire},
	{
		"entry without Id", "SendMessageBatch",
		in{"Entries": []in{{"Id": "1", "MessageBody": "x"}, {"MessageBody": "x"}}},
		fails(missingParameter, "The request must contain the parameter SendMessageBatchRequestEntry.2.Id."), "",
	},
	{
		"entry without Id in DeleteMessageBatch", "DeleteMessageBatch",
		in{"Entries": []in{{"ReceiptHandle": "x"}}},
		fails(missingParameter, "The request must contain the parameter DeleteMessageBatchRequestEntry.1.Id."), "",
	},
	{
		"entry without Id in ChangeMessageVisibilityBatch", "ChangeMessageVisibilityBatch",
		in{"Entries": []in{{"ReceiptHandle": "x"}}},
		fails(missingParameter, "The request must contain the parameter ChangeMessageVisibilityBatchRequestEntry.1.Id."), "",
	},
	{
		"delay below 0", "SendMessage",
		in{"MessageBody": "x", "DelaySeconds": -1},
		fails(invalidValue, "Value -1 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."), "",
	},
	{
		"delay above 900", "SendMessage",
		in{"MessageBody": "x", "DelaySeconds": 901},
		fails(invalidValue, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."), "",
	},
	{
		"visibility of a receive above 12 h", "ReceiveMessage",
		in{"VisibilityTimeout": 43201},
		fails(invalidValue, "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."), "",
	},
	{
		"visibility of a receive below 0", "ReceiveMessage",
		in{"VisibilityTimeout": -1},
		fails(invalidValue, "Value -1 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."), "",
	},
	{
		"max results 0", "ListQueues",
		in{"MaxResults": 0},
		fails(invalidValue, "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."), "",
	},
	{
		"max results 1001", "ListQueues",
		in{"MaxResults": 1001},
		fails(invalidValue, "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."), "",
	},
	{
		"max results 1001 of sources", "ListDeadLetterSourceQueues",
		in{"MaxResults": 1001},
		fails(invalidValue, "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."), "",
	},
	{
		"token alone", "ListQueues",
		in{"NextToken": "x"},
		fails(invalidValue, "MaxResults is a mandatory parameter when you provide a value for NextToken."), "",
	},
	{
		"token alone of sources", "ListDeadLetterSourceQueues",
		in{"NextToken": "x"},
		fails(invalidValue, "MaxResults is a mandatory parameter when you provide a value for NextToken."), "",
	},
	{
		"unknown token", "ListQueues",
		in{"MaxResults": 1, "NextToken": "x"},
		fails(invalidValue, "Invalid NextToken value. If you are passing in NextToken, you must not change the other request parameters."), "",
	},
	{
		"unknown token of sources", "ListDeadLetterSourceQueues",
		in{"MaxResults": 1, "NextToken": "x"},
		fails(invalidValue, "Invalid NextToken value. If you are passing in NextToken, you must not change the other request parameters."), "",
	},
	{
		"set without attributes", "SetQueueAttributes",
		in{},
		fails(missingParameter, "The request must contain the parameter Attributes."), jsonWire,
	},
	{"set without attributes in a form", "SetQueueAttributes", in{}, fails(missingParameter), queryWire},
	{"no tags", "TagQueue", in{}, fails(missingParameter, "The request must contain the parameter Tags."), ""},
	{"empty tags", "TagQueue", in{"Tags": map[string]string{}}, fails(invalidValue, "The request must contain the parameter Tags."), jsonWire},
	{"no tag keys", "UntagQueue", in{}, fails(missingParameter, "The request must contain the parameter TagKeys."), ""},
	{"empty tag keys", "UntagQueue", in{"TagKeys": []string{}}, fails(invalidValue, "Tag keys must be between 1 and 128 characters in length."), jsonWire},
	{"empty tag key", "TagQueue", in{"Tags": pairs("", "v")}, fails(invalidValue, "Tag keys must be between 1 and 128 characters in length."), ""},
	{"long tag key", "TagQueue", in{"Tags": pairs(strings.Repeat("k", 129), "v")}, fails(invalidValue, "Tag keys must be between 1 and 128 characters in length."), ""},
	{
		"odd tag key", "TagQueue",
		in{"Tags": pairs("a!b", "v")},
		fails(invalidValue, "Tag keys may only contain unicode letters, digits, whitespace, or one of these symbols: _ . : / = + - @"), "",
	},
	{"reserved tag key", "TagQueue", in{"Tags": pairs("aWs:k", "v")}, fails(invalidValue), ""},
	{"long tag value", "TagQueue", in{"Tags": pairs("k", strings.Repeat("v", 257))}, fails(invalidValue), ""},
	{"odd tag value", "TagQueue", in{"Tags": pairs("k", "a!b")}, fails(invalidValue), ""},
	{"51 tags", "TagQueue", in{"Tags": manyTags(51)}, fails(invalidValue), ""},
	{"tags of a new queue", "CreateQueue", in{"QueueName": "never-made", "tags": pairs("a!b", "v")}, fails(invalidValue), ""},
	{"name of a new queue", "CreateQueue", in{}, fails(invalidValue, "Value for parameter QueueName is invalid. Reason: Must specify a queue name."), ""},
	{"empty name of a new queue", "CreateQueue", in{"QueueName": ""}, fails(invalidValue, "Queue name cannot be empty"), ""},
	{
		"policy that is no JSON", "SetQueueAttributes",
		in{"Attributes": pairs("Policy", "nonsense")},
		fails("InvalidAttributeValue", "Invalid value for the parameter Policy."), "",
	},
	{
		"policy with an unknown member", "SetQueueAttributes",
		in{"Attributes": pairs("Policy", `{"Version":"2012-10-17","Other":1,"Statement":[]}`)},
		fails("InvalidAttributeValue"), "",
	},
	{
		"policy without an effect", "SetQueueAttributes",
		in{"Attributes": pairs("Policy", `{"Version":"2012-10-17","Statement":[{"Principal":"*","Action":"SQS:*","Resource":"*"}]}`)},
		fails("InvalidAttributeValue"), "",
	},
	{
		"policy of more than 8192 bytes", "SetQueueAttributes",
		in{"Attributes": pairs("Policy", `{"Version":"2012-10-17","Id":"`+strings.Repeat("x", 8192)+`","Statement":[]}`)},
		fails("InvalidAttributeValue"), "",
	},
	{"a queue of another account", "GetQueueUrl", in{"QueueName": "never-made", "QueueOwnerAWSAccountId": "111122223333"}, fails("AccessDenied"), ""},
}

func TestErrors(t *testing.T) {
	var scripts []script
	for _, c := range errorCases {
		scripts = append(scripts, script{id: c.name, only: c.only, play: func(s *scene) {
			members := c.in
			if _, ok := perQueue[c.action]; ok {
				members = members.with(in{"QueueUrl": s.queue()})
			}
			s.refused(c.action, members, c.want)
		}})
	}
	play(t, scripts)
}

// The order of checks: types, queue, required members, batch, values.
func TestOrderOfChecks(t *testing.T) {
	play(t, []script{
		{id: "queue before batch", play: func(s *scene) {
			s.refused("SendMessageBatch", in{"QueueUrl": s.name(), "Entries": batchEntries(20)}, queueMissing)
		}},
		{id: "types before queue", only: jsonWire, play: func(s *scene) {
			s.failed("SendMessage", s.do(target("SendMessage", `{"QueueUrl":"nope","MessageBody":{}}`)), fails("MalformedInput"))
		}},
		{id: "count before ids", play: func(s *scene) {
			entries := batchEntries(20)
			entries[0]["Id"] = "a b"
			s.refused("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": entries}, fails("AWS.SimpleQueueService.TooManyEntriesInBatchRequest"))
		}},
		{id: "ids before repeats", play: func(s *scene) {
			entries := batchEntries(3)
			entries[0]["Id"], entries[1]["Id"], entries[2]["Id"] = "a", "a", "a b"
			s.refused("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": entries}, badEntryID)
		}},
		{id: "repeats before size", play: func(s *scene) {
			half := strings.Repeat("a", 600_000)
			s.refused("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": []in{{"Id": "a", "MessageBody": half}, {"Id": "a", "MessageBody": half}}},
				fails("AWS.SimpleQueueService.BatchEntryIdsNotDistinct"))
		}},
		{id: "what is missing before what is wrong", play: func(s *scene) {
			q := s.queue()
			lacks := func(name string) failure {
				return fails(missingParameter, "The request must contain the parameter "+name+".")
			}
			s.refused("SendMessage", in{"QueueUrl": q, "DelaySeconds": -1, "MessageGroupId": "a b"}, lacks("MessageBody"))
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "VisibilityTimeout": 99999}, lacks("ReceiptHandle"))
			s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": "x"}, lacks("VisibilityTimeout"))
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "a", "DelaySeconds": 901}}})
			s.entryFailed(out, 0, "a", missingParameter, "The request must contain the parameter MessageBody.")
		}},
		{id: "a refused send leaves nothing", play: func(s *scene) {
			q := s.queue()
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "DelaySeconds": 901}, fails(invalidValue))
			s.counts(q, "0", "0", "0")
		}},
	})
}
