package conformance

import (
	"fmt"
	"strings"
)

var recordedSubscriptions = []act{
	single("test_subscribe_with_invalid_protocol", "exception", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "test-protocol", "Endpoint": "x"}
	}),
	{id: "test_unsubscribe_from_non_existing_subscription", play: func(s *stage) {
		g := s.recorded("test_unsubscribe_from_non_existing_subscription")
		g.sns("empty-unsubscribe", "Unsubscribe", in{"SubscriptionArn": s.topic() + ":0f7d5971-aa8b-4bd5-b585-0826e9f93a66"})
	}},
	{id: "test_create_subscriptions_with_attributes", play: func(s *stage) {
		g := s.recorded("test_create_subscriptions_with_attributes")
		topic, queueURL := s.topic(), s.queue()
		filter := []string{"FilterPolicyScope", "MessageBody", "FilterPolicy", ""}
		g.sns("subscribe-wrong-attr", "Subscribe", subscribeMembers(topic, s.arn(queueURL), "RawMessageDelivery", "wrongvalue", filter[0], filter[1]))
		sub := g.sns("subscribe", "Subscribe", subscribeMembers(topic, s.arn(queueURL), append(filter, "RawMessageDelivery", "true")...).
			with(in{"ReturnSubscriptionArn": true})).text("SubscriptionArn")
		g.sns("get-attrs", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		g.sns("get-attrs-nonexistent-sub", "GetSubscriptionAttributes", in{"SubscriptionArn": topic + ":0f7d5971-aa8b-4bd5-b585-0826e9f93a66"})
	}},
	{id: "test_not_found_error_on_set_subscription_attributes", play: func(s *stage) {
		g := s.recorded("test_not_found_error_on_set_subscription_attributes")
		topic, queueURL := s.topic(), s.queue()
		sub := g.sns("sub", "Subscribe", subscribeMembers(topic, s.arn(queueURL))).text("SubscriptionArn")
		g.sns("sub-attrs", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		g.sns("subscriptions-for-topic-before-unsub", "ListSubscriptionsByTopic", in{"TopicArn": topic})
		s.done("Unsubscribe", in{"SubscriptionArn": sub})
		g.sns("sub-not-found", "SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "RawMessageDelivery", "AttributeValue": "true"})
		g.sns("subscriptions-for-topic-after-unsub", "ListSubscriptionsByTopic", in{"TopicArn": topic})
	}},
	{id: "test_validate_set_sub_attributes", play: func(s *stage) {
		g := s.recorded("test_validate_set_sub_attributes")
		_, _, sub := s.subscribed()
		for step, a := range map[string][2]string{
			"fake-attribute":              {"FakeAttribute", "test-value"},
			"raw-message-wrong-value":     {"RawMessageDelivery", "test-ValUe"},
			"raw-message-empty-value":     {"RawMessageDelivery", ""},
			"fake-arn-redrive-policy":     {"RedrivePolicy", `{"deadLetterTargetArn":"fake-arn"}`},
			"invalid-json-redrive-policy": {"RedrivePolicy", "{invalidjson}"},
			"invalid-json-filter-policy":  {"FilterPolicy", "{invalidjson}"},
		} {
			g.sns(step, "SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": a[0], "AttributeValue": a[1]})
		}
	}},
	{id: "test_sns_confirm_subscription_wrong_token", play: func(s *stage) {
		g := s.recorded("test_sns_confirm_subscription_wrong_token")
		topic := s.topic()
		unknown := "51b2ff3edb475b7d91550e0ab6edf0c1" + strings.Repeat("de2a34e6ebaf6c2262a001bcb7e051c4", 8)
		g.sns("topic-not-exists", "ConfirmSubscription", in{"TopicArn": topic + "test", "Token": unknown})
		g.sns("invalid-token", "ConfirmSubscription", in{"TopicArn": topic, "Token": "randomtoken"})
		g.sns("token-not-exists", "ConfirmSubscription", in{"TopicArn": topic, "Token": unknown})
	}},
	{id: "test_subscribe_idempotency", play: func(s *stage) {
		g := s.recorded("test_subscribe_idempotency")
		topic, arn := s.topic(), s.arn(s.queue())
		sub := g.sns("subscribe", "Subscribe", subscribeMembers(topic, arn, "RawMessageDelivery", "true")).text("SubscriptionArn")
		g.sns("get-sub-attrs", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		g.sns("subscribe-exact-same-raw", "Subscribe", subscribeMembers(topic, arn, "RawMessageDelivery", "true"))
		g.sns("subscribe-idempotent", "Subscribe", subscribeMembers(topic, arn, "RawMessageDelivery", "true", "FilterPolicyScope", "MessageAttributes"))
		g.sns("subscribe-idempotent-no-attributes", "Subscribe", subscribeMembers(topic, arn))
		g.sns("subscribe-idempotent-empty-attributes", "Subscribe", subscribeMembers(topic, arn).with(in{"Attributes": pairs()}))
		g.sns("subscribe-missing-attributes", "Subscribe", subscribeMembers(topic, arn, "FilterPolicyScope", "MessageAttributes"))
		g.sns("subscribe-diff-attributes", "Subscribe", subscribeMembers(topic, arn, "RawMessageDelivery", "false", "FilterPolicyScope", "MessageBody"))
	}},
	{id: "test_unsubscribe_wrong_arn_format", play: func(s *stage) {
		g := s.recorded("test_unsubscribe_wrong_arn_format")
		g.sns("invalid-unsubscribe-arn-1", "Unsubscribe", in{"SubscriptionArn": "randomstring"})
		g.sns("invalid-unsubscribe-arn-2", "Unsubscribe", in{"SubscriptionArn": "arn:aws:sns:eu-west-1:random"})
		g.sns("invalid-unsubscribe-arn-3", "Unsubscribe", in{"SubscriptionArn": "arn:aws:sns:eu-west-1:000000000000:random"})
		g.sns("invalid-unsubscribe-arn-4", "Unsubscribe", nil)
	}},
	{id: "test_unsubscribe_idempotency", play: func(s *stage) {
		g := s.recorded("test_unsubscribe_idempotency")
		_, _, sub := s.subscribed()
		g.sns("unsubscribe-1", "Unsubscribe", in{"SubscriptionArn": sub})
		g.sns("unsubscribe-2", "Unsubscribe", in{"SubscriptionArn": sub})
	}},
	{id: "test_subscribe_with_invalid_topic", play: func(s *stage) {
		g := s.recorded("test_subscribe_with_invalid_topic")
		subscribe := func(topic string) in { return in{"TopicArn": topic, "Protocol": "email", "Endpoint": "me@example.com"} }
		g.sns("invalid-subscribe-arn-1", "Subscribe", subscribe("randomstring"))
		g.sns("invalid-subscribe-arn-2", "Subscribe", subscribe("arn:aws:sns:eu-west-1:random"))
		g.sns("non-existent-topic", "Subscribe", subscribe(s.arnOf("missing")))
	}},
	{id: "test_list_subscriptions_by_topic_pagination", play: func(s *stage) {
		g := s.recorded("test_list_subscriptions_by_topic_pagination")
		topic := s.topic()
		for i := range 101 {
			s.done("Subscribe", in{"TopicArn": topic, "Protocol": "sms", "Endpoint": fmt.Sprintf("+1555%07d", i)})
		}
		first := s.done("ListSubscriptionsByTopic", in{"TopicArn": topic})
		if n := len(first.list("Subscriptions")); n != 100 {
			s.Errorf("got %d, want 100", n)
		}
		g.sns("list-sub-per-topic-page-2", "ListSubscriptionsByTopic", in{"TopicArn": topic, "NextToken": first.text("NextToken")})
	}},
	{id: "test_subscribe_unknown_sqs_queue", play: func(s *stage) {
		g := s.recorded("test_subscribe_unknown_sqs_queue")
		topic := s.topic()
		g.sns("subscribe-unknown-sqs", "Subscribe", subscribeMembers(topic, "arn:aws:sqs:eu-west-1:000000000000:"+s.name()))
		g.sns("subscribe-unknown-sqs-invalid_arn", "Subscribe", subscribeMembers(topic, "sqs:eu-west-1:000000000000:q"))
	}},
	{id: "test_subscribe_invalid_sms", play: func(s *stage) {
		g := s.recorded("test_subscribe_invalid_sms")
		topic := s.topic()
		for _, phone := range []string{"NAA+15551234567", "+15--551234567", "/+15551234567", "+15551234567."} {
			g.sns("subscribe-bad-sms-"+phone, "Subscribe", in{"TopicArn": topic, "Protocol": "sms", "Endpoint": phone})
		}
	}},
	{id: "test_double_subscription", play: func(s *stage) {
		g := s.recorded("test_double_subscription")
		members := subscribeMembers(s.topic(), s.arn(s.queue()))
		g.sns("double-subscription-first", "Subscribe", members)
		g.sns("double-subscription-second", "Subscribe", members)
	}},
	single("test_subscribe_bad_sms", "subscribe-bad-sms", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "sms", "Endpoint": "invalid-number"}
	}),
	single("test_subscribe_sms", "subscribe-sms-1", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "sms", "Endpoint": "+15551234567"}
	}),
	single("test_subscribe_sms_obscure_phone_number", "subscribe-sms-2", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "sms", "Endpoint": "+12/34-567.890"}
	}),
	single("test_subscribe_unknown_topic", "subscribe-unknown-topic", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.arnOf("missing"), "Protocol": "http", "Endpoint": "http://example.com"}
	}),
	single("test_subscribe_sqs_queue_url", "subscribe-sqs-via-url-error", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "sqs", "Endpoint": s.queue()}
	}),
	single("test_subscribe_to_sqs_with_queue_url", "sub-queue-url", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "sqs", "Endpoint": s.queue()}
	}),
	single("test_creating_subscription", "create-subscription", "Subscribe", func(s *stage) in {
		return in{"TopicArn": s.topic(), "Protocol": "http", "Endpoint": "http://example.com/"}
	}),
	{id: "test_http_subscription_response", play: func(s *stage) {
		g := s.recorded("test_http_subscription_response")
		topic := s.topic()
		g.same("topic-arn", map[string]any{"TopicArn": topic})
		members := in{"TopicArn": topic, "Protocol": "http", "Endpoint": "http://example.com/"}
		g.sns("subscription", "Subscribe", members)
		g.sns("subscription-with-arn", "Subscribe", members.with(in{"ReturnSubscriptionArn": true}))
	}},
	single("test_unsubscribe_from_deleted_topic", "unsubscribe-deleted-topic", "Unsubscribe", func(*stage) in {
		return in{"SubscriptionArn": "pending confirmation"}
	}),
	single("test_subscribe_invalid_filter_policy", "subscribe-invalid-filter-policy", "Subscribe", func(s *stage) in {
		return subscribeMembers(s.topic(), s.arn(s.queue()), "FilterPolicy", "invalid-json")
	}),
	single("test_get_subscription_attributes_error_not_exists", "get-sub-attrs-nonexistent", "GetSubscriptionAttributes", func(s *stage) in {
		return in{"SubscriptionArn": s.topic() + ":0f7d5971-aa8b-4bd5-b585-0826e9f93a66"}
	}),
}

