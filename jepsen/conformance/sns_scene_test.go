package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// stage is one case of SNS being played. Its queues are asked in AWS JSON.
type stage struct{ *scene }

// act is one case of SNS. Its id is one of README.md (C46), or a name.
type act struct {
	id      string
	title   string
	setting setting
	play    func(s *stage)
}

// perform runs each act, all at the same time.
func perform(t *testing.T, acts []act) {
	t.Parallel()
	for _, c := range acts {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			c.play(&stage{&scene{T: t, wire: jsonWire, endpoint: endpoint(t, c.setting)}})
		})
	}
}

// request sends a request to SNS as it stands.
func (s *stage) request(r request) answer {
	s.Helper()
	return s.ask(snsWire, r)
}

// sns plays an action of SNS.
func (s *stage) sns(action string, members in) answer {
	s.Helper()
	return s.request(snsRequest(action, members))
}

// voids are the actions without an output (SNS API reference).
var voids = map[string]bool{
	"AddPermission": true, "RemovePermission": true, "DeleteTopic": true, "SetTopicAttributes": true,
	"SetSubscriptionAttributes": true, "Unsubscribe": true, "PutDataProtectionPolicy": true,
}

// done plays an action that must succeed, and returns its output.
func (s *stage) done(action string, members in) tree {
	s.Helper()
	a := s.sns(action, members)
	s.succeeded(action, a)
	return a.out
}

// snsFaults are the HTTP statuses of codes that have another than 400.
var snsFaults = map[string]int{
	"NotFound": 404, "ResourceNotFound": 404, "AuthorizationError": 403, "MissingAuthenticationToken": 403,
	"FilterPolicyLimitExceeded": 403,
}

// bad plays an action that must fail with the code and exactly this text; a text
// that ends in … is a beginning.
func (s *stage) bad(action string, members in, code, text string) {
	s.Helper()
	s.wentWrong(action, s.sns(action, members), code, text)
}

// invalid is bad with the code InvalidParameter and the words before the reason.
func (s *stage) invalid(action string, members in, reason string) {
	s.Helper()
	s.bad(action, members, "InvalidParameter", "Invalid parameter: "+reason)
}

func (s *stage) wentWrong(action string, a answer, code, text string) {
	s.Helper()
	status := snsFaults[code]
	if status == 0 {
		status = 400
	}
	if a.status != status || a.code != code || a.fault != "Sender" {
		s.Errorf("%s: got %d %s %s %q, want %d %s Sender %q", action, a.status, a.code, a.fault, a.message, status, code, text)
		return
	}
	beginning, cut := strings.CutSuffix(text, "…")
	if cut && !strings.HasPrefix(a.message, beginning) || !cut && a.message != text {
		s.Errorf("%s: message\n got %q\nwant %q", action, a.message, text)
	}
	if a.detail {
		s.Errorf("%s: the Error has a Detail: %s", action, a.body)
	}
	s.hasContentType(a)
	s.hasRequestID(action, a)
}

// topic makes a topic with the given attributes: name, value, name, value.
func (s *stage) topic(attributes ...string) string {
	s.Helper()
	return s.create(s.name(), attributes...)
}

// fifoTopic makes a FIFO topic.
func (s *stage) fifoTopic(attributes ...string) string {
	s.Helper()
	return s.create(s.name()+".fifo", append([]string{"FifoTopic", "true"}, attributes...)...)
}

func (s *stage) create(name string, attributes ...string) string {
	s.Helper()
	return s.done("CreateTopic", topicMembers(name, attributes...)).text("TopicArn")
}

func topicMembers(name string, attributes ...string) in {
	members := in{"Name": name}
	if len(attributes) > 0 {
		members["Attributes"] = pairs(attributes...)
	}
	return members
}

// arnOf is the ARN of a name that no topic has.
func (s *stage) arnOf(name string) string { return "arn:aws:sns:eu-west-1:000000000000:" + name }

func topicName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// topicAttributes are those of a topic.
func (s *stage) topicAttributes(topic string) map[string]string {
	s.Helper()
	return attributesOf(s.done("GetTopicAttributes", in{"TopicArn": topic}))
}

