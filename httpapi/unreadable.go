package httpapi

import (
	"errors"

	"github.com/valyala/fasthttp"

	"holdfast.internal/sqs"
)

// handleUnreadable answers a request that could not be read. The HTTP server
// closes the connection after it.
func (s *Server) handleUnreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r := s.requests.Get().(*request)
		r.begin(ctx)
		r.refuse(&sqs.Error{Code: codeTooLarge, Message: "The request is larger than the limit."}, outcomeDecided)
		r.finish()
		r.release()
		s.requests.Put(r)
		return
	case errors.As(err, &small):
		ctx.Error("the head of the request is too large", fasthttp.StatusRequestHeaderFieldsTooLarge)
	case errors.As(err, &timeout) && timeout.Timeout():
		ctx.Error("the request took too long", fasthttp.StatusRequestTimeout)
	default:
		ctx.Error("the request is not valid HTTP", fasthttp.StatusBadRequest)
	}
	s.addHeaders(&ctx.Response.Header)
}
