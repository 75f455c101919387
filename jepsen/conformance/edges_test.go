package conformance

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// attribute is a message attribute as the digest sees it.
type attribute struct {
	name, dataType, value string
	binary                bool
}

// attributesDigest is MD5OfMessageAttributes, written anew from the developer
// guide ("Calculating the MD5 message digest for message attributes"). The
// attributes come sorted by name.
func attributesDigest(attributes []attribute) string {
	var encoded []byte
	add := func(text string) {
		encoded = binary.BigEndian.AppendUint32(encoded, uint32(len(text)))
		encoded = append(encoded, text...)
	}
	for _, a := range attributes {
		add(a.name)
		add(a.dataType)
		kind := byte(1)
		if a.binary {
			kind = 2
		}
		encoded = append(encoded, kind)
		add(a.value)
	}
	sum := md5.Sum(encoded)
	return hex.EncodeToString(sum[:])
}

// TestEdges has the requests at the ends of what is allowed, and those that no
// SDK sends.
func TestEdges(t *testing.T) {
	play(t, []script{
		{id: "mebibyte", title: "1 MiB of two-byte characters", play: func(s *scene) {
			q := s.queue()
			body := strings.Repeat("é", 1<<19)
			s.send(q, body)
			s.bodies(s.receive(q), body)
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": body + "a"}, tooLongFor(1<<20))
		}},
		{id: "mebibyte-escaped", title: "1 MiB, each byte of it escaped", play: func(s *scene) {
			q := s.queue()
			escaped, body := strings.Repeat(`\u0061`, 1<<20), strings.Repeat("a", 1<<20)
			r := target("SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"`+escaped+`"}`)
			if s.wire == queryWire {
				r = s.wire.render("SendMessage", in{"QueueUrl": q})
				r.body = append(r.body, "&MessageBody="+strings.Repeat("%61", 1<<20)...)
			}
			a := s.do(r)
			s.succeeded("SendMessage", a)
			s.bodies(s.receive(q), body)
		}},
		{id: "mebibyte-marks", title: "1 MiB of what XML must escape", play: func(s *scene) {
			q := s.queue()
			body := strings.Repeat("<&>\"'\r\n\t", 1<<17)
			s.send(q, body)
			s.bodies(s.receive(q), body)
		}},
		{id: "batch-mebibyte", title: "ten entries that fill a batch", play: func(s *scene) {
			q := s.queue()
			body := strings.Repeat("a", 1<<20/10)
			var entries []in
			for i := range 10 {
				entries = append(entries, in{"Id": fmt.Sprint(i), "MessageBody": body})
			}
			s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": entries})
			if got := len(s.receive(q, ten)); got != 10 {
				s.Errorf("got %d messages, want 10", got)
			}
		}},
		{id: "ten-mebibytes", title: "a receive of ten of the largest messages", play: func(s *scene) {
			q := s.queue()
			body := strings.Repeat("a", 1<<20)
			for range 10 {
				s.send(q, body)
			}
			got := len(s.receive(q, ten))
			if got == 0 {
				s.Fatal("got no message")
			}
			for got < 10 { // a receive may end early, and what it left is there
				more := len(s.receive(q, ten))
				if more == 0 {
					s.Fatalf("got %d messages in all, want 10", got)
				}
				got += more
			}
			s.counts(q, "0", "10", "0")
		}},
		{id: "nesting", title: "deep JSON", only: jsonWire, play: func(s *scene) {
			q := s.queue()
			for _, depth := range []int{30, 40, 200, 100_000} {
				deep := strings.Repeat(`{"a":[`, depth/2) + "1" + strings.Repeat(`]}`, depth/2)
				a := s.do(target("SendMessage", `{"Unknown":`+deep+`,"QueueUrl":"`+q+`","MessageBody":"x"}`))
				if tooDeep := depth > 30 && a.status == 400 && a.code == "MalformedInput"; a.status != 200 && !tooDeep {
					s.Errorf("%d levels: got %d %q, want 200, or MalformedInput from 31 on", depth, a.status, a.code)
				}
				s.failed("SendMessage", s.do(target("SendMessage", `{"QueueUrl":"`+q+`","MessageBody":`+deep+`}`)), fails("MalformedInput"))
			}
			s.ok("ListQueues", in{"QueueNamePrefix": s.name()})
		}},
		{id: "indices", title: "odd indices of a form", only: queryWire, play: func(s *scene) {
			q := s.queue()
			a := s.do(get("/", "Action", "SendMessageBatch", "QueueUrl", q,
				"SendMessageBatchRequestEntry.2000000000.Id", "b", "SendMessageBatchRequestEntry.2000000000.MessageBody", "second",
				"SendMessageBatchRequestEntry.7.Id", "a", "SendMessageBatchRequestEntry.7.MessageBody", "first"))
			s.succeeded("SendMessageBatch", a)
			s.entrySent(a.out, 0, "a", "first")
			s.entrySent(a.out, 1, "b", "second")
			for _, index := range []string{"99999999999999999999999999", "-1", "x", "", "0x1", "1.1.1.1.1"} {
				a := s.do(get("/", "Action", "SendMessageBatch", "QueueUrl", q,
					"SendMessageBatchRequestEntry."+index+".Id", "a", "SendMessageBatchRequestEntry."+index+".MessageBody", "x"))
				if a.status != 200 && a.status != 400 {
					s.Errorf("index %q: got %d %q, want 200 or 400", index, a.status, a.code)
				}
			}
		}},
		{id: "many-indices", title: "entries and attributes by the thousand", only: queryWire, play: func(s *scene) {
			q := s.queue()
			r := s.wire.render("SendMessageBatch", in{"QueueUrl": q, "Entries": batchEntries(100)})
			s.failed("SendMessageBatch", s.do(r), fails("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 100."))
			s.refusedOr("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "MalformedInput")("SendMessageBatch", in{"QueueUrl": q, "Entries": batchEntries(20_000)})
			attributes := in{}
			for i := range 100 {
				attributes[fmt.Sprint("a", i)] = text("x")
			}
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageAttributes": attributes},
				fails(invalidValue, "Number of message attributes [100] exceeds the allowed maximum [10]."))
		}},
		{id: "form-escapes", title: "escapes of a form", only: queryWire, play: func(s *scene) {
			q := s.queue()
			r := s.wire.render("SendMessage", in{"QueueUrl": q})
			r.body = append(r.body, "&MessageBody=%c3%A9+%2B%26%3d;"...)
			s.succeeded("SendMessage", s.do(r))
			s.bodies(s.receive(q), "é +&=;")
			for _, bad := range []string{"%", "%f", "%zz", "%ff", "%c3"} {
				r := s.wire.render("SendMessage", in{"QueueUrl": q})
				r.body = append(r.body, "&MessageBody="+bad...)
				if a := s.do(r); a.status != 200 && a.status != 400 {
					s.Errorf("%s: got %d, want 200 or 400", bad, a.status)
				}
			}
		}},
		{id: "repeated-attribute", title: "an attribute name given twice", only: queryWire, play: func(s *scene) {
			q := s.queue()
			s.failed("SendMessage", s.do(get("/", "Action", "SendMessage", "QueueUrl", q, "MessageBody", "x",
				"MessageAttribute.1.Name", "a", "MessageAttribute.1.Value.DataType", "String", "MessageAttribute.1.Value.StringValue", "1",
				"MessageAttribute.2.Name", "a", "MessageAttribute.2.Value.DataType", "String", "MessageAttribute.2.Value.StringValue", "2")),
				fails(invalidValue))
		}},
		{id: "bad-base64", title: "a blob that is not base64", play: func(s *scene) {
			q := s.queue()
			for _, value := range []string{"***", "AQI", "AQ==x"} {
				attributes := in{"a": in{"DataType": "Binary", "BinaryValue": value}}
				s.refusedOr("MalformedInput", invalidValue)("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageAttributes": attributes})
			}
		}},
		{id: "unknown-members", title: "unknown members and nulls", only: jsonWire, play: func(s *scene) {
			q := s.queue()
			s.succeeded("SendMessage", s.do(target("SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"x","Other":{"a":[1,null,"x"]},"DelaySeconds":null,
				"MessageAttributes":null,"MessageGroupId":null,"MessageSystemAttributes":{},"messagebody":5}`)))
			s.succeeded("ReceiveMessage", s.do(target("ReceiveMessage", `{"QueueUrl":"`+q+`","AttributeNames":null,"MaxNumberOfMessages":null,"WaitTimeSeconds":null,"VisibilityTimeout":null}`)))
			s.counts(q, "0", "1", "0")
		}},
		{id: "coercion", title: "numbers as strings and strings as numbers", only: jsonWire, play: func(s *scene) {
			q := s.queue()
			s.succeeded("SendMessage", s.do(target("SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"x","DelaySeconds":"0"}`)))
			s.succeeded("ReceiveMessage", s.do(target("ReceiveMessage", `{"QueueUrl":"`+q+`","MaxNumberOfMessages":"10","VisibilityTimeout":"30"}`)))
			s.succeeded("SetQueueAttributes", s.do(target("SetQueueAttributes", `{"QueueUrl":"`+q+`","Attributes":{"DelaySeconds":5,"SqsManagedSseEnabled":false}}`)))
			s.hasAttributes(q, "DelaySeconds", "5", "SqsManagedSseEnabled", "false")
			s.succeeded("TagQueue", s.do(target("TagQueue", `{"QueueUrl":"`+q+`","Tags":{"a":1,"b":true}}`)))
			if got, want := fmt.Sprint(s.ok("ListQueueTags", in{"QueueUrl": q})["Tags"]), "map[a:1 b:true]"; got != want {
				s.Errorf("tags: got %s, want %s", got, want)
			}
		}},
		{id: "types", title: "members of the wrong type", only: jsonWire, play: wrongTypes},
		{id: "empty-body", title: "a JSON request without a body", only: jsonWire, play: func(s *scene) {
			s.succeeded("ListQueues", s.do(target("ListQueues", "")))
			s.failed("SendMessage", s.do(target("SendMessage", "")), queueMissing)
		}},
		{id: "spaces", title: "white space, a repeated member, a lone surrogate", only: jsonWire, play: func(s *scene) {
			q := s.queue()
			s.succeeded("SendMessage", s.do(target("SendMessage", "\n\t {\r\n \"QueueUrl\" : \""+q+"\" ,\"MessageBody\":\"\\ud834\\udd1e\\/\\\"\\u00e9\"} \n")))
			s.bodies(s.receive(q), "𝄞/\"é")
			a := s.do(target("SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"\ud834"}`))
			if a.status != 200 && a.status != 400 {
				s.Errorf("a lone surrogate: got %d, want 200 or 400", a.status)
			}
			a = s.do(target("SendMessage", `{"QueueUrl":"`+q+"\",\"MessageBody\":\"\xff\xfe\"}"))
			if a.status != 400 {
				s.Errorf("bytes that are not UTF-8: got %d, want 400", a.status)
			}
		}},
		{id: "content-type", title: "other content types of JSON", only: jsonWire, play: func(s *scene) {
			for _, contentType := range []string{"application/x-amz-json-1.0; charset=utf-8", "application/x-amz-json-1.1", "application/json", ""} {
				r := s.wire.render("ListQueues", in{"QueueNamePrefix": s.name()})
				r.header["Content-Type"] = contentType
				s.succeeded(contentType, s.do(r))
			}
		}},
		{id: "get-lifecycle", title: "a whole life by GET, signed in the query string", only: queryWire, play: func(s *scene) {
			q := s.queue()
			call := func(action string, values ...string) tree {
				s.Helper()
				a := s.do(get(path(q), append(values, "Action", action, "X-Amz-Algorithm", "AWS4-HMAC-SHA256",
					"X-Amz-Credential", "AKIDEXAMPLE/20260101/eu-west-1/sqs/aws4_request", "X-Amz-Date", "20260101T000000Z",
					"X-Amz-Expires", "60", "X-Amz-SignedHeaders", "host", "X-Amz-Signature", "00")...))
				s.succeeded(action, a)
				return a.out
			}
			out := call("SendMessage", "MessageBody", "é +&=\r", "MessageAttribute.1.Name", "k",
				"MessageAttribute.1.Value.DataType", "String", "MessageAttribute.1.Value.StringValue", "x")
			if got, want := out.text("MD5OfMessageAttributes"), "a45daa70926828a2f0a1db3418e6feb4"; got != want {
				s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
			}
			out = call("ReceiveMessage", "MaxNumberOfMessages", "10", "AttributeName.1", "All", "MessageAttributeName.1", "All")
			s.bodies(out.list("Messages"), "é +&=\r")
			h := out.text("Messages", 0, "ReceiptHandle")
			call("ChangeMessageVisibility", "ReceiptHandle", h, "VisibilityTimeout", "60")
			call("DeleteMessage", "ReceiptHandle", h)
			s.counts(q, "0", "0", "0")
			call("DeleteQueue")
		}},
		{id: "get-with-target", title: "a target makes no JSON request of a GET", only: queryWire, play: func(s *scene) {
			r := get("/", "Action", "ListQueues", "QueueNamePrefix", s.name())
			r.header = map[string]string{"X-Amz-Target": "AmazonSQS.ListQueues"}
			s.succeeded("ListQueues", s.do(r))
		}},
		{id: "attempt-id", title: "a ReceiveRequestAttemptId on a standard queue", play: func(s *scene) {
			q := s.queue()
			s.send(q, "x")
			s.one(q, in{"ReceiveRequestAttemptId": "a"})
			s.none(q, in{"ReceiveRequestAttemptId": "a"})
		}},
		{id: "exact-send", title: "a plain send answers two members", play: func(s *scene) {
			out := s.send(s.queue(), "x")
			if got := strings.Join(sortedKeys(out), " "); got != "MD5OfMessageBody MessageId" {
				s.Errorf("got %s", got)
			}
		}},
		{id: "versions", title: "old API versions", only: queryWire, play: func(s *scene) {
			q := s.queue()
			for _, version := range []string{"2009-02-01", "2011-10-01", ""} {
				s.succeeded(version, s.do(get("/", "Action", "GetQueueAttributes", "QueueUrl", q, "AttributeName.1", "All", "Version", version)))
			}
		}},
		{id: "host", title: "queue URLs follow the Host header", play: func(s *scene) {
			q := s.queue()
			r := s.wire.render("GetQueueUrl", in{"QueueName": queueName(q)})
			r.host = "broker.test:9324"
			r.header["X-Forwarded-Proto"], r.header["X-Forwarded-Host"] = "https", "evil.example.com" // nobody trusted
			if got, want := s.do(r).out.text("QueueUrl"), "http://broker.test:9324"+path(q); got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			if want := s.endpoint + "/000000000000/" + queueName(q); q != want {
				s.Errorf("CreateQueue: got %s, want %s", q, want)
			}
			if got := s.ok("ListQueues", in{"QueueNamePrefix": queueName(q)}).text("QueueUrls", 0); got != q {
				s.Errorf("ListQueues: got %s, want %s", got, q)
			}
		}},
		{id: "forwarded", title: "queue URLs behind a trusted proxy", setting: strict, play: func(s *scene) {
			q := s.queue()
			r := s.wire.render("GetQueueUrl", in{"QueueName": queueName(q)})
			r.header["X-Forwarded-Proto"], r.header["X-Forwarded-Host"] = "https", "sqs.example.com"
			if got, want := s.do(r).out.text("QueueUrl"), "https://sqs.example.com"+path(q); got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			r.header["X-Forwarded-Port"] = "8443"
			if got, want := s.do(r).out.text("QueueUrl"), "https://sqs.example.com:8443"+path(q); got != want {
				s.Errorf("with a port: got %s, want %s", got, want)
			}
		}},
		{id: "public-url", title: "queue URLs of a configured host", setting: public, play: func(s *scene) {
			name := s.name()
			want := publicURL + "/000000000000/" + name
			if got := s.create(name); got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			s.send(want, "x")
			s.bodies(s.receive(want), "x")
		}},
		{id: "accounts", title: "a 12-digit access key names an account", play: func(s *scene) {
			q := s.queue()
			members := in{"QueueName": queueName(q)}
			r := s.wire.render("CreateQueue", members)
			r.header["Authorization"] = "AWS4-HMAC-SHA256 Credential=111122223333/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=00"
			theirs := s.do(r)
			s.succeeded("CreateQueue", theirs)
			if got := account(theirs.out.text("QueueUrl")); got != "111122223333" {
				s.Errorf("account: got %s, want 111122223333", got)
			}
			// Each sees its own, and the other's does not exist.
			s.refused("SendMessage", in{"QueueUrl": theirs.out.text("QueueUrl"), "MessageBody": "x"}, queueMissing)
			r2 := s.wire.render("SendMessage", in{"QueueUrl": q, "MessageBody": "x"})
			r2.header["Authorization"] = r.header["Authorization"]
			s.failed("SendMessage", s.do(r2), queueMissing)
		}},
		{id: "identity", title: "sts GetCallerIdentity on the same port", only: queryWire, play: func(s *scene) {
			status, body := s.raw(request{header: signature("sts"), body: []byte("Action=GetCallerIdentity&Version=2011-06-15")})
			if status != http.StatusOK || !strings.Contains(body, "<Account>000000000000</Account>") || !strings.Contains(body, "<Arn>arn:aws:") {
				s.Errorf("got %d %s, want the account", status, body)
			}
		}},
		{id: "too-large", title: "more than the wire takes", play: func(s *scene) {
			r := s.wire.render("SendMessage", in{"QueueUrl": s.queue(), "MessageBody": strings.Repeat("a", 8<<20)})
			a, err := s.wire.do(client, s.endpoint, r)
			if err == nil && a.status/100 != 4 {
				s.Errorf("got %d, want a 4xx or a closed connection", a.status)
			}
			s.ok("ListQueues", in{"QueueNamePrefix": s.name()})
		}},
		{id: "methods", title: "other methods", only: queryWire, play: func(s *scene) {
			for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead} {
				if status, _ := s.raw(request{method: method, path: "/"}); status/100 != 4 {
					s.Errorf("%s: got %d, want a 4xx", method, status)
				}
			}
		}},
		{id: "date", title: "every answer has a date and a length", play: func(s *scene) {
			a := s.call("ListQueues", in{"QueueNamePrefix": s.name()})
			date, err := http.ParseTime(a.header.Get("Date"))
			if err != nil || time.Since(date).Abs() > time.Minute {
				s.Errorf("Date: got %q (%v)", a.header.Get("Date"), err)
			}
			if a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
				s.Errorf("Content-Length: got %q, want %d", a.header.Get("Content-Length"), len(a.body))
			}
		}},
		{id: "request-ids", title: "each request has an id of its own", play: func(s *scene) {
			seen := map[string]bool{}
			for range 20 {
				id := s.call("ListQueues", in{"QueueNamePrefix": s.name()}).header.Get("x-amzn-RequestId")
				if !uuid.MatchString(id) {
					s.Errorf("got %q, want a UUID", id)
				}
				seen[id] = true
			}
			if len(seen) != 20 {
				s.Errorf("got %d different ids of 20", len(seen))
			}
		}},
	})
}

