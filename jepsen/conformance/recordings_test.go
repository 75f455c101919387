package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// TestRecordings plays tests that were recorded on AWS again, call by call,
// and compares code, text and shape of each answer.
func TestRecordings(t *testing.T) {
	play(t, []script{
		{id: "test_send_receive_max_number_of_messages", play: func(s *scene) {
			g := s.recorded("test_send_receive_max_number_of_messages")
			g.is("send_max_number_of_messages", s.call("ReceiveMessage", in{"QueueUrl": s.queue(), "MaxNumberOfMessages": 11}))
		}},
		{id: "test_send_oversized_message", play: func(s *scene) {
			g := s.recorded("test_send_oversized_message")
			g.is("send_oversized_message", s.call("SendMessage", withAttribute(in{"QueueUrl": s.queue(), "MessageBody": strings.Repeat("a", 1<<20-7)})))
		}},
		{id: "test_send_message_with_updated_maximum_message_size", play: func(s *scene) {
			g := s.recorded("test_send_message_with_updated_maximum_message_size")
			q := s.queue()
			s.set(q, "MaximumMessageSize", "1024")
			s.send(q, strings.Repeat("a", 1024))
			g.is("send_oversized_message", s.call("SendMessage", withAttribute(in{"QueueUrl": q, "MessageBody": strings.Repeat("a", 1017)})))
		}},
		{id: "test_send_message_batch_with_oversized_contents", play: func(s *scene) {
			g := s.recorded("test_send_message_batch_with_oversized_contents")
			g.is("send_oversized_message_batch", s.call("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": []in{
				withAttribute(in{"Id": "1", "MessageBody": strings.Repeat("a", 1<<20-8)}), {"Id": "2", "MessageBody": "a"},
			}}))
		}},
		{id: "test_send_message_batch_with_oversized_contents_with_updated_maximum_message_size", play: func(s *scene) {
			g := s.recorded("test_send_message_batch_with_oversized_contents_with_updated_maximum_message_size")
			q := s.queue()
			s.set(q, "MaximumMessageSize", "2048")
			g.is("send_oversized_message_batch", s.call("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				withAttribute(in{"Id": "1", "MessageBody": strings.Repeat("a", 2048-8)}), {"Id": "2", "MessageBody": "a"},
			}}))
		}},
		{id: "test_send_batch_message_size", play: func(s *scene) {
			small, big := s.name(), s.name()
			g := s.recorded("test_send_batch_message_size")
			q := s.queue("MaximumMessageSize", "1024")
			g.is("send-message-batch-result", s.call("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": big, "MessageBody": strings.Repeat("a", 1025)}, {"Id": small, "MessageBody": strings.Repeat("a", 1024)},
			}}))
		}},
		{id: "test_tag_untag_queue", play: func(s *scene) {
			g := s.recorded("test_tag_untag_queue")
			q := s.queue()
			s.ok("TagQueue", in{"QueueUrl": q, "Tags": pairs("tag1", "value1", "tag2", "value2", "tag3", "")})
			g.is("get-tag-1", s.call("ListQueueTags", in{"QueueUrl": q}))
			s.ok("UntagQueue", in{"QueueUrl": q, "TagKeys": []string{"tag1", "tag3"}})
			g.is("get-tag-2", s.call("ListQueueTags", in{"QueueUrl": q}))
			s.ok("UntagQueue", in{"QueueUrl": q, "TagKeys": []string{"tag2"}})
			g.is("get-tag-after-untag", s.call("ListQueueTags", in{"QueueUrl": q}))
		}},
		{id: "test_create_queue_with_different_attributes_raises_exception", play: func(s *scene) {
			g := s.recorded("test_create_queue_with_different_attributes_raises_exception")
			name := s.name()
			q := s.create(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "1")
			s.create(name)
			g.is("create_queue_01", s.call("CreateQueue", createMembers(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "2")))
			s.set(q, "DelaySeconds", "2")
			s.create(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "2")
			g.is("create_queue_02", s.call("CreateQueue", createMembers(name, "ReceiveMessageWaitTimeSeconds", "1", "DelaySeconds", "1")))
		}},
		{id: "test_create_and_update_queue_attributes", play: func(s *scene) {
			g := s.recorded("test_create_and_update_queue_attributes")
			q := s.queue("MessageRetentionPeriod", "604800", "ReceiveMessageWaitTimeSeconds", "10", "VisibilityTimeout", "20")
			g.is("get_queue_attributes", s.call("GetQueueAttributes", in{"QueueUrl": q, "AttributeNames": []string{"All"}}))
			s.set(q, "MaximumMessageSize", "2048", "VisibilityTimeout", "69", "DelaySeconds", "420")
			g.is("get_updated_queue_attributes", s.call("GetQueueAttributes", in{"QueueUrl": q, "AttributeNames": []string{"All"}}))
		}},
		{id: "test_set_queue_attributes_default_values", play: func(s *scene) {
			g := s.recorded("test_set_queue_attributes_default_values")
			q := s.queue()
			all := in{"QueueUrl": q, "AttributeNames": []string{"All"}}
			g.is("get-queue-attributes-initial-values", s.call("GetQueueAttributes", all))
			s.set(q, "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000")
			g.is("get-queue-attributes-after-update", s.call("GetQueueAttributes", all))
			s.set(q, "KmsMasterKeyId", "", "KmsDataKeyReusePeriodSeconds", "300", "DelaySeconds", "0", "MaximumMessageSize", "1048576",
				"MessageRetentionPeriod", "345600", "ReceiveMessageWaitTimeSeconds", "0", "VisibilityTimeout", "30")
			g.is("get-queue-attributes-after-set-to-defaults", s.call("GetQueueAttributes", all))
		}},
		{id: "test_change_message_visibility_after_visibility_timeout_expiration", play: func(s *scene) {
			g := s.recorded("test_change_message_visibility_after_visibility_timeout_expiration")
			q := s.queue()
			s.send(q, "foo")
			h := handle(s.one(q, in{"VisibilityTimeout": 1}))
			s.awaitCounts(q, "1", "0", "0")
			g.is("visibility_timeout_expired", s.call("ChangeMessageVisibility", in{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 2}))
		}},
		{id: "test_delete_after_visibility_timeout", play: func(s *scene) {
			g := s.recorded("test_delete_after_visibility_timeout")
			q := s.queue("VisibilityTimeout", "1")
			s.send(q, "foobar")
			h := handle(s.one(q))
			s.awaitCounts(q, "1", "0", "0")
			s.delete(q, h)
			g.is("delete_after_timeout_queue_empty", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 1}))
		}},
		{id: "test_too_many_entries_in_batch_request", play: func(s *scene) {
			g := s.recorded("test_too_many_entries_in_batch_request")
			g.is("test_too_many_entries_in_batch_request", s.call("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": batchEntries(20)}))
		}},
		{id: "test_delete_message_batch_with_too_large_batch", play: func(s *scene) {
			g := s.recorded("test_delete_message_batch_with_too_large_batch")
			g.is("error_response", s.call("DeleteMessageBatch", in{"QueueUrl": s.queue(), "Entries": batchEntries(20)}))
		}},
		{id: "test_change_message_visibility_batch_with_too_large_batch", play: func(s *scene) {
			g := s.recorded("test_change_message_visibility_batch_with_too_large_batch")
			g.is("error_response", s.call("ChangeMessageVisibilityBatch", in{"QueueUrl": s.queue(), "Entries": batchEntries(20)}))
		}},
		{id: "test_invalid_batch_id", play: func(s *scene) {
			g := s.recorded("test_invalid_batch_id")
			g.is("test_invalid_batch_id", s.call("SendMessageBatch", in{"QueueUrl": s.queue(), "Entries": []in{
				{"Id": "message:123", "MessageBody": "a"}, {"Id": "message_2", "MessageBody": "b"},
			}}))
		}},
		{id: "test_delete_message_batch_invalid_msg_id", play: func(s *scene) {
			q := s.queue()
			for _, id := range []string{"", "invalid:id", strings.Repeat("testLongId", 10)} {
				g := s.recorded("test_delete_message_batch_invalid_msg_id[" + id + "]")
				g.is("error_response", s.call("DeleteMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": id, "ReceiptHandle": "x"}}}))
			}
		}},
		{id: "test_send_message_with_binary_attributes", play: func(s *scene) {
			g := s.recorded("test_send_message_with_binary_attributes")
			q := s.queue()
			s.send(q, "test", messageAttributes(in{"attr1": blob([]byte("traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"))}))
			g.is("binary-attrs-msg", s.call("ReceiveMessage", in{"QueueUrl": q, "MessageAttributeNames": []string{"All"}, "WaitTimeSeconds": 1}))
		}},
		{id: "test_send_message_with_empty_string_attribute", play: func(s *scene) {
			g := s.recorded("test_send_message_with_empty_string_attribute")
			g.is("empty-string-attr", s.call("SendMessage", in{"QueueUrl": s.queue(), "MessageBody": "test"}.with(messageAttributes(in{"ErrorDetails": text("")}))))
		}},
		{id: "test_send_empty_message", play: func(s *scene) {
			g := s.recorded("test_send_empty_message")
			g.is("send_empty_message", s.call("SendMessage", in{"QueueUrl": s.queue(), "MessageBody": ""}))
		}},
		{id: "test_successive_purge_calls_fail", play: func(s *scene) {
			g := s.recorded("test_successive_purge_calls_fail")
			q := s.queue()
			s.ok("PurgeQueue", in{"QueueUrl": q})
			g.is("purge_queue_error", s.call("PurgeQueue", in{"QueueUrl": q}))
		}},
		{id: "test_sse_queue_attributes", play: func(s *scene) {
			g := s.recorded("test_sse_queue_attributes")
			names := []string{"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"}
			kms, managed := s.queue(), s.queue()
			s.set(kms, "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000", "SqsManagedSseEnabled", "false")
			g.is("sse_kms_attributes", s.call("GetQueueAttributes", in{"QueueUrl": kms, "AttributeNames": names}))
			s.set(managed, "SqsManagedSseEnabled", "true")
			g.is("sse_sqs_attributes", s.call("GetQueueAttributes", in{"QueueUrl": managed, "AttributeNames": names}))
		}},
		{id: "test_sse_kms_and_sqs_are_mutually_exclusive", play: func(s *scene) {
			g := s.recorded("test_sse_kms_and_sqs_are_mutually_exclusive")
			q := s.queue()
			s.set(q, "KmsMasterKeyId", "testKeyId", "SqsManagedSseEnabled", "false")
			a := s.call("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("KmsMasterKeyId", "testKeyId", "SqsManagedSseEnabled", "true")})
			g.same("error", fmt.Sprintf("An error occurred (%s) when calling the SetQueueAttributes operation: %s", a.code, a.message))
		}},
		{id: "test_set_unsupported_attribute_standard", play: func(s *scene) {
			g := s.recorded("test_set_unsupported_attribute_standard")
			q := s.queue()
			g.is("invalid-attr-name-1", s.call("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("FifoQueue", "true")}))
			g.is("invalid-attr-name-2", s.call("SetQueueAttributes", in{"QueueUrl": q, "Attributes": pairs("FifoQueue", "false")}))
		}},
		{id: "test_create_standard_queue_with_fifo_attribute_raises_error", play: func(s *scene) {
			g := s.recorded("test_create_standard_queue_with_fifo_attribute_raises_error")
			for step, attribute := range map[string][2]string{
				"invalid-attribute-fifo-queue":                  {"FifoQueue", "false"},
				"invalid-attribute-content-based-deduplication": {"ContentBasedDeduplication", "true"},
				"invalid-attribute-deduplication-scope":         {"DeduplicationScope", "queue"},
				"invalid-attribute-throughput-limit":            {"FifoThroughputLimit", "perQueue"},
			} {
				g.is(step, s.call("CreateQueue", createMembers(s.name(), attribute[0], attribute[1])))
			}
		}},
		{id: "test_non_existent_queue", only: jsonWire, play: nonExistentQueue},
		{id: "test_send_message_via_queue_url_with_json_protocol", only: jsonWire, play: func(s *scene) {
			g := s.recorded("test_send_message_via_queue_url_with_json_protocol")
			q := s.queue()
			r := s.wire.render("ReceiveMessage", in{"QueueUrl": q})
			r.path = path(q)
			g.is("receive-json-on-queue-url", s.do(r))
		}},
		{id: "test_receive_message_message_attribute_names_filters", play: messageAttributeFilters},
		{id: "test_receive_message_attribute_names_filters", play: func(s *scene) {
			systemAttributeFilters(s, s.recorded("test_receive_message_attribute_names_filters"), "AttributeNames")
		}},
		{id: "test_receive_message_message_system_attribute_names_filters", play: func(s *scene) {
			systemAttributeFilters(s, s.recorded("test_receive_message_message_system_attribute_names_filters"), "MessageSystemAttributeNames")
		}},
		{id: "test_message_system_attribute_names_with_attribute_names", play: func(s *scene) {
			g := s.recorded("test_message_system_attribute_names_with_attribute_names")
			q := s.queue("VisibilityTimeout", "0")
			s.send(q, "msg")
			all, one := []string{"All"}, []string{"SenderId"}
			g.is("same_values", s.call("ReceiveMessage", in{"QueueUrl": q, "AttributeNames": all, "MessageSystemAttributeNames": all}))
			g.is("different_values", s.call("ReceiveMessage", in{"QueueUrl": q, "AttributeNames": one, "MessageSystemAttributeNames": all}))
		}},
		{id: "test_send_receive_wait_time_seconds", play: func(s *scene) {
			g := s.recorded("test_send_receive_wait_time_seconds")
			q := s.queue("ReceiveMessageWaitTimeSeconds", "5")
			g.is("recieve_message_error_too_large", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 21})) //nolint:misspell // as recorded
			g.is("recieve_message_error_too_small", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": -1})) //nolint:misspell // as recorded
			s.send(q, "message")
			g.is("empty_short_poll_by_default_resp", s.call("ReceiveMessage", in{"QueueUrl": q}))
			s.send(q, "message")
			g.is("empty_short_poll_explicit_resp", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 0}))
		}},
		{id: "test_receive_empty_queue", play: func(s *scene) {
			g := s.recorded("test_receive_empty_queue")
			q := s.queue()
			g.is("empty_short_poll_resp_no_param", s.call("ReceiveMessage", in{"QueueUrl": q}))
			g.is("empty_short_poll_resp", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 0}))
			g.is("empty_long_poll_resp", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 1}))
		}},
		{id: "test_list_queues_pagination", play: func(s *scene) {
			prefix := s.name()
			g := s.recorded("test_list_queues_pagination",
				"http://sqs.<region>.localhost.localstack.cloud:4566/111111111111/7f7df0f5-test-queue", s.endpoint+"/000000000000/"+prefix)
			for i := range 10 {
				s.create(fmt.Sprintf("%s-%d", prefix, i))
			}
			g.is("list_all", s.call("ListQueues", in{"QueueNamePrefix": prefix}))
			two := s.call("ListQueues", in{"QueueNamePrefix": prefix, "MaxResults": 2})
			g.is("list_two_max", two)
			g.is("list_remaining", s.call("ListQueues", in{"QueueNamePrefix": prefix, "MaxResults": 8, "NextToken": two.out.text("NextToken")}))
		}},
		{id: "test_aws_trace_header_propagation", play: func(s *scene) {
			g := s.recorded("test_aws_trace_header_propagation")
			q := s.queue()
			r := s.wire.render("SendMessage", in{"QueueUrl": q, "MessageBody": "test"}.with(messageAttributes(in{"timestamp": number("1493147359900")})))
			r.header["X-Amzn-Trace-Id"] = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
			s.succeeded("SendMessage", s.do(r))
			m := s.one(q, in{"AttributeNames": []string{"SentTimestamp", "AWSTraceHeader"}}, allUser)
			g.same("xray-msg", map[string]any(m))
		}},
		{id: "test_fair_queue_with_message_group_id", play: func(s *scene) {
			g := s.recorded("test_fair_queue_with_message_group_id")
			q := s.queue()
			g.is("send_message", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "message", "MessageGroupId": "test"}))
			g.is("get-message-with-deduplication-id", s.call("ReceiveMessage", in{"QueueUrl": q, "AttributeNames": []string{"All"}}))
		}},
		{id: "test_send_message_to_standard_queue_with_invalid_message_group_id", only: jsonWire, play: func(s *scene) {
			q := s.queue()
			for variant, group := range map[string]string{"empty": "", "too_long": strings.Repeat("a", 129), "spaces": "group 123"} {
				g := s.recorded("test_send_message_to_standard_queue_with_invalid_message_group_id[" + variant + "]")
				g.is("error-response", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageGroupId": group}))
			}
		}},
		{id: "test_dead_letter_queue_message_attributes", play: deadLetterAttributes},
	})
}

