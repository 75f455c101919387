package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"holdfast.internal/httpapi/awsjson"
	"holdfast.internal/httpapi/awsquery"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// protocol is the one that a request is in and that it is answered in.
type protocol uint8

const (
	queryProtocol protocol = iota
	jsonProtocol
)

// request is one call. It is used again for another one after release.
type request struct {
	server   *Server
	http     *fasthttp.RequestCtx
	protocol protocol
	name     string  // of the action; empty until it is known
	action   *action // nil until it is known
	sns      bool    // it is one of SNS, whether there is such an action or not
	settings raftfsm.Settings
	id       [36]byte
	caller   caller
	path     sqs.QueueKey // the queue whose URL the request was sent to; zero if none
	began    time.Time
	index    uint64 // of the log entry that decided the answer; 0 for none

	in  wire.Input
	out wire.Output

	document awsjson.Document
	form     awsquery.Form
	json     awsjson.Writer
	xml      awsquery.Writer
}

// Names of headers, as the HTTP server spells those of requests.
var (
	headerTarget          = []byte("X-Amz-Target")
	headerContentType     = []byte("Content-Type")
	headerContentEncoding = []byte("Content-Encoding")
	headerAuthorization   = []byte("Authorization")
	headerTrace           = []byte("X-Amzn-Trace-Id")

	targetPrefix    = []byte("AmazonSQS.")
	jsonMediaPrefix = []byte("application/x-amz-json-")
	formMedia       = []byte("application/x-www-form-urlencoded")

	identityEncoding = []byte("identity")
)

// begin starts a request with what every answer needs.
func (r *request) begin(ctx *fasthttp.RequestCtx) {
	r.http = ctx
	r.server.setCommonHeaders(&ctx.Response.Header)
	r.settings = r.server.broker.Settings()
	wire.AppendUUID(r.id[:0], r.server.config.NewID())
	if r.server.config.Observe != nil {
		r.began = r.server.config.Now()
	}
	r.protocol = queryProtocol
	if r.isJSON() {
		r.protocol = jsonProtocol
	}
}

// isJSON tells the protocols apart as AWS does.
func (r *request) isJSON() bool {
	h := &r.http.Request.Header
	return h.IsPost() && len(h.PeekCanonical(headerTarget)) > 0 ||
		isMedia(h.PeekCanonical(headerContentType), jsonMediaPrefix)
}

// isMedia reports whether a Content-Type begins with that media type, in any
// case (RFC 9110, section 8.3.1).
func isMedia(contentType, media []byte) bool {
	return len(contentType) >= len(media) && bytes.EqualFold(contentType[:len(media)], media)
}

// serve finds the action, reads the request, and carries it out.
func (r *request) serve() error {
	if r.settings.ClusterID == "" {
		if err := r.server.broker.AwaitFormed(r.server.context); err != nil {
			return err
		}
		r.settings = r.server.broker.Settings()
	}
	if encoding := r.http.Request.Header.PeekCanonical(headerContentEncoding); len(encoding) > 0 && !bytes.EqualFold(encoding, identityEncoding) {
		r.sns = r.isSignedForSNS()
		return &sqs.Error{Code: codeUnsupportedMedia, Message: "Content-Encoding is not supported."}
	}
	var err error
	if r.protocol == jsonProtocol {
		err = r.readJSON()
	} else {
		err = r.readQuery()
	}
	if err != nil {
		return err
	}
	r.identify()
	r.beginResponse()
	return r.action.run(r)
}

func (r *request) readJSON() error {
	target := r.http.Request.Header.PeekCanonical(headerTarget)
	name, ok := bytes.CutPrefix(target, targetPrefix)
	a := sqsActions[string(name)]
	if !ok || a == nil || !r.http.IsPost() {
		return &sqs.Error{Code: codeUnknownOperation}
	}
	r.name, r.action = a.name, a
	in, err := r.document.Parse(r.http.PostBody())
	if err != nil {
		return malformed(err)
	}
	r.in = in
	return nil
}

