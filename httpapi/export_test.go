package httpapi

import "github.com/valyala/fasthttp"

// Handle serves one request without a connection.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) { s.handle(ctx) }