func withAttribute(members in) in { return members.with(messageAttributes(in{"k": text("x")})) }

func nonExistentQueue(s *scene) {
	g := s.recorded("test_non_existent_queue")
	q := s.queue()
	s.ok("DeleteQueue", in{"QueueUrl": q})
	for step, a := range map[string]answer{
		"queue-does-not-exist":       must(jsonWire.do(client, s.endpoint, jsonWire.render("GetQueueUrl", in{"QueueName": queueName(q)}))),
		"queue-does-not-exist-url":   must(jsonWire.do(client, s.endpoint, jsonWire.render("GetQueueAttributes", in{"QueueUrl": q}))),
		"queue-does-not-exist-query": must(queryWire.do(client, s.endpoint, queryWire.render("GetQueueAttributes", in{"QueueUrl": q}))),
	} {
		g.is(step, a)
	}
}

func must(a answer, err error) answer {
	if err != nil {
		panic(err)
	}
	return a
}

func messageAttributeFilters(s *scene) {
	g := s.recorded("test_receive_message_message_attribute_names_filters")
	q := s.queue()
	g.is("send_message_response", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "msg"}.with(messageAttributes(in{
		"Help.Me": text("Me"), "Hello": text("There"), "General": text("Kenobi"),
	}))))
	receive := func(names ...string) answer {
		a := s.call("ReceiveMessage", in{"QueueUrl": q, "VisibilityTimeout": 0, "MessageAttributeNames": names})
		s.succeeded("ReceiveMessage", a)
		return a
	}
	g.is("empty_filter", receive())
	g.is("all_name", receive("All"))
	for step, names := range map[string][]string{
		"all_wildcard_asterisk":     {"*"},
		"all_wildcard":              {".*"},
		"only_non_existing_names":   {"Foo", "Help"},
		"only_existing":             {"Hello", "General"},
		"existing_and_non_existing": {"Foo", "Hello"},
		"prefix_filter":             {"Hel.*"},
	} {
		g.same(step, receive(names...).out.at("Messages", 0))
	}
	g.is("illegal_name_1", receive("AWS."))
	g.is("illegal_name_2", receive("..foo"))
}

