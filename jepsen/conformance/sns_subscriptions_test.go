package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// C21–C45: subscriptions.
func TestSubscriptions(t *testing.T) {
	const different = "Attributes Reason: Subscription already exists with different attributes"
	http := func(topic string) in {
		return in{"TopicArn": topic, "Protocol": "http", "Endpoint": "http://example.com/hook"}
	}
	perform(t, []act{
		{id: "C21", title: "a queue that does not exist", play: func(s *stage) {
			sub := s.done("Subscribe", subscribeMembers(s.topic(), "arn:aws:sqs:eu-west-1:000000000000:"+s.name())).text("SubscriptionArn")
			s.has(s.subscriptionAttributes(sub), "PendingConfirmation", "false", "ConfirmationWasAuthenticated", "true", "RawMessageDelivery", "false",
				"Protocol", "sqs", "Owner", "000000000000", "FilterPolicy", "-", "FilterPolicyScope", "-", "RedrivePolicy", "-", "EffectiveDeliveryPolicy", "-")
		}},
		{id: "C22", title: "the URL of a queue", play: func(s *stage) {
			topic := s.topic()
			for _, endpoint := range []string{s.queue(), "x", "", "arn:aws:sns:eu-west-1:000000000000:q"} {
				s.invalid("Subscribe", in{"TopicArn": topic, "Protocol": "sqs", "Endpoint": endpoint}, "SQS endpoint ARN")
			}
		}},
		{id: "C23", title: "pending, in three spellings", play: func(s *stage) {
			topic := s.topic()
			if got := s.done("Subscribe", http(topic)).text("SubscriptionArn"); got != "pending confirmation" {
				s.Errorf("got %q, want pending confirmation", got)
			}
			listed := s.done("ListSubscriptionsByTopic", in{"TopicArn": topic}).list("Subscriptions")
			if len(listed) != 1 || listed[0].text("SubscriptionArn") != "PendingConfirmation" || listed[0].text("Endpoint") != "http://example.com/hook" {
				s.Errorf("got %v, want one that is PendingConfirmation", listed)
			}
			sub := s.done("Subscribe", http(topic).with(in{"ReturnSubscriptionArn": true})).text("SubscriptionArn")
			s.has(s.subscriptionAttributes(sub), "PendingConfirmation", "true", "ConfirmationWasAuthenticated", "false", "Protocol", "http")
			s.has(s.topicAttributes(topic), "SubscriptionsPending", "1", "SubscriptionsConfirmed", "0")
		}},
		{id: "C24", title: "twice, the second time without attributes", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed("RawMessageDelivery", "true")
			if again := s.subscribe(topic, queueURL); again != sub {
				s.Errorf("got %s, want %s", again, sub)
			}
			s.has(s.subscriptionAttributes(sub), "RawMessageDelivery", "true")
			s.publish(topic, "once")
			s.delivered(queueURL)
			s.none(queueURL)
		}},
		{id: "C25-C26", title: "twice, with attributes", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed("RawMessageDelivery", "true", "FilterPolicyScope", "MessageAttributes")
			if again := s.subscribe(topic, queueURL, "RawMessageDelivery", "true", "FilterPolicyScope", "MessageAttributes"); again != sub {
				s.Errorf("got %s, want %s", again, sub)
			}
			s.invalid("Subscribe", subscribeMembers(topic, s.arn(queueURL), "RawMessageDelivery", "false"), different)
			s.invalid("Subscribe", subscribeMembers(topic, s.arn(queueURL), "FilterPolicy", `{"a":["x"]}`), different)
		}},
		{id: "C27", title: "raw in any case", play: func(s *stage) {
			_, _, sub := s.subscribed("RawMessageDelivery", "TrUe")
			s.has(s.subscriptionAttributes(sub), "RawMessageDelivery", "true")
			set := in{"SubscriptionArn": sub, "AttributeName": "RawMessageDelivery", "AttributeValue": ""}
			s.invalid("SetSubscriptionAttributes", set, "RawMessageDelivery: Invalid value []. Must be true or false.")
			set["AttributeValue"] = "x"
			s.invalid("SetSubscriptionAttributes", set, "RawMessageDelivery: Invalid value [x]. Must be true or false.")
			s.invalid("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "RawMessageDelivery", "x"),
				"Attributes Reason: RawMessageDelivery: Invalid value [x]. Must be true or false.")
		}},
		{id: "C28", title: "raw mail", play: func(s *stage) {
			members := in{"TopicArn": s.topic(), "Protocol": "email", "Endpoint": "me@example.com", "ReturnSubscriptionArn": true}
			s.invalid("Subscribe", members.with(in{"Attributes": pairs("RawMessageDelivery", "true")}),
				"Attributes Reason: Delivery protocol [email] does not support raw message delivery.")
			sub := s.done("Subscribe", members).text("SubscriptionArn")
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "RawMessageDelivery", "AttributeValue": "true"},
				"Delivery protocol [email] does not support raw message delivery.")
		}},
		{id: "C29-C30", title: "redrive policies", play: func(s *stage) {
			_, _, sub := s.subscribed()
			dead := s.arn(s.queue())
			set := func(value string) in {
				return in{"SubscriptionArn": sub, "AttributeName": "RedrivePolicy", "AttributeValue": value}
			}
			s.invalid("SetSubscriptionAttributes", set(`{"deadLetterTargetArn":"`+dead+`","maxReceiveCount":3}`),
				"RedrivePolicy: invalid JSON. Attribute maxReceiveCount is unknown.")
			s.invalid("SetSubscriptionAttributes", set(`{"deadLetterTargetArn":"x"}`), "RedrivePolicy: deadLetterTargetArn is an invalid arn")
			s.bad("SetSubscriptionAttributes", set(`{invalid`), "InvalidParameter", "Invalid parameter: RedrivePolicy: failed to parse JSON. …")
			s.done("SetSubscriptionAttributes", set(`{"deadLetterTargetArn":"`+dead+`"}`))
			s.has(s.subscriptionAttributes(sub), "RedrivePolicy", `{"deadLetterTargetArn":"`+dead+`"}`)
			s.bad("SetSubscriptionAttributes", set(""), "InvalidParameter", "Invalid parameter: RedrivePolicy: …")
			s.has(s.subscriptionAttributes(sub), "RedrivePolicy", `{"deadLetterTargetArn":"`+dead+`"}`)
			s.done("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "RedrivePolicy"})
			s.has(s.subscriptionAttributes(sub), "RedrivePolicy", "-")
			s.done("SetSubscriptionAttributes", set(`{"deadLetterTargetArn":"`+dead+`"}`))
			s.done("SetSubscriptionAttributes", set("{}"))
			s.has(s.subscriptionAttributes(sub), "RedrivePolicy", "-")
		}},
		{id: "C31", title: "a scope without a policy", play: func(s *stage) {
			_, _, sub := s.subscribed()
			s.setSubscription(sub, "FilterPolicyScope", "MessageBody")
			s.has(s.subscriptionAttributes(sub), "FilterPolicyScope", "-")
			s.setSubscription(sub, "FilterPolicy", `{"a":{"b":["x"]}}`)
			s.has(s.subscriptionAttributes(sub), "FilterPolicyScope", "MessageBody", "FilterPolicy", `{"a":{"b":["x"]}}`)
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "FilterPolicyScope", "AttributeValue": "RandomValue"},
				"FilterPolicyScope: Invalid value [RandomValue]. Please use either MessageBody or MessageAttributes")
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "FilterPolicyScope", "AttributeValue": "MessageAttributes"},
				"Filter policy scope MessageAttributes does not support nested filter policy")
		}},
		{id: "C32", title: "a filter policy taken away", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed("FilterPolicy", `{ "a" : ["x"] }`)
			s.has(s.subscriptionAttributes(sub), "FilterPolicy", `{ "a" : ["x"] }`, "FilterPolicyScope", "MessageAttributes")
			s.publish(topic, "filtered")
			s.setSubscription(sub, "FilterPolicy", "")
			s.has(s.subscriptionAttributes(sub), "FilterPolicy", "-", "FilterPolicyScope", "-")
			s.publish(topic, "delivered")
			s.gets(queueURL, "delivered")
			s.setSubscription(sub, "FilterPolicy", `{"a":["x"]}`)
			s.setSubscription(sub, "FilterPolicy", "{}")
			s.has(s.subscriptionAttributes(sub), "FilterPolicy", "-")
		}},
		{id: "C33-C34", title: "unsubscribed twice", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed()
			s.done("Unsubscribe", in{"SubscriptionArn": sub})
			s.done("Unsubscribe", in{"SubscriptionArn": sub})
			s.invalid("Unsubscribe", in{"SubscriptionArn": topic}, "SubscriptionId")
			s.invalid("Unsubscribe", in{"SubscriptionArn": "x"}, "SubscriptionArn Reason: An ARN must have at least 6 elements, not 1")
			s.invalid("Unsubscribe", in{"SubscriptionArn": "PendingConfirmation"}, "SubscriptionArn Reason: An ARN must have at least 6 elements, not 1")
			s.invalid("Unsubscribe", nil, "SubscriptionArn Reason: no value for required parameter")
			s.bad("Unsubscribe", in{"SubscriptionArn": strings.Replace(sub, "000000000000", "111122223333", 1)}, "AuthorizationError",
				"User: arn:aws:iam::000000000000:root is not authorized to perform: SNS:Unsubscribe on resource…")
			s.publish(topic, "nobody hears it")
			s.none(queueURL)
			if again := s.subscribe(topic, queueURL); again == sub {
				s.Errorf("the new subscription has the ARN of the old one")
			}
			s.has(s.topicAttributes(topic), "SubscriptionsConfirmed", "1", "SubscriptionsDeleted", "1")
		}},
		{id: "C35", title: "unsubscribed while pending", play: func(s *stage) {
			sub := s.done("Subscribe", http(s.topic()).with(in{"ReturnSubscriptionArn": true})).text("SubscriptionArn")
			a := s.sns("Unsubscribe", in{"SubscriptionArn": sub})
			if a.status != 400 || !strings.Contains(a.message, "Cannot unsubscribe a subscription that is pending confirmation") {
				s.Errorf("got %d %s", a.status, a.message)
			}
		}},
		{id: "C36", title: "one that was removed", play: func(s *stage) {
			_, _, sub := s.subscribed()
			s.done("Unsubscribe", in{"SubscriptionArn": sub})
			s.bad("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "RawMessageDelivery", "AttributeValue": "true"},
				"NotFound", "Subscription does not exist")
			s.bad("GetSubscriptionAttributes", in{"SubscriptionArn": sub}, "NotFound", "Subscription does not exist")
		}},
		{id: "attributes", title: "an attribute that there is not", play: func(s *stage) {
			_, _, sub := s.subscribed()
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "Endpoint", "AttributeValue": "x"}, "AttributeName")
			s.bad("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "Nothing", "x"), "InvalidParameter", "Invalid parameter: Attributes…")
		}},
		{id: "C38", title: "tokens that are none", play: func(s *stage) {
			topic := s.topic()
			s.bad("ConfirmSubscription", in{"TopicArn": topic, "Token": "randomtoken"}, "InvalidParameter", "Invalid token")
			unknown := "2336412f37" + strings.Repeat("0", 256)
			s.invalid("ConfirmSubscription", in{"TopicArn": topic, "Token": unknown}, "Token")
			s.invalid("ConfirmSubscription", in{"TopicArn": strings.Replace(topic, "eu-west-1", "us-west-2", 1), "Token": unknown}, "Topic")
		}},
		{id: "C41", title: "queues and topics of other types", play: func(s *stage) {
			s.subscribe(s.fifoTopic(), s.queue())
			s.subscribe(s.fifoTopic(), s.scene.create(s.name()+".fifo", "FifoQueue", "true"))
			s.invalid("Subscribe", subscribeMembers(s.topic(), s.arn(s.scene.create(s.name()+".fifo", "FifoQueue", "true"))),
				"Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics")
			for _, protocol := range []string{"http", "email", "lambda", "sms"} {
				s.invalid("Subscribe", in{"TopicArn": s.fifoTopic(), "Protocol": protocol, "Endpoint": "x"}, "Invalid protocol type: "+protocol)
			}
		}},
		{id: "C42", title: "a standard dead-letter queue of a FIFO subscription", play: func(s *stage) {
			topic, queueURL := s.fifoTopic(), s.scene.create(s.name()+".fifo", "FifoQueue", "true")
			policy := `{"deadLetterTargetArn":"` + s.arn(s.queue()) + `"}`
			const reason = "RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic."
			s.invalid("Subscribe", subscribeMembers(topic, s.arn(queueURL), "RedrivePolicy", policy), "Attributes Reason: "+reason)
			sub := s.subscribe(topic, queueURL)
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "RedrivePolicy", "AttributeValue": policy}, reason)
			s.subscribe(topic, s.queue(), "RedrivePolicy", policy)
		}},
		{id: "C43", title: "phone numbers", play: func(s *stage) {
			topic := s.topic()
			for _, phone := range []string{"NAA+15551234567", "+15--551234567", "/1555", "1555/", "", "+15551234567.", "+0123"} {
				s.bad("Subscribe", in{"TopicArn": topic, "Protocol": "sms", "Endpoint": phone}, "InvalidParameter", "Invalid SMS endpoint: "+phone)
			}
			s.done("Subscribe", in{"TopicArn": topic, "Protocol": "sms", "Endpoint": "+12/34-567.890"})
		}},
		{id: "C44", title: "a queue of another region", play: func(s *stage) {
			topic := s.topic()
			s.done("Subscribe", subscribeMembers(topic, "arn:aws:sqs:us-west-2:000000000000:q"))
			s.publish(topic, "it does not arrive")
		}},
		{id: "C45", title: "the list of a topic that is gone", play: func(s *stage) {
			topic, _, sub := s.subscribed()
			s.done("DeleteTopic", in{"TopicArn": topic})
			s.bad("ListSubscriptionsByTopic", in{"TopicArn": topic}, "NotFound", "Topic does not exist")
			s.bad("GetSubscriptionAttributes", in{"SubscriptionArn": sub}, "NotFound", "Subscription does not exist")
			s.done("Unsubscribe", in{"SubscriptionArn": sub})
		}},
		{id: "endpoints", title: "endpoints that are refused", play: refusedEndpoints},
		{id: "pages", title: "more than one page", play: listManySubscriptions},
	})
}

