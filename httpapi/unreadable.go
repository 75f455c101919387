package httpapi

import (
	"errors"

	"github.com/valyala/fasthttp"

	"holdfast.internal/httpapi/awsquery"
	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sqs"
)

// handleUnreadable answers a request that could not be read. The HTTP server
// closes the connection after it; the client may still be sending.
func (s *Server) handleUnreadable(ctx *fasthttp.RequestCtx, err error) {
	had := s.bodies.release(&ctx.Request.Header)
	var small *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	slow := errors.As(err, &timeout) && timeout.Timeout()
	if !slow {
		lingerOn(ctx.Conn())
	}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && (had || ctx.Request.Header.ContentLength() > s.config.MaxBody):
		s.refuseUnread(ctx, &sqs.Error{Code: codeTooLarge, Message: "The request is larger than the limit."}, outcomeDecided)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.refuseUnread(ctx, &sqs.Error{Code: sqs.RequestThrottled, Message: "There are too many large requests. Try again."}, outcomeNotApplied)
	case errors.As(err, &small):
		s.respondUnparsed(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, "RequestHeaderSectionTooLarge", "The head of the request is larger than the limit.")
	case slow:
		s.respondUnparsed(ctx, fasthttp.StatusRequestTimeout, "RequestTimeout", "The request did not come in time.")
	default:
		s.respondUnparsed(ctx, fasthttp.StatusBadRequest, "MalformedInput", "The request is not valid HTTP.")
	}
}

// refuseUnread answers a request of which only the head was read.
func (s *Server) refuseUnread(ctx *fasthttp.RequestCtx, answer *sqs.Error, done outcome) {
	r := s.requests.Get().(*request)
	r.begin(ctx)
	if r.sns = r.isSignedForSNS(); r.sns {
		told, _, _ := snsAnswerTo(answer)
		r.refuseSNS(told, done)
	} else {
		r.refuse(answer, done)
	}
	r.finish()
	r.release()
	s.requests.Put(r)
}

// respondUnparsed answers bytes of which nobody knows what they ask for. It does so in
// XML: clients of the Query protocol, all of SNS, can read no error from anything else.
func (s *Server) respondUnparsed(ctx *fasthttp.RequestCtx, status int, code, text string) {
	var id [36]byte
	wire.AppendUUID(id[:0], s.config.NewID())
	s.setCommonHeaders(&ctx.Response.Header)
	ctx.Response.Header.SetBytesV("x-amzn-RequestId", id[:])
	ctx.SetStatusCode(status)
	ctx.SetContentType(awsquery.ContentType)
	ctx.SetBody(awsquery.AppendFault(nil, sqsNamespace, awsquery.Fault{
		Code: code, Message: text, Sender: true, RequestID: string(id[:]), Detail: true,
	}))
}
