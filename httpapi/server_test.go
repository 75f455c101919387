package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/valyala/fasthttp"

	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// endpoint is a server under test, and a client of it.
type endpoint struct {
	t      testing.TB
	broker *stateBroker
	server *httpapi.Server
	addr   string
	client *fasthttp.HostClient
}

func serve(t testing.TB, broker *stateBroker, c httpapi.Config) *endpoint {
	t.Helper()
	return serveBroker(t, broker, broker, c)
}

// serveBroker is serve with a broker around the one that holds the state.
func serveBroker(t testing.TB, state *stateBroker, broker httpapi.Broker, c httpapi.Config) *endpoint {
	t.Helper()
	return serveOn(t, listen(t), state, broker, c)
}

// listen opens a port. What clients send to it before it is served waits for that.
func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serveOn is serveBroker on a port that is open.
func serveOn(t testing.TB, ln net.Listener, state *stateBroker, broker httpapi.Broker, c httpapi.Config) *endpoint {
	t.Helper()
	if c.NewID == nil {
		c.NewID = countedIDs()
	}
	server, err := httpapi.New(broker, c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	e := &endpoint{t: t, broker: state, server: server, addr: ln.Addr().String()}
	e.client = &fasthttp.HostClient{Addr: e.addr, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true}
	t.Cleanup(func() {
		e.client.CloseIdleConnections()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return e
}

// response is what a client saw.
type response struct {
	status int
	header map[string]string // by lower-case name
	body   string
}

// do sends one request; headers are pairs of name and value.
func (e *endpoint) do(method, target string, body []byte, headers ...string) response {
	e.t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.DisableNormalizing()
	req.URI().DisablePathNormalizing = true
	req.SetRequestURI("http://sqs.example" + target)
	req.Header.SetMethod(method)
	req.SetBody(body)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		req.UseHostHeader = req.UseHostHeader || headers[i] == "Host"
	}
	if err := e.client.Do(req, resp); err != nil {
		e.t.Fatal(err)
	}
	r := response{resp.StatusCode(), map[string]string{}, string(resp.Body())}
	for key, value := range resp.Header.All() {
		r.header[strings.ToLower(string(key))] = string(value)
	}
	return r
}

func (e *endpoint) json(action, body string, headers ...string) response {
	e.t.Helper()
	return e.do("POST", "/", []byte(body), append([]string{
		"X-Amz-Target", "AmazonSQS." + action, "Content-Type", "application/x-amz-json-1.0",
	}, headers...)...)
}

func (e *endpoint) query(body string, headers ...string) response {
	e.t.Helper()
	return e.do("POST", "/", []byte(body), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// raw sends bytes on a connection of their own and returns the answer.
func (e *endpoint) raw(text string) response {
	e.t.Helper()
	conn := e.dial(false)
	defer conn.Close()
	write(e.t, conn, text)
	return readAnswer(e.t, conn)
}

func readAnswer(t testing.TB, conn net.Conn) response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, map[string]string{"status line": resp.Status}, string(body)}
}

// TestStatusLine looks at the words after the status, which people read.
func TestStatusLine(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{MaxBody: 1000})
	for request, want := range map[string]string{
		"GET /health HTTP/1.1\r\nHost: x\r\n\r\n":                            "200 OK",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                  "404 Not Found",
		"GET /?Action=None HTTP/1.1\r\nHost: x\r\n\r\n":                      "400 Bad Request",
		"GET / HTTP/1.1\r\n\r\n":                                             "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 10_000):     "431 Request Header Fields Too Large",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n":         "413 Request Entity Too Large",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n\r\n":        "415 Unsupported Media Type",
		"GET /?Action=ListQueues HTTP/1.0\r\n\r\n":                           "200 OK",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n":      "400 Bad Request",
		"GET /?Action=PurgeQueue&QueueUrl=q HTTP/1.1\r\nHost: x\r\n\r\n\r\n": "400 Bad Request",
	} {
		if got := e.raw(request).header["status line"]; got != want {
			t.Errorf("%.80q: got %s, want %s", request, got, want)
		}
	}
}

// TestUnparsedRequests looks at answers to what nobody could read: an SDK of either
// service finds code and message in them.
func TestUnparsedRequests(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 10_000): "431 RequestHeaderSectionTooLarge: The head of the request is larger than the limit.",
		"GET / HTTP/1.1\r\n\r\n": "400 MalformedInput: The request is not valid HTTP.",
	} {
		if got := e.raw(request).errorDocument(t); got != want {
			t.Errorf("%.80q: got %s, want %s", request, got, want)
		}
	}
	ln, broker := listen(t), newStateBroker()
	client := dial(t, ln.Addr().String())
	defer client.Close()
	write(t, client, "GET / HTTP/1.1\r\n")
	serveOn(t, ln, broker, broker, httpapi.Config{ReadTimeout: shortTimeout})
	want := "408 RequestTimeout: The request did not come in time."
	if got := readAnswer(t, client).errorDocument(t); got != want {
		t.Errorf("a request that does not end: got %s, want %s", got, want)
	}
}

// errorDocument is status, code and message of an error of the client in XML.
func (r response) errorDocument(t *testing.T) string {
	t.Helper()
	var document struct {
		XMLName   xml.Name `xml:"ErrorResponse"`
		Type      string   `xml:"Error>Type"`
		Code      string   `xml:"Error>Code"`
		Message   string   `xml:"Error>Message"`
		RequestID string   `xml:"RequestId"`
	}
	if err := xml.Unmarshal([]byte(r.body), &document); err != nil || document.Type != "Sender" || document.RequestID == "" {
		t.Errorf("got %q: %+v, %v", r.body, document, err)
	}
	return fmt.Sprintf("%d %s: %s", r.status, document.Code, document.Message)
}

