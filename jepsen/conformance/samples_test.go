package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The renderer against requests as SDKs send them.
func TestRender(t *testing.T) {
	form := renderForm("SendMessageBatch", in{"QueueUrl": "u", "Entries": []in{{
		"Id": "a", "MessageBody": "x", "DelaySeconds": 1,
		"MessageAttributes": in{"k": text("x"), "b": blob([]byte{1, 2, 3})},
	}}})
	want := strings.Join([]string{
		"Action=SendMessageBatch", "QueueUrl=u",
		"SendMessageBatchRequestEntry.1.DelaySeconds=1",
		"SendMessageBatchRequestEntry.1.Id=a",
		"SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=b",
		"SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryValue=AQID",
		"SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=Binary",
		"SendMessageBatchRequestEntry.1.MessageAttribute.2.Name=k",
		"SendMessageBatchRequestEntry.1.MessageAttribute.2.Value.DataType=String",
		"SendMessageBatchRequestEntry.1.MessageAttribute.2.Value.StringValue=x",
		"SendMessageBatchRequestEntry.1.MessageBody=x",
		"Version=2012-11-05",
	}, "&")
	if got := form.Encode(); got != want {
		t.Errorf("form:\n got %s\nwant %s", got, want)
	}
	form = renderForm("CreateQueue", in{"QueueName": "q", "Attributes": pairs("DelaySeconds", "1"), "tags": pairs("k", "v")})
	if got, want := form.Encode(), "Action=CreateQueue&Attribute.1.Name=DelaySeconds&Attribute.1.Value=1&QueueName=q&Tag.1.Key=k&Tag.1.Value=v&Version=2012-11-05"; got != want {
		t.Errorf("form:\n got %s\nwant %s", got, want)
	}
	if got, want := strings.TrimSpace(string(renderJSON(in{"BinaryValue": []byte{1, 2, 3}, "Null": nil, "Text": "<é\r>"}))), `{"BinaryValue":"AQID","Null":null,"Text":"<é\r>"}`; got != want {
		t.Errorf("JSON:\n got %s\nwant %s", got, want)
	}
}

// The reader against answers as AWS gives them, in both protocols: the trees
// are equal.
func TestParse(t *testing.T) {
	const open = `<?xml version="1.0"?><%sResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/">%s<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>`
	for _, c := range []struct{ name, action, json, xml string }{
		{"no output", "DeleteMessage", ``, ``},
		{"empty output", "ReceiveMessage", `{}`, `<ReceiveMessageResult/>`},
		{"queues", "ListQueues", `{"QueueUrls":["a","b"],"NextToken":"t"}`, `<ListQueuesResult><QueueUrl>a</QueueUrl><QueueUrl>b</QueueUrl><NextToken>t</NextToken></ListQueuesResult>`},
		{"sources", "ListDeadLetterSourceQueues", `{"queueUrls":["a"]}`, `<ListDeadLetterSourceQueuesResult><QueueUrl>a</QueueUrl></ListDeadLetterSourceQueuesResult>`},
		{"tags", "ListQueueTags", `{"Tags":{"k":""}}`, `<ListQueueTagsResult><Tag><Key>k</Key><Value></Value></Tag></ListQueueTagsResult>`},
		{
			"batch", "SendMessageBatch",
			`{"Successful":[{"Id":"a"}],"Failed":[{"Id":"b","Code":"C","Message":"m","SenderFault":true}]}`,
			`<SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id></SendMessageBatchResultEntry><BatchResultErrorEntry><Id>b</Id><Code>C</Code><Message>m</Message><SenderFault>true</SenderFault></BatchResultErrorEntry></SendMessageBatchResult>`,
		},
		{
			"message", "ReceiveMessage",
			`{"Messages":[{"Body":"a <b> & \"c\"\r","Attributes":{"SenderId":"s"},"MessageAttributes":{"k":{"StringValue":"x","DataType":"String"}}}]}`,
			`<ReceiveMessageResult><Message><Body>a &lt;b&gt; &amp; &quot;c&quot;&#xD;</Body><Attribute><Name>SenderId</Name><Value>s</Value></Attribute><MessageAttribute><Name>k</Name><Value><StringValue>x</StringValue><DataType>String</DataType></Value></MessageAttribute></Message></ReceiveMessageResult>`,
		},
	} {
		a, err := jsonWire.parse(200, http.Header{}, []byte(c.json))
		if err != nil {
			t.Fatal(err)
		}
		b, err := queryWire.parse(200, http.Header{}, fmt.Appendf(nil, open, c.action, c.xml))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%#v", a.out) != fmt.Sprintf("%#v", b.out) || b.requestID != "r" {
			t.Errorf("%s:\njson %#v\n xml %#v", c.name, a.out, b.out)
		}
	}
}

// The errors of both protocols give the same answer.
func TestParseErrors(t *testing.T) {
	header := http.Header{}
	header.Set("x-amzn-query-error", "ReceiptHandleIsInvalid;Sender")
	a, err := jsonWire.parse(404, header, []byte(`{"__type":"com.amazonaws.sqs#ReceiptHandleIsInvalid","message":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := queryWire.parse(404, http.Header{}, []byte(`<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>ReceiptHandleIsInvalid</Code><Message>m</Message><Detail/></Error><RequestId>r</RequestId></ErrorResponse>`))
	if err != nil {
		t.Fatal(err)
	}
	if a.code != b.code || a.fault != b.fault || a.message != b.message || a.message != "m" || !b.detail {
		t.Errorf("json %+v, xml %+v", a, b)
	}
}
