package conformance

import "strconv"

// fifoPair makes a FIFO topic and a FIFO queue that is subscribed to it.
func (s *stage) fifoPair(contentBased string) (topic, queueURL string) {
	s.Helper()
	topic = s.fifoTopic("ContentBasedDeduplication", contentBased)
	queueURL = s.scene.create(s.name()+".fifo", "FifoQueue", "true", "ContentBasedDeduplication", contentBased)
	s.subscribe(topic, queueURL)
	return topic, queueURL
}

// variants are the two forms of a test: with deduplication by content, and with
// explicit ids.
func variants(name string, play func(s *stage, g *snsGolden, contentBased bool)) act {
	return act{id: name, play: func(s *stage) {
		play(s, s.recorded(name+"[True]"), true)
		play(s, s.recorded(name+"[False]"), false)
	}}
}

var recordedFIFO = []act{
	variants("test_message_to_fifo_sqs", func(s *stage, g *snsGolden, contentBased bool) {
		topic, queueURL := s.fifoPair(strconv.FormatBool(contentBased))
		message := in{"TopicArn": topic, "Message": "Test", "MessageGroupId": "message-group-id-1"}
		if !contentBased {
			message["MessageDeduplicationId"] = "message-deduplication-id-1"
		}
		s.done("Publish", message)
		g.received("messages", queueURL, all)
		s.done("Publish", message)
		g.received("dedup-messages", queueURL, in{"WaitTimeSeconds": 0})
	}),
	{id: "test_validations_for_fifo", play: func(s *stage) {
		g := s.recorded("test_validations_for_fifo")
		topic, fifo := s.topic(), s.fifoTopic()
		queueURL, fifoQueue := s.queue(), s.scene.create(s.name()+".fifo", "FifoQueue", "true")
		g.sns("not-fifo-topic", "Subscribe", subscribeMembers(topic, s.arn(fifoQueue)))
		attributes := map[string]any{}
		for name, value := range s.subscriptionAttributes(s.subscribe(fifo, queueURL)) {
			attributes[name] = value
		}
		g.same("not-fifo-queue", attributes)
		sub := s.subscribe(fifo, fifoQueue)
		g.sns("regular-queue-for-dlq-of-fifo-topic", "SetSubscriptionAttributes", in{
			"SubscriptionArn": sub, "AttributeName": "RedrivePolicy", "AttributeValue": `{"deadLetterTargetArn":"` + s.arn(queueURL) + `"}`,
		})
		g.sns("no-msg-group-id", "Publish", in{"TopicArn": fifo, "Message": "test"})
		g.sns("no-dedup-policy", "Publish", in{"TopicArn": fifo, "Message": "test", "MessageGroupId": "group"})
		g.sns("no-msg-dedup-regular-topic", "Publish", in{"TopicArn": topic, "Message": "test", "MessageDeduplicationId": "dedup"})
	}},
	{id: "test_publish_fifo_messages_to_dlq", play: func(s *stage) {
		for _, raw := range []string{"True", "False"} {
			recordedFIFODeadLetters(s, s.recorded("test_publish_fifo_messages_to_dlq["+raw+"]"), raw)
		}
	}},
	variants("test_publish_batch_messages_from_fifo_topic_to_fifo_queue", func(s *stage, g *snsGolden, contentBased bool) {
		topic := s.fifoTopic("ContentBasedDeduplication", strconv.FormatBool(contentBased))
		g.sns("topic-attrs", "GetTopicAttributes", in{"TopicArn": topic})
		queueURL := s.scene.create(s.name()+".fifo", "FifoQueue", "true", "ContentBasedDeduplication", strconv.FormatBool(contentBased))
		sub := s.subscribe(topic, queueURL, "RawMessageDelivery", "true")
		g.sns("sub-attrs-raw-true", "GetSubscriptionAttributes", in{"SubscriptionArn": sub})
		batch := in{"TopicArn": topic, "PublishBatchRequestEntries": fifoEntries("MessageDeduplicationId-", 0, !contentBased)}
		g.sns("publish-batch-response-fifo", "PublishBatch", batch)
		g.messages("messages", queueURL, 3, all)
		g.sns("republish-batch-response-fifo", "PublishBatch", batch)
		g.received("duplicate-messages", queueURL, in{"WaitTimeSeconds": 0})
	}),
	{id: "test_publish_to_fifo_topic_to_sqs_queue_no_content_dedup", play: func(s *stage) {
		for _, raw := range []string{"True", "False"} {
			g := s.recorded("test_publish_to_fifo_topic_to_sqs_queue_no_content_dedup[" + raw + "]")
			topic := s.fifoTopic("ContentBasedDeduplication", "true")
			queueURL := s.scene.create(s.name()+".fifo", "FifoQueue", "true")
			s.subscribe(topic, queueURL, "RawMessageDelivery", raw)
			s.done("Publish", in{"TopicArn": topic, "Message": "Test single", "MessageGroupId": "message-group-id-1"})
			s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": []in{
				{"Id": "1", "MessageGroupId": "message-group-id-1", "Message": "Test batched"},
			}})
			g.messages("messages", queueURL, 2, all)
		}
	}},
	{id: "test_publish_to_fifo_topic_deduplication_on_topic_level", play: func(s *stage) {
		g := s.recorded("test_publish_to_fifo_topic_deduplication_on_topic_level")
		topic, queueURL := s.fifoPair("true")
		message := in{"TopicArn": topic, "Message": "Test", "MessageGroupId": "message-group-id-1"}
		s.done("Publish", message)
		g.received("messages", queueURL, all)
		s.done("Publish", message)
		g.received("dedup-messages", queueURL, in{"WaitTimeSeconds": 0})
	}},
	variants("test_fifo_topic_to_regular_sqs", func(s *stage, g *snsGolden, contentBased bool) {
		topic, queueURL := s.fifoTopic("ContentBasedDeduplication", strconv.FormatBool(contentBased)), s.queue()
		s.subscribe(topic, queueURL)
		message := in{"TopicArn": topic, "Message": "Test", "MessageGroupId": "message-group-id-1"}
		if !contentBased {
			message["MessageDeduplicationId"] = "message-deduplication-id-1"
		}
		s.done("Publish", message)
		g.received("messages", queueURL, all)
		s.done("Publish", message)
		g.received("dedup-messages", queueURL, in{"WaitTimeSeconds": 0})
	}),
}