var recordedDeliveries = []act{
	{id: "test_subscribe_sqs_queue", play: func(s *stage) {
		g := s.recorded("test_subscribe_sqs_queue")
		topic, queueURL, sub := s.subscribed("FilterPolicy", `{"attr1":[{"numeric":[">",0,"<=",100]}]}`)
		g.sns("subscription-attributes", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		s.publish(topic, "This is a test message", messageAttributes(in{"attr1": number("99.12")}))
		g.received("messages", queueURL, plain)
	}},
	{id: "test_publish_unicode_chars", play: func(s *stage) {
		g := s.recorded("test_publish_unicode_chars")
		topic, queueURL, _ := s.subscribed()
		s.publish(topic, `ö§a1"_!?,. £$-`)
		g.received("received-message", queueURL, plain)
	}},
	{id: "test_attribute_raw_subscribe", play: func(s *stage) {
		g := s.recorded("test_attribute_raw_subscribe")
		topic, queueURL, sub := s.subscribed()
		s.setSubscription(sub, "RawMessageDelivery", "true")
		g.sns("subscription-attributes", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		s.publish(topic, "This is a test message", messageAttributes(in{"store": blob([]byte{2, 3, 4})}))
		g.received("messages-response", queueURL, in{"MessageAttributeNames": []string{"All"}}.with(plain))
	}},
	{id: "test_publish_sqs_from_sns", play: func(s *stage) {
		g := s.recorded("test_publish_sqs_from_sns")
		topic, queueURL, sub := s.subscribed("RawMessageDelivery", "true")
		with := in{"MessageAttributeNames": []string{"All"}}.with(plain)
		g.sns("sub-attrs-raw-true", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		s.publish(topic, "Test msg", messageAttributes(in{"attr1": number("99.12")}))
		g.received("message-raw-true", queueURL, with)
		s.setSubscription(sub, "RawMessageDelivery", "false")
		g.sns("sub-attrs-raw-false", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		s.publish(topic, "Test msg", messageAttributes(in{"attr1": number("100.12")}))
		g.received("message-raw-false", queueURL, with)
	}},
	{id: "test_publish_batch_messages_from_sns_to_sqs", play: func(s *stage) {
		g := s.recorded("test_publish_batch_messages_from_sns_to_sqs")
		topic, queueURL, sub := s.subscribed("RawMessageDelivery", "true")
		g.sns("sub-attrs-raw-true", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		g.sns("publish-batch", "PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{
			in{"Id": "1", "Message": "Test Message with two attributes", "Subject": "Subject"}.with(messageAttributes(twoAttributes)),
			in{"Id": "2", "Message": "Test Message with one attribute", "Subject": "Subject"}.with(messageAttributes(in{"attr1": number("19.12")})),
			{"Id": "3", "Message": "Test Message without attribute", "Subject": "Subject"},
			{"Id": "4", "Message": "Test Message without subject"},
			{"Id": "5", "Message": `{"default":"test default","sqs":"test sqs"}`, "MessageStructure": "json"},
		}})
		var got []any
		byBody := map[string]any{}
		for _, m := range g.receivedAll(queueURL, 5, all) {
			byBody[m.(map[string]any)["Body"].(string)] = m
		}
		for _, body := range []string{ // the order in which the recorded test sorted them
			"Test Message with one attribute", "Test Message with two attributes", "Test Message without attribute", "Test Message without subject", "test sqs",
		} {
			got = append(got, byBody[body])
		}
		g.same("messages", map[string]any{"Messages": got})
	}},
	{id: "test_message_structure_json_to_sqs", play: func(s *stage) {
		g := s.recorded("test_message_structure_json_to_sqs")
		topic, queueURL, _ := s.subscribed()
		s.done("Publish", in{"TopicArn": topic, "MessageStructure": "json", "Message": `{"default":"default field","sqs":"{\"field\": \"value\"}"}`})
		g.received("get-msg-json-sqs", queueURL, plain)
		s.done("Publish", in{"TopicArn": topic, "MessageStructure": "json", "Message": `{"default":"default field"}`})
		g.received("get-msg-json-default", queueURL, plain)
	}},
	{id: "test_message_attributes_not_missing", play: func(s *stage) {
		g := s.recorded("test_message_attributes_not_missing")
		topic, queueURL, sub := s.subscribed("RawMessageDelivery", "true")
		message := in{"TopicArn": topic, "Message": "text"}.with(messageAttributes(in{
			"an-attribute-key": text("an-attribute-value"), "binary-attribute": blob([]byte{2, 3, 4}),
		}))
		g.sns("publish-msg-raw", "Publish", message)
		g.received("raw-delivery-msg-attrs", queueURL, all)
		s.setSubscription(sub, "RawMessageDelivery", "false")
		g.sns("publish-msg-json", "Publish", message)
		g.received("json-delivery-msg-attrs", queueURL, all)
	}},
	{id: "test_publish_sqs_from_sns_with_xray_propagation", play: func(s *stage) {
		g := s.recorded("test_publish_sqs_from_sns_with_xray_propagation")
		topic, queueURL, _ := s.subscribed()
		r := snsRequest("Publish", in{"TopicArn": topic, "Message": "X-Ray propagation test msg"})
		r.header["X-Amzn-Trace-Id"] = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
		s.succeeded("Publish", s.request(r))
		got := g.receivedAll(queueURL, 1, in{"AttributeNames": []string{"SentTimestamp", "AWSTraceHeader"}}.with(plain))
		g.same("xray-msg", got[0])
	}},
	{id: "test_publish_message_group_id", play: func(s *stage) {
		g := s.recorded("test_publish_message_group_id")
		topic, queueURL, _ := s.subscribed()
		s.publish(topic, "test signature value with attributes", in{"MessageGroupId": "my-group-id-1"},
			messageAttributes(in{"attr1": number("1")}))
		g.received("messages", queueURL, all)
	}},
	{id: "test_redrive_policy_sqs_queue_subscription", play: func(s *stage) {
		for _, raw := range []string{"True", "False"} {
			g := s.recorded("test_redrive_policy_sqs_queue_subscription[" + raw + "]")
			topic, queueURL, dead := s.topic(), s.queue(), s.queue()
			s.subscribe(topic, queueURL, "RawMessageDelivery", raw, "RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`)
			s.ok("DeleteQueue", in{"QueueUrl": queueURL})
			s.publish(topic, "test_dlq_after_sqs_endpoint_deleted", messageAttributes(in{"attr1": number("111"), "attr2": blob([]byte{2, 3, 4})}))
			g.received("messages", dead, all)
		}
	}},
	{id: "test_subscription_after_failure_to_deliver", play: func(s *stage) {
		g := s.recorded("test_subscription_after_failure_to_deliver")
		topic, queueURL, sub := s.subscribed()
		dead := s.queue()
		g.sns("subscriptions-attrs", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		s.publish(topic, "test_dlq_before_sqs_endpoint_deleted")
		g.received("messages-before-delete", queueURL, plain)
		s.ok("DeleteQueue", in{"QueueUrl": queueURL})
		s.publish(topic, "test_dlq_after_sqs_endpoint_deleted")
		g.sns("subscriptions", "ListSubscriptionsByTopic", in{"TopicArn": topic})
		s.setSubscription(sub, "RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`)
		g.sns("subscriptions-attrs-with-redrive", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		for i := range 2 {
			s.publish(topic, fmt.Sprint("test_dlq_after_sqs_endpoint_deleted_", i))
			g.received(fmt.Sprintf("message-%d-after-delete", i), dead, plain)
		}
	}},
}

var twoAttributes = in{"attr1": number("99.12"), "attr2": number("109.12")}
