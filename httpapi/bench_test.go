package httpapi_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// idleBroker answers at once and does nothing, so that only httpapi is
// measured.
type idleBroker struct {
	settings raftfsm.Settings
	message  cluster.Message
}

func newIdleBroker(body string) *idleBroker {
	b := &idleBroker{settings: raftfsm.DefaultSettings()}
	c := sqs.Content{SenderID: "000000000000", Body: []byte(body)}
	b.message = cluster.Message{Handle: strings.Repeat("h", 62), Content: sqs.AppendContent(nil, &c)}
	return b
}

func (b *idleBroker) Do(_ context.Context, c raftfsm.Command, _ ...[]byte) (raftfsm.Outcome, error) {
	switch c := c.(type) {
	case sqs.SendMessageBatch:
		sent := sqs.SendMessageBatchResult{Entries: make([]sqs.SendResult, len(c.Entries))}
		for i := range c.Entries {
			sent.Entries[i].MessageID = c.Entries[i].MessageID
		}
		return raftfsm.Outcome{Index: 1, Result: sent}, nil
	case sqs.DeleteMessageBatch:
		return raftfsm.Outcome{Index: 1, Result: sqs.BatchResult{Errors: make([]*sqs.Error, len(c.Receipts))}}, nil
	}
	return raftfsm.Outcome{Index: 1, Result: sqs.Done{}}, nil
}

func (b *idleBroker) Receive(_ context.Context, c sqs.ReceiveMessage, _ time.Duration, _ func() bool) (cluster.Delivery, error) {
	d := cluster.Delivery{Index: 1, Messages: make([]cluster.Message, c.MaxMessages)}
	for i := range d.Messages {
		d.Messages[i] = b.message
	}
	return d, nil
}

func (b *idleBroker) AwaitFormed(context.Context) error      { return nil }
func (b *idleBroker) ParseHandle(string) (sqs.Receipt, bool) { return sqs.Receipt{}, true }
func (b *idleBroker) Settings() raftfsm.Settings             { return b.settings }
func (b *idleBroker) Now() sqs.Time                          { return 1_700_000_000_000 }
func (b *idleBroker) Ready() (bool, []string)                { return true, nil }

// jsonRequest is a request as an SDK sends it.
func jsonRequest(action, body string) *fasthttp.Request {
	req := &fasthttp.Request{}
	req.SetRequestURI("http://127.0.0.1:4566/")
	req.Header.SetMethod("POST")
	req.Header.SetContentType("application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	req.Header.Set("X-Amzn-Query-Mode", "true")
	req.Header.Set("Amz-Sdk-Request", "attempt=1; max=3")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	req.SetBodyString(body)
	return req
}

func benchmark(b *testing.B, broker httpapi.Broker, req *fasthttp.Request) {
	b.Helper()
	server, err := httpapi.New(broker, httpapi.Config{NodeName: "n1"})
	if err != nil {
		b.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(req, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	ctx.Response.KeepBodyBuffer = true // as the server does
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		server.Handle(&ctx)
		if ctx.Response.StatusCode() != 200 {
			b.Fatalf("got %s", &ctx.Response)
		}
	}
}

const benchURL = `"QueueUrl":"http://127.0.0.1:4566/000000000000/bench"`

func BenchmarkSendMessageJSON(b *testing.B) {
	benchmark(b, newIdleBroker(""), jsonRequest("SendMessage", `{`+benchURL+`,"MessageBody":"`+strings.Repeat("x", 1024)+`"}`))
}

func BenchmarkSendMessageQuery(b *testing.B) {
	req := jsonRequest("", "")
	req.Header.Del("X-Amz-Target")
	req.Header.SetContentType("application/x-www-form-urlencoded")
	req.SetBodyString("Action=SendMessage&Version=2012-11-05&QueueUrl=http%3A%2F%2F127.0.0.1%3A4566%2F000000000000%2Fbench&MessageBody=" +
		strings.Repeat("x", 1024))
	benchmark(b, newIdleBroker(""), req)
}

func BenchmarkSendMessageBatchJSON(b *testing.B) {
	var entries []string
	for i := range 10 {
		entries = append(entries, `{"Id":"`+strconv.Itoa(i)+`","MessageBody":"`+strings.Repeat("x", 1024)+`"}`)
	}
	benchmark(b, newIdleBroker(""), jsonRequest("SendMessageBatch", `{`+benchURL+`,"Entries":[`+strings.Join(entries, ",")+`]}`))
}

func BenchmarkReceiveMessageJSON(b *testing.B) {
	benchmark(b, newIdleBroker(strings.Repeat("x", 1024)), jsonRequest("ReceiveMessage", `{`+benchURL+`,"WaitTimeSeconds":20,"AttributeNames":["All"]}`))
}

func BenchmarkReceiveTenJSON(b *testing.B) {
	benchmark(b, newIdleBroker(strings.Repeat("x", 1024)), jsonRequest("ReceiveMessage", `{`+benchURL+`,"MaxNumberOfMessages":10}`))
}

func BenchmarkDeleteMessageJSON(b *testing.B) {
	benchmark(b, newIdleBroker(""), jsonRequest("DeleteMessage", `{`+benchURL+`,"ReceiptHandle":"`+strings.Repeat("h", 62)+`"}`))
}
