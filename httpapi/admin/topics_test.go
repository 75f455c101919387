package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

func newTopicNode() *fakeNode {
	node := newNode()
	for i, name := range []string{"orders", "other", "bills"} {
		node.topics = append(node.topics, sns.TopicCensus{
			Topic: sns.TopicKey{Account: "000000000000", Name: name}, Confirmed: 2, CreatedAt: 5,
			Counters: sns.Counters{Published: uint64(i), Delivered: 3, Filtered: 4, Failed: 5, Redriven: 6},
		})
	}
	for i := range 3 {
		node.listed = append(node.listed, sns.ListedSubscription{
			Topic: node.topics[0].Topic, Subscription: sns.SubscriptionID{15: byte(i)}, Owner: "000000000000", Protocol: sns.SQS,
			Endpoint: fmt.Sprint("arn:aws:sqs:us-east-1:000000000000:q", i), Pending: i == 2,
		})
	}
	return node
}

func TestTopics(t *testing.T) {
	handler := newHandler(newTopicNode(), 2)
	got := call(t, handler, http.MethodGet, "/topics?prefix=ord", "", http.StatusOK)
	want := `"account":"000000000000","name":"orders","created_ms":5,"confirmed":2,"pending":0,"waiting":0,"published":0,` +
		`"delivered":3,"filtered":4,"failed":5,"redriven":6,"damaged":false`
	if !strings.Contains(got, want) || strings.Contains(got, "other") {
		t.Errorf("got %s", got)
	}
	if got := call(t, handler, http.MethodGet, "/topics?account=111111111111", "", http.StatusOK); strings.TrimSpace(got) != "[]" {
		t.Errorf("got %s", got)
	}
}

func TestTopicSubscriptions(t *testing.T) {
	handler := newHandler(newTopicNode(), 2)
	const path = "/topics/000000000000/orders/subscriptions?limit=2"
	got := call(t, handler, http.MethodGet, path, "", http.StatusOK)
	const next = "sqs 00000000-0000-0000-0000-000000000001 arn:aws:sqs:us-east-1:000000000000:q1"
	want := `{"arn":"arn:aws:sns:us-east-1:000000000000:orders:00000000-0000-0000-0000-000000000001","protocol":"sqs",` +
		`"endpoint":"arn:aws:sqs:us-east-1:000000000000:q1","owner":"000000000000","pending":false}`
	if !strings.Contains(got, want) || !strings.Contains(got, `"next":"`+next+`"`) {
		t.Errorf("got %s", got)
	}
	got = call(t, handler, http.MethodGet, path+"&after="+url.QueryEscape(next), "", http.StatusOK)
	if strings.Count(got, `"arn"`) != 1 || !strings.Contains(got, `"pending":true`) || !strings.Contains(got, `"next":""`) {
		t.Errorf("got %s", got)
	}
	call(t, handler, http.MethodGet, "/topics/000000000000/none/subscriptions", "", http.StatusNotFound)
	for _, bad := range []string{"limit=0", "limit=1001", "limit=x", "after=x", "after=sqs", "after=sqs+1+x", "after=" + url.QueryEscape(strings.Replace(next, "sqs", "fax", 1))} {
		call(t, handler, http.MethodGet, "/topics/000000000000/orders/subscriptions?"+bad, "", http.StatusBadRequest)
	}
}

// TestNextHasNoPassword: what a page goes on behind is shown, and has no secret.
func TestNextHasNoPassword(t *testing.T) {
	node := newTopicNode()
	for i := range node.listed {
		node.listed[i].Protocol, node.listed[i].Endpoint = sns.HTTP, "http://me:secret@host/"
	}
	got := call(t, newHandler(node, 2), http.MethodGet, "/topics/000000000000/orders/subscriptions?limit=2", "", http.StatusOK)
	if strings.Contains(got, "secret") || !strings.Contains(got, `"next":"http 00000000-0000-0000-0000-000000000001 http://me:"`) {
		t.Errorf("got %s", got)
	}
}

func TestRotateSigningKey(t *testing.T) {
	got := post(t, newTopicNode(), "/signing-keys", "application/json", "", http.StatusOK)
	if !strings.Contains(got, `"certificate":"SimpleNotificationService-`) {
		t.Errorf("got %s", got)
	}
	for _, browser := range []string{"", "text/plain"} {
		post(t, newTopicNode(), "/signing-keys", browser, "", http.StatusUnsupportedMediaType)
	}
}

// The busiest topics have series of their own; the sums are whole.
func TestMetricsCapTopics(t *testing.T) {
	got := holdfastLines(call(t, newHandler(newTopicNode(), 1), http.MethodGet, "/metrics", "", http.StatusOK))
	for _, want := range []string{
		`holdfast_sns_number_of_messages_published_total{account="000000000000",protocol="",topic="bills"} 2`,
		`holdfast_sns_number_of_messages_published_total{account="",protocol="",topic="~other"} 1`,
		`holdfast_sns_number_of_notifications_failed_total{account="",protocol="sqs",topic="~other"} 10`,
		`holdfast_sns_subscriptions_confirmed{account="",protocol="",topic="~other"} 4`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s in\n%s", want, got)
		}
	}
}
