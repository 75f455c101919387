package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// S1–S27: what may be sent, and what a send answers.
func TestSending(t *testing.T) {
	play(t, []script{
		{id: "S1", title: "no body", play: func(s *scene) {
			q := s.queue()
			want := fails(missingParameter, "The request must contain the parameter MessageBody.")
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": ""}, want)
			s.refused("SendMessage", in{"QueueUrl": q}, want)
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": nil}, want)
		}},
		{id: "S2", title: "a size is body plus attributes", play: func(s *scene) {
			q := s.queue("MaximumMessageSize", "1024")
			tooLong := tooLongFor(1024)
			s.send(q, strings.Repeat("a", 1024))
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": strings.Repeat("a", 1025)}, tooLong)
			attribute := messageAttributes(in{"k": text("x")}) // 1 + 6 + 1 bytes
			s.send(q, strings.Repeat("a", 1016), attribute)
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": strings.Repeat("a", 1017)}.with(attribute), tooLong)
			s.send(q, strings.Repeat("é", 512)) // bytes count, not characters
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": strings.Repeat("é", 512) + "a"}, tooLong)
			raw := messageAttributes(in{"b": blob(make([]byte, 100))}) // 1 + 6 + 100 bytes, not those of base64
			s.send(q, strings.Repeat("a", 1024-107), raw)
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": strings.Repeat("a", 1024-106)}.with(raw), tooLong)
			s.send(q, strings.Repeat("a", 1024), traceHeader) // system attributes do not count
		}},
		{id: "S3", title: "one byte over 1 MiB", play: func(s *scene) {
			s.refused("SendMessage", in{"QueueUrl": s.queue(), "MessageBody": strings.Repeat("a", 1<<20+1)}, tooLongFor(1<<20))
		}},
		{id: "S4", title: "a batch entry over the queue's size fails alone", play: func(s *scene) {
			q := s.queue("MaximumMessageSize", "1024")
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "big", "MessageBody": strings.Repeat("a", 1025)},
				{"Id": "small", "MessageBody": "a"},
			}})
			s.entryFailed(out, 0, "big", invalidValue, "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.")
			s.entrySent(out, 0, "small", "a")
		}},
		{id: "S5", title: "a batch over 1 MiB fails as a whole", play: func(s *scene) {
			q := s.queue()
			want := fails("AWS.SimpleQueueService.BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.")
			attribute := messageAttributes(in{"k": text("x")})
			s.refused("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				in{"Id": "1", "MessageBody": strings.Repeat("a", 1<<20-8)}.with(attribute),
				{"Id": "2", "MessageBody": "a"},
			}}, want)
			s.refused("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "1", "MessageBody": strings.Repeat("a", 1<<20+1)}}}, want)
			s.counts(q, "0", "0", "0")
			s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				in{"Id": "1", "MessageBody": strings.Repeat("a", 1<<20-9)}.with(attribute),
				{"Id": "2", "MessageBody": "a"},
			}})
			s.counts(q, "2", "0", "0")
		}},
		{id: "S6", title: "the queue's size is no limit of a batch", play: func(s *scene) {
			q := s.queue("MaximumMessageSize", "2048")
			full := strings.Repeat("a", 2048)
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "1", "MessageBody": full}, {"Id": "2", "MessageBody": "a"}}})
			s.entrySent(out, 0, "1", full)
			s.entrySent(out, 1, "2", "a")
			if out.at("Failed") != nil {
				s.Errorf("Failed: got %v, want none", out["Failed"])
			}
		}},
		{id: "S7", title: "twenty entries", play: func(s *scene) {
			q := s.queue()
			for _, action := range batchActions {
				s.refused(action, in{"QueueUrl": q, "Entries": batchEntries(20)}, fails("AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
					"Maximum number of entries per request are 10. You have sent 20."))
			}
		}},
		{id: "S8-S9", title: "an empty batch", play: func(s *scene) {
			q := s.queue()
			for _, action := range batchActions {
				s.refused(action, in{"QueueUrl": q, "Entries": []in{}}, fails("AWS.SimpleQueueService.EmptyBatchRequest",
					"There should be at least one "+action+"RequestEntry in the request."))
			}
		}},
		{id: "S10", title: "malformed entry ids", play: func(s *scene) {
			q := s.queue()
			for _, action := range batchActions {
				for _, id := range []string{"", "invalid:id", strings.Repeat("testLongId", 10), strings.Repeat("x", 81), "a b", "é", "a.b"} {
					entries := batchEntries(2)
					entries[1]["Id"] = id
					s.refused(action, in{"QueueUrl": q, "Entries": entries}, badEntryID)
				}
			}
			entries := batchEntries(1)
			entries[0]["Id"] = strings.Repeat("x", 80)
			s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": entries})
		}},
		{id: "S11", title: "repeated entry ids", play: func(s *scene) {
			q := s.queue()
			for _, action := range batchActions {
				entries := batchEntries(4)
				entries[0]["Id"], entries[1]["Id"], entries[2]["Id"], entries[3]["Id"] = "id_1", "id_2", "id_2", "id_1"
				s.refused(action, in{"QueueUrl": q, "Entries": entries}, fails("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Id id_2 repeated."))
			}
			s.counts(q, "0", "0", "0")
		}},
		{id: "S12", title: "one bad body in a batch", play: func(s *scene) {
			q := s.queue()
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
				{"Id": "1", "MessageBody": "a"}, {"Id": "2", "MessageBody": "b\x01"}, {"Id": "3", "MessageBody": "c"},
			}})
			s.entryFailed(out, 0, "2", "InvalidMessageContents", invalidCharacters)
			s.entrySent(out, 0, "1", "a")
			s.entrySent(out, 1, "3", "c")
			s.counts(q, "2", "0", "0")
		}},
		{id: "S13", title: "characters that a body may not have", play: func(s *scene) {
			q := s.queue()
			for _, bad := range []string{"\x00", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff"} {
				s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "a" + bad + "b"}, fails("InvalidMessageContents", invalidCharacters))
			}
			s.send(q, "\t\n\r\u0020\u007f\u0085\ud7ff\ue000\ufffd\U00010000\U0010ffff")
		}},
		{id: "S14", title: "an empty attribute value", play: func(s *scene) {
			s.refused("SendMessage", in{"QueueUrl": s.queue(), "MessageBody": "x"}.with(messageAttributes(in{"ErrorDetails": text("")})),
				fails(invalidValue, "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'."))
		}},
		{id: "S15-S18", title: "attribute names, types and values", play: attributeRules},
		{id: "S19", title: "list values", play: func(s *scene) {
			q := s.queue()
			want := fails("AWS.SimpleQueueService.UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported.")
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(messageAttributes(in{"a": in{"DataType": "String", "StringListValues": []string{"a"}}})), want)
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(messageAttributes(in{"a": in{"DataType": "Binary", "BinaryListValues": [][]byte{{1}}}})), want)
			s.send(q, "x", messageAttributes(in{"a": text("x").with(in{"StringListValues": []string{}, "BinaryListValues": []string{}})}))
		}},
		{id: "S20", title: "eleven attributes", play: func(s *scene) {
			q := s.queue()
			attributes := in{}
			for i := range 10 {
				attributes[fmt.Sprint("a", i)] = text("x")
			}
			s.send(q, "x", messageAttributes(attributes))
			attributes["a10"] = text("x")
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x"}.with(messageAttributes(attributes)),
				fails(invalidValue, "Number of message attributes [11] exceeds the allowed maximum [10]."))
		}},
		{id: "S21", title: "digests of attributes", play: func(s *scene) {
			q := s.queue("VisibilityTimeout", "0")
			out := s.send(q, "x", messageAttributes(in{"color": text("blue"), "count": number("3"), "blob": blob([]byte{1, 2, 3})}))
			all := "d838729972a4b70e2d2acd9d59ac847c"
			if got := out.text("MD5OfMessageAttributes"); got != all {
				s.Errorf("send: got %s, want %s", got, all)
			}
			for _, c := range []struct {
				names  []string
				digest string
			}{{[]string{"All"}, all}, {[]string{"color"}, "da1b33cc3cbfe8b1630921e78e6b9880"}, {[]string{"col.*"}, "da1b33cc3cbfe8b1630921e78e6b9880"}, {nil, ""}} {
				m := s.one(q, in{"MessageAttributeNames": c.names})
				if got := m.text("MD5OfMessageAttributes"); got != c.digest {
					s.Errorf("receive %v: got %s, want %s", c.names, got, c.digest)
				}
			}
			m := s.one(q, in{"MessageAttributeNames": []string{"All"}})
			if got, want := fmt.Sprint(m["MessageAttributes"]), "map[blob:map[BinaryValue:AQID DataType:Binary] color:map[DataType:String StringValue:blue] count:map[DataType:Number StringValue:3]]"; got != want {
				s.Errorf("got %s\nwant %s", got, want)
			}
		}},
		{id: "S22", title: "a binary attribute", play: func(s *scene) {
			q := s.queue()
			value := "traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"
			s.send(q, "test", messageAttributes(in{"attr1": blob([]byte(value))}))
			m := s.one(q, in{"MessageAttributeNames": []string{"All"}})
			if got := unbase64(s, m.text("MessageAttributes", "attr1", "BinaryValue")); got != value {
				s.Errorf("got %q, want %q", got, value)
			}
			if got, want := m.text("MD5OfMessageAttributes"), "8cbe4db156db8a94db8b801b7addb984"; got != want {
				s.Errorf("digest: got %s, want %s", got, want)
			}
		}},
		{id: "S23", title: "system attributes have their own digest", play: func(s *scene) {
			q := s.queue()
			attributes := messageAttributes(in{"timestamp": number("1493147359900")})
			plain, traced := s.send(q, "x", attributes), s.send(q, "x", attributes, traceHeader)
			for _, out := range []tree{plain, traced} {
				if got, want := out.text("MD5OfMessageAttributes"), "235c5c510d26fb653d073faed50ae77c"; got != want {
					s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
				}
			}
			if got, want := traced.text("MD5OfMessageSystemAttributes"), "5ae4d5d7636402d80f4eb6d213245a88"; got != want {
				s.Errorf("MD5OfMessageSystemAttributes: got %s, want %s", got, want)
			}
			if plain.at("MD5OfMessageSystemAttributes") != nil {
				s.Errorf("MD5OfMessageSystemAttributes without any: %v", plain)
			}
		}},
		{id: "S24", title: "the trace header of the request", play: func(s *scene) {
			q := s.queue()
			value := "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
			r := s.wire.render("SendMessage", in{"QueueUrl": q, "MessageBody": "x"})
			r.header["X-Amzn-Trace-Id"] = value
			a := s.do(r)
			s.succeeded("SendMessage", a)
			if a.out.at("MD5OfMessageSystemAttributes") != nil {
				s.Errorf("the answer has a digest for the header: %v", a.out)
			}
			if got := s.one(q, in{"AttributeNames": []string{"AWSTraceHeader"}}).text("Attributes", "AWSTraceHeader"); got != value {
				s.Errorf("AWSTraceHeader: got %q, want %q", got, value)
			}
		}},
		{id: "S25", title: "a group on a standard queue", play: func(s *scene) {
			q := s.queue()
			if out := s.send(q, "message", in{"MessageGroupId": "test"}); out.at("SequenceNumber") != nil {
				s.Errorf("SequenceNumber: got %v, want none", out)
			}
			m := s.one(q, in{"AttributeNames": []string{"All"}})
			if got := strings.Join(m.names("Attributes"), " "); got != "ApproximateFirstReceiveTimestamp ApproximateReceiveCount MessageGroupId SenderId SentTimestamp" {
				s.Errorf("attributes: got %s", got)
			}
			if got := m.text("Attributes", "MessageGroupId"); got != "test" {
				s.Errorf("MessageGroupId: got %q, want test", got)
			}
		}},
		{id: "S26", title: "malformed groups", play: func(s *scene) {
			q := s.queue()
			for _, group := range []string{"", "group 123", strings.Repeat("a", 129), "é"} {
				s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageGroupId": group}, fails(invalidValue,
					"Value "+group+" for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."))
			}
			s.send(q, "x", in{"MessageGroupId": strings.Repeat("a", 128)})
			s.send(q, "x", in{"MessageGroupId": "aZ9!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"})
		}},
		{id: "S27", title: "a deduplication id on a standard queue", play: func(s *scene) {
			q := s.queue()
			s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageDeduplicationId": "d"}, fails(invalidValue))
			out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "1", "MessageBody": "x", "MessageDeduplicationId": "d"}, {"Id": "2", "MessageBody": "y"}}})
			s.entryFailed(out, 0, "1", invalidValue, "")
			s.entrySent(out, 0, "2", "y")
		}},
		{id: "batch-entries", title: "each entry has its own fate", play: batchFates},
	})
}

