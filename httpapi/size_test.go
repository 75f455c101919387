package httpapi_test

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.internal/httpapi"
)

// TestLargestMessage sends a megabyte of é, and one byte more, in both
// protocols; as few bytes on the wire as can be, and as many.
func TestLargestMessage(t *testing.T) {
	const max = 1 << 20
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q","Attributes":{"VisibilityTimeout":"0"}}`)
	body := strings.Repeat("é", max/2)
	sum := md5.Sum([]byte(body))
	digest := hex.EncodeToString(sum[:])
	for name, send := range map[string]func(extra string) response{
		"json": func(extra string) response {
			return e.json("SendMessage", `{"QueueUrl":"q","MessageBody":"`+body+extra+`"}`)
		},
		"json escaped": func(extra string) response {
			return e.json("SendMessage", `{"QueueUrl":"q","MessageBody":"`+strings.Repeat(`\u00e9`, max/2)+extra+`"}`)
		},
		"query": func(extra string) response {
			return e.query("Action=SendMessage&QueueUrl=q&MessageBody=" + strings.Repeat("%C3%A9", max/2) + extra)
		},
	} {
		if r := send(""); r.status != 200 || !strings.Contains(r.body, digest) {
			t.Errorf("%s: got %d %.200s, want 200 %s", name, r.status, r.body, digest)
		}
		const want = "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
		if r := send("x"); r.status != 400 || !strings.Contains(r.body, want) || !strings.Contains(r.body, "InvalidParameterValue") {
			t.Errorf("%s, one byte more: got %d %.200s, want %s", name, r.status, r.body, want)
		}
	}

	var inJSON struct {
		Messages []struct{ Body, MD5OfBody string }
	}
	if err := json.Unmarshal([]byte(e.json("ReceiveMessage", `{"QueueUrl":"q"}`).body), &inJSON); err != nil {
		t.Fatal(err)
	}
	if m := inJSON.Messages[0]; m.Body != body || m.MD5OfBody != digest {
		t.Errorf("received in JSON: got %d bytes, %s", len(m.Body), m.MD5OfBody)
	}
	var inXML struct {
		Body string `xml:"ReceiveMessageResult>Message>Body"`
	}
	if err := xml.Unmarshal([]byte(e.query("Action=ReceiveMessage&QueueUrl=q").body), &inXML); err != nil {
		t.Fatal(err)
	}
	if inXML.Body != body {
		t.Errorf("received in XML: got %d bytes", len(inXML.Body))
	}
}

// TestSizes counts attributes and the limit of the queue, and that of a batch,
// which is fixed (AWS recordings
// test_send_message_with_updated_maximum_message_size,
// test_send_batch_message_size,
// test_send_message_batch_with_oversized_contents).
func TestSizes(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"q","Attributes":{"MaximumMessageSize":"1024"}}`)
	a := func(n int) string { return strings.Repeat("a", n) }
	const attribute = `,"MessageAttributes":{"k":{"DataType":"String","StringValue":"x"}}` // 8 bytes
	trace := func(n int) string {
		return `,"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"` + a(n) + `"}}`
	}
	for _, tt := range []struct{ name, action, body, want string }{
		{"most", "SendMessage", `"MessageBody":"` + a(1024) + `"`, `"MessageId"`},
		{"over", "SendMessage", `"MessageBody":"` + a(1025) + `"`, "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."},
		{"attributes", "SendMessage", `"MessageBody":"` + a(1016) + `"` + attribute, `"MessageId"`},
		{"attributes over", "SendMessage", `"MessageBody":"` + a(1017) + `"` + attribute, "Message must be shorter than 1024 bytes."},
		{"far over", "SendMessage", `"MessageBody":"` + a(1<<20+1) + `"`, "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."},
		{"trace header", "SendMessage", `"MessageBody":"` + a(1024) + `"` + trace(1024), `"MessageId"`},
		{"trace header over", "SendMessage", `"MessageBody":"x"` + trace(1025), "Message system attribute 'AWSTraceHeader' must not be longer than 1024 bytes."},
		{
			"entry over", "SendMessageBatch", `"Entries":[{"Id":"1","MessageBody":"` + a(1025) + `"},{"Id":"2","MessageBody":"x"}]`,
			`"Failed":[{"Id":"1","Code":"InvalidParameterValue","Message":"One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.","SenderFault":true}]`,
		},
		{"batch", "SendMessageBatch", `"Entries":[{"Id":"1","MessageBody":"` + a(1<<20-9) + `"` + attribute + `},{"Id":"2","MessageBody":"x"}]`, `"Successful":[{"Id":"2"`},
		{
			"batch over", "SendMessageBatch", `"Entries":[{"Id":"1","MessageBody":"` + a(1<<20-8) + `"` + attribute + `},{"Id":"2","MessageBody":"x"}]`,
			"Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
		},
	} {
		if r := e.json(tt.action, `{"QueueUrl":"q",`+tt.body+`}`); !strings.Contains(r.body, tt.want) {
			t.Errorf("%s: got %d %.300s, want %s", tt.name, r.status, r.body, tt.want)
		}
	}
}

