package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var plainAttributes = []string{
	"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
	"CreatedTimestamp", "DelaySeconds", "LastModifiedTimestamp", "MaximumMessageSize", "MessageRetentionPeriod",
	"QueueArn", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled", "VisibilityTimeout",
}

func redrive(targetARN, count string) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%s}`, targetARN, count)
}

func (s *scene) arn(url string) string {
	s.Helper()
	return s.attributes(url, "QueueArn")["QueueArn"]
}

// Q1–Q37: queues, their attributes, tags and lists.
func TestQueues(t *testing.T) {
	exists := func(attribute string) failure {
		return fails("QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute "+attribute)
	}
	play(t, []script{
		{id: "Q1", title: "the attributes of a new queue", play: func(s *scene) {
			before := time.Now().Unix()
			q := s.queue()
			got := s.attributes(q)
			if names := sortedKeys(got); !slices.Equal(names, plainAttributes) {
				s.Errorf("got %v, want %v", names, plainAttributes)
			}
			s.hasAttributes(q, "MaximumMessageSize", "1048576", "MessageRetentionPeriod", "345600", "SqsManagedSseEnabled", "true",
				"VisibilityTimeout", "30", "DelaySeconds", "0", "ReceiveMessageWaitTimeSeconds", "0",
				"CreatedTimestamp", got["LastModifiedTimestamp"])
			if want := "arn:aws:sqs:eu-west-1:" + account(q) + ":" + queueName(q); got["QueueArn"] != want {
				s.Errorf("QueueArn: got %s, want %s", got["QueueArn"], want)
			}
			if created := atoi(s, got["CreatedTimestamp"]); created < before-2 || created > time.Now().Unix()+2 {
				s.Errorf("CreatedTimestamp: got %d, want seconds about %d", created, before)
			}
		}},
		{id: "Q3", title: "no names, no attributes", play: func(s *scene) {
			q := s.queue()
			for _, members := range []in{{"QueueUrl": q}, {"QueueUrl": q, "AttributeNames": []string{}}, {"QueueUrl": q, "AttributeNames": []string{"RedrivePolicy", "Policy", "FifoQueue"}}} {
				if out := s.ok("GetQueueAttributes", members); out.at("Attributes") != nil {
					s.Errorf("%v: got %v, want no Attributes", members, out)
				}
			}
		}},
		{id: "Q4-Q6", title: "creating a queue again compares the given attributes with the current ones", play: func(s *scene) {
			name := s.name()
			q := s.create(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "1")
			if again := s.create(name); again != q {
				s.Errorf("got %s, want %s", again, q)
			}
			s.refused("CreateQueue", createMembers(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "2"), exists("DelaySeconds"))
			s.set(q, "DelaySeconds", "2")
			s.create(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "2")
			s.refused("CreateQueue", createMembers(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "1"), exists("DelaySeconds"))
			s.create(name, "VisibilityTimeout", "30") // a default, given
			s.refused("CreateQueue", createMembers(name, "VisibilityTimeout", "43201"), fails("InvalidAttributeValue"))
		}},
		{id: "Q7", title: "creating a queue again after sends", play: func(s *scene) {
			q := s.queue()
			s.send(q, "1")
			s.send(q, "2")
			if again := s.create(queueName(q)); again != q {
				s.Errorf("got %s, want %s", again, q)
			}
			s.counts(q, "2", "0", "0")
		}},
		{id: "Q8", title: "a name rests after a delete", setting: strict, play: func(s *scene) {
			q := s.queue()
			s.ok("DeleteQueue", in{"QueueUrl": q})
			s.refused("CreateQueue", createMembers(queueName(q)), fails("AWS.SimpleQueueService.QueueDeletedRecently",
				"You must wait 60 seconds after deleting a queue before you can create another with the same name."))
		}},
		{id: "Q8b", title: "without a delete wait the name is free at once", play: func(s *scene) {
			q := s.queue()
			s.send(q, "old")
			s.ok("DeleteQueue", in{"QueueUrl": q})
			s.create(queueName(q))
			s.none(q)
			s.counts(q, "0", "0", "0")
		}},
		{id: "Q9", title: "a FIFO name without FifoQueue", play: func(s *scene) {
			s.refused("CreateQueue", createMembers(s.name()+".fifo"), badName)
		}},
		{id: "Q10", title: "FifoQueue without a FIFO name", play: func(s *scene) {
			s.refused("CreateQueue", createMembers(s.name(), "FifoQueue", "true"), badFIFOName)
		}},
		{id: "Q11", title: "FifoQueue false", play: func(s *scene) {
			s.refused("CreateQueue", createMembers(s.name(), "FifoQueue", "false"), unknownAttribute("FifoQueue"))
		}},
		{id: "Q12", title: "ContentBasedDeduplication on a standard queue", play: func(s *scene) {
			s.refused("CreateQueue", createMembers(s.name(), "ContentBasedDeduplication", "true"), unknownAttribute("ContentBasedDeduplication"))
		}},
		{id: "Q13", title: "the other FIFO attributes on a standard queue", play: func(s *scene) {
			for name, value := range map[string]string{"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"} {
				s.refused("CreateQueue", createMembers(s.name(), name, value), fails("InvalidAttributeName",
					"You can specify the "+name+" only when FifoQueue is set to true."))
			}
		}},
		{id: "Q14", title: "FIFO attributes set on a standard queue", play: func(s *scene) {
			q := s.queue()
			for _, value := range []string{"true", "false"} {
				s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("FifoQueue", value)}, unknownAttribute("FifoQueue"))
			}
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("ContentBasedDeduplication", "true")}, unknownAttribute("ContentBasedDeduplication"))
			for name, value := range map[string]string{"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"} {
				s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs(name, value)}, fails("InvalidAttributeName",
					"You can specify the "+name+" only when FifoQueue is set to true."))
			}
		}},
		{id: "Q2", title: "the attributes of a new FIFO queue", play: func(s *scene) {
			q := s.fifo()
			names := append(slices.Clone(plainAttributes), "ContentBasedDeduplication", "DeduplicationScope", "FifoQueue", "FifoThroughputLimit")
			slices.Sort(names)
			if got := sortedKeys(s.attributes(q)); !slices.Equal(got, names) {
				s.Errorf("got %v, want %v", got, names)
			}
			s.hasAttributes(q, "ContentBasedDeduplication", "false", "DeduplicationScope", "queue", "FifoQueue", "true", "FifoThroughputLimit", "perQueue")
		}},
		{id: "Q14b", title: "FifoQueue set on a FIFO queue", play: func(s *scene) {
			q := s.fifo()
			s.set(q, "FifoQueue", "true")
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("FifoQueue", "false")}, fails("InvalidAttributeValue",
				"Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."))
			s.refused("CreateQueue", createMembers(queueName(q), "FifoQueue", "true", "ContentBasedDeduplication", "true"), exists("ContentBasedDeduplication"))
			s.set(q, "ContentBasedDeduplication", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
			s.hasAttributes(q, "ContentBasedDeduplication", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("DeduplicationScope", "queue")}, fails("InvalidAttributeValue"))
			for _, name := range []string{"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"} {
				s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs(name, "x")}, fails("InvalidAttributeValue"))
			}
		}},
		{id: "Q26b", title: "dead-letter queues of the other type", play: func(s *scene) {
			q, fifo := s.queue(), s.fifo()
			for from, to := range map[string]string{q: fifo, fifo: q} {
				value := redrive(s.arn(to), "1")
				s.refused("SetQueueAttributes", in{"QueueUrl": from, "Attributes": pairs("RedrivePolicy", value)}, fails(invalidValue,
					"Value "+value+" for parameter RedrivePolicy is invalid. Reason: Dead-letter queue must be same type of queue as the source.."))
			}
		}},
		{id: "Q37", title: "booleans in any letter case", play: func(s *scene) {
			q := s.create(s.name()+".fifo", "FifoQueue", "True", "ContentBasedDeduplication", "TRUE")
			s.hasAttributes(q, "FifoQueue", "true", "ContentBasedDeduplication", "true")
			s.create(queueName(q), "FifoQueue", "true", "ContentBasedDeduplication", "true")
		}},
		{id: "Q15", title: "a slash in a name", play: func(s *scene) {
			for _, name := range []string{"a/b", "a b", "a.b", "ä", "a\n", "../a", "a.fifo.fifo", ".fifo"} {
				s.refused("CreateQueue", createMembers(name), badName)
			}
		}},
		{id: "Q16", title: "80 characters make the longest name", play: func(s *scene) {
			name := s.name()
			s.create(name + strings.Repeat("x", 80-len(name)))
			s.refused("CreateQueue", createMembers(name+strings.Repeat("x", 81-len(name))), badName)
			// The suffix counts.
			s.create(name+strings.Repeat("x", 75-len(name))+".fifo", "FifoQueue", "true")
			s.refused("CreateQueue", createMembers(name+strings.Repeat("x", 76-len(name))+".fifo", "FifoQueue", "true"), badFIFOName)
		}},
		{id: "Q17", title: "attribute values out of range", play: attributeRanges},
		{id: "Q18", title: "unknown and read-only attributes", play: func(s *scene) {
			q := s.queue()
			for _, name := range []string{"Foobar", "QueueArn", "All", "visibilitytimeout", "CreatedTimestamp", "ApproximateNumberOfMessages"} {
				s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs(name, "1")}, unknownAttribute(name))
				s.refused("CreateQueue", createMembers(s.name(), name, "1"), unknownAttribute(name))
			}
			s.refused("GetQueueAttributes", in{"QueueUrl": q, "AttributeNames": []string{"QueueArn", "Foobar"}}, unknownAttribute("Foobar"))
		}},
		{id: "Q19-Q20", title: "KMS keys replace the managed encryption", play: func(s *scene) {
			q := s.queue()
			s.set(q, "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000")
			s.hasAttributes(q, "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000", "SqsManagedSseEnabled", "false")
			s.set(q, "KmsMasterKeyId", "", "KmsDataKeyReusePeriodSeconds", "300")
			s.hasAttributes(q, "KmsMasterKeyId", "-", "KmsDataKeyReusePeriodSeconds", "-", "SqsManagedSseEnabled", "false")
			s.set(q, "KmsMasterKeyId", "alias/other")
			s.hasAttributes(q, "KmsMasterKeyId", "alias/other", "KmsDataKeyReusePeriodSeconds", "300", "SqsManagedSseEnabled", "false")
			s.set(q, "SqsManagedSseEnabled", "True")
			s.hasAttributes(q, "KmsMasterKeyId", "-", "SqsManagedSseEnabled", "true")
		}},
		{id: "Q21", title: "one kind of encryption at a time", play: func(s *scene) {
			q := s.queue()
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("KmsMasterKeyId", "k", "SqsManagedSseEnabled", "true")},
				fails("InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."))
			s.hasAttributes(q, "KmsMasterKeyId", "-", "SqsManagedSseEnabled", "true")
		}},
		{id: "Q22", title: "an empty value clears the redrive policy", play: func(s *scene) {
			q, dlq := s.queue(), s.queue()
			s.set(q, "RedrivePolicy", "")
			s.hasAttributes(q, "RedrivePolicy", "-")
			s.set(q, "RedrivePolicy", redrive(s.arn(dlq), "3"))
			s.hasAttributes(q, "RedrivePolicy", redrive(s.arn(dlq), "3"))
			s.set(q, "RedrivePolicy", "")
			s.hasAttributes(q, "RedrivePolicy", "-")
		}},
		{id: "Q23", title: "incomplete redrive policies", play: redrivePolicies},
		{id: "Q24", title: "a count given as text is shown as a number", play: func(s *scene) {
			q, dlq := s.queue(), s.queue()
			arn := s.arn(dlq)
			s.set(q, "RedrivePolicy", fmt.Sprintf(`{ "maxReceiveCount" : "42", "deadLetterTargetArn" : %q }`, arn))
			s.hasAttributes(q, "RedrivePolicy", redrive(arn, "42"))
			s.create(queueName(q), "RedrivePolicy", redrive(arn, `"42"`)) // equal in canonical form
		}},
		{id: "Q25", title: "a queue may be its own dead-letter queue", play: func(s *scene) {
			q := s.queue()
			s.set(q, "RedrivePolicy", redrive(s.arn(q), "1"))
		}},
		{id: "Q26", title: "a dead-letter queue that is not there", play: func(s *scene) {
			q := s.queue()
			value := redrive(s.arn(q)+"-nope", "1")
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("RedrivePolicy", value)},
				fails(invalidValue, "Value "+value+" for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."))
			name := s.name()
			s.refused("CreateQueue", createMembers(name, "RedrivePolicy", value), fails(invalidValue))
			s.refused("GetQueueUrl", in{"QueueName": name}, queueMissing)
		}},
		{id: "Q27", title: "denyAll keeps sources away", play: func(s *scene) {
			dlq, allowed := s.queue(), s.queue()
			s.set(dlq, "RedriveAllowPolicy", `{"redrivePermission": "denyAll"}`)
			s.hasAttributes(dlq, "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`)
			s.refused("CreateQueue", createMembers(s.name(), "RedrivePolicy", redrive(s.arn(dlq), "1")), fails(invalidValue))
			byQueue := fmt.Sprintf(`{"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, s.arn(allowed))
			s.set(dlq, "RedriveAllowPolicy", byQueue)
			s.hasAttributes(dlq, "RedriveAllowPolicy", byQueue)
			s.set(allowed, "RedrivePolicy", redrive(s.arn(dlq), "1"))
			s.refused("SetQueueAttributes", in{"QueueUrl": s.queue(), "Attributes": pairs("RedrivePolicy", redrive(s.arn(dlq), "1"))}, fails(invalidValue))
			s.set(dlq, "RedriveAllowPolicy", "")
			s.hasAttributes(dlq, "RedriveAllowPolicy", "-")
		}},
		{id: "Q28", title: "redrive allow policies that contradict themselves", play: redriveAllowPolicies},
		{id: "Q29", title: "no queue with the prefix", play: func(s *scene) {
			if out := s.ok("ListQueues", in{"QueueNamePrefix": s.name()}); len(out) != 0 {
				s.Errorf("got %v, want nothing", out)
			}
		}},
		{id: "Q30", title: "pages of queues", play: listPages},
		{id: "Q31", title: "tags", play: func(s *scene) {
			q := s.queue()
			tags := func() string { return fmt.Sprint(s.ok("ListQueueTags", in{"QueueUrl": q})["Tags"]) }
			s.ok("TagQueue", in{"QueueUrl": q, "Tags": pairs("tag1", "value1", "tag2", "value2", "tag3", "")})
			if got, want := tags(), "map[tag1:value1 tag2:value2 tag3:]"; got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			s.ok("UntagQueue", in{"QueueUrl": q, "TagKeys": []string{"tag1", "tag3"}})
			if got, want := tags(), "map[tag2:value2]"; got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			s.ok("UntagQueue", in{"QueueUrl": q, "TagKeys": []string{"tag2"}})
			if out := s.ok("ListQueueTags", in{"QueueUrl": q}); len(out) != 0 {
				s.Errorf("got %v, want nothing", out)
			}
		}},
		{id: "Q32", title: "an unknown tag key, a second value, a second case", play: func(s *scene) {
			name := s.name()
			q := s.ok("CreateQueue", in{"QueueName": name, "tags": pairs("k", "1")}).text("QueueUrl")
			s.ok("UntagQueue", in{"QueueUrl": q, "TagKeys": []string{"nope"}})
			s.ok("TagQueue", in{"QueueUrl": q, "Tags": pairs("k", "2", "K", "3")})
			s.ok("CreateQueue", in{"QueueName": name, "tags": pairs("k", "other")}) // tags are not compared, nor changed
			if got, want := fmt.Sprint(s.ok("ListQueueTags", in{"QueueUrl": q})["Tags"]), "map[K:3 k:2]"; got != want {
				s.Errorf("got %s, want %s", got, want)
			}
		}},
		{id: "Q33", title: "GetQueueUrl without a name", play: func(s *scene) {
			s.refused("GetQueueUrl", nil, fails(invalidValue))
			s.refused("GetQueueUrl", in{"QueueName": ""}, fails(invalidValue))
			s.refused("CreateQueue", nil, fails(invalidValue))
			s.refused("CreateQueue", in{"QueueName": ""}, fails(invalidValue))
		}},
		{id: "Q34", title: "the sources of a dead-letter queue", play: deadLetterSources},
		{id: "Q35", title: "a second purge within a minute", play: func(s *scene) {
			q := s.queue()
			s.ok("PurgeQueue", in{"QueueUrl": q})
			s.refused("PurgeQueue", in{"QueueUrl": q}, fails("AWS.SimpleQueueService.PurgeQueueInProgress",
				"Only one PurgeQueue operation on "+queueName(q)+" is allowed every 60 seconds."))
		}},
		{id: "Q36", title: "a purge takes visible, hidden and delayed messages", play: purge},
		{id: "Q37b", title: "booleans of a standard queue", play: func(s *scene) {
			s.hasAttributes(s.queue("SqsManagedSseEnabled", "False"), "SqsManagedSseEnabled", "false")
			s.hasAttributes(s.queue("SqsManagedSseEnabled", "TRUE"), "SqsManagedSseEnabled", "true")
		}},
	})
}

var (
	badName     = fails(invalidValue, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	badFIFOName = fails(invalidValue, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
)

func unknownAttribute(name string) failure {
	return fails("InvalidAttributeName", "Unknown Attribute "+name+".")
}

func atoi(s *scene, text string) int64 {
	s.Helper()
	var n int64
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
		s.Errorf("%q is no decimal number", text)
	}
	return n
}

// purge plays the case twice: with long times for the counts, with short ones
// to see that nothing comes back.
func purge(s *scene) {
	for _, seconds := range []int{300, 1} {
		q := s.queue()
		s.send(q, "in flight")
		h := handle(s.one(q, in{"VisibilityTimeout": seconds}))
		s.send(q, "delayed", in{"DelaySeconds": seconds})
		s.send(q, "visible")
		if seconds > 1 {
			s.counts(q, "1", "1", "1")
		}
		s.ok("PurgeQueue", in{"QueueUrl": q})
		s.counts(q, "0", "0", "0")
		s.none(q, waitTwo)
		s.delete(q, h)
		s.refused("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 9}, fails(invalidValue,
			"Value "+h+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."))
		s.send(q, "new")
		s.bodies(s.receive(q), "new")
	}
}

func attributeRanges(s *scene) {
	q := s.queue()
	for name, ends := range map[string][2]int{
		"DelaySeconds":                  {0, 900},
		"MaximumMessageSize":            {1024, 1048576},
		"MessageRetentionPeriod":        {60, 1209600},
		"ReceiveMessageWaitTimeSeconds": {0, 20},
		"VisibilityTimeout":             {0, 43200},
	} {
		for _, value := range []string{fmt.Sprint(ends[0] - 1), fmt.Sprint(ends[1] + 1), "", " 6", "6 ", "-45", "544.43", "x", "0x10", "1e3", "99999999999999999999"} {
			s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs(name, value)},
				fails("InvalidAttributeValue", "Invalid value for the parameter "+name+"."))
		}
		s.refused("CreateQueue", createMembers(s.name(), name, fmt.Sprint(ends[1]+1)), fails("InvalidAttributeValue"))
		for _, value := range ends {
			s.set(q, name, fmt.Sprint(value))
			s.hasAttributes(q, name, fmt.Sprint(value))
		}
	}
	for _, bad := range [][2]string{{"KmsDataKeyReusePeriodSeconds", "59"}, {"KmsDataKeyReusePeriodSeconds", "86401"}, {"SqsManagedSseEnabled", "yes"}, {"SqsManagedSseEnabled", ""}} {
		s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs(bad[0], bad[1])}, fails("InvalidAttributeValue"))
	}
	// One bad attribute, and nothing changes.
	s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("DelaySeconds", "7", "VisibilityTimeout", "43201")}, fails("InvalidAttributeValue"))
	s.hasAttributes(q, "DelaySeconds", "900")
}

func redrivePolicies(s *scene) {
	q, dlq := s.queue(), s.queue()
	arn := s.arn(dlq)
	fields := strings.Split(arn, ":")
	elsewhere := func(i int, value string) string {
		other := slices.Clone(fields)
		other[i] = value
		return strings.Join(other, ":")
	}
	for _, c := range []struct{ value, reason string }{
		{fmt.Sprintf(`{"deadLetterTargetArn":%q}`, arn), "Redrive policy does not contain mandatory attribute: maxReceiveCount."},
		{`{}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount."},
		{`{"maxReceiveCount":3}`, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."},
		{redrive(arn, `"invalid"`), ""},
		{redrive(arn, `0`), "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive."},
		{redrive(arn, `1001`), "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive."},
		{redrive(arn, `-1`), ""},
		{redrive(arn, `1.5`), ""},
		{redrive("garbage", `1`), "Dead-letter target ARN should be fully qualified ARN."},
		{redrive(elsewhere(2, "sns"), `1`), "Only SQS queues are valid resources for deadLetterTargetArn."},
		{redrive(elsewhere(3, "us-west-2"), `1`), "Dead-letter target owner should be same as the source."},
		{redrive(elsewhere(4, "999999999999"), `1`), "Dead-letter target owner should be same as the source."},
		{strings.Replace(redrive(arn, `1`), "}", `,"other":1}`, 1), ""},
		{`nonsense`, ""},
		{`[]`, ""},
	} {
		want := fails(invalidValue)
		if c.reason != "" {
			want = fails(invalidValue, "Value "+c.value+" for parameter RedrivePolicy is invalid. Reason: "+c.reason)
		}
		s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("RedrivePolicy", c.value)}, want)
	}
	s.hasAttributes(q, "RedrivePolicy", "-")
}

