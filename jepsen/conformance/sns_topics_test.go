package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// C1–C20: topics.
func TestTopics(t *testing.T) {
	const different = "Attributes Reason: Topic already exists with different attributes"
	perform(t, []act{
		{id: "C1", title: "made again without attributes", play: func(s *stage) {
			topic := s.topic("DisplayName", "A")
			s.setTopic(topic, "DisplayName", "B")
			if again := s.create(topicName(topic)); again != topic {
				s.Errorf("got %s, want %s", again, topic)
			}
			s.has(s.topicAttributes(topic), "DisplayName", "B")
		}},
		{id: "C2", title: "made again with others", play: func(s *stage) {
			topic := s.topic()
			s.invalid("CreateTopic", topicMembers(topicName(topic), "DisplayName", "X"), different)
			s.has(s.topicAttributes(topic), "DisplayName", "")
			topic = s.topic("DisplayName", "X", "KmsMasterKeyId", "k")
			s.create(topicName(topic), "DisplayName", "X")
			s.create(topicName(topic), "KmsMasterKeyId", "k", "DisplayName", "X")
			s.invalid("CreateTopic", topicMembers(topicName(topic), "DisplayName", "X", "TracingConfig", "Active"), different)
		}},
		{id: "C3", title: "FifoTopic false", play: func(s *stage) {
			topic := s.topic("FifoTopic", "false")
			s.has(s.topicAttributes(topic), "FifoTopic", "-")
			s.create(topicName(topic))
			s.create(topicName(topic), "FifoTopic", "false")
		}},
		{id: "C4", title: "FifoTopic cannot be set", play: func(s *stage) {
			for _, name := range []string{"FifoTopic", "Owner", "TopicArn", "Nothing", "fifotopic"} {
				s.invalid("SetTopicAttributes", in{"TopicArn": s.topic(), "AttributeName": name, "AttributeValue": "false"}, "AttributeName")
			}
		}},
		{id: "C5", title: "made again with tags", play: func(s *stage) {
			name := s.name()
			tags := []in{{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}}
			s.done("CreateTopic", in{"Name": name, "Tags": tags})
			s.done("CreateTopic", in{"Name": name, "Tags": tags[1:]})
			s.done("CreateTopic", in{"Name": name, "Tags": []in{}})
			const reason = "Tags Reason: Topic already exists with different tags"
			s.invalid("CreateTopic", in{"Name": name, "Tags": []in{{"Key": "c", "Value": "3"}, tags[0]}}, reason)
			s.invalid("CreateTopic", in{"Name": name, "Tags": []in{{"Key": "a", "Value": "2"}}}, reason)
		}},
		{id: "C6", title: "deleted though it never was", play: func(s *stage) {
			s.done("DeleteTopic", in{"TopicArn": s.arnOf(s.name())})
			s.invalid("DeleteTopic", in{"TopicArn": "a:b:c"}, "TopicArn Reason: An ARN must have at least 6 elements, not 3")
			s.invalid("DeleteTopic", in{"TopicArn": ""}, "TopicArn Reason: An ARN must have at least 6 elements, not 1")
			s.invalid("DeleteTopic", nil, "TopicArn Reason: no value for required parameter")
		}},
		{id: "C7", title: "of another region", play: func(s *stage) {
			elsewhere := "arn:aws:sns:us-west-2:000000000000:" + s.name()
			for _, action := range []string{
				"DeleteTopic", "GetTopicAttributes", "SetTopicAttributes", "Publish", "PublishBatch", "Subscribe", "ListSubscriptionsByTopic",
			} {
				s.invalid(action, in{"TopicArn": elsewhere, "AttributeName": "DisplayName", "Message": "x"}, "TopicArn")
			}
			s.invalid("GetTopicAttributes", in{"TopicArn": "arn:aws:sqs:eu-west-1:000000000000:" + s.name()}, "TopicArn")
		}},
		{id: "C8", title: "a new one of an old name", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{{"Key": "a", "Value": "1"}}})
			s.done("DeleteTopic", in{"TopicArn": topic})
			s.create(topicName(topic))
			if tags := s.done("ListTagsForResource", in{"ResourceArn": topic}).list("Tags"); len(tags) > 0 {
				s.Errorf("got tags %v, want none", tags)
			}
			s.publish(topic, "nobody hears it")
			s.none(queueURL)
		}},
		{id: "C9", title: "names", play: func(s *stage) {
			for _, name := range []string{
				"x.fifo", "", ".fifo", strings.Repeat("x", 257), "a b", "a:b", "a;b", "a!b", "a@b", "a|b", "a^b", "a%b", "é", "a.b",
			} {
				s.invalid("CreateTopic", in{"Name": name}, "Topic Name")
			}
			s.invalid("CreateTopic", topicMembers("x", "FifoTopic", "true"), "Topic Name")
			s.invalid("CreateTopic", topicMembers(s.name(), "FifoTopic", "true"), "Topic Name")
			s.create("A-z_9" + s.name() + strings.Repeat("x", 200))
			s.create(strings.ToUpper(s.name()))
			s.fifoTopic()
		}},
		{id: "C10", title: "attributes of a new one", play: func(s *stage) {
			topic := s.topic()
			got := s.topicAttributes(topic)
			if len(got) != 8 {
				s.Errorf("got %d attributes, want 8: %v", len(got), got)
			}
			s.has(got, "DisplayName", "", "Owner", "000000000000", "SubscriptionsConfirmed", "0", "SubscriptionsDeleted", "0",
				"SubscriptionsPending", "0", "TopicArn", topic,
				"EffectiveDeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,`+
					`"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},`+
					`"disableSubscriptionOverrides":false,"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}`,
				"Policy", `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[{"Sid":"__default_statement_ID","Effect":"Allow",`+
					`"Principal":{"AWS":"*"},"Action":["SNS:GetTopicAttributes","SNS:SetTopicAttributes","SNS:AddPermission","SNS:RemovePermission",`+
					`"SNS:DeleteTopic","SNS:Subscribe","SNS:ListSubscriptionsByTopic","SNS:Publish"],"Resource":"`+topic+`",`+
					`"Condition":{"StringEquals":{"AWS:SourceOwner":"000000000000"}}}]}`)
		}},
		{id: "C11", title: "attributes of a new FIFO one", play: func(s *stage) {
			got := s.topicAttributes(s.fifoTopic())
			if len(got) != 10 {
				s.Errorf("got %d attributes, want 10: %v", len(got), got)
			}
			s.has(got, "FifoTopic", "true", "ContentBasedDeduplication", "false", "FifoThroughputScope", "-")
		}},
		{id: "C12", title: "a delivery policy with a null", play: func(s *stage) {
			topic := s.topic()
			s.setTopic(topic, "DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":null}}`)
			s.has(s.topicAttributes(topic), "DeliveryPolicy", `{"http":{"disableSubscriptionOverrides":false}}`)
		}},
		{id: "C13", title: "a delivery policy taken away", play: func(s *stage) {
			topic := s.topic()
			fresh := s.topicAttributes(topic)["EffectiveDeliveryPolicy"]
			s.setTopic(topic, "DeliveryPolicy", `{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}`)
			if got := s.topicAttributes(topic)["EffectiveDeliveryPolicy"]; !strings.Contains(got, `"headerContentType":"application/json"`) {
				s.Errorf("got %s, want application/json", got)
			}
			s.setTopic(topic, "DeliveryPolicy", "")
			s.has(s.topicAttributes(topic), "DeliveryPolicy", "-", "EffectiveDeliveryPolicy", fresh)
		}},
		{id: "C14", title: "a key that nobody knows", play: func(s *stage) {
			topic := s.topic("KmsMasterKeyId", "testxyz")
			s.has(s.topicAttributes(topic), "KmsMasterKeyId", "testxyz")
			s.setTopic(topic, "KmsMasterKeyId", "")
			s.has(s.topicAttributes(topic), "KmsMasterKeyId", "-")
		}},
		{id: "C15", title: "large messages", play: func(s *stage) {
			topic := s.topic()
			s.done("Subscribe", in{"TopicArn": topic, "Protocol": "https", "Endpoint": "https://example.com/x"})
			s.bad("SetTopicAttributes", in{"TopicArn": topic, "AttributeName": "MaximumMessageSize", "AttributeValue": "1048576"},
				"InvalidParameter", "Invalid parameter: …")
			topic, queueURL, _ := s.subscribed()
			s.setTopic(topic, "MaximumMessageSize", "1048576")
			s.has(s.topicAttributes(topic), "MaximumMessageSize", "1048576")
			s.publish(topic, strings.Repeat("x", 500_000))
			if got := len(s.envelope(queueURL).text("Message")); got != 500_000 {
				s.Errorf("got %d bytes, want 500000", got)
			}
			s.setTopic(topic, "MaximumMessageSize", "1024")
			s.invalid("Publish", in{"TopicArn": topic, "Message": strings.Repeat("x", 1025)}, "Message too long")
		}},
		{id: "C16", title: "pages", play: func(s *stage) {
			s.topic()
			if first := s.done("ListTopics", in{"NextToken": ""}); len(first.list("Topics")) == 0 {
				s.Errorf("got %v, want topics", first)
			}
			s.bad("ListTopics", in{"NextToken": "nonsense"}, "InvalidParameter", "Invalid parameter: …")
		}},
		{id: "pages", title: "more than one page", play: listManyTopics},
		{id: "C18", title: "a label is used once", play: func(s *stage) {
			topic := s.topic()
			add := in{"TopicArn": topic, "Label": "L", "AWSAccountId": []string{"111122223333"}, "ActionName": []string{"Publish"}}
			s.done("AddPermission", add)
			s.invalid("AddPermission", add, "Statement already exists")
			s.done("RemovePermission", in{"TopicArn": topic, "Label": "other"})
			s.done("RemovePermission", in{"TopicArn": topic, "Label": "L"})
			s.done("AddPermission", add)
			s.bad("RemovePermission", in{"TopicArn": s.arnOf(s.name()), "Label": "L"}, "NotFound", "Topic does not exist")
		}},
		{id: "C19", title: "an action that topics do not have", play: func(s *stage) {
			topic := s.topic()
			add := in{"TopicArn": topic, "Label": "L", "AWSAccountId": []string{"111122223333"}, "ActionName": []string{"Publishx"}}
			s.invalid("AddPermission", add, "Policy statement action out of service scope!")
			add["ActionName"] = []string{"Publish", "Publish"}
			add["AWSAccountId"] = []string{"1234"}
			s.invalid("AddPermission", add, "A provided account ID is not valid")
			s.bad("AddPermission", add.with(in{"TopicArn": s.arnOf(s.name())}), "NotFound", "Topic does not exist")
		}},
		{id: "C20", title: "no data protection policy", play: func(s *stage) {
			if got := s.done("GetDataProtectionPolicy", in{"ResourceArn": s.topic()}); got.text("DataProtectionPolicy") != "" {
				s.Errorf("got %v, want an empty text", got)
			}
		}},
		{id: "data-protection", title: "what has no data protection policy", play: func(s *stage) {
			const policy = `{"Name":"n","Version":"2021-06-01","Statement":[{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":[],"Operation":{}}]}`
			const standardOnly = "DataProtectionPolicy Reason: Only standard topics have data protection policies"
			fifo, missing := s.fifoTopic(), s.arnOf(s.name())
			s.invalid("PutDataProtectionPolicy", in{"ResourceArn": fifo, "DataProtectionPolicy": policy}, standardOnly)
			s.done("PutDataProtectionPolicy", in{"ResourceArn": fifo, "DataProtectionPolicy": ""})
			s.invalid("CreateTopic", in{"Name": s.name() + ".fifo", "Attributes": pairs("FifoTopic", "true"), "DataProtectionPolicy": policy}, standardOnly)
			for _, text := range []string{policy, "{}"} {
				s.bad("PutDataProtectionPolicy", in{"ResourceArn": missing, "DataProtectionPolicy": text}, "NotFound", "Topic does not exist")
			}
			s.bad("GetDataProtectionPolicy", in{"ResourceArn": missing}, "NotFound", "Topic does not exist")
		}},
		{id: "attributes", title: "values that are refused", play: refusedTopicAttributes},
		{id: "tags", title: "tags", play: topicTags},
	})
}

