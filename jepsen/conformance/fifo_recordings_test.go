package conformance

import (
	"strings"
	"testing"
)

// TestRecordingsFIFO is TestRecordings for FIFO queues.
func TestRecordingsFIFO(t *testing.T) {
	play(t, []script{
		{id: "test_create_fifo_queue_with_different_attributes_raises_error", play: func(s *scene) {
			g := s.recorded("test_create_fifo_queue_with_different_attributes_raises_error")
			q := s.fifo("ContentBasedDeduplication", "true")
			g.is("queue-already-exists", s.call("CreateQueue", createMembers(queueName(q), "FifoQueue", "true", "ContentBasedDeduplication", "false")))
		}},
		{id: "test_set_unsupported_attribute_fifo", play: func(s *scene) {
			g := s.recorded("test_set_unsupported_attribute_fifo")
			g.is("invalid-attr-name-1", s.call("SetQueueAttributes", in{"QueueUrl": s.queue(), "Attributes": pairs("FifoQueue", "true")}))
			g.is("invalid-attr-name-2", s.call("SetQueueAttributes", in{"QueueUrl": s.fifo(), "Attributes": pairs("FifoQueue", "false")}))
		}},
		{id: "test_fifo_set_content_based_deduplication_strategy", play: func(s *scene) {
			g := s.recorded("test_fifo_set_content_based_deduplication_strategy")
			q := s.fifo("ContentBasedDeduplication", "true")
			all := in{"QueueUrl": q, "AttributeNames": []string{"All"}}
			g.is("before-update", s.call("GetQueueAttributes", all))
			s.set(q, "ContentBasedDeduplication", "False")
			g.is("after-update", s.call("GetQueueAttributes", all))
		}},
		{id: "test_fifo_message_attributes", play: func(s *scene) {
			g := s.recorded("test_fifo_message_attributes")
			q := s.fifo("VisibilityTimeout", "0", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
			g.is("send_message", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "message-body-1", "MessageGroupId": "group-1", "MessageDeduplicationId": "dedup-1"}))
			receive := in{"QueueUrl": q, "AttributeNames": []string{"All"}, "WaitTimeSeconds": 10}
			g.is("receive_message_0", s.call("ReceiveMessage", receive))
			g.is("receive_message_1", s.call("ReceiveMessage", receive))
		}},
		{id: "test_fifo_queue_send_message_with_delay_seconds_fails", play: func(s *scene) {
			g := s.recorded("test_fifo_queue_send_message_with_delay_seconds_fails")
			q := s.fifo("ContentBasedDeduplication", "true")
			g.is("send_message", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "message-1", "MessageGroupId": "1", "DelaySeconds": 2}))
		}},
		{id: "test_fifo_queue_send_message_with_zero_delay_defaults_to_queue_delay", play: func(s *scene) {
			g := s.recorded("test_fifo_queue_send_message_with_zero_delay_defaults_to_queue_delay")
			q := s.fifo("ContentBasedDeduplication", "true", "DelaySeconds", "12") // of 7 the start of all cases takes some
			g.is("send_message_result", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "message-1", "MessageGroupId": "1", "DelaySeconds": 0}))
			g.is("receive_message_initial_result", s.call("ReceiveMessage", in{"QueueUrl": q}))
			g.is("receive_message_after_delay_result", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 20}))
		}},
		{id: "test_posting_to_fifo_requires_deduplicationid_group_id", play: func(s *scene) {
			g := s.recorded("test_posting_to_fifo_requires_deduplicationid_group_id")
			q := s.fifo()
			for _, suffix := range []string{"", "-query"} {
				g.is("invalid-parameter-value"+suffix, s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "test"}.with(inGroup)))
				g.is("missing-parameter"+suffix, s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "test"}.with(dedup("d"))))
			}
		}},
		{id: "test_send_batch_missing_deduplication_id_for_fifo_queue", play: func(s *scene) {
			g := s.recorded("test_send_batch_missing_deduplication_id_for_fifo_queue")
			g.is("test_missing_deduplication_id_for_fifo_queue", s.call("SendMessageBatch", in{"QueueUrl": s.fifo(), "Entries": []in{
				{"Id": "message-1", "MessageBody": "messageBody", "MessageGroupId": "test-group", "MessageDeduplicationId": "dedup-1"},
				{"Id": "message-2", "MessageBody": "messageBody", "MessageGroupId": "test-group"},
			}}))
		}},
		{id: "test_send_batch_missing_message_group_id_for_fifo_queue", play: func(s *scene) {
			g := s.recorded("test_send_batch_missing_message_group_id_for_fifo_queue")
			g.is("test_missing_message_group_id_for_fifo_queue", s.call("SendMessageBatch", in{"QueueUrl": s.fifo(), "Entries": []in{
				{"Id": "message-1", "MessageBody": "messageBody", "MessageGroupId": "test-group", "MessageDeduplicationId": "dedup-1"},
				{"Id": "message-2", "MessageBody": "messageBody", "MessageDeduplicationId": "dedup-2"},
			}}))
		}},
		{id: "test_message_deduplication_id_invalid", only: jsonWire, play: func(s *scene) {
			q := s.fifo()
			for variant, id := range map[string]string{"empty": "", "too_long": strings.Repeat("a", 129), "spaces": "group 123"} {
				g := s.recorded("test_message_deduplication_id_invalid[" + variant + "]")
				g.is("error-response", s.call("SendMessage", in{"QueueUrl": q, "MessageBody": "test", "MessageGroupId": "test", "MessageDeduplicationId": id}))
			}
		}},
		{id: "test_fifo_delete_after_visibility_timeout", play: func(s *scene) {
			g := s.recorded("test_fifo_delete_after_visibility_timeout")
			q := s.fifo("VisibilityTimeout", "1", "ContentBasedDeduplication", "True")
			s.send(q, "foobar", in{"MessageGroupId": "1"})
			received := s.call("ReceiveMessage", in{"QueueUrl": q})
			g.is("received_sqs_message", received)
			s.awaitCounts(q, "1", "0", "0")
			g.is("delete_after_timeout_fifo", s.call("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": handle(received.out.list("Messages")[0])}))
		}},
		{id: "test_fifo_delete_after_visibility_timeout_extended", play: func(s *scene) {
			g := s.recorded("test_fifo_delete_after_visibility_timeout_extended")
			q := s.fifo("ContentBasedDeduplication", "True")
			s.send(q, "foobar", in{"MessageGroupId": "1"})
			received := s.call("ReceiveMessage", in{"QueueUrl": q})
			g.is("received_sqs_message", received)
			h := handle(received.out.list("Messages")[0])
			s.change(q, h, 60)
			g.is("delete_after_timeout_fifo_extended", s.call("DeleteMessage", in{"QueueUrl": q, "ReceiptHandle": h}))
		}},
		{id: "test_fifo_empty_message_groups_added_back_to_queue", play: func(s *scene) {
			g := s.recorded("test_fifo_empty_message_groups_added_back_to_queue")
			q := s.fifo("ContentBasedDeduplication", "true")
			s.send(q, "Message 1", inGroup)
			first := s.call("ReceiveMessage", in{"QueueUrl": q})
			g.is("inital-fifo-receive", first) //nolint:misspell // the recording spells it so
			s.delete(q, handle(first.out.list("Messages")[0]))
			g.is("empty-fifo-receive", s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 1}))
			s.send(q, "Message 2", inGroup)
			g.is("final-fifo-receive", s.call("ReceiveMessage", in{"QueueUrl": q}))
		}},
		{id: "test_sqs_fifo_same_dedup_id_different_message_groups", play: sameIDInTwoGroups("test_sqs_fifo_same_dedup_id_different_message_groups", "Test", "Test")},
		{id: "test_sqs_fifo_message_group_scope_no_throughput_setting", play: sameIDInTwoGroups("test_sqs_fifo_message_group_scope_no_throughput_setting", "Test", "Test",
			"DeduplicationScope", "messageGroup")},
		{id: "test_fifo_high_throughput_ordering", play: sameIDInTwoGroups("test_fifo_high_throughput_ordering", "Test1", "Test2",
			"DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")},
		{id: "test_fifo_group_visibility_extends_with_change_message_visibility", play: recordedPrefixes},
	})
}