func (r *request) readQuery() error {
	unreadable := r.readForm()
	r.in = r.form.Root()
	r.path, _ = parseQueuePath(string(r.http.URI().PathOriginal()))
	name, ok := r.in.Text("Action")
	r.sns = r.isSNS(name)
	switch {
	case unreadable != nil:
		return malformed(unreadable)
	case r.sns:
		return r.findSNS(name)
	case !ok:
		return errNoAction
	}
	a := queryAction(name)
	if a == nil || a.service && r.path.Name != "" {
		return &sqs.Error{Code: codeUnknownOperation, Message: "The action " + name + " is not valid for this endpoint."}
	}
	r.name, r.action = a.name, a
	return nil
}

// readForm reads the parameters of a Query request, those of the URL first.
func (r *request) readForm() error {
	r.form.Reset()
	err := r.form.Add(r.http.URI().QueryString())
	if media := r.http.Request.Header.PeekCanonical(headerContentType); r.http.IsPost() && (len(media) == 0 || isMedia(media, formMedia)) {
		err = cmp.Or(err, r.form.Add(r.http.PostBody()))
	}
	return err
}

// beginResponse starts the document of a success in the buffer that the HTTP
// server sends from.
func (r *request) beginResponse() {
	buf := r.http.Response.SwapBody(nil)[:0]
	if r.protocol == jsonProtocol {
		r.json.Begin(buf)
		r.out = &r.json
		return
	}
	r.xml.Begin(buf, r.name, r.action.namespace, r.action.output)
	r.out = &r.xml
}

// finish completes the response, which is a success until refuse said
// otherwise, and the headers that every answer has.
func (r *request) finish() {
	response := &r.http.Response
	if r.out != nil {
		setBody(response, r.endResponse())
	}
	h := &response.Header
	if len(h.ContentType()) == 0 {
		if r.protocol == jsonProtocol {
			h.SetContentType(awsjson.ContentType)
		} else {
			h.SetContentType(awsquery.ContentType)
		}
	}
	h.SetBytesV("x-amzn-RequestId", r.id[:])
	if r.index != 0 && response.StatusCode() < 500 {
		var digits [20]byte
		h.SetBytesV("x-holdfast-index", strconv.AppendUint(digits[:0], r.index, 10))
	}
	r.observe(response.StatusCode())
}

// keptBuffer is the largest buffer, in bytes, that a connection keeps from one
// request for the next.
const keptBuffer = 64 << 10

// setBody has buf sent. A large buffer is let go once it was sent.
func setBody(response *fasthttp.Response, buf []byte) {
	if cap(buf) > keptBuffer {
		response.SetBodyRaw(buf)
		return
	}
	response.SwapBody(buf)
}

func (r *request) endResponse() []byte {
	r.out = nil
	if r.protocol == queryProtocol {
		return r.xml.End(r.name, string(r.id[:]), r.action.output)
	}
	buf := r.json.End()
	if !r.action.output {
		return buf[:0]
	}
	return buf
}

func (r *request) observe(status int) {
	c := &r.server.config
	if c.Observe != nil {
		c.Observe(r.name, status, c.Now().Sub(r.began))
	}
	if c.Logger.Enabled(context.Background(), slog.LevelDebug) {
		c.Logger.Debug("request", "action", r.name, "status", status, "account", r.caller.account,
			"peer", r.http.RemoteAddr().String(), "request_id", string(r.id[:]), "index", r.index)
	}
}

// fail answers an error. What was written of a success is dropped.
func (r *request) fail(err error) {
	if r.sns {
		answer, done, fault := snsAnswerTo(err)
		r.logFault(fault, err)
		r.refuseSNS(answer, done)
		return
	}
	answer, done, fault := answerTo(err)
	r.logFault(fault, err)
	r.refuse(answer, done)
}

func (r *request) logFault(fault bool, err error) {
	if fault {
		r.server.config.Logger.Error("request failed", "action", r.name, "err", err)
	}
}