func tooLongFor(size int) failure {
	return fails(invalidValue, fmt.Sprintf("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", size))
}

const invalidCharacters = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"

var (
	traceHeader = in{"MessageSystemAttributes": in{
		"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"),
	}}
	batchActions = []string{"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"}
	badEntryID   = fails(invalidID, "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
)

// batchEntries have what any batch action needs.
func batchEntries(n int) []in {
	var entries []in
	for i := range n {
		entries = append(entries, in{"Id": fmt.Sprint("id", i), "MessageBody": "x", "ReceiptHandle": "x", "VisibilityTimeout": 1})
	}
	return entries
}

// entryFailed checks Failed[i]; an empty text is not compared.
func (s *scene) entryFailed(out tree, i int, id, code, text string) {
	s.Helper()
	got := tree{}
	if failed := out.list("Failed"); i < len(failed) {
		got = failed[i]
	}
	if got.text("Id") != id || got.text("Code") != code || got.at("SenderFault") != true || (text != "" && got.text("Message") != text) || got.text("Message") == "" {
		s.Errorf("Failed[%d]: got %v,\nwant %s %s %q by the sender", i, got, id, code, text)
	}
}

func (s *scene) entrySent(out tree, i int, id, body string) {
	s.Helper()
	got := tree{}
	if sent := out.list("Successful"); i < len(sent) {
		got = sent[i]
	}
	if got.text("Id") != id || got.text("MD5OfMessageBody") != digest(body) || !uuid.MatchString(got.text("MessageId")) {
		s.Errorf("Successful[%d]: got %v, want %s with the digest of %.20q", i, got, id, body)
	}
}