func listManyTopics(s *stage) {
	want := map[string]bool{}
	for i := range 205 {
		want[s.create(fmt.Sprintf("%s-%03d", s.name(), i))] = true
	}
	token, last := "", ""
	for pages := 0; ; pages++ {
		out := s.done("ListTopics", in{"NextToken": token})
		topics := out.list("Topics")
		for _, t := range topics {
			arn := t.text("TopicArn")
			if arn <= last {
				s.Errorf("%s comes after %s", arn, last)
			}
			last = arn
			delete(want, arn)
		}
		if token = out.text("NextToken"); token == "" {
			break
		}
		if len(topics) != 100 || pages > 1000 {
			s.Fatalf("got a page of %d, want 100", len(topics))
		}
	}
	if len(want) > 0 {
		s.Errorf("%d topics were in no page: %v", len(want), want)
	}
}

func refusedTopicAttributes(s *stage) {
	topic, fifo := s.topic(), s.fifoTopic()
	for _, c := range []struct{ name, value, reason string }{
		{"SQSSuccessFeedbackSampleRate", "500", "SQSSuccessFeedbackSampleRate: 500 value provided is not an integer between 0-100"},
		{"LambdaSuccessFeedbackSampleRate", "x", "LambdaSuccessFeedbackSampleRate: x value provided is not an integer between 0-100"},
		{"Policy", `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`, "Policy statement action out of service scope!"},
		{
			"DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":101}}}`,
			"DeliveryPolicy: http.defaultHealthyRetryPolicy.numRetries must be less than or equal to 100",
		},
		{
			"DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":3600,"maxDelayTarget":3600,"numRetries":2}}}`,
			"DeliveryPolicy: http.defaultHealthyRetryPolicy: Total policy retry time cannot be greater than 3600 seconds",
		},
		{"DeliveryPolicy", `{"throttlePolicy":{"maxReceivesPerSecond":1}}`, "DeliveryPolicy: Unexpected JSON member: throttlePolicy"},
	} {
		s.invalid("SetTopicAttributes", in{"TopicArn": topic, "AttributeName": c.name, "AttributeValue": c.value}, c.reason)
		s.invalid("CreateTopic", topicMembers(s.name(), c.name, c.value), "Attributes Reason: "+c.reason)
	}
	s.bad("SetTopicAttributes", in{"TopicArn": topic, "AttributeName": "ContentBasedDeduplication", "AttributeValue": "true"}, "InvalidParameter", "…")
	s.bad("SetTopicAttributes", in{"TopicArn": fifo, "AttributeName": "ArchivePolicy", "AttributeValue": ""}, "InvalidParameter", "…")
	s.bad("SetTopicAttributes", in{"TopicArn": s.arnOf(s.name()), "AttributeName": "DisplayName", "AttributeValue": "x"}, "NotFound", "Topic does not exist")
	s.bad("SetTopicAttributes", in{"TopicArn": s.arnOf(s.name()), "AttributeName": "TracingConfig", "AttributeValue": "x"}, "NotFound", "Topic does not exist")
	s.setTopic(fifo, "ContentBasedDeduplication", "true")
	s.setTopic(fifo, "FifoThroughputScope", "MessageGroup")
	s.has(s.topicAttributes(fifo), "ContentBasedDeduplication", "true", "FifoThroughputScope", "MessageGroup")
}