func TestRequestTooLarge(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{MaxBody: 1000})
	body := strings.Repeat("x", 1001)
	if r := e.json("SendMessage", body); r.status != 413 || r.header["x-amzn-query-error"] != "RequestEntityTooLarge;Sender" {
		t.Errorf("JSON: got %d %v %s", r.status, r.header, r.body)
	}
	if r := e.query(body); r.status != 413 || !strings.Contains(r.body, "<Code>RequestEntityTooLarge</Code>") {
		t.Errorf("Query: got %d %s", r.status, r.body)
	}
	e = serve(t, newStateBroker(), httpapi.Config{MaxBody: 100_000})
	client := e.dial(false)
	defer client.Close()
	write(t, client, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n"+strings.Repeat("x", 0x30000)+"\r\n0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: got %s", resp.Status)
	}
}

// TestRefusedClientMayFinish sends all of a request that is refused before its end
// and reads the answer then, as clients do that write first.
func TestRefusedClientMayFinish(t *testing.T) {
	cert, key := certificate(t)
	const much = 16 << 20 // more than the buffers of both sockets hold
	for name, request := range map[string]string{
		"413":         fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", much, strings.Repeat("x", much)),
		"413 chunked": fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", much, strings.Repeat("x", much)),
		"431":         "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", much) + "\r\n\r\n",
		"400":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("x", much),
	} {
		for _, config := range []httpapi.Config{{}, {CertFile: cert, KeyFile: key}} {
			t.Run(fmt.Sprintf("%s tls=%v", name, config.CertFile != ""), func(t *testing.T) {
				e := serve(t, newStateBroker(), config)
				client := e.dial(config.CertFile != "")
				defer client.Close()
				write(t, client, request)
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if !strings.HasPrefix(name, fmt.Sprint(resp.StatusCode)) {
					t.Errorf("got %s, want %s", resp.Status, name)
				}
			})
		}
	}
}

// TestBrokenRequestGivesRoomBack: the HTTP server does not tell of a client that
// announces a body and leaves at once. Its room is given back all the same, later.
func TestBrokenRequestGivesRoomBack(t *testing.T) {
	var later atomic.Int64
	e := serve(t, newStateBroker(), httpapi.Config{
		MaxBody: 150_000, MaxBodies: 200_000, ReadTimeout: time.Minute,
		Now: func() time.Time { return time.Unix(later.Load(), 0) },
	})
	client := e.dial(false)
	defer client.Close()
	write(t, client, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, client); err != nil { // until the server has closed the connection
		t.Fatal(err)
	}
	runtime.GC() // or the next request would find the room of this one
	runtime.GC()
	large := `{"QueueNamePrefix":"` + strings.Repeat("x", 100_000) + `"}`
	if r := e.json("ListQueues", large); r.status != 403 {
		t.Errorf("got %d %s, want it throttled: this test looks at nothing", r.status, r.body)
	}
	later.Store(int64((time.Minute + 3*time.Minute) / time.Second))
	if r := e.json("ListQueues", large); r.status != 200 {
		t.Errorf("got %d %s, want 200", r.status, r.body)
	}
}

// TestLargeRequestsAreBounded announces large bodies until there is no room, and
// gets it back when the first client leaves.
func TestLargeRequestsAreBounded(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{MaxBodies: 200_000})
	e.json("CreateQueue", `{"QueueName":"q"}`)
	large := `{"QueueUrl":"q","MessageBody":"` + strings.Repeat("x", 100_000) + `"}`
	waits := e.dial(false)
	write(t, waits, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 150000\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(waits).ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v, want to be asked for the body", line, err)
	}
	throttled := func() bool {
		client := e.dial(false)
		defer client.Close()
		write(t, client, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: %d\r\n\r\n%s", len(large), large))
		r, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == 200 {
			return false
		}
		if r.StatusCode != 403 || r.Header.Get("x-amzn-query-error") != "RequestThrottled;Sender" || r.Header.Get("x-holdfast-outcome") != "not-applied" {
			t.Fatalf("got %d %v, want RequestThrottled", r.StatusCode, r.Header)
		}
		return true
	}
	if !throttled() {
		t.Error("there is room for more than the limit")
	}
	if r := e.json("SendMessage", `{"QueueUrl":"q","MessageBody":"x"}`); r.status != 200 {
		t.Errorf("a small request: got %d %s", r.status, r.body)
	}
	waits.Close()
	if !eventually(func() bool { return !throttled() }) {
		t.Error("the room of a client that left is not given back")
	}
	for range 5 {
		if throttled() {
			t.Error("the room of a request that was carried out is not given back")
		}
	}
}
