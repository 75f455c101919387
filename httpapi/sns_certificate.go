package httpapi

import (
	"path"
	"strings"

	"github.com/valyala/fasthttp"
)

// serveCertificate answers the URLs in SNS messages that certificates are at, those
// of keys that are not in use any more included, and reports whether this was one.
func (s *Server) serveCertificate(ctx *fasthttp.RequestCtx) bool {
	name := path.Base(string(ctx.Path()))
	if ctx.IsPost() || !strings.HasPrefix(name, "SimpleNotificationService-") {
		return false
	}
	if err := s.broker.AwaitFormed(s.context); err != nil {
		ctx.Error("No leader. Try again.", fasthttp.StatusServiceUnavailable)
		return true
	}
	settings := s.broker.Settings()
	certificate, ok := settings.CertificatePEM(name)
	if !ok {
		return false
	}
	s.setCommonHeaders(&ctx.Response.Header)
	ctx.SetContentType("application/x-pem-file")
	ctx.SetBody(certificate)
	return true
}
