package httpapi_test

import (
	"net/netip"
	"strings"
	"testing"

	"holdfast.internal/httpapi"
	"holdfast.internal/sqs"
)

// TestQueueURLs sends every form of a queue URL that AWS takes, and some that
// it does not.
func TestQueueURLs(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	e.json("CreateQueue", `{"QueueName":"my-queue"}`)
	for url, want := range map[string]bool{
		"https://sqs.us-east-1.amazonaws.com/000000000000/my-queue":   true,
		"https://queue.amazonaws.com/000000000000/my-queue":           true,
		"https://us-east-1.queue.amazonaws.com/000000000000/my-queue": true,
		"http://localhost:4566/000000000000/my-queue":                 true,
		"http://localhost:4566/000000000000/my-queue/":                true,
		"http://localhost:4566/behind/a/proxy/000000000000/my-queue":  true,
		"/000000000000/my-queue":                                      true,
		"000000000000/my-queue":                                       true,
		"my-queue":                                                    true,
		"":                                                            false,
		"My-Queue":                                                    false,
		"my-queue/":                                                   false,
		"http://localhost:4566/my-queue":                              false,
		"http://localhost:4566/000000000000/My-Queue":                 false,
		"http://localhost:4566/000000000001/my-queue":                 false,
		"http://localhost:4566/000000000000/my-queue/x":               false,
		"http://whatever-incorrect-queue-address":                     false,
		"http://000000000000/my-queue":                                false,
		"http://localhost:4566/000000000000/":                         false,
		"http://localhost:4566/000000000000/my queue":                 false,
	} {
		r := e.json("ListQueueTags", `{"QueueUrl":"`+url+`"}`)
		if got := r.status == 200; got != want {
			t.Errorf("%q: got %d %s, want success %v", url, r.status, r.body, want)
		}
		if !want && !strings.Contains(r.body, "#QueueDoesNotExist") {
			t.Errorf("%q: got %s, want QueueDoesNotExist", url, r.body)
		}
	}
}

// TestMintedURL looks at where the queue URL in an answer points to.
func TestMintedURL(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	elsewhere := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tt := range []struct {
		name    string
		public  string
		trusted []netip.Prefix
		headers []string
		want    string
	}{
		{"host", "", nil, []string{"Host", "sqs.example:4566"}, "http://sqs.example:4566"},
		{"public", "https://queues.example/sqs/", loopback, []string{"X-Forwarded-Host", "proxy.example"}, "https://queues.example/sqs"},
		{"not trusted", "", elsewhere, []string{"X-Forwarded-Host", "proxy.example"}, "http://sqs.example"},
		{"trusted", "", loopback, []string{"X-Forwarded-Host", "proxy.example", "X-Forwarded-Proto", "https"}, "https://proxy.example"},
		{"host with port", "", loopback, []string{"X-Forwarded-Host", "proxy.example:8080"}, "http://proxy.example:8080"},
		{"port", "", loopback, []string{"X-Forwarded-Host", "proxy.example:1", "X-Forwarded-Port", "8443", "X-Forwarded-Proto", "https"}, "https://proxy.example:8443"},
		{"usual port", "", loopback, []string{"X-Forwarded-Port", "443", "X-Forwarded-Proto", "https"}, "https://sqs.example"},
		{"several", "", loopback, []string{"X-Forwarded-Host", "first.example, second.example"}, "http://first.example"},
		{"nonsense", "", loopback, []string{"X-Forwarded-Host", "a/b", "X-Forwarded-Proto", "gopher", "X-Forwarded-Port", "x"}, "http://sqs.example"},
		{"IPv6", "", loopback, []string{"X-Forwarded-Host", "[::1]:1", "X-Forwarded-Port", "8080"}, "http://[::1]:8080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broker := newStateBroker()
			broker.settings.PublicURL = tt.public
			e := serve(t, broker, httpapi.Config{TrustedProxies: tt.trusted})
			want := tt.want + "/000000000000/q"
			for _, r := range []response{
				e.json("CreateQueue", `{"QueueName":"q"}`, tt.headers...),
				e.query("Action=CreateQueue&QueueName=q", tt.headers...),
				e.json("ListQueues", `{}`, tt.headers...),
				e.query("Action=GetQueueUrl&QueueName=q", tt.headers...),
			} {
				if !strings.Contains(r.body, `"`+want+`"`) && !strings.Contains(r.body, ">"+want+"<") {
					t.Errorf("got %s, want %s", r.body, want)
				}
			}
		})
	}
}