func attributeRules(s *scene) {
	q := s.queue()
	send := func(attributes in) in {
		return in{"QueueUrl": q, "MessageBody": "x"}.with(messageAttributes(attributes))
	}
	for _, name := range []string{
		"aWs.-x", "AMAZON.-x", ".-x", "x.", "a..b", `a!b`, `a"b`, `a§b`, `a(b`, `a?b`, "a b", "a/b", strings.Repeat("L", 257),
	} {
		s.refused("SendMessage", send(in{name: text("x")}), fails(invalidValue))
	}
	for _, name := range []string{"attr.1øßä", "aws", "Amazon", "AWSx", "a-b_c.d", "1", strings.Repeat("L", 256)} {
		s.send(q, "x", messageAttributes(in{name: text("x")}))
	}
	for _, c := range []struct {
		value in
		text  string
	}{
		{in{"DataType": "Invalid", "StringValue": "x"}, "The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String."},
		{in{"DataType": "string", "StringValue": "x"}, ""},
		{in{"DataType": "Strings", "StringValue": "x"}, ""},
		{in{"DataType": "Number." + strings.Repeat("L", 256), "StringValue": "1"}, ""},
		{in{"DataType": "", "StringValue": "x"}, "The message (user) attribute 'a' must contain a non-empty message attribute type."},
		{in{"StringValue": "x"}, "The message (user) attribute 'a' must contain a non-empty message attribute type."},
		{in{"DataType": "String"}, ""},
		{in{"DataType": "Binary"}, ""},
		{in{"DataType": "String", "BinaryValue": []byte("x")}, "Message (user) attribute 'a' with type 'String' must use field 'String'."},
		{in{"DataType": "Number", "BinaryValue": []byte("1")}, "Message (user) attribute 'a' with type 'Number' must use field 'String'."},
		{in{"DataType": "Binary", "StringValue": "x"}, "Message (user) attribute 'a' with type 'Binary' must use field 'Binary'."},
		{in{"DataType": "String", "StringValue": "x", "BinaryValue": []byte("x")}, ""},
		{text("\x08"), ""},
		{number("five"), "Can't cast the value of message (user) attribute 'a' to a number."},
		{number("1 "), ""},
		{number("0x10"), ""},
		{number("NaN"), ""},
		{number("1e999"), ""},
		{number("1" + strings.Repeat("2", 38)), ""},
	} {
		want := fails(invalidValue)
		if c.text != "" {
			want = fails(invalidValue, c.text)
		}
		s.refused("SendMessage", send(in{"a": c.value}), want)
	}
	for _, value := range []in{
		number("-1.5e3"), number("+7"), number("1" + strings.Repeat("0", 37)), number("1E-128"),
		{"DataType": "Number.int", "StringValue": "3"},
		{"DataType": "String.a.b c", "StringValue": "x"},
		{"DataType": "Binary.png", "BinaryValue": []byte{0}},
	} {
		s.send(q, "x", messageAttributes(in{"a": value}))
	}
	s.refused("SendMessage", send(in{"": text("x")}), fails(invalidValue, "The request must contain non-empty message (user) attribute names."))
	s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageSystemAttributes": in{"Other": text("x")}},
		fails(invalidValue, "Message system attribute name 'Other' is invalid."))
	s.refused("SendMessage", in{"QueueUrl": q, "MessageBody": "x", "MessageSystemAttributes": in{"AWSTraceHeader": number("1")}}, fails(invalidValue))
}

