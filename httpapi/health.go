package httpapi

import (
	"encoding/json"

	"github.com/valyala/fasthttp"
)

// serveHealth answers the paths that load balancers ask, and reports whether
// this was one.
func (s *Server) serveHealth(ctx *fasthttp.RequestCtx) bool {
	if ctx.IsPost() {
		return false
	}
	switch string(ctx.Path()) {
	case "/health", "/health/live":
		// A process that answers can serve, or say that there is no leader.
		s.respondHealth(ctx, fasthttp.StatusOK, []byte(`{"ok":true}`))
	case "/health/ready":
		ready, reasons := s.broker.Ready()
		status := fasthttp.StatusOK
		if !ready {
			status = fasthttp.StatusServiceUnavailable
		}
		s.respondHealth(ctx, status, readiness(ready, reasons))
	default:
		return false
	}
	return true
}

func readiness(ready bool, reasons []string) []byte {
	body, err := json.Marshal(struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}{ready, append([]string{}, reasons...)})
	if err != nil {
		panic("httpapi: marshal readiness: " + err.Error()) // a bool and strings
	}
	return body
}

func (s *Server) respondHealth(ctx *fasthttp.RequestCtx, status int, body []byte) {
	s.setCommonHeaders(&ctx.Response.Header)
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}