func refusedEndpoints(s *stage) {
	topic := s.topic()
	for _, c := range []struct{ protocol, endpoint, reason string }{
		{"test-protocol", "x", "Amazon SNS does not support this protocol string: test-protocol"},
		{"http", "https://example.com", "Endpoint must match the specified protocol"},
		{"https", "http://example.com", "Endpoint must match the specified protocol"},
		{"http", "http://under_score.example.com/", "Unreachable Endpoint"},
		{"email", "nobody", "Email address"},
		{"application", "arn:aws:sns:eu-west-1:000000000000:x", "Application endpoint arn invalid:arn:aws:sns:eu-west-1:000000000000:x"},
	} {
		members := in{"TopicArn": topic, "Protocol": c.protocol, "Endpoint": c.endpoint}
		s.invalid("Subscribe", members, c.reason)
		s.bad("Subscribe", members.with(in{"TopicArn": s.arnOf(s.name())}), "NotFound", "Topic does not exist")
	}
	s.bad("Subscribe", in{"TopicArn": topic, "Protocol": "lambda", "Endpoint": "arn:aws:lambda:eu-west-1:000000000000:function:f"},
		"InvalidParameter", "Invalid parameter: …")
	if listed := s.done("ListSubscriptionsByTopic", in{"TopicArn": topic}).list("Subscriptions"); len(listed) > 0 {
		s.Errorf("got %v, want no subscription", listed)
	}
}

func listManySubscriptions(s *stage) {
	topic := s.topic()
	want := map[string]bool{}
	for i := range 150 {
		queue := fmt.Sprintf("arn:aws:sqs:eu-west-1:000000000000:%s-%03d", s.name(), i)
		want[s.done("Subscribe", subscribeMembers(topic, queue)).text("SubscriptionArn")] = true
	}
	everywhere := map[string]bool{}
	for arn := range want {
		everywhere[arn] = true
	}
	for action, left := range map[string]map[string]bool{"ListSubscriptionsByTopic": want, "ListSubscriptions": everywhere} {
		members := in{}
		if action == "ListSubscriptionsByTopic" {
			members["TopicArn"] = topic
		}
		for more := true; more; {
			out := s.done(action, members)
			for _, listed := range out.list("Subscriptions") {
				delete(left, listed.text("SubscriptionArn"))
			}
			members["NextToken"] = out.text("NextToken")
			more = members["NextToken"] != ""
		}
		if len(left) > 0 {
			s.Errorf("%s: %d subscriptions were in no page", action, len(left))
		}
	}
}