// refuse makes the response an error. What was written of a success is dropped.
func (r *request) refuse(answer *sqs.Error, done outcome) {
	shape := shapeOf(answer.Code)
	response := &r.http.Response
	buf := r.dropResponse()
	status := shape.status
	switch {
	case answer == errNoAction:
		status = 404
		buf = append(buf, "<UnknownOperationException/>"...)
	case r.protocol == jsonProtocol:
		buf = appendJSONError(buf, shape, bounded(answer.Message))
		r.http.Response.Header.Set("x-amzn-query-error", shape.query+";"+party(status))
	default:
		message := answer.Message
		if answer.Code == sqs.QueueDoesNotExist {
			message = "The specified queue does not exist for this wsdl version."
		}
		buf = awsquery.AppendFault(buf, namespaceOf(r.action), awsquery.Fault{
			Code: shape.query, Message: bounded(message), Sender: status < 500, RequestID: string(r.id[:]), Detail: true,
		})
	}
	setBody(response, buf)
	response.SetStatusCode(status)
	if done != outcomeDecided {
		response.Header.Set("x-holdfast-outcome", string(done))
	}
}

// dropResponse returns the buffer of the response, empty.
func (r *request) dropResponse() []byte {
	if r.out == nil {
		return r.http.Response.SwapBody(nil)[:0]
	}
	return r.endResponse()[:0]
}

// errNoAction is the answer to a Query request without an Action.
var errNoAction = &sqs.Error{Code: codeUnknownOperation}

func party(status int) string {
	if status < 500 {
		return "Sender"
	}
	return "Receiver"
}

// appendJSONError appends the body of an error. An unknown operation has no
// message (AWS recording of an unknown target), and that of a refused access has a
// name of its own (AWS recording).
func appendJSONError(buf []byte, shape errorShape, message string) []byte {
	buf = append(append(append(buf, `{"__type":"`...), shape.kind...), '"')
	name := `,"message":`
	if shape == errorShapes[codeAccessDenied] {
		name = `,"Message":`
	}
	if message != "" {
		buf = awsjson.AppendString(append(buf, name...), message)
	}
	return append(buf, '}')
}

// release drops everything that belongs to this call.
func (r *request) release() {
	r.document.Release()
	r.form.Release()
	if body := r.http.Request.SwapBody(nil); cap(body) <= keptBuffer {
		r.http.Request.SwapBody(body)
	}
	r.http, r.in, r.out, r.action, r.sns = nil, nil, nil, nil, false
	r.name, r.caller, r.path, r.index = "", caller{}, sqs.QueueKey{}, 0
	r.settings = raftfsm.Settings{}
}

// do has the broker carry out a command. Its error may be an answer.
func (r *request) do(c sqs.Command, bodies ...[]byte) (sqs.Result, error) {
	done, err := r.server.broker.Do(r.server.context, c, bodies...)
	if err != nil {
		return nil, err
	}
	r.index = done.Index
	if done.Err != nil {
		return nil, done.Err
	}
	return done.Result.(sqs.Result), nil
}

// ask is do for a command that has a result of its own.
func ask[R sqs.Result](r *request, c sqs.Command, bodies ...[]byte) (R, error) {
	result, err := r.do(c, bodies...)
	if err != nil {
		var none R
		return none, err
	}
	return result.(R), nil
}

// check ends the reading of a request: it returns the first type error, or, for
// a queue that cannot exist, that it does not.
func (r *request) check(queue sqs.QueueKey) error {
	if err := r.in.Err(); err != nil {
		return malformed(err)
	}
	if queue.Name == "" {
		return sqs.NoSuchQueue()
	}
	return nil
}

// invalid answers err, which is about a parameter, unless the queue does not
// exist, which AWS reports first.
func (r *request) invalid(queue sqs.QueueKey, err *sqs.Error) error {
	if _, missing := r.do(sqs.GetQueueUrl{Queue: queue}); missing != nil {
		return missing
	}
	return err
}
