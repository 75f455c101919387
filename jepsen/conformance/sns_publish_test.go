package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// C46–C65: publishing.
func TestPublishing(t *testing.T) {
	const maxSize = 262_144
	perform(t, []act{
		{id: "C46", title: "as long as can be", play: func(s *stage) {
			topic := s.topic()
			s.publish(topic, strings.Repeat("x", maxSize))
			s.publish(topic, strings.Repeat("é", maxSize/2), in{"Subject": "does not count"})
			s.invalid("Publish", in{"TopicArn": topic, "Message": strings.Repeat("x", maxSize+1)}, "Message too long")
			s.invalid("Publish", in{"TopicArn": topic, "Message": strings.Repeat("x", maxSize)}.with(messageAttributes(in{"a": text("b")})), "Message too long")
			s.publish(topic, strings.Repeat("x", maxSize-8), messageAttributes(in{"a": text("b")}))
		}},
		{id: "C47", title: "subjects", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			for _, subject := range []string{"", strings.Repeat("x", 101), "a\nb", "a\tb", "\x7f"} {
				s.invalid("Publish", in{"TopicArn": topic, "Message": "m", "Subject": subject}, "Subject")
			}
			s.publish(topic, "m", in{"Subject": strings.Repeat("é", 100)})
			if got := s.envelope(queueURL).text("Subject"); got != strings.Repeat("é", 100) {
				s.Errorf("got %q", got)
			}
			s.publish(topic, "m")
			if e := s.envelope(queueURL); e["Subject"] != nil {
				s.Errorf("got subject %v, want none", e["Subject"])
			}
		}},
		{id: "C48", title: "a bad subject in a batch", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			entries := publishEntries(3)
			entries[1]["Subject"] = "a\nb"
			out := s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": entries})
			if got := s.successes(out); got != "1 3" {
				s.Errorf("got %s, want success of 1 and 3", got)
			}
			failed := out.list("Failed")
			if len(failed) != 1 || failed[0].text("Id") != "2" || failed[0].text("Code") != "InvalidParameter" ||
				failed[0].text("Message") != "Invalid parameter: Subject" || failed[0]["SenderFault"] != true {
				s.Errorf("got %v", failed)
			}
			s.gets(queueURL, "message 1", "message 3")
		}},
		{id: "C48b", title: "other bad entries, and none that is good", play: func(s *stage) {
			topic := s.topic()
			out := s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{
				{"Id": "1", "Message": ""}, {"Id": "2", "Message": "x", "MessageStructure": "json"},
			}})
			want := []string{"Invalid parameter: Empty message", "Invalid parameter: Message Structure - JSON message body failed to parse"}
			for i, f := range out.list("Failed") {
				if f.text("Message") != want[i] {
					s.Errorf("got %v, want %s", f, want[i])
				}
			}
			if len(out.list("Failed")) != 2 || len(out.list("Successful")) != 0 {
				s.Errorf("got %v", out)
			}
			s.bad("PublishBatch", in{"TopicArn": s.arnOf(s.name()), "PublishBatchRequestEntries": []in{{"Id": "1", "Message": ""}}}, "NotFound", "Topic does not exist")
		}},
		{id: "C48c", title: "no message", play: func(s *stage) {
			const null = "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null"
			topic := s.topic()
			s.bad("Publish", in{"TopicArn": topic}, "ValidationError", fmt.Sprintf(null, "message"))
			s.bad("Publish", in{"PhoneNumber": "+15551234567"}, "ValidationError", fmt.Sprintf(null, "message"))
			s.bad("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{{"Id": "1", "Message": "x"}, {"Id": "2"}}},
				"ValidationError", fmt.Sprintf(null, "publishBatchRequestEntries.2.member.message"))
		}},
		{id: "C49", title: "a missing id in a batch to a FIFO topic", play: func(s *stage) {
			topic := s.fifoTopic()
			entries := groupEntries(3)
			delete(entries[1], "MessageDeduplicationId")
			batch := in{"TopicArn": topic, "PublishBatchRequestEntries": entries}
			s.invalid("PublishBatch", batch,
				"The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
			delete(entries[1], "MessageGroupId")
			s.invalid("PublishBatch", batch, "The MessageGroupId parameter is required for FIFO topics")
		}},
		{id: "C49b", title: "a missing id in an entry that fails alone", play: func(s *stage) {
			topic := s.fifoTopic()
			entries := groupEntries(2)
			entries[1]["Subject"] = ""
			delete(entries[1], "MessageDeduplicationId")
			batch := in{"TopicArn": topic, "PublishBatchRequestEntries": entries}
			s.invalid("PublishBatch", batch,
				"The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
			s.done("SetTopicAttributes", in{"TopicArn": topic, "AttributeName": "ContentBasedDeduplication", "AttributeValue": "true"})
			if out := s.done("PublishBatch", batch); len(out.list("Successful")) != 1 || len(out.list("Failed")) != 1 {
				s.Errorf("with content-based deduplication: got %v", out)
			}
			delete(entries[1], "MessageGroupId")
			s.invalid("PublishBatch", batch, "The MessageGroupId parameter is required for FIFO topics")
		}},
		{id: "C50", title: "a bad attribute in a batch", play: func(s *stage) {
			entries := publishEntries(2)
			entries[1]["MessageAttributes"] = in{"a": in{"DataType": "String"}}
			s.bad("PublishBatch", in{"TopicArn": s.topic(), "PublishBatchRequestEntries": entries}, "ParameterValueInvalid",
				"The message attribute 'a' must contain non-empty message attribute value for message attribute type 'String'.")
			entries[1]["MessageAttributes"] = in{"a": in{"StringValue": "x"}}
			s.bad("PublishBatch", in{"TopicArn": s.topic(), "PublishBatchRequestEntries": entries}, "ValidationError",
				"1 validation error detected: Value null at 'publishBatchRequestEntries.2.member.messageAttributes.a.member.dataType' "+
					"failed to satisfy constraint: Member must not be null")
		}},
		{id: "C51", title: "too many entries, for no topic", play: func(s *stage) {
			missing := s.arnOf(s.name())
			s.bad("PublishBatch", in{"TopicArn": missing, "PublishBatchRequestEntries": publishEntries(11)}, "TooManyEntriesInBatchRequest",
				"The batch request contains more entries than permissible.")
			s.bad("PublishBatch", in{"TopicArn": missing, "PublishBatchRequestEntries": []in{}}, "EmptyBatchRequest",
				"The batch request doesn't contain any entries.")
			same := publishEntries(2)
			same[1]["Id"] = "1"
			s.bad("PublishBatch", in{"TopicArn": missing, "PublishBatchRequestEntries": same}, "BatchEntryIdsNotDistinct",
				"Two or more batch entries in the request have the same Id.")
			s.bad("PublishBatch", in{"TopicArn": missing, "PublishBatchRequestEntries": publishEntries(2)}, "NotFound", "Topic does not exist")
		}},
		{id: "C52-C54", title: "messages by protocol", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			structured := func(message string) in {
				return in{"TopicArn": topic, "Message": message, "MessageStructure": "json"}
			}
			s.invalid("Publish", structured(`{"default":1}`), "Message Structure - No default entry in JSON message body")
			s.invalid("Publish", structured(`{"sqs":"x"}`), "Message Structure - No default entry in JSON message body")
			for _, message := range []string{"x", "[]", `"x"`, `{"default":"x"`, `{"default":"x"} y`} {
				s.invalid("Publish", structured(message), "Message Structure - JSON message body failed to parse")
			}
			for message, want := range map[string]string{
				`{"default":"d","sqs":5}`:                             "d",
				`{"default":"d","default":"e"}`:                       "e",
				`{"default":"d","sqs":"s"}`:                           "s",
				`{"default":"d","sqs":"{\"field\":\"é\"}"}`:           `{"field":"é"}`,
				`{"default":"d","http":"h","sqs ":"x","unknown":"y"}`: "d",
			} {
				s.done("Publish", structured(message))
				if got := s.envelope(queueURL).text("Message"); got != want {
					s.Errorf("%s: got %q, want %q", message, got, want)
				}
			}
			s.bad("Publish", in{"TopicArn": topic, "Message": "x", "MessageStructure": "xml"}, "InvalidParameter", "Invalid parameter: …")
		}},
		{id: "C55", title: "a topic as a target", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			s.done("Publish", in{"TargetArn": topic, "Message": "x"})
			s.gets(queueURL, "x")
			s.invalid("Publish", in{"Message": "x"}, "TopicArn or TargetArn Reason: no value for required parameter")
			s.bad("Publish", in{"TargetArn": topic, "TopicArn": topic, "Message": "x"}, "InvalidParameter", "Invalid parameter: …")
			s.invalid("Publish", in{"TargetArn": "arn:aws:sns:eu-west-1:000000000000:endpoint/APNS/x/y", "Message": "x"},
				"TargetArn Reason: No endpoint found for the target arn specified")
			s.invalid("Publish", in{"PhoneNumber": "+1a234", "Message": "x"}, "PhoneNumber Reason: +1a234 is not valid to publish to")
			s.done("Publish", in{"PhoneNumber": "+15551234567", "Message": "x"})
		}},
		{id: "C56", title: "ids on a standard topic", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			s.invalid("Publish", in{"TopicArn": topic, "Message": "x", "MessageDeduplicationId": "d"},
				"MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type")
			s.publish(topic, "x", in{"MessageGroupId": "g"})
			if got := s.delivered(queueURL).text("Attributes", "MessageGroupId"); got != "g" {
				s.Errorf("MessageGroupId: got %q, want g", got)
			}
			for _, id := range []string{"", strings.Repeat("x", 129), "a b", "é"} {
				s.bad("Publish", in{"TopicArn": topic, "Message": "x", "MessageGroupId": id}, "InvalidParameter", "Invalid parameter: MessageGroupId Reason: …")
			}
		}},
		{id: "C57", title: "a duplicate", play: func(s *stage) {
			topic, queueURL := s.fifoTopic(), s.scene.create(s.name()+".fifo", "FifoQueue", "true")
			s.subscribe(topic, queueURL)
			ids := in{"MessageGroupId": "g", "MessageDeduplicationId": "d"}
			first := s.publish(topic, "first", ids)
			again := s.publish(topic, "again", ids)
			if first.text("MessageId") != again.text("MessageId") || first.text("SequenceNumber") != again.text("SequenceNumber") ||
				len(first.text("SequenceNumber")) != 20 {
				s.Errorf("got %v and %v, want the same", first, again)
			}
			batch := s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{
				ids.with(in{"Id": "1", "Message": "again"}), ids.with(in{"Id": "2", "Message": "second", "MessageDeduplicationId": "e"}),
			}})
			if got := batch.list("Successful"); len(got) != 2 || got[0].text("MessageId") != first.text("MessageId") ||
				got[1].text("SequenceNumber") <= first.text("SequenceNumber") {
				s.Errorf("got %v", batch)
			}
			s.gets(queueURL, "first", "second")
		}},
		{id: "C58", title: "the scope of deduplication", play: func(s *stage) {
			for scope, want := range map[string][]string{"Topic": {"x"}, "MessageGroup": {"x", "x"}} {
				topic := s.fifoTopic("ContentBasedDeduplication", "true", "FifoThroughputScope", scope)
				queueURL := s.scene.create(s.name()+".fifo", "FifoQueue", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
				s.subscribe(topic, queueURL)
				s.publish(topic, "x", in{"MessageGroupId": "g"})
				s.publish(topic, "x", in{"MessageGroupId": "h"})
				s.gets(queueURL, want...)
			}
		}},
		{id: "C59-C61", title: "message attributes", play: refusedMessageAttributes},
		{id: "C62", title: "eleven attributes", play: func(s *stage) {
			topic, enveloped, _ := s.subscribed()
			raw, dead := s.queue(), s.queue()
			s.subscribe(topic, raw, "RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`)
			attributes := in{}
			for i := range 11 {
				attributes[fmt.Sprint("a", i)] = text("x")
			}
			s.publish(topic, "m", messageAttributes(attributes))
			for _, queueURL := range []string{enveloped, dead} {
				if got := s.envelope(queueURL).names("MessageAttributes"); len(got) != 11 {
					s.Errorf("got %v, want 11", got)
				}
			}
			s.none(raw)
		}},
		{id: "C63", title: "a batch that is too long", play: func(s *stage) {
			batch := func(size int) in {
				entries := publishEntries(3)
				for i := range entries {
					entries[i]["Message"] = strings.Repeat("x", maxSize/4)
				}
				entries[0]["Message"] = strings.Repeat("x", size-maxSize/2)
				return in{"TopicArn": s.topic(), "PublishBatchRequestEntries": entries}
			}
			s.done("PublishBatch", batch(maxSize))
			s.bad("PublishBatch", batch(maxSize+1), "BatchRequestTooLong", "The length of all the messages put together is more than the limit.")
		}},
		{id: "C64", title: "ids of entries", play: func(s *stage) {
			batch := func(id string) in {
				return in{"TopicArn": s.topic(), "PublishBatchRequestEntries": []in{{"Id": id, "Message": "m"}}}
			}
			s.done("PublishBatch", batch(strings.Repeat("a", 80)))
			s.done("PublishBatch", batch("valid-message_123"))
			s.bad("PublishBatch", batch(strings.Repeat("a", 81)), "InvalidBatchEntryId",
				"The Id of a batch entry in the batch request is too long: "+strings.Repeat("a", 81))
			s.bad("PublishBatch", batch("message.id"), "InvalidBatchEntryId",
				"The Id of a batch entry in the batch request contains an impermissible character: message.id")
		}},
		{id: "C65", title: "published by who knows whom", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			link := request{method: "GET", path: "/?Action=Publish&TopicArn=" + topic + "&Message=anonymous"}
			s.wentWrong("Publish", s.request(link), "AuthorizationError", "User: anonymous is not authorized to perform: SNS:Publish on resource: "+topic+"…")
			s.setTopic(topic, "Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"`+topic+`"}]}`)
			s.succeeded("Publish", s.request(link))
			s.gets(queueURL, "anonymous")
		}},
		{id: "empty", title: "nothing to say", play: func(s *stage) {
			s.invalid("Publish", in{"TopicArn": s.topic(), "Message": ""}, "Empty message")
			s.bad("Publish", in{"TopicArn": s.arnOf(s.name()), "Message": ""}, "NotFound", "Topic does not exist")
			s.bad("Publish", in{"TopicArn": s.arnOf(s.name()), "Message": "x"}, "NotFound", "Topic does not exist")
			s.publish(s.topic(), "nobody is there to hear it")
		}},
	})
}

