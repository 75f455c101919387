package httpapi_test

import (
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"holdfast.internal/httpapi"
)

// TestUnenforcedPolicy: who relies on a data protection policy is told, in the log, that
// nothing keeps it.
func TestUnenforcedPolicy(t *testing.T) {
	var log lockedBuffer
	e := serve(t, newStateBroker(), httpapi.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	policy := url.QueryEscape(`{"Name":"n","Statement":[{"DataDirection":"Inbound"}]}`)
	told := func() int { return strings.Count(log.String(), "level=WARN") }
	e.sns("Action=CreateTopic&Name=orders")
	e.sns("Action=PutDataProtectionPolicy&DataProtectionPolicy=&ResourceArn=" + ordersARN)
	e.sns("Action=PutDataProtectionPolicy&ResourceArn=" + ordersARN + "x&DataProtectionPolicy=" + policy)
	if told() != 0 {
		t.Errorf("without a policy: got %s", log.String())
	}
	e.sns("Action=PutDataProtectionPolicy&ResourceArn=" + ordersARN + "&DataProtectionPolicy=" + policy)
	e.sns("Action=CreateTopic&Name=other&DataProtectionPolicy=" + policy)
	if told() != 2 || !strings.Contains(log.String(), "topic=orders") || !strings.Contains(log.String(), "topic=other") {
		t.Errorf("got %s, want a warning of each topic", log.String())
	}
}

// TestSecureTransport: behind a proxy that is trusted, a request came as securely as the
// proxy says.
func TestSecureTransport(t *testing.T) {
	for _, c := range []struct {
		trusted []netip.Prefix
		proto   string
		status  int
	}{
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "https", 200},
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "http", 403},
		{nil, "https", 403},
	} {
		e := serve(t, newStateBroker(), httpapi.Config{TrustedProxies: c.trusted})
		e.sns("Action=CreateTopic&Name=orders")
		e.sns("Action=SetTopicAttributes&AttributeName=Policy&TopicArn=" + ordersARN + "&AttributeValue=" + url.QueryEscape(policyOf(
			`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}`)))
		r := e.query("Version=2010-03-31&Action=Publish&Message=m&TopicArn="+ordersARN, "X-Forwarded-Proto", c.proto)
		if r.status != c.status {
			t.Errorf("trusted %v, %s: got %d %s, want %d", c.trusted, c.proto, r.status, r.body, c.status)
		}
	}
}
