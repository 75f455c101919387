package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSNSRecordings plays tests that were recorded on AWS again, call by call, and
// compares code, text and shape of each answer.
func TestSNSRecordings(t *testing.T) {
	perform(t, slices.Concat(recordedTopics, recordedPublishes, recordedSubscriptions, recordedDeliveries, recordedFIFO))
}

// single is an act of one call.
func single(name, step, action string, members func(s *stage) in) act {
	return act{id: name, play: func(s *stage) { s.recorded(name).sns(step, action, members(s)) }}
}

var recordedTopics = []act{
	{id: "test_create_topic_with_attributes", play: func(s *stage) {
		g := s.recorded("test_create_topic_with_attributes")
		topic := s.fifoTopic("DisplayName", "TestTopic", "SignatureVersion", "2")
		g.sns("get-topic-attrs", "GetTopicAttributes", in{"TopicArn": topic})
		g.sns("get-attrs-nonexistent-topic", "GetTopicAttributes", in{"TopicArn": s.arnOf("missing")})
		g.sns("get-attrs-malformed-topic", "GetTopicAttributes", in{"TopicArn": "test-topic"})
	}},
	{id: "test_tags", play: func(s *stage) {
		g := s.recorded("test_tags")
		topic := s.topic()
		tag := func(key, value string) in { return in{"Key": key, "Value": value} }
		g.sns("duplicate-key-error", "TagResource", in{"ResourceArn": topic, "Tags": []in{tag("k1", "v1"), tag("k2", "v2"), tag("k2", "v2")}})
		s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("k1", "v1"), tag("k2", "v2")}})
		g.sns("list-created-tags", "ListTagsForResource", in{"ResourceArn": topic})
		s.done("UntagResource", in{"ResourceArn": topic, "TagKeys": []string{"k1"}})
		g.sns("list-after-delete-tags", "ListTagsForResource", in{"ResourceArn": topic})
		s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{tag("k2", "v2b")}})
		g.sns("list-after-update-tags", "ListTagsForResource", in{"ResourceArn": topic})
	}},
	{id: "test_tags_removed_after_deletion", play: func(s *stage) {
		g := s.recorded("test_tags_removed_after_deletion")
		name := s.name()
		topic := s.done("CreateTopic", in{"Name": name, "Tags": []in{{"Key": "k1", "Value": "v1"}, {"Key": "k2", "Value": "v2"}}}).text("TopicArn")
		g.sns("list-created-tags", "ListTagsForResource", in{"ResourceArn": topic})
		s.done("DeleteTopic", in{"TopicArn": topic})
		s.create(name)
		g.sns("list-empty-tags", "ListTagsForResource", in{"ResourceArn": topic})
	}},
	{id: "test_create_topic_test_arn", play: func(s *stage) {
		g := s.recorded("test_create_topic_test_arn")
		topic := g.sns("create-topic", "CreateTopic", in{"Name": s.name()}).text("TopicArn")
		g.sns("get-topic-attrs", "GetTopicAttributes", in{"TopicArn": topic})
		g.sns("delete-topic", "DeleteTopic", in{"TopicArn": topic})
		g.sns("topic-not-exists", "GetTopicAttributes", in{"TopicArn": topic})
	}},
	{id: "test_create_duplicate_topic_with_more_tags", play: func(s *stage) {
		g := s.recorded("test_create_duplicate_topic_with_more_tags")
		name := s.name()
		s.create(name)
		g.sns("exception-duplicate", "CreateTopic", in{"Name": name, "Tags": []in{{"Key": "key1", "Value": "value1"}}})
	}},
	{id: "test_create_duplicate_topic_check_idempotency", play: func(s *stage) {
		g := s.recorded("test_create_duplicate_topic_check_idempotency")
		name := s.name()
		tags := []in{{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}}
		g.sns("response-created", "CreateTopic", in{"Name": name, "Tags": tags})
		for i, given := range [][]in{tags, tags[:1], {}} {
			g.sns(fmt.Sprint("response-same-arn-", i), "CreateTopic", in{"Name": name, "Tags": given})
		}
	}},
	{id: "test_create_topic_after_delete_with_new_tags", play: func(s *stage) {
		g := s.recorded("test_create_topic_after_delete_with_new_tags")
		name := s.name()
		topic := g.sns("topic-0", "CreateTopic", in{"Name": name, "Tags": []in{{"Key": "Name", "Value": "pqr"}}}).text("TopicArn")
		s.done("DeleteTopic", in{"TopicArn": topic})
		g.sns("topic-1", "CreateTopic", in{"Name": name, "Tags": []in{{"Key": "Name", "Value": "abc"}}})
	}},
	{id: "test_topic_delivery_policy_crud", play: func(s *stage) {
		g := s.recorded("test_topic_delivery_policy_crud")
		topic := s.fifoTopic("DisplayName", "TestTopic", "SignatureVersion", "2",
			"DeliveryPolicy", `{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}`)
		set := func(step, value string) {
			g.sns(step, "SetTopicAttributes", in{"TopicArn": topic, "AttributeName": "DeliveryPolicy", "AttributeValue": value})
		}
		get := func(step string) { g.sns(step, "GetTopicAttributes", in{"TopicArn": topic}) }
		get("get-topic-attrs")
		set("set-topic-attrs", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":1}}}`)
		get("get-topic-attrs-after-update")
		set("set-topic-attrs-none", `{"http":{"defaultHealthyRetryPolicy":null}}`)
		get("get-topic-attrs-after-none")
		set("set-topic-attrs-full-none", "")
		get("get-topic-attrs-after-delete")
	}},
	{id: "test_delete_topic_idempotency", play: func(s *stage) {
		g := s.recorded("test_delete_topic_idempotency")
		topic := s.topic()
		g.sns("delete-topic", "DeleteTopic", in{"TopicArn": topic})
		g.sns("delete-topic-again", "DeleteTopic", in{"TopicArn": topic})
	}},
	single("test_delete_non_existent_topic", "delete-non-existent-topic", "DeleteTopic", func(s *stage) in { return in{"TopicArn": s.arnOf("missing")} }),
	{id: "test_create_topic_should_be_idempotent", play: func(s *stage) {
		g := s.recorded("test_create_topic_should_be_idempotent")
		name := s.name()
		topic := s.create(name)
		s.setTopic(topic, "DisplayName", "AlreadySet")
		g.sns("topic-attrs-idempotent-1", "GetTopicAttributes", in{"TopicArn": topic})
		s.create(name)
		g.sns("topic-attrs-idempotent-2", "GetTopicAttributes", in{"TopicArn": topic})
	}},
	{id: "test_create_topic_name_constraints", play: func(s *stage) {
		g := s.recorded("test_create_topic_name_constraints")
		g.sns("valid-name-max-length", "CreateTopic", in{"Name": s.name() + strings.Repeat("a", 256-len(s.name()))})
		g.sns("name-too-short", "CreateTopic", in{"Name": ""})
		g.sns("name-too-long", "CreateTopic", in{"Name": strings.Repeat("a", 257)})
		g.sns("name-contains-fifo", "CreateTopic", in{"Name": "test.fifo"})
		g.sns("fifo-name-not-contains-fifo", "CreateTopic", topicMembers("test", "FifoTopic", "true"))
		for i, c := range []string{":", ";", "!", "@", "|", "^", "%", " "} {
			g.sns(fmt.Sprint("name-invalid-char-", i), "CreateTopic", in{"Name": "bad" + c + "name"})
		}
	}},
	{id: "test_topic_get_attributes_with_fifo_false", play: func(s *stage) {
		g := s.recorded("test_topic_get_attributes_with_fifo_false")
		topic := s.topic("FifoTopic", "false")
		g.sns("get-attrs-standard-topic", "GetTopicAttributes", in{"TopicArn": topic})
		g.sns("set-fifo-false-after-creation", "SetTopicAttributes", in{"TopicArn": topic, "AttributeName": "FifoTopic", "AttributeValue": "false"})
	}},
	{id: "test_create_topic_different_attrs", play: func(s *stage) {
		g := s.recorded("test_create_topic_different_attrs")
		name := s.name()
		topic := g.sns("create-topic", "CreateTopic", topicMembers(name, "DisplayName", "Value1")).text("TopicArn")
		g.sns("create-topic-no-attrs", "CreateTopic", in{"Name": name})
		g.sns("topic-attrs", "GetTopicAttributes", in{"TopicArn": topic})
		g.sns("create-topic-diff-attrs", "CreateTopic", topicMembers(name, "DisplayName", "Value2"))
		g.sns("create-topic-new-attrs-fifo", "CreateTopic", topicMembers(name, "FifoTopic", "true"))
		g.sns("create-topic-new-attrs", "CreateTopic", topicMembers(name, "KmsMasterKeyId", "testxyz"))
		g.sns("create-topic-new-and-same-attrs", "CreateTopic", topicMembers(name, "DisplayName", "Value1", "KmsMasterKeyId", "testxyz"))
	}},
	{id: "test_topic_add_permission", play: func(s *stage) { recordedPermission(s, "test_topic_add_permission", "Publish") }},
	{id: "test_topic_add_multiple_permissions", play: func(s *stage) { recordedPermission(s, "test_topic_add_multiple_permissions", "Publish", "Subscribe") }},
	{id: "test_topic_remove_permission", play: func(s *stage) {
		g := s.recorded("test_topic_remove_permission")
		topic := s.topic()
		s.done("AddPermission", in{"TopicArn": topic, "Label": "test", "AWSAccountId": []string{"000000000000"}, "ActionName": []string{"Publish"}})
		s.done("RemovePermission", in{"TopicArn": topic, "Label": "test"})
		g.same("topic-policy", s.topicAttributes(topic)["Policy"])
	}},
	{id: "test_add_permission_errors", play: func(s *stage) {
		g := s.recorded("test_add_permission_errors")
		add := in{"TopicArn": s.topic(), "Label": "test", "AWSAccountId": []string{"000000000000"}, "ActionName": []string{"Publish"}}
		s.done("AddPermission", add)
		g.sns("duplicate-label", "AddPermission", add)
		g.sns("topic-not-found", "AddPermission", add.with(in{"TopicArn": s.arnOf("missing"), "Label": "test-2"}))
		g.sns("invalid-action", "AddPermission", add.with(in{"Label": "test-2", "ActionName": []string{"InvalidAction"}}))
	}},
	single("test_remove_permission_errors", "topic-not-found", "RemovePermission", func(s *stage) in {
		return in{"TopicArn": s.arnOf("missing"), "Label": "test"}
	}),
	{id: "test_data_protection_policy_crud", play: func(s *stage) {
		g := s.recorded("test_data_protection_policy_crud")
		topic := s.topic()
		g.sns("get-topic-attributes-before-policy", "GetTopicAttributes", in{"TopicArn": topic})
		g.sns("put-data-protection-policy", "PutDataProtectionPolicy", in{"ResourceArn": topic, "DataProtectionPolicy": `{"Name":"data_protection_policy",` +
			`"Description":"Test Policy","Version":"2021-06-01","Statement":[{"Sid":"test-statement","DataDirection":"Inbound","Principal":["*"],` +
			`"DataIdentifier":["arn:aws:dataprotection:eu-west-1::data-identifier/EmailAddress"],"Operation":{"Deny":{}}}]}`})
		g.sns("get-data-protection-policy", "GetDataProtectionPolicy", in{"ResourceArn": topic})
		g.sns("get-topic-attributes-after-policy", "GetTopicAttributes", in{"TopicArn": topic})
	}},
	{id: "test_set_get_sms_attributes", play: func(s *stage) {
		g := s.recorded("test_set_get_sms_attributes")
		s.done("SetSMSAttributes", in{"attributes": pairs("DefaultSMSType", "Promotional", "DefaultSenderID", "LSTest", "DeliveryStatusSuccessSamplingRate", "100")})
		g.sns("get-sms-all-attributes", "GetSMSAttributes", nil)
		g.sns("get-sms-some-attributes", "GetSMSAttributes", in{"attributes": []string{"DefaultSMSType", "DefaultSenderID"}})
	}},
	single("test_set_invalid_sms_attributes[InvalidAttributeName]", "invalid-attribute", "SetSMSAttributes", func(*stage) in {
		return in{"attributes": pairs("InvalidAttribute", "a")}
	}),
	single("test_set_invalid_sms_attributes[InvalidSMSType]", "invalid-attribute", "SetSMSAttributes", func(*stage) in {
		return in{"attributes": pairs("DefaultSMSType", "something")}
	}),
	single("test_set_invalid_sms_attributes[NoLetterID]", "invalid-attribute", "SetSMSAttributes", func(*stage) in {
		return in{"attributes": pairs("DefaultSendID", "123")}
	}),
	single("test_list_opted_out", "list-opted-out", "ListPhoneNumbersOptedOut", func(*stage) in { return nil }),
	single("test_opt_in_phone_number", "opt-in-phone-number", "OptInPhoneNumber", func(*stage) in { return in{"phoneNumber": "+15551234567"} }),
	single("test_opt_in_non_existing_phone_number", "opt-in-non-existing-number", "OptInPhoneNumber", func(*stage) in {
		return in{"phoneNumber": "+44123456789"}
	}),
	single("test_opt_in_invalid_number", "opt-in-non-existing-number", "OptInPhoneNumber", func(*stage) in { return in{"phoneNumber": "0030123456789a"} }),
}

func recordedPermission(s *stage, name string, actions ...string) {
	g := s.recorded(name)
	topic := s.topic()
	g.sns("add-permission-response", "AddPermission", in{
		"TopicArn": topic, "Label": "test", "AWSAccountId": []string{"000000000000"}, "ActionName": actions,
	})
	g.same("topic-policy-after-permission", s.topicAttributes(topic)["Policy"])
}