func topicTags(s *stage) {
	topic := s.topic()
	tag := func(key, value string) in { return in{"Key": key, "Value": value} }
	s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("a", "1"), tag("b", "")}})
	s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("a", "2")}})
	s.done("UntagResource", in{"ResourceArn": topic, "TagKeys": []string{"b", "missing"}})
	tags := s.done("ListTagsForResource", in{"ResourceArn": topic}).list("Tags")
	if len(tags) != 1 || tags[0].text("Key") != "a" || tags[0].text("Value") != "2" {
		s.Errorf("got %v, want a=2", tags)
	}
	s.invalid("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("a", "1"), tag("a", "1")}}, "Duplicated keys are not allowed.")
	s.bad("TagResource", in{"ResourceArn": topic, "Tags": []in{tag(strings.Repeat("k", 129), "1")}}, "ValidationError",
		"1 validation error detected: Value '"+strings.Repeat("k", 129)+"' at 'tags.1.member.key' failed to satisfy constraint: "+
			"Member must have length less than or equal to 128")
	s.bad("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("k", strings.Repeat("v", 257))}}, "ValidationError",
		"1 validation error detected: Value '"+strings.Repeat("v", 257)+"' at 'tags.1.member.value' failed to satisfy constraint: "+
			"Member must have length less than or equal to 256")
	many := make([]in, 50)
	for i := range many {
		many[i] = tag(fmt.Sprint("k", i), "v")
	}
	s.bad("TagResource", in{"ResourceArn": topic, "Tags": many}, "TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded")
	s.bad("CreateTopic", in{"Name": s.name(), "Tags": append(many, tag("more", "v"))}, "TagLimitExceeded",
		"Could not complete request: tag quota of per resource exceeded")
	for _, action := range []string{"TagResource", "UntagResource", "ListTagsForResource"} {
		s.bad(action, in{"ResourceArn": s.arnOf(s.name())}, "ResourceNotFound", "Resource does not exist")
		s.invalid(action, in{"ResourceArn": "x"}, "ResourceArn Reason: An ARN must have at least 6 elements, not 1")
	}
}
