package conformance

import (
	"strings"
)

var recordedPublishes = []act{
	{id: "test_publish_wrong_phone_format", play: func(s *stage) {
		g := s.recorded("test_publish_wrong_phone_format")
		g.sns("invalid-number", "Publish", in{"PhoneNumber": "+1a234", "Message": "m"})
		g.sns("wrong-format", "Publish", in{"PhoneNumber": "NAA+15551234567", "Message": "m"})
		g.sns("wrong-endpoint", "Subscribe", in{"TopicArn": s.topic(), "Protocol": "sms", "Endpoint": "NAA+15551234567"})
	}},
	{id: "test_publish_wrong_arn_format", play: func(s *stage) {
		g := s.recorded("test_publish_wrong_arn_format")
		g.sns("invalid-topic-arn", "Publish", in{"TopicArn": "randomstring", "Message": "m"})
		g.sns("invalid-topic-arn-1", "Publish", in{"TopicArn": "randomstring:1", "Message": "m"})
		g.sns("empty-topic", "Publish", in{"TopicArn": "", "Message": "m"})
	}},
	{id: "test_publish_message_by_target_arn", play: func(s *stage) {
		g := s.recorded("test_publish_message_by_target_arn")
		topic, queueURL, _ := s.subscribed()
		s.done("Publish", in{"TopicArn": topic, "Message": "test-msg-1"})
		g.received("receive-topic-arn", queueURL, plain)
		s.done("Publish", in{"TargetArn": topic, "Message": "test-msg-2"})
		g.received("receive-target-arn", queueURL, plain)
	}},
	{id: "test_publish_message_before_subscribe_topic", play: func(s *stage) {
		g := s.recorded("test_publish_message_before_subscribe_topic")
		topic, queueURL := s.topic(), s.queue()
		g.sns("publish-before-subscribing", "Publish", in{"TopicArn": topic, "Subject": "test-subject-before-sub", "Message": "test_message_before"})
		s.subscribe(topic, queueURL)
		g.sns("publish-after-subscribing", "Publish", in{"TopicArn": topic, "Subject": "test-subject-after-sub", "Message": "test_message_after"})
		g.received("receive-messages", queueURL, plain)
	}},
	{id: "test_unknown_topic_publish", play: func(s *stage) {
		g := s.recorded("test_unknown_topic_publish")
		g.sns("success", "Publish", in{"TopicArn": s.topic(), "Message": "m"})
		g.sns("error", "Publish", in{"TopicArn": s.arnOf("missing"), "Message": "m"})
	}},
	{id: "test_topic_publish_another_region", play: func(s *stage) {
		g := s.recorded("test_topic_publish_another_region")
		g.sns("success", "Publish", in{"TopicArn": s.topic(), "Message": "m"})
		g.sns("error", "Publish", in{"TopicArn": "arn:aws:sns:us-west-2:000000000000:t", "Message": "m"})
		g.sns("error-batch", "PublishBatch", in{"TopicArn": "arn:aws:sns:us-west-2:000000000000:t", "PublishBatchRequestEntries": publishEntries(1)})
	}},
	single("test_publish_non_existent_target", "non-existent-endpoint", "Publish", func(*stage) in {
		return in{"TargetArn": "arn:aws:sns:eu-west-1:000000000000:endpoint/APNS/abcdef/0f7d5971-aa8b-4bd5-b585-0826e9f93a66", "Message": "m"}
	}),
	{id: "test_publish_with_empty_subject", play: func(s *stage) {
		g := s.recorded("test_publish_with_empty_subject")
		topic := s.topic()
		g.sns("response-without-subject", "Publish", in{"TopicArn": topic, "Message": "m"})
		g.sns("response-with-empty-subject", "Publish", in{"TopicArn": topic, "Subject": "", "Message": "m"})
	}},
	{id: "test_empty_sns_message", play: func(s *stage) {
		g := s.recorded("test_empty_sns_message")
		topic, queueURL, _ := s.subscribed()
		g.sns("empty-msg-error", "Publish", in{"TopicArn": topic, "Message": ""})
		g.is("queue-attrs", s.call("GetQueueAttributes", in{"QueueUrl": queueURL, "AttributeNames": []string{"ApproximateNumberOfMessages"}}))
	}},
	{id: "test_publish_too_long_message", play: func(s *stage) {
		g := s.recorded("test_publish_too_long_message")
		topic := s.topic()
		g.sns("error", "Publish", in{"TopicArn": topic, "Message": strings.Repeat("a", 262_145)})
		g.sns("error-with-attrs", "Publish", in{"TopicArn": topic, "Message": strings.Repeat("a", 262_144)}.with(messageAttributes(in{"attr1": text("value")})))
	}},
	{id: "test_publish_batch_too_long_message", play: func(s *stage) {
		g := s.recorded("test_publish_batch_too_long_message")
		topic := s.topic()
		long := in{"Id": "1", "Message": strings.Repeat("a", 262_145)}
		g.sns("error-no-attrs", "PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{long}})
		long = in{"Id": "1", "Message": strings.Repeat("a", 262_144)}.with(messageAttributes(in{"attr1": text("value")}))
		g.sns("error-with-attrs", "PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{long}})
	}},
	{id: "test_message_structure_json_exc", play: func(s *stage) {
		g := s.recorded("test_message_structure_json_exc")
		topic := s.topic()
		for step, message := range map[string]string{
			"missing-default-key": `{"sqs":"sqs message"}`,
			"invalid-json":        `{"default": "This is a default message"} }`,
			"duplicate-json-keys": `{"default":"d","sqs":"s","sqs":"s2"}`,
			"key-is-not-string":   `{"default":{"object":"test"}}`,
		} {
			g.sns(step, "Publish", in{"TopicArn": topic, "MessageStructure": "json", "Message": message})
		}
	}},
	{id: "test_publish_batch_invalid_entry_id", play: func(s *stage) {
		g := s.recorded("test_publish_batch_invalid_entry_id")
		topic := s.topic()
		for step, id := range map[string]string{
			"invalid-char-dot": "message.id", "invalid-char-special": "msg@123#test", "id-too-long-81": strings.Repeat("a", 81),
			"id-too-long-91":    "my" + strings.Repeat("really", 13) + "longid",
			"valid-id-80-chars": strings.Repeat("a", 80), "valid-id-with-hyphen-underscore": "valid-message_123",
		} {
			g.sns(step, "PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{{"Id": id, "Message": "m"}}})
		}
	}},
	single("test_publish_batch_messages_without_topic", "publish-batch-no-topic", "PublishBatch", func(s *stage) in {
		return in{"TopicArn": s.arnOf("missing"), "PublishBatchRequestEntries": publishEntries(1)}
	}),
	{id: "test_publish_batch_exceptions", play: recordedBatchErrors},
	{id: "test_empty_or_wrong_message_attributes", play: recordedAttributeErrors},
	{id: "test_message_attributes_prefixes", play: func(s *stage) {
		g := s.recorded("test_message_attributes_prefixes")
		topic := s.topic()
		for step, dataType := range map[string]string{
			"publish-error": "Stringprefixed", "publish-error-2": "String.", "publish-ok-1": "String.prefixed", "publish-ok-2": "String.  prefixed.",
		} {
			g.sns(step, "Publish", in{"TopicArn": topic, "Message": "m"}.with(messageAttributes(in{"attr1": in{"DataType": dataType, "StringValue": "x"}})))
		}
	}},
}

// plain asks a queue for messages without anything beside them.
var plain = in{"WaitTimeSeconds": 5}

func recordedBatchErrors(s *stage) {
	g := s.recorded("test_publish_batch_exceptions")
	topic := s.fifoTopic()
	batch := func(entries ...in) in { return in{"TopicArn": topic, "PublishBatchRequestEntries": entries} }
	g.sns("no-group-id", "PublishBatch", batch(in{"Id": "1", "Message": "Test Message with two attributes"}))
	g.sns("too-many-msg", "PublishBatch", batch(publishEntries(11)...))
	same := in{"Id": "1", "Message": "m", "MessageGroupId": "g"}
	g.sns("same-msg-id", "PublishBatch", batch(same, same))
	g.sns("no-dedup-id", "PublishBatch", batch(same))
	g.sns("no-default-key-json", "PublishBatch", batch(in{"Id": "1", "Message": `{"field":"value"}`, "MessageStructure": "json"}))
}

func recordedAttributeErrors(s *stage) {
	g := s.recorded("test_empty_or_wrong_message_attributes")
	topic := s.topic()
	for step, attributes := range map[string]in{
		"missing_string_attr":       {"attr1": text("")},
		"fully_missing_string_attr": {"attr1": in{"DataType": "String"}},
		"fully_missing_data_type":   {"attr1": in{"StringValue": "value"}},
		"missing_binary_attr":       {"attr1": blob([]byte{})},
		"str_attr_binary_value":     {"attr1": in{"DataType": "String", "BinaryValue": []byte{2, 3, 4}}},
		"int_attr_binary_value":     {"attr1": in{"DataType": "Number", "BinaryValue": []byte{2, 3, 4}}},
		"binary_attr_string_value":  {"attr1": in{"DataType": "Binary", "StringValue": "value"}},
		"invalid_attr_string_value": {"attr1": in{"DataType": "InvalidType", "StringValue": "value"}},
		"too_long_name":             {strings.Repeat("a", 257): text("value")},
		"invalid_name":              {"a^b": text("value")},
		"invalid_name_2":            {".abc": text("value")},
		"invalid_name_3":            {"abc.": text("value")},
		"invalid_name_4":            {"a..bc": text("value")},
	} {
		g.sns(step, "Publish", in{"TopicArn": topic, "Message": "m", "MessageAttributes": attributes})
		entry := in{"Id": "1", "Message": "m", "MessageAttributes": attributes}
		good := in{"Id": "3", "Message": "valid-batch"}
		g.sns("batch-"+step, "PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{entry, good}})
	}
}