// sameIDInTwoGroups plays the recordings in which an id is sent to two groups.
func sameIDInTwoGroups(name, first, second string, attributes ...string) func(*scene) {
	return func(s *scene) {
		g := s.recorded(name)
		q := s.fifo(attributes...)
		for i, body := range []string{first, second} {
			s.send(q, body, in{"MessageGroupId": []string{"g1", "g2"}[i]}, dedup("id"))
			answer := s.call("ReceiveMessage", in{"QueueUrl": q, "WaitTimeSeconds": 1})
			g.is([]string{"same-dedup-different-grp-1", "same-dedup-different-grp-2"}[i], answer)
			for _, m := range answer.out.list("Messages") {
				s.delete(q, handle(m))
			}
		}
	}
}

// recordedPrefixes are the three recordings in which the lease of one message of
// three is made longer while those of the others end.
func recordedPrefixes(s *scene) {
	var queues [3]string
	var recordings [3]*golden
	for i, variant := range []string{"0-visible", "1-visible", "2-visible"} {
		g := s.recorded("test_fifo_group_visibility_extends_with_change_message_visibility[" + variant + "]")
		q := s.fifo("VisibilityTimeout", "15", "ContentBasedDeduplication", "True")
		for _, body := range []string{"foo", "bar", "baz"} {
			s.send(q, body, inGroup)
		}
		all := s.call("ReceiveMessage", in{"QueueUrl": q, "MaxNumberOfMessages": 10})
		g.is("receive_all_messages", all)
		s.change(q, handle(all.out.list("Messages")[i]), 60)
		queues[i], recordings[i] = q, g
	}
	for i, q := range queues {
		s.awaitCounts(q, "2", "1", "0")
		recordings[i].is("some-messages-invisible", s.call("ReceiveMessage", in{"QueueUrl": q, "MaxNumberOfMessages": 10}))
	}
}