// subscriptionAttributes are those of a subscription.
func (s *stage) subscriptionAttributes(subscription string) map[string]string {
	s.Helper()
	return attributesOf(s.done("GetSubscriptionAttributes", in{"SubscriptionArn": subscription}))
}

// setTopic sets an attribute of a topic.
func (s *stage) setTopic(topic, name, value string) {
	s.Helper()
	s.done("SetTopicAttributes", in{"TopicArn": topic, "AttributeName": name, "AttributeValue": value})
}

// setSubscription sets an attribute of a subscription.
func (s *stage) setSubscription(subscription, name, value string) {
	s.Helper()
	s.done("SetSubscriptionAttributes", in{"SubscriptionArn": subscription, "AttributeName": name, "AttributeValue": value})
}

// subscribe subscribes a queue, with attributes: name, value, name, value.
func (s *stage) subscribe(topic, queueURL string, attributes ...string) string {
	s.Helper()
	return s.done("Subscribe", subscribeMembers(topic, s.arn(queueURL), attributes...)).text("SubscriptionArn")
}

func subscribeMembers(topic, queueARN string, attributes ...string) in {
	members := in{"TopicArn": topic, "Protocol": "sqs", "Endpoint": queueARN}
	if len(attributes) > 0 {
		members["Attributes"] = pairs(attributes...)
	}
	return members
}

// subscribed makes a topic and a queue that is subscribed to it.
func (s *stage) subscribed(attributes ...string) (topic, queueURL, subscription string) {
	s.Helper()
	topic, queueURL = s.topic(), s.queue()
	return topic, queueURL, s.subscribe(topic, queueURL, attributes...)
}

// publish publishes a message, with further members if given.
func (s *stage) publish(topic, message string, more ...in) tree {
	s.Helper()
	members := in{"TopicArn": topic, "Message": message}
	for _, m := range more {
		members = members.with(m)
	}
	out := s.done("Publish", members)
	if !uuid.MatchString(out.text("MessageId")) {
		s.Errorf("MessageId: got %q, want a UUID", out.text("MessageId"))
	}
	return out
}

// all asks a queue for all there is of a message.
var all = in{"AttributeNames": []string{"All"}, "MessageAttributeNames": []string{"All"}, "WaitTimeSeconds": 5}

// delivered receives one message and deletes it.
func (s *stage) delivered(queueURL string) tree {
	s.Helper()
	m := s.one(queueURL, all)
	s.delete(queueURL, handle(m))
	return m
}

// envelope receives one message that is an envelope, and deletes it.
func (s *stage) envelope(queueURL string) tree {
	s.Helper()
	return s.unwrap(s.delivered(queueURL))
}

func (s *stage) unwrap(m tree) tree {
	s.Helper()
	var e tree
	if err := json.Unmarshal([]byte(m.text("Body")), &e); err != nil {
		s.Fatalf("the body %q is no envelope: %v", m.text("Body"), err)
	}
	return e
}

// gets checks which messages a queue has got, in any order, by their texts in
// envelopes.
func (s *stage) gets(queueURL string, want ...string) {
	s.Helper()
	left := map[string]int{}
	for _, text := range want {
		left[text]++
	}
	for range want {
		text := s.envelope(queueURL).text("Message")
		if left[text]--; left[text] < 0 {
			s.Errorf("got %q, want %q", text, want)
		}
	}
	s.none(queueURL)
}

// publishEntries are n entries of a PublishBatch.
func publishEntries(n int) []in {
	list := make([]in, n)
	for i := range list {
		list[i] = in{"Id": fmt.Sprint(i + 1), "Message": fmt.Sprint("message ", i+1)}
	}
	return list
}

// groupEntries are publishEntries for a FIFO topic, all of one group.
func groupEntries(n int) []in {
	list := publishEntries(n)
	for i := range list {
		list[i]["MessageGroupId"] = "g"
		list[i]["MessageDeduplicationId"] = fmt.Sprint(i)
	}
	return list
}
