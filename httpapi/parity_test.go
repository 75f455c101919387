package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// noteBroker notes what it is asked for.
type noteBroker struct {
	*idleBroker
	commands []any
}

func (b *noteBroker) Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error) {
	b.commands = append(b.commands, c, bodies)
	switch c.(type) {
	case sqs.ListQueues:
		return raftfsm.Outcome{Index: 1, Result: sqs.ListQueuesResult{}}, nil
	case sqs.GetQueueAttributes:
		return raftfsm.Outcome{Index: 1, Result: sqs.GetQueueAttributesResult{}}, nil
	case sqs.ListMessageMoveTasks:
		return raftfsm.Outcome{Index: 1, Result: sqs.ListMessageMoveTasksResult{}}, nil
	case sqs.ReplacePolicy:
		return raftfsm.Outcome{Index: 1, Result: sqs.ReplacePolicyResult{Replaced: true}}, nil
	}
	return b.idleBroker.Do(ctx, c, bodies...)
}

func (b *noteBroker) Receive(_ context.Context, c sqs.ReceiveMessage, wait time.Duration, _ func() bool) (cluster.Delivery, error) {
	b.commands = append(b.commands, c, wait)
	return cluster.Delivery{Index: 1}, nil
}

func (b *noteBroker) ParseHandle(text string) (sqs.Receipt, bool) {
	return sqs.Receipt{Sequence: uint64(len(text))}, !strings.HasPrefix(text, "bad")
}

// members are a request in a form that both protocols can be made of.
type members struct {
	json  map[string]any
	query url.Values
}

func (m *members) text(name, value string) {
	m.json[name] = value
	m.query.Set(name, value)
}

func (m *members) int(name string, value int64) {
	m.json[name] = value
	m.query.Set(name, strconv.FormatInt(value, 10))
}

// attribute sets an attribute of a message, at a prefix of the Query form.
func (m *members) attribute(prefix, name, dataType string, value []byte, isBinary bool) {
	member := map[string]any{"DataType": dataType}
	prefix += "MessageAttribute.7."
	m.query.Set(prefix+"Name", name)
	m.query.Set(prefix+"Value.DataType", dataType)
	if isBinary {
		member["BinaryValue"] = value
		m.query.Set(prefix+"Value.BinaryValue", base64.StdEncoding.EncodeToString(value))
	} else {
		member["StringValue"] = string(value)
		m.query.Set(prefix+"Value.StringValue", string(value))
	}
	m.json["MessageAttributes"] = map[string]any{name: member}
}

// requestOf makes a request of an action out of arbitrary parts; flags say
// which of them are there.
func requestOf(action string, flags uint16, a, b string, n int64, value []byte) *members {
	m := &members{json: map[string]any{}, query: url.Values{"Action": {action}}}
	if strings.HasSuffix(action, "Batch") {
		m.json["Entries"] = []any{} // which none are in Query
	}
	given := func(bit int) bool { return flags>>bit&1 != 0 }
	m.text("QueueUrl", "http://x/000000000000/q")
	if given(0) {
		m.text("QueueUrl", a)
	}
	for i, name := range []string{"MessageBody", "MessageGroupId", "MessageDeduplicationId", "ReceiptHandle", "QueueName", "QueueNamePrefix", "NextToken"} {
		if given(1 + i) {
			m.text(name, []string{a, b}[i%2])
		}
	}
	for i, name := range []string{"DelaySeconds", "VisibilityTimeout", "WaitTimeSeconds", "MaxNumberOfMessages", "MaxResults"} {
		if given(8 + i) {
			m.int(name, n)
		}
	}
	if given(13) {
		m.attribute("", a, b, value, given(15))
	}
	m.others(a, b, n, given(1), given(8))
	if given(14) {
		m.json["AttributeNames"] = []string{a, "All"}
		m.query.Set("AttributeName.3", a)
		m.query.Set("AttributeName.7", "All")
		m.json["Attributes"] = map[string]string{a: b}
		m.query.Set("Attribute.1.Name", a)
		m.query.Set("Attribute.1.Value", b)
		m.json["Tags"] = map[string]string{a: b}
		m.query.Set("Tag.4.Key", a)
		m.query.Set("Tag.4.Value", b)
		m.json["tags"] = m.json["Tags"]
		m.json["TagKeys"] = []string{b, a}
		m.query.Set("TagKey.1", b)
		m.query.Set("TagKey.2", a)
		m.batch(action, a, b, n, value, given(15))
	}
	return m
}