func redriveAllowPolicies(s *scene) {
	q := s.queue()
	arn := s.arn(q)
	eleven := `["` + strings.Repeat(arn+`","`, 10) + arn + `"]`
	const (
		needsSources = "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values."
		needsByQueue = "To specify one or more source queue ARNs, you must set redrivePermission to byQueue."
		tooMany      = "The maximum number of source queue ARNs you can specify is 10."
		unsupported  = "Invalid value for the parameter RedriveAllowPolicy. Reason: Amazon SQS can't create the redrive allow policy, as it’s in an unsupported format."
	)
	for _, c := range []struct{ value, reason string }{
		{`{"redrivePermission":"byQueue"}`, needsSources},
		{`{"redrivePermission":"byQueue","sourceQueueArns":[]}`, needsSources},
		{fmt.Sprintf(`{"redrivePermission":"allowAll","sourceQueueArns":[%q]}`, arn), needsByQueue},
		{fmt.Sprintf(`{"redrivePermission":"denyAll","sourceQueueArns":[%q]}`, arn), needsByQueue},
		{`{"redrivePermission":"byQueue","sourceQueueArns":` + eleven + `}`, tooMany},
		{`{"redrivePermission":"sometimes"}`, ""},
		{`{}`, ""},
		{`[]`, ""},
		{`nonsense`, ""},
	} {
		text := unsupported
		if c.reason != "" {
			text = "Value " + c.value + " for parameter RedriveAllowPolicy is invalid. Reason: Amazon SQS can't create the redrive allow policy. " + c.reason
		}
		s.refused("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("RedriveAllowPolicy", c.value)}, fails(invalidValue, text))
	}
	s.hasAttributes(q, "RedriveAllowPolicy", "-")
}

func listPages(s *scene) {
	prefix := s.name()
	var all []string
	for i := range 10 {
		all = append(all, s.create(fmt.Sprintf("%s-%d", prefix, i)))
	}
	list := func(more in) ([]string, string) {
		out := s.ok("ListQueues", in{"QueueNamePrefix": prefix}.with(more))
		return out.texts("QueueUrls"), out.text("NextToken")
	}
	urls, token := list(nil)
	if !slices.Equal(urls, all) || token != "" {
		s.Errorf("without MaxResults: got %v token %q, want all ten and no token", urls, token)
	}
	first, token := list(in{"MaxResults": 2})
	if len(first) != 2 || token == "" {
		s.Fatalf("first page: got %v token %q, want two and a token", first, token)
	}
	rest, last := list(in{"MaxResults": 20, "NextToken": token})
	if !slices.Equal(slices.Concat(first, rest), all) || last != "" {
		s.Errorf("second page: got %v token %q, want the other eight and no token", rest, last)
	}
	if exact, token := list(in{"MaxResults": 10}); len(exact) != 10 || token != "" {
		s.Errorf("a page that just fits: got %d queues and token %q, want ten and no token", len(exact), token)
	}
	// Page by page, while queues come and go, each that stays is seen once.
	var seen []string
	for token, more := "", true; more; more = token != "" {
		page := in{"MaxResults": 3}
		if token != "" {
			page["NextToken"] = token
		}
		urls, token = list(page)
		seen = append(seen, urls...)
		s.create(fmt.Sprintf("%s-%d-late", prefix, len(seen)))
		if len(seen) == 3 {
			s.ok("DeleteQueue", in{"QueueUrl": all[2]})
		}
	}
	for _, url := range all {
		if n := len(slices.DeleteFunc(slices.Clone(seen), func(u string) bool { return u != url })); n != 1 {
			s.Errorf("%s was listed %d times, want once", url, n)
		}
	}
	for _, size := range []in{{}, {"MaxResults": 1000}} { // who goes round a loop begins with an empty token
		if urls, _ := list(size.with(in{"NextToken": ""})); !slices.Contains(urls, all[0]) {
			s.Errorf("with an empty token: got %v, want the first page", urls)
		}
	}
	s.refused("ListQueues", in{"QueueNamePrefix": prefix, "NextToken": "eA"}, fails(invalidValue))
	s.refused("ListQueues", in{"QueueNamePrefix": prefix, "MaxResults": 2, "NextToken": "not a token"}, fails(invalidValue))
}

func deadLetterSources(s *scene) {
	dlq := s.queue()
	sources := func(more in) tree {
		return s.ok("ListDeadLetterSourceQueues", in{"QueueUrl": dlq}.with(more))
	}
	if out := sources(nil); len(out) != 0 {
		s.Errorf("before any source: got %v, want nothing", out)
	}
	var all []string
	for range 3 {
		all = append(all, s.queue("RedrivePolicy", redrive(s.arn(dlq), "1")))
	}
	slices.Sort(all)
	if got := sources(nil).texts("queueUrls"); !slices.Equal(got, all) {
		s.Errorf("got %v, want %v", got, all)
	}
	page := sources(in{"MaxResults": 2, "NextToken": ""})
	rest := sources(in{"MaxResults": 2, "NextToken": page.text("NextToken")})
	if got := slices.Concat(page.texts("queueUrls"), rest.texts("queueUrls")); !slices.Equal(got, all) || rest.text("NextToken") != "" {
		s.Errorf("in pages: got %v, then token %q; want %v and none", got, rest.text("NextToken"), all)
	}
	s.set(all[0], "RedrivePolicy", "")
	s.ok("DeleteQueue", in{"QueueUrl": all[1]})
	if got := sources(nil).texts("queueUrls"); !slices.Equal(got, all[2:]) {
		s.Errorf("after a clear and a delete: got %v, want %v", got, all[2:])
	}
}