// fifoEntries are the three messages of the recorded batches.
func fifoEntries(prefix string, first int, ids bool) []in {
	entries := []in{
		in{"Id": "1", "Message": "Test Message with two attributes", "Subject": "Subject"}.with(messageAttributes(twoAttributes)),
		in{"Id": "2", "Message": "Test Message with one attribute", "Subject": "Subject"}.with(messageAttributes(in{"attr1": number("19.12")})),
		{"Id": "3", "Message": "Test Message without attribute", "Subject": "Subject"},
	}
	for i := range entries {
		entries[i]["MessageGroupId"] = "complexMessageGroupId"
		if ids {
			entries[i]["MessageDeduplicationId"] = prefix + string(rune('0'+first+i))
		}
	}
	return entries
}

func recordedFIFODeadLetters(s *stage, g *snsGolden, raw string) {
	topic := s.fifoTopic()
	g.sns("topic-attrs", "GetTopicAttributes", in{"TopicArn": topic})
	queueURL := s.scene.create(s.name()+".fifo", "FifoQueue", "true")
	dead := s.scene.create(s.name()+".fifo", "FifoQueue", "true")
	s.subscribe(topic, queueURL, "RawMessageDelivery", raw, "RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`)
	s.ok("DeleteQueue", in{"QueueUrl": queueURL})
	g.sns("publish-batch-response-fifo", "PublishBatch", in{
		"TopicArn": topic, "PublishBatchRequestEntries": fifoEntries("MessageDeduplicationId-", 1, true),
	})
	g.messages("batch-messages-in-dlq", dead, 3, all)
	g.sns("publish-response-fifo", "Publish", in{
		"TopicArn": topic, "Message": "test-message", "MessageGroupId": "message-group-id-1", "MessageDeduplicationId": "message-deduplication-id-1",
	})
	g.messages("messages-in-dlq", dead, 1, all)
}