// others adds what move tasks and permissions have.
func (m *members) others(a, b string, n int64, texts, numbers bool) {
	if numbers {
		m.int("MaxNumberOfMessagesPerSecond", n)
	}
	if !texts {
		return
	}
	m.text("SourceArn", "arn:aws:sqs:us-east-1:000000000000:"+a)
	m.text("DestinationArn", b)
	m.text("Label", a)
	m.json["AWSAccountIds"] = []string{"111111111111", b}
	m.query.Set("AWSAccountId.1", "111111111111")
	m.query.Set("AWSAccountId.2", b)
	m.json["Actions"] = []string{"SendMessage"}
	m.query.Set("ActionName.1", "SendMessage")
}

// batch adds entries, if the action has them.
func (m *members) batch(action, a, b string, n int64, value []byte, isBinary bool) {
	if !strings.HasSuffix(action, "Batch") {
		return
	}
	var entries []any
	for i, id := range []string{"one", a} {
		entry := &members{json: map[string]any{}, query: url.Values{}}
		entry.text("Id", id)
		entry.text("MessageBody", b)
		entry.text("ReceiptHandle", b)
		entry.int("VisibilityTimeout", n)
		entry.int("DelaySeconds", n)
		entry.attribute("", a, b, value, isBinary)
		entries = append(entries, entry.json)
		for name, values := range entry.query {
			m.query.Set(action+"RequestEntry."+strconv.Itoa(i+1)+"."+name, values[0])
		}
	}
	m.json["Entries"] = entries
}

var parityActions = []string{
	"SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility",
	"ChangeMessageVisibilityBatch", "CreateQueue", "SetQueueAttributes", "GetQueueAttributes", "TagQueue", "UntagQueue", "GetQueueUrl", "ListQueues",
	"StartMessageMoveTask", "ListMessageMoveTasks", "AddPermission", "RemovePermission",
}

var (
	queryCode    = regexp.MustCompile(`<Code>([^<]*)</Code>`)
	queryMessage = regexp.MustCompile(`(?s)<Message>(.*?)</Message>`)
)

// FuzzProtocolParity sends one request in both protocols: the commands must be
// the same, and so must the refusals.
func FuzzProtocolParity(f *testing.F) {
	for i := range parityActions {
		f.Add(uint8(i), uint16(0xfffe), "a", "String", int64(5), []byte("x"))
		f.Add(uint8(i), uint16(0x6002), "a", "Binary", int64(-5), []byte{0, 1})
		f.Add(uint8(i), uint16(0x0000), "", "", int64(0), []byte{})
	}
	f.Fuzz(func(t *testing.T, action uint8, flags uint16, a, b string, n int64, value []byte) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) || flags>>15 == 0 && !utf8.Valid(value) {
			t.Skip("no JSON request says so")
		}
		name := parityActions[int(action)%len(parityActions)]
		m := requestOf(name, flags, a, b, n, value)
		body, err := json.Marshal(m.json)
		if err != nil {
			t.Fatal(err)
		}
		inJSON := &noteBroker{idleBroker: newIdleBroker("")}
		left := handle(t, inJSON, jsonRequest(name, string(body)))
		req := jsonRequest("", m.query.Encode())
		req.Header.Del("X-Amz-Target")
		req.Header.SetContentType("application/x-www-form-urlencoded")
		inQuery := &noteBroker{idleBroker: newIdleBroker("")}
		right := handle(t, inQuery, req)

		if !reflect.DeepEqual(inJSON.commands, inQuery.commands) {
			t.Errorf("%s\n%s\ngot  %+v in JSON\nand  %+v in Query", body, m.query.Encode(), inJSON.commands, inQuery.commands)
		}
		if left.StatusCode() != right.StatusCode() {
			t.Fatalf("%s: got %s in JSON, %s in Query", body, left.Body(), right.Body())
		}
		if left.StatusCode() != 200 {
			code, _, _ := strings.Cut(string(left.Header.Peek("x-amzn-query-error")), ";")
			if got := queryCode.FindStringSubmatch(string(right.Body())); got == nil || got[1] != code {
				t.Errorf("%s: got %s in JSON, %s in Query", body, code, right.Body())
			}
			if queryMessage.FindString(string(right.Body())) == "" {
				t.Errorf("%s: got %s in Query", body, right.Body())
			}
		}
	})
}

// handle serves one request without a connection.
func handle(t *testing.T, broker httpapi.Broker, req *fasthttp.Request) *fasthttp.Response {
	t.Helper()
	server, err := httpapi.New(broker, httpapi.Config{NewID: func() [16]byte { return [16]byte{1} }})
	if err != nil {
		t.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(req, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	server.Handle(&ctx)
	response := &fasthttp.Response{}
	ctx.Response.CopyTo(response)
	return response
}