// TestMintedURLWithoutHost has requests that do not say where they were sent to:
// the queue URL is then where they arrived.
func TestMintedURLWithoutHost(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	for _, head := range []string{
		" HTTP/1.0\r\n",
		" HTTP/1.1\r\nHost: a@b\r\n",
		" HTTP/1.1\r\nHost: <a>\"b\r\n",
		" HTTP/1.1\r\nHost: \xff\xfe\r\n",
	} {
		want := "<QueueUrl>http://" + e.addr + "/000000000000/q</QueueUrl>"
		if r := e.raw("GET /?Action=CreateQueue&QueueName=q" + head + "\r\n"); !strings.Contains(r.body, want) {
			t.Errorf("%q: got %d %s, want %s", head, r.status, r.body, want)
		}
	}
}

// Whoever asks for the queue of another account is refused, whether it exists or not
// (SQS API reference, GetQueueUrl).
func TestQueueURLOfAnotherAccount(t *testing.T) {
	e := serve(t, newStateBroker(), httpapi.Config{})
	r := e.json("GetQueueUrl", `{"QueueName":"q","QueueOwnerAWSAccountId":"111111111111"}`)
	if want := `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"Access to the resource http://sqs.example/ is denied."}`; r.status != 403 || r.body != want {
		t.Errorf("got %d %s, want 403 %s", r.status, r.body, want)
	}
	r = e.query("Action=GetQueueUrl&QueueName=q&QueueOwnerAWSAccountId=111111111111")
	if r.status != 403 || !strings.Contains(r.body, "<Code>AccessDenied</Code>") {
		t.Errorf("got %d %s, want 403 AccessDenied", r.status, r.body)
	}
}

func TestAccounts(t *testing.T) {
	broker := newStateBroker()
	e := serve(t, broker, httpapi.Config{})
	signed := func(key string) []string {
		return []string{"Authorization", "AWS4-HMAC-SHA256 Credential=" + key + "/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=x"}
	}
	for _, tt := range []struct {
		name, form string
		headers    []string
		account    string
		sender     string
	}{
		{"unsigned", "", nil, "000000000000", "anonymous"},
		{"key", "", signed("AKIDEXAMPLE"), "000000000000", "000000000000"},
		{"account", "", signed("111111111111"), "111111111111", "111111111111"},
		{"presigned", "&X-Amz-Credential=111111111111%2F20260101%2Fus-east-1%2Fsqs%2Faws4_request", nil, "111111111111", "111111111111"},
		{"version 2", "&AWSAccessKeyId=111111111111&Signature=x", nil, "111111111111", "111111111111"},
	} {
		e.query("Action=CreateQueue&QueueName=q"+tt.form, tt.headers...)
		if c, _ := broker.last().(sqs.CreateQueue); c.Queue.Account != tt.account {
			t.Errorf("%s: got account %s, want %s", tt.name, c.Queue.Account, tt.account)
		}
		e.query("Action=SendMessage&MessageBody=x&QueueUrl=q"+tt.form, tt.headers...)
		r := e.query("Action=ReceiveMessage&AttributeName.1=SenderId&QueueUrl=q"+tt.form, tt.headers...)
		if !strings.Contains(r.body, "<Name>SenderId</Name><Value>"+tt.sender+"</Value>") {
			t.Errorf("%s: got %s, want sender %s", tt.name, r.body, tt.sender)
		}
		e.query("Action=PurgeQueue&QueueUrl=q"+tt.form, tt.headers...)
		broker.now += 61_000
	}
}
