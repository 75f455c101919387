package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// EchoCommand is the hidden subcommand of holdfast that calls Echo.
const EchoCommand = "bench-echo"

// echoAnswer is what the echo server says to one call.
type echoAnswer struct {
	contentType []byte
	headers     [][2][]byte
	body        []byte
}

// echoServer answers each call with what it was told to.
type echoServer struct {
	answers [calls]atomic.Pointer[echoAnswer]
}

// Echo serves the floor on a free port of the loopback until ctx ends. The first
// line on out is {"api":"http://HOST:PORT"}.
//
// PUT /X with an HTTP answer, headers and body, as the body of the request sets
// what is answered to call X, a letter. Every other request is a call, whose letter
// is the last byte of its User-Agent.
func Echo(ctx context.Context, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for echoes: %w", err)
	}
	if err := json.NewEncoder(out).Encode(map[string]string{"api": "http://" + listener.Addr().String()}); err != nil {
		return fmt.Errorf("announce echo server: %w", err)
	}
	e := &echoServer{}
	server := &fasthttp.Server{Handler: e.handle, NoDefaultServerHeader: true, MaxRequestBodySize: 2 * maxBody}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve echoes: %w", err)
	}
	return nil
}

func (e *echoServer) handle(ctx *fasthttp.RequestCtx) {
	if ctx.IsPut() {
		e.learn(ctx)
		return
	}
	agent := ctx.Request.Header.UserAgent()
	n := -1
	if len(agent) > 0 {
		n = int(agent[len(agent)-1]) - firstCall
	}
	if n < 0 || n >= len(e.answers) || e.answers[n].Load() == nil {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	a := e.answers[n].Load()
	ctx.Response.Header.SetContentTypeBytes(a.contentType)
	for _, h := range a.headers {
		ctx.Response.Header.SetBytesKV(h[0], h[1])
	}
	ctx.Response.SetBodyRaw(a.body)
}

// learn takes the answer to a call.
func (e *echoServer) learn(ctx *fasthttp.RequestCtx) {
	path := ctx.Path()
	head, body, ok := bytes.Cut(ctx.PostBody(), []byte("\r\n\r\n"))
	if len(path) != 2 || path[1] < firstCall || int(path[1]-firstCall) >= len(e.answers) || !ok {
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	a := &echoAnswer{body: bytes.Clone(body)}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, ok := bytes.Cut(line, []byte(": "))
		switch {
		case !ok: // the status line
		case bytes.EqualFold(name, []byte("Content-Type")):
			a.contentType = bytes.Clone(value)
		case bytes.EqualFold(name, []byte("Content-Length")), bytes.EqualFold(name, []byte("Date")), bytes.EqualFold(name, []byte("Connection")):
			// the server writes its own
		default:
			a.headers = append(a.headers, [2][]byte{bytes.Clone(name), bytes.Clone(value)})
		}
	}
	e.answers[path[1]-firstCall].Store(a)
}