func systemAttributeFilters(s *scene, g *golden, member string) {
	q := s.queue("VisibilityTimeout", "0")
	s.send(q, "msg", messageAttributes(in{"Foo": text("Bar")}))
	receive := func(more in, names ...string) answer {
		return s.call("ReceiveMessage", in{"QueueUrl": q, member: names}.with(more))
	}
	g.is("all_attributes", receive(nil, "All"))
	g.is("all_system_and_message_attributes", receive(allUser, "All"))
	g.is("single_attribute", receive(nil, "SenderId"))
	g.is("multiple_attributes", receive(nil, "SenderId", "SequenceNumber"))
}

func deadLetterAttributes(s *scene) {
	g := s.recorded("test_dead_letter_queue_message_attributes")
	dlq := s.queue()
	q := s.queue("RedrivePolicy", redrive(s.arn(dlq), "1"), "VisibilityTimeout", "0")
	g.same("dlq-arn", s.arn(dlq))
	g.same("sourcen-arn", s.arn(q))
	s.send(q, "message-1", messageAttributes(in{"MyAttribute": text("foobar")}), traceHeader)
	s.send(q, "message-2")
	ask := in{"MaxNumberOfMessages": 10, "MessageAttributeNames": []string{"All"}, "AttributeNames": []string{
		"AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "DeadLetterQueueSourceArn", "SentTimestamp",
	}}
	list := func(url string) any { return s.ok("ReceiveMessage", ask.with(in{"QueueUrl": url})).at("Messages") }
	g.same("rec-pre-dlq", list(q))
	s.none(q)
	g.same("dlq-messages", list(dlq))
}