// raw sends a request whose answer is of neither protocol.
func (s *scene) raw(r request) (int, string) {
	s.Helper()
	a, err := jsonWire.do(client, s.endpoint, r)
	if err != nil && a.status == 0 {
		s.Fatal(err)
	}
	return a.status, string(a.body)
}

// wrongTypes sends members of types that the model does not have there. The
// texts are not recorded.
func wrongTypes(s *scene) {
	q := s.queue()
	for _, c := range [][2]string{
		{"SendMessage", `"MessageBody":{}`},
		{"SendMessage", `"MessageBody":["x"]`},
		{"SendMessage", `"MessageBody":5`},
		{"SendMessage", `"MessageBody":"x","DelaySeconds":"soon"`},
		{"SendMessage", `"MessageBody":"x","DelaySeconds":true`},
		{"SendMessage", `"MessageBody":"x","DelaySeconds":[]`},
		{"SendMessage", `"MessageBody":"x","MessageAttributes":[]`},
		{"SendMessage", `"MessageBody":"x","MessageAttributes":{"a":"b"}`},
		{"SendMessage", `"MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":5}}`},
		{"SendMessageBatch", `"Entries":{}`},
		{"SendMessageBatch", `"Entries":"x"`},
		{"SendMessageBatch", `"Entries":["x"]`},
		{"ReceiveMessage", `"MaxNumberOfMessages":"many"`},
		{"ReceiveMessage", `"AttributeNames":"All"`},
		{"ReceiveMessage", `"AttributeNames":[{}]`},
		{"ReceiveMessage", `"VisibilityTimeout":false`},
		{"SetQueueAttributes", `"Attributes":["x"]`},
		{"SetQueueAttributes", `"Attributes":{"DelaySeconds":{}}`},
		{"SetQueueAttributes", `"Attributes":{"DelaySeconds":[]}`},
		{"TagQueue", `"Tags":{"a":{}}`},
		{"UntagQueue", `"TagKeys":"a"`},
	} {
		s.failed(c[0]+" "+c[1], s.do(target(c[0], `{"QueueUrl":"`+q+`",`+c[1]+`}`)), fails("MalformedInput"))
	}
	s.failed("CreateQueue", s.do(target("CreateQueue", `{"QueueName":5}`)), fails("MalformedInput"))
	s.failed("SendMessage", s.do(target("SendMessage", `{"QueueUrl":{},"MessageBody":"x"}`)), fails("MalformedInput"))
	s.counts(q, "0", "0", "0")
}