func batchFates(s *scene) {
	q := s.queue()
	out := s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{
		{"Id": "good", "MessageBody": "x", "MessageAttributes": in{"k": text("x")}},
		{"Id": "no-body"},
		{"Id": "delay", "MessageBody": "x", "DelaySeconds": 901},
		{"Id": "group", "MessageBody": "x", "MessageGroupId": "a b"},
		{"Id": "type", "MessageBody": "x", "MessageAttributes": in{"a": in{"DataType": "Odd", "StringValue": "x"}}},
		in{"Id": "traced", "MessageBody": "y"}.with(traceHeader),
		{"Id": "empty", "MessageBody": ""},
	}})
	s.entrySent(out, 0, "good", "x")
	s.entrySent(out, 1, "traced", "y")
	if got, want := out.text("Successful", 0, "MD5OfMessageAttributes"), "a45daa70926828a2f0a1db3418e6feb4"; got != want {
		s.Errorf("MD5OfMessageAttributes: got %s, want %s", got, want)
	}
	if got, want := out.text("Successful", 1, "MD5OfMessageSystemAttributes"), "5ae4d5d7636402d80f4eb6d213245a88"; got != want {
		s.Errorf("MD5OfMessageSystemAttributes: got %s, want %s", got, want)
	}
	s.entryFailed(out, 0, "no-body", missingParameter, "The request must contain the parameter MessageBody.")
	s.entryFailed(out, 1, "delay", invalidValue, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")
	s.entryFailed(out, 2, "group", invalidValue, "")
	s.entryFailed(out, 3, "type", invalidValue, "The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String.")
	s.entryFailed(out, 4, "empty", missingParameter, "The request must contain the parameter MessageBody.")
	s.counts(q, "2", "0", "0")
	out = s.ok("SendMessageBatch", in{"QueueUrl": q, "Entries": []in{{"Id": "alone"}}})
	if out.at("Successful") != nil || len(out.list("Failed")) != 1 {
		s.Errorf("all failed: got %v, want Failed alone", out)
	}
}