// TestMediaTypesInAnyCase sends names of media types and encodings as no SDK
// writes them, and as HTTP allows.
func TestMediaTypesInAnyCase(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	form := []byte("Action=CreateQueue&QueueName=q")
	for _, media := range []string{"application/x-www-form-urlencoded", "Application/X-WWW-Form-URLEncoded; Charset=UTF-8"} {
		if r := e.do("POST", "/", form, "Content-Type", media, "Content-Encoding", "Identity"); r.status != 200 {
			t.Errorf("%q: got %d %s, want success", media, r.status, r.body)
		}
	}
	for _, media := range []string{"text/plain", "application/x-www-form"} {
		if r := e.do("POST", "/", form, "Content-Type", media); r.status != 404 {
			t.Errorf("%q: got %d %s, want 404", media, r.status, r.body)
		}
	}
	if r := e.do("POST", "/", nil, "Content-Type", "Application/X-AMZ-JSON-1.0"); !strings.Contains(r.body, "#UnknownOperationException") {
		t.Errorf("got %d %s, want UnknownOperationException in JSON", r.status, r.body)
	}
}

// TestScripts runs the conversations in testdata: requests in both protocols
// and the answers to them, to the byte. Commands:
//
//	json ACTION [path=/…] [header=(name,value)…]   the input is the body
//	query [path=/…] [header=…]                      the input is the form, line breaks are left out
//	get TARGET [header=…]
//	advance 30s
//	pulse
//	base64                                          the input, in base64
//
// In input and output, ids and handles stand as {id:1}, {handle:1}, and those of
// move tasks as {task:1}, numbered as they appear; the request id is {request}.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{e: serve(t, newStateBroker(), httpapi.Config{NodeName: "n1"})}
		datadriven.RunTest(t, path, s.run)
	})
}

// script is the state of one conversation.
type script struct {
	e     *endpoint
	names []string // pairs of what appeared and its name
	ids   int
	hands int
	tasks int
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.e.t = t
	input := []byte(s.expand(d.Input))
	path := "/"
	var headers []string
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "path":
			path = s.expand(arg.Vals[0])
		case "header":
			headers = append(headers, arg.Vals[0], s.expand(arg.Vals[1]))
		}
	}
	switch d.Cmd {
	case "json":
		return s.show(s.e.do("POST", path, input, append(headers, "X-Amz-Target", "AmazonSQS."+d.CmdArgs[0].Key)...))
	case "query":
		form := bytes.ReplaceAll(input, []byte("\n"), nil)
		return s.show(s.e.do("POST", path, form, append(headers, "Content-Type", "application/x-www-form-urlencoded; charset=utf-8")...))
	case "get":
		return s.show(s.e.do("GET", string(bytes.ReplaceAll(input, []byte("\n"), nil)), nil, headers...))
	case "advance":
		d, err := strconv.Atoi(strings.TrimSuffix(d.CmdArgs[0].Key, "s"))
		if err != nil {
			t.Fatal(err)
		}
		s.e.broker.mu.Lock()
		s.e.broker.now += sqs.Time(d) * 1000
		s.e.broker.mu.Unlock()
		return ""
	case "pulse":
		s.e.broker.pulse()
		return ""
	case "base64":
		return base64.StdEncoding.EncodeToString(input)
	}
	t.Fatalf("no command %s", d.Cmd)
	return ""
}

// pulse lets the state go on with what is due.
func (b *stateBroker) pulse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.Pulse(sqs.Moment{Now: b.now, NextBody: b.next, Rules: b.settings.Rules})
}

// expand puts what appeared in the place of its names.
func (s *script) expand(text string) string {
	for i := 0; i < len(s.names); i += 2 {
		text = strings.ReplaceAll(text, s.names[i+1], s.names[i])
	}
	return text
}

var (
	uuidPattern   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	taskPattern   = regexp.MustCompile(`"TaskHandle":"([A-Za-z0-9+/=]+)"|<TaskHandle>([A-Za-z0-9+/=]+)<`)
	handlePattern = regexp.MustCompile(`"ReceiptHandle":"([A-Za-z0-9_-]{62})"|<ReceiptHandle>([A-Za-z0-9_-]{62})<`)
)

func (s *script) show(r response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", r.status, r.header["content-type"])
	for _, name := range []string{"x-amzn-query-error", "x-holdfast-outcome"} {
		if value, ok := r.header[name]; ok {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	if r.header["x-holdfast-index"] == "" {
		b.WriteString(" undecided")
	}
	body := strings.ReplaceAll(r.body, r.header["x-amzn-requestid"], "{request}")
	for _, m := range handlePattern.FindAllStringSubmatch(body, -1) {
		if handle := m[1] + m[2]; !slices.Contains(s.names, handle) {
			s.hands++
			s.names = append(s.names, handle, fmt.Sprintf("{handle:%d}", s.hands))
		}
	}
	for _, m := range taskPattern.FindAllStringSubmatch(body, -1) {
		if handle := m[1] + m[2]; !slices.Contains(s.names, handle) {
			s.tasks++
			s.names = append(s.names, handle, fmt.Sprintf("{task:%d}", s.tasks))
		}
	}
	for _, id := range uuidPattern.FindAllString(body, -1) {
		if !slices.Contains(s.names, id) {
			s.ids++
			s.names = append(s.names, id, fmt.Sprintf("{id:%d}", s.ids))
		}
	}
	for i := 0; i < len(s.names); i += 2 {
		body = strings.ReplaceAll(body, s.names[i], s.names[i+1])
	}
	b.WriteString("\n")
	b.WriteString(strings.ReplaceAll(strings.ReplaceAll(body, "><", ">\n<"), `,"`, ",\n\""))
	return strings.TrimRight(b.String(), "\n")
}
