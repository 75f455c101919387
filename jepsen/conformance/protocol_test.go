package conformance

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// get is a Query call by GET, at a path, signed or not. The values are pairs.
func get(path string, values ...string) request {
	form := url.Values{}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	if len(form) > 0 {
		path += "?" + form.Encode()
	}
	return request{method: http.MethodGet, path: path}
}

// target is a JSON request with a body as it stands.
func target(action, body string) request {
	r := jsonWire.render(action, nil)
	r.body = []byte(body)
	return r
}

// P1–P21: how requests are told apart, and the shape of answers.
func TestProtocol(t *testing.T) {
	play(t, []script{
		{id: "P1", title: "an empty receive is an empty object", only: jsonWire, play: func(s *scene) {
			a := s.call("ReceiveMessage", in{"QueueUrl": s.queue()})
			s.succeeded("ReceiveMessage", a)
			if got := strings.TrimSpace(string(a.body)); got != "{}" {
				s.Errorf("body: got %q, want {}", got)
			}
		}},
		{id: "P2", title: "an action without output has an empty body", only: jsonWire, play: func(s *scene) {
			url := s.queue()
			s.send(url, "x")
			a := s.call("DeleteMessage", in{"QueueUrl": url, "ReceiptHandle": handle(s.one(url))})
			s.succeeded("DeleteMessage", a)
			if len(a.body) != 0 {
				s.Errorf("body: got %q, want none", a.body)
			}
		}},
		{id: "P3", title: "an unknown target", only: jsonWire, play: func(s *scene) {
			a := s.refused("Bogus", nil, fails("InvalidAction"))
			if a.message != "" {
				s.Errorf("message: got %q, want none", a.message)
			}
		}},
		{id: "P3b", title: "a JSON content type without a target", only: jsonWire, play: func(s *scene) {
			r := target("ListQueues", "{}")
			delete(r.header, "X-Amz-Target")
			s.failed("no target", s.do(r), fails("InvalidAction"))
			for _, odd := range []string{"AmazonSQS.listqueues", "ListQueues", "AmazonSNS.ListQueues", "AmazonSQS.", ""} {
				r.header["X-Amz-Target"] = odd
				s.failed(odd, s.do(r), fails("InvalidAction"))
			}
		}},
		{id: "P4", title: "a body that is no JSON object", only: jsonWire, play: func(s *scene) {
			for _, body := range []string{`{bad`, `[]`, `"x"`, `{"QueueName":"x"`, `{"QueueName":"x"} trailing`, `nonsense`} {
				s.failed(body, s.do(target("GetQueueUrl", body)), fails("MalformedInput"))
			}
		}},
		{id: "P5", title: "no QueueUrl", play: func(s *scene) {
			s.refused("SendMessage", in{"MessageBody": "x"}, queueMissing)
			s.refused("SendMessage", in{"MessageBody": "x", "QueueUrl": ""}, queueMissing)
			s.refused("SendMessage", nil, queueMissing)
		}},
		{id: "P6", title: "a deleted queue", only: jsonWire, play: deletedQueue},
		{id: "P7", title: "a deleted queue", only: queryWire, play: deletedQueue},
		{id: "P8", title: "a GET without parameters", only: queryWire, play: func(s *scene) {
			for _, accept := range []string{"", "application/json"} {
				r := get(path(s.queue()))
				r.header = map[string]string{"Accept": accept}
				a := s.do(r)
				if a.status != http.StatusNotFound || !strings.Contains(string(a.body), "<UnknownOperationException") {
					s.Errorf("Accept %q: got %d %q, want 404 with UnknownOperationException", accept, a.status, a.body)
				}
			}
		}},
		{id: "P9", title: "an unknown action", only: queryWire, play: func(s *scene) {
			s.failed("FooBar", s.do(get(path(s.queue()), "Action", "FooBar")),
				fails("InvalidAction", "The action FooBar is not valid for this endpoint."))
			s.refused("FooBar", nil, fails("InvalidAction", "The action FooBar is not valid for this endpoint."))
		}},
		{id: "P10", title: "an action that is not about a queue, at a queue's path", only: queryWire, play: func(s *scene) {
			at := path(s.queue())
			s.failed("ListQueues", s.do(get(at, "Action", "ListQueues")),
				fails("InvalidAction", "The action ListQueues is not valid for this endpoint."))
			s.failed("CreateQueue", s.do(get(at, "Action", "CreateQueue", "QueueName", s.name())),
				fails("InvalidAction", "The action CreateQueue is not valid for this endpoint."))
		}},
		{id: "P11", title: "GetQueueUrl at a queue's path", only: queryWire, play: func(s *scene) {
			q1, q2 := s.queue(), s.queue()
			for _, q := range []string{q1, q2} {
				a := s.do(get(path(q1), "Action", "GetQueueUrl", "QueueName", queueName(q), "QueueOwnerAWSAccountId", account(q)))
				s.succeeded("GetQueueUrl", a)
				if got := a.out.text("QueueUrl"); got != q {
					s.Errorf("QueueUrl: got %s, want %s", got, q)
				}
				if q == q2 && strings.Contains(string(a.body), queueName(q1)) {
					s.Errorf("the answer mentions %s: %s", q1, a.body)
				}
			}
		}},
		{id: "P12", title: "a QueueUrl parameter beats the path", only: queryWire, play: func(s *scene) {
			q1, q2 := s.queue(), s.queue()
			a := s.do(get(path(q1), "Action", "GetQueueAttributes", "QueueUrl", q2, "AttributeName.1", "QueueArn"))
			s.succeeded("GetQueueAttributes", a)
			if arn := a.out.text("Attributes", "QueueArn"); !strings.HasSuffix(arn, ":"+queueName(q2)) {
				s.Errorf("QueueArn: got %s, want that of %s", arn, q2)
			}
		}},
		{id: "P13", title: "a missing parameter at a queue's path", only: queryWire, play: func(s *scene) {
			s.failed("SendMessage", s.do(get(path(s.queue()), "Action", "SendMessage")),
				fails(missingParameter, "The request must contain the parameter MessageBody."))
		}},
		{id: "P14", title: "attributes by GET, without Version", only: queryWire, play: func(s *scene) {
			q := s.queue()
			a := s.do(get(path(q), "Action", "GetQueueAttributes", "AttributeName.1", "QueueArn"))
			s.succeeded("GetQueueAttributes", a)
			if names := a.out.names("Attributes"); len(names) != 1 || !strings.HasPrefix(a.out.text("Attributes", "QueueArn"), "arn:aws:sqs:") {
				s.Errorf("got %v, want QueueArn alone", a.out)
			}
			// An index left out is the first.
			a = s.do(get(path(q), "Action", "GetQueueAttributes", "AttributeName", "QueueArn"))
			if names := a.out.names("Attributes"); len(names) != 1 {
				s.Errorf("AttributeName without an index: got %v, want QueueArn", a.out)
			}
		}},
		{id: "P15", title: "an unknown attribute by GET", only: queryWire, play: func(s *scene) {
			s.failed("GetQueueAttributes", s.do(get(path(s.queue()), "Action", "GetQueueAttributes", "AttributeName.1", "Foobar")),
				fails("InvalidAttributeName", "Unknown Attribute Foobar."))
		}},
		{id: "P16", title: "JSON at a queue's path", only: jsonWire, play: func(s *scene) {
			q, other := s.queue(), s.queue()
			r := s.wire.render("SendMessage", in{"QueueUrl": q, "MessageBody": "x"})
			r.path = path(q)
			s.succeeded("SendMessage", s.do(r))
			r.path = path(other) // the member decides
			s.succeeded("SendMessage", s.do(r))
			s.counts(q, "2", "0", "0")
		}},
		{id: "P17", title: "an empty receive in XML", only: queryWire, play: func(s *scene) {
			a := s.do(get(path(s.queue()), "Action", "ReceiveMessage"))
			s.succeeded("ReceiveMessage", a)
			if !strings.Contains(string(a.body), "<ReceiveMessageResult/>") && !strings.Contains(string(a.body), "<ReceiveMessageResult></ReceiveMessageResult>") {
				s.Errorf("body: got %s, want <ReceiveMessageResult/>", a.body)
			}
		}},
		{id: "P18", title: "carriage returns and entities survive, also across protocols", play: func(s *scene) {
			q := s.queue()
			body := "{\"foo\": \"ba\rr\", \"foo2\": \"ba&quot;r&quot;\"} <&amp;> \r\n\t]]> 'é' \"𝄞\" &#xD;"
			for _, reader := range []wire{jsonWire, queryWire} {
				s.send(q, body, messageAttributes(in{"a": text(body)}))
				other := &scene{T: s.T, wire: reader, endpoint: s.endpoint}
				m := other.one(q, in{"MessageAttributeNames": []string{"All"}})
				if m.text("Body") != body {
					s.Errorf("sent by %s, read by %s:\n got %q\nwant %q", s.wire, reader, m.text("Body"), body)
				}
				if got := m.text("MessageAttributes", "a", "StringValue"); got != body {
					s.Errorf("attribute sent by %s, read by %s:\n got %q\nwant %q", s.wire, reader, got, body)
				}
				other.delete(q, handle(m))
			}
		}},
		{id: "P19", title: "a bare queue name for a URL", play: func(s *scene) {
			q := s.queue()
			s.send(queueName(q), "x")
			s.delete(queueName(q), handle(s.one(queueName(q))))
		}},
		{id: "P20", title: "a QueueUrl that names no queue", play: func(s *scene) {
			for _, url := range []string{
				"http://whatever-incorrect-queue-address",
				s.endpoint + "/000000000000/" + s.name(),
				s.endpoint + "/999999999999/" + queueName(s.queue()),
				"no such queue", "://", "a//b", "/", "https://", "nope\x00",
			} {
				s.refused("SendMessage", in{"QueueUrl": url, "MessageBody": "x"}, queueMissing)
			}
		}},
		{id: "P21", title: "the host of a QueueUrl does not matter", play: func(s *scene) {
			q := s.queue()
			for _, host := range []string{"https://queue.amazonaws.com", "http://eu-west-1.queue.amazonaws.com", "https://sqs.eu-west-1.amazonaws.com", "http://localhost:1"} {
				s.send(host+path(q), "x")
			}
			s.counts(q, "4", "0", "0")
		}},
	})
}

func deletedQueue(s *scene) {
	q := s.queue()
	s.ok("DeleteQueue", in{"QueueUrl": q})
	s.refused("GetQueueAttributes", in{"QueueUrl": q}, queueMissing)
	s.refused("GetQueueUrl", in{"QueueName": queueName(q)}, queueMissing)
}

// account is the second last segment of a queue URL.
func account(url string) string { return strings.Split(path(url), "/")[1] }
