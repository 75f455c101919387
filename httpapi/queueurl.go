package httpapi

import (
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"holdfast.internal/sqs"
)

// queue returns the queue that a request names by its QueueUrl or, in the Query
// protocol, by the path that it was sent to. The name is empty if no queue of
// the caller can be meant.
func (r *request) queue() sqs.QueueKey {
	text, ok := r.in.Text("QueueUrl")
	switch {
	case ok:
	case r.protocol == queryProtocol && r.path.Name != "":
		return r.own(r.path)
	default:
		return sqs.QueueKey{}
	}
	key, ok := parseQueueURL(text)
	if !ok {
		return sqs.QueueKey{}
	}
	if key.Account == "" {
		key.Account = r.caller.account
	}
	return r.own(key)
}

// own returns key if it is one of the caller's, and the zero key otherwise: the
// queues of others do not exist for him.
func (r *request) own(key sqs.QueueKey) sqs.QueueKey {
	if key.Account != r.caller.account {
		return sqs.QueueKey{}
	}
	return key
}

// parseQueueURL reads the last two parts of a URL's path: account and name. As
// with AWS, scheme and host do not count, and a bare name will do; its account
// is empty.
func parseQueueURL(text string) (sqs.QueueKey, bool) {
	if scheme, rest, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "/") {
		_, path, _ := strings.Cut(rest, "/")
		return parseQueuePath(path)
	}
	if !strings.Contains(text, "/") {
		return sqs.QueueKey{Name: text}, sqs.ValidQueueName(text)
	}
	return parseQueuePath(text)
}

// parseQueuePath is parseQueueURL for the path alone.
func parseQueuePath(path string) (sqs.QueueKey, bool) {
	path = strings.TrimSuffix(path, "/")
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 {
		return sqs.QueueKey{}, false
	}
	name, account := path[slash+1:], path[:slash]
	account = account[strings.LastIndexByte(account, '/')+1:]
	if !isAccount(account) || !sqs.ValidQueueName(name) {
		return sqs.QueueKey{}, false
	}
	return sqs.QueueKey{Account: account, Name: name}, true
}

// queueURL is the URL of a queue, as the client that asks can reach it.
func (r *request) queueURL(key sqs.QueueKey) string {
	return r.baseURL() + "/" + key.Account + "/" + key.Name
}

// baseURL is where the client that asks can reach the service: what the
// operator said, else where the request was sent to.
func (r *request) baseURL() string {
	if r.settings.PublicURL != "" {
		return strings.TrimRight(r.settings.PublicURL, "/")
	}
	scheme, host := r.sentTo()
	return scheme + "://" + host
}

// sentTo is how and where the client sent the request: what a trusted proxy says, else
// what the client did.
func (r *request) sentTo() (scheme, host string) {
	scheme, host = "http", string(r.http.Request.Header.Host())
	if !isHost(host) { // HTTP/1.0 may send none
		host = r.http.LocalAddr().String()
	}
	if r.http.IsTLS() {
		scheme = "https"
	}
	if r.server.trusts(r.http.RemoteAddr()) {
		return forwarded(&r.http.Request.Header, scheme, host)
	}
	return scheme, host
}

// trusts reports whether the peer is a proxy that may say where a request came
// to.
func (s *Server) trusts(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return false
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	addr = addr.Unmap()
	for _, prefix := range s.config.TrustedProxies {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// forwarded returns scheme and host as a proxy's headers change them. Of several
// proxies the first one saw the client.
func forwarded(h *fasthttp.RequestHeader, scheme, host string) (string, string) {
	first := func(name string) string {
		value, _, _ := strings.Cut(string(h.Peek(name)), ",")
		return strings.TrimSpace(value)
	}
	if proto := strings.ToLower(first("X-Forwarded-Proto")); proto == "http" || proto == "https" {
		scheme = proto
	}
	if value := first("X-Forwarded-Host"); isHost(value) {
		host = value
	}
	port := first("X-Forwarded-Port")
	if !isPort(port) {
		return scheme, host
	}
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
		if strings.Contains(bare, ":") {
			host = "[" + bare + "]"
		}
	}
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return scheme, host
	}
	return scheme, host + ":" + port
}

// isHost reports whether s may be the host of a URL, with or without a port.
func isHost(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c > '~' || strings.IndexByte(`/\?#@"<>`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isPort(s string) bool {
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}
