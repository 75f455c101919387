package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// C66–C84, as far as they are about queues: what is delivered.
func TestDelivery(t *testing.T) {
	perform(t, []act{
		{id: "C66-C68", title: "an envelope", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed()
			published := s.publish(topic, `a "<b>" & é`, in{"Subject": "about"}, messageAttributes(in{"n": number("99.12"), "b": blob([]byte{2, 3, 4})}))
			m := s.delivered(queueURL)
			if m["MessageAttributes"] != nil || m["MD5OfMessageAttributes"] != nil {
				s.Errorf("got attributes %v, want none beside the body", m)
			}
			e := s.unwrap(m)
			s.has(flat(e), "Type", "Notification", "MessageId", published.text("MessageId"), "TopicArn", topic, "Subject", "about",
				"Message", `a "<b>" & é`, "SignatureVersion", "1", "SequenceNumber", "-")
			for key, pattern := range map[string]string{
				"Timestamp":      `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
				"Signature":      `^[A-Za-z0-9+/]{342}==$`,
				"SigningCertURL": `^https?://[^/]+/SimpleNotificationService-[0-9a-f]{32}\.pem$`,
				"UnsubscribeURL": `^https?://[^/]+/\?Action=Unsubscribe&SubscriptionArn=` + regexp.QuoteMeta(sub) + `$`,
			} {
				if !regexp.MustCompile(pattern).MatchString(e.text(key)) {
					s.Errorf("%s: got %q, want %s", key, e.text(key), pattern)
				}
			}
			if got := fmt.Sprint(e.at("MessageAttributes")); got != "map[b:map[Type:Binary Value:AgME] n:map[Type:Number Value:99.12]]" {
				s.Errorf("MessageAttributes: got %s", got)
			}
			s.inOrder(m.text("Body"), "Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "SignatureVersion", "Signature",
				"SigningCertURL", "UnsubscribeURL", "MessageAttributes")
			if !strings.HasPrefix(m.text("Body"), "{\n  \"Type\" : \"Notification\",\n  \"MessageId\" : ") {
				s.Errorf("got %.80q, want the spaces of AWS", m.text("Body"))
			}
		}},
		{id: "C67", title: "without attributes", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			s.publish(topic, "m")
			if e := s.envelope(queueURL); e["MessageAttributes"] != nil || e["Subject"] != nil {
				s.Errorf("got %v", e)
			}
		}},
		{id: "C69", title: "an envelope of a FIFO topic", play: func(s *stage) {
			topic, queueURL := s.fifoTopic("ContentBasedDeduplication", "true"), s.scene.create(s.name()+".fifo", "FifoQueue", "true")
			s.subscribe(topic, queueURL)
			published := s.publish(topic, "Test", in{"MessageGroupId": "g"})
			m := s.delivered(queueURL)
			s.has(attributesOf(m), "MessageGroupId", "g",
				"MessageDeduplicationId", "532eaabd9574880dbf76b9b8cc00832c20a6ec113d682299550d7a6e0f345e25")
			s.has(flat(s.unwrap(m)), "Type", "Notification", "SequenceNumber", published.text("SequenceNumber"),
				"SignatureVersion", "-", "Signature", "-", "SigningCertURL", "-")
			s.inOrder(m.text("Body"), "Type", "MessageId", "SequenceNumber", "TopicArn", "Message", "Timestamp", "UnsubscribeURL")
			standard := s.queue()
			s.subscribe(topic, standard)
			s.publish(topic, "for both", in{"MessageGroupId": "g"})
			m = s.delivered(standard)
			s.has(attributesOf(m), "MessageGroupId", "-", "MessageDeduplicationId", "-")
			if got := s.unwrap(m).text("Message"); got != "for both" {
				s.Errorf("got %q", got)
			}
		}},
		{id: "raw", title: "raw, with attributes", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed("RawMessageDelivery", "true")
			for value, digest := range map[string]string{"99.12": "d302007e9aa062660afc85fd0a482472", "19.12": "1f07082409022a373fa2a2601f82b3cb"} {
				s.publish(topic, "raw", in{"Subject": "lost"}, messageAttributes(in{"attr1": number(value)}))
				m := s.delivered(queueURL)
				if m.text("Body") != "raw" || m.text("MD5OfMessageAttributes") != digest || m.text("MessageAttributes", "attr1", "StringValue") != value {
					s.Errorf("got %v, want digest %s", m, digest)
				}
			}
			s.publish(topic, "raw", messageAttributes(in{"attr1": number("99.12"), "attr2": number("109.12")}))
			if m := s.delivered(queueURL); m.text("MD5OfMessageAttributes") != "9b720b3af309c1c4b0d395c53b08c502" {
				s.Errorf("got %v", m)
			}
			s.publish(topic, "raw", messageAttributes(in{"b": blob([]byte{0, 255})}))
			if m := s.delivered(queueURL); m.text("MessageAttributes", "b", "BinaryValue") != "AP8=" {
				s.Errorf("got %v", m)
			}
		}},
		{id: "trace", title: "the trace header", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			const header = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
			for given, want := range map[string]string{
				header:                    header,
				"Root=\xff":               "", // what no message can have is not passed on
				strings.Repeat("x", 1025): "",
			} {
				r := snsRequest("Publish", in{"TopicArn": topic, "Message": "m"})
				r.header["X-Amzn-Trace-Id"] = given
				s.succeeded("Publish", s.request(r))
				m := s.one(queueURL, in{"AttributeNames": []string{"AWSTraceHeader"}, "WaitTimeSeconds": 5})
				if got := m.text("Attributes", "AWSTraceHeader"); got != want {
					s.Errorf("got %q, want %q", got, want)
				}
			}
		}},
		{id: "C77-C78", title: "denied, or gone", play: func(s *stage) {
			topic, dead := s.topic(), s.queue()
			redrive := []string{"RedrivePolicy", `{"deadLetterTargetArn":"` + s.arn(dead) + `"}`}
			queueURL := s.queue()
			arn := s.arn(queueURL)
			s.subscribe(topic, queueURL, redrive...)
			s.set(queueURL, "Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
				`"Action":"sqs:SendMessage","Resource":"`+arn+`","Condition":{"ArnEquals":{"aws:SourceArn":"`+topic+`"}}}]}`)
			s.publish(topic, "allowed")
			s.gets(queueURL, "allowed")
			s.set(queueURL, "Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
				`"Action":"sqs:SendMessage","Resource":"`+arn+`","Condition":{"ArnEquals":{"aws:SourceArn":"`+topic+`2"}}}]}`)
			s.publish(topic, "denied")
			s.gets(dead, "denied")
			s.ok("DeleteQueue", in{"QueueUrl": queueURL})
			s.publish(topic, "gone")
			s.gets(dead, "gone")
			s.none(dead)
		}},
		{id: "C78b", title: "gone, and raw", play: func(s *stage) {
			topic, dead := s.topic(), s.queue()
			s.done("Subscribe", subscribeMembers(topic, "arn:aws:sqs:eu-west-1:000000000000:"+s.name(), "RawMessageDelivery", "true",
				"RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`))
			s.publish(topic, "raw", messageAttributes(in{"a": text("x")}))
			if m := s.delivered(dead); m.text("Body") != "raw" || m.text("MessageAttributes", "a", "StringValue") != "x" {
				s.Errorf("got %v", m)
			}
		}},
		{id: "characters", title: "raw, of characters that no message of a queue has", play: func(s *stage) {
			topic, queueURL, dead := s.topic(), s.queue(), s.queue()
			s.subscribe(topic, queueURL, "RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+s.arn(dead)+`"}`)
			for _, message := range []string{"a\x01b", "\x00", "\uffff"} {
				s.publish(topic, message)
				if got := s.envelope(dead).text("Message"); got != message {
					s.Errorf("got %q, want %q", got, message)
				}
			}
			s.publish(topic, `{"default":"fine","sqs":"\u000b"}`, in{"MessageStructure": "json"})
			if got := s.envelope(dead).text("Message"); got != "\v" {
				s.Errorf("got %q", got)
			}
			s.publish(topic, `{"default":"\u0000","sqs":"\tfine\n"}`, in{"MessageStructure": "json"})
			if m := s.delivered(queueURL); m.text("Body") != "\tfine\n" {
				s.Errorf("got %v", m)
			}
			s.none(dead)
		}},
		{id: "C80", title: "published before", play: func(s *stage) {
			topic := s.topic()
			s.publish(topic, "before")
			queueURL := s.queue()
			s.subscribe(topic, queueURL)
			s.publish(topic, "after")
			s.gets(queueURL, "after")
		}},
		{id: "batch", title: "a batch, in order", play: func(s *stage) {
			topic, queueURL := s.fifoTopic("ContentBasedDeduplication", "true"), s.scene.create(s.name()+".fifo", "FifoQueue", "true")
			s.subscribe(topic, queueURL, "RawMessageDelivery", "true")
			entries := publishEntries(10)
			for i := range entries {
				entries[i]["MessageGroupId"] = "g"
			}
			out := s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": entries})
			if got := s.successes(out); got != "1 2 3 4 5 6 7 8 9 10" {
				s.Errorf("got %s", got)
			}
			messages := s.receive(queueURL, in{"MaxNumberOfMessages": 10, "WaitTimeSeconds": 5})
			for i, m := range messages {
				if m.text("Body") != fmt.Sprint("message ", i+1) {
					s.Errorf("message %d is %q", i+1, m.text("Body"))
				}
			}
			if len(messages) != 10 {
				s.Errorf("got %d messages, want 10", len(messages))
			}
		}},
		{id: "two", title: "two subscriptions, each its own way", play: func(s *stage) {
			topic, enveloped, _ := s.subscribed()
			raw := s.queue()
			s.subscribe(topic, raw, "RawMessageDelivery", "true")
			s.publish(topic, "m")
			if m := s.delivered(raw); m.text("Body") != "m" {
				s.Errorf("got %v", m)
			}
			s.gets(enveloped, "m")
		}},
		{id: "certificate", title: "where the certificate is", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			s.publish(topic, "m")
			_, name, _ := strings.Cut(s.envelope(queueURL).text("SigningCertURL"), "/SimpleNotificationService-")
			response, err := client.Get(s.endpoint + "/SimpleNotificationService-" + name)
			if err != nil {
				s.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/x-pem-file" {
				s.Errorf("got %s %v", response.Status, response.Header)
			}
		}},
	})
}

// flat are the texts of an envelope.
func flat(e tree) map[string]string {
	m := map[string]string{}
	for _, name := range sortedKeys(e) {
		if text, ok := e[name].(string); ok {
			m[name] = text
		}
	}
	return m
}

// inOrder checks the members of a JSON object, in their order.
func (s *stage) inOrder(document string, want ...string) {
	s.Helper()
	d := json.NewDecoder(strings.NewReader(document))
	if _, err := d.Token(); err != nil {
		s.Fatal(err)
	}
	var got []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			s.Fatal(err)
		}
		got = append(got, name.(string))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			s.Fatal(err)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		s.Errorf("members: got %v, want %v", got, want)
	}
}
