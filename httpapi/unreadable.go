package httpapi

import (
	"errors"

	"github.com/valyala/fasthttp"

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
		s.respondPlain(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, "the head of the request is too large")
	case slow:
		s.respondPlain(ctx, fasthttp.StatusRequestTimeout, "the request took too long")
	default:
		s.respondPlain(ctx, fasthttp.StatusBadRequest, "the request is not valid HTTP")
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

func (s *Server) respondPlain(ctx *fasthttp.RequestCtx, status int, text string) {
	s.setCommonHeaders(&ctx.Response.Header)
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(text)
}