// successes are the ids of the entries that succeeded.
func (s *stage) successes(out tree) string {
	s.Helper()
	var ids []string
	for _, e := range out.list("Successful") {
		ids = append(ids, e.text("Id"))
	}
	return strings.Join(ids, " ")
}

func refusedMessageAttributes(s *stage) {
	topic, queueURL, _ := s.subscribed()
	const badType = "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."
	const empty = "The message attribute 'a' must contain non-empty message attribute value for message attribute type "
	for _, c := range []struct {
		name      string
		attribute in
		message   string
	}{
		{"a", in{"DataType": "String.", "StringValue": "x"}, badType},
		{"a", in{"DataType": "Stringprefixed", "StringValue": "x"}, badType},
		{"a", in{"DataType": "string", "StringValue": "x"}, badType},
		{"a", in{"DataType": "", "StringValue": "x"}, badType},
		{"a", in{"DataType": "String", "StringValue": ""}, empty + "'String'."},
		{"a", in{"DataType": "String.b"}, empty + "'String'."},
		{"a", in{"DataType": "Number"}, empty + "'Number'."},
		{"a", in{"DataType": "Binary", "BinaryValue": []byte{}}, empty + "'Binary'."},
		{"a", in{"DataType": "String", "BinaryValue": []byte{1}}, "The message attribute 'a' with type 'String' must use field 'String'."},
		{"a", in{"DataType": "Number", "BinaryValue": []byte{1}}, "The message attribute 'a' with type 'Number' must use field 'String'."},
		{"a", in{"DataType": "Binary", "StringValue": "x"}, "The message attribute 'a' with type 'Binary' must use field 'Binary'."},
		{"a", in{"DataType": "Number", "StringValue": "many"}, "Could not cast message attribute 'a' value to number."},
		{"a^b", text("x"), "Invalid non-alphanumeric character '#x5E' was found in the message attribute name. " +
			"Can only include alphanumeric characters, hyphens, underscores, or dots."},
		{".a", text("x"), "Invalid message attribute name starting with character '.' was found."},
		{"a.", text("x"), "Invalid message attribute name ending with character '.' was found."},
		{"a..b", text("x"), "Message attribute name can not have successive '.' character."},
		{strings.Repeat("a", 257), text("x"), "Length of message attribute name must be less than 256 bytes."},
	} {
		s.bad("Publish", in{"TopicArn": topic, "Message": "m"}.with(messageAttributes(in{c.name: c.attribute})), "ParameterValueInvalid", c.message)
	}
	s.bad("Publish", in{"TopicArn": topic, "Message": "m"}.with(messageAttributes(in{"a": in{"StringValue": "x"}})), "ValidationError",
		"1 validation error detected: Value null at 'messageAttributes.a.member.dataType' failed to satisfy constraint: Member must not be null")
	good := in{
		"a": in{"DataType": "String.a", "StringValue": "x"}, "b": in{"DataType": "String.  b.", "StringValue": "y"},
		"c": in{"DataType": "Number.int", "StringValue": "1e3"}, "d": blob([]byte{2, 3, 4}), "e": in{"DataType": "String.Array", "StringValue": "[1]"},
	}
	s.publish(topic, "m", messageAttributes(good))
	e := s.envelope(queueURL)
	for name, want := range map[string][2]string{
		"a": {"String.a", "x"}, "b": {"String.  b.", "y"}, "c": {"Number.int", "1e3"}, "d": {"Binary", "AgME"}, "e": {"String.Array", "[1]"},
	} {
		if e.text("MessageAttributes", name, "Type") != want[0] || e.text("MessageAttributes", name, "Value") != want[1] {
			s.Errorf("%s: got %v, want %v", name, e.at("MessageAttributes", name), want)
		}
	}
}
