package conformance

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

// C97–C100: how requests of SNS are told apart and answered.
func TestSNSProtocol(t *testing.T) {
	perform(t, []act{
		{id: "C97", title: "an empty list", play: func(s *stage) {
			topic := s.topic()
			s.done("TagResource", in{"ResourceArn": topic, "Tags": []in{}})
			s.done("CreateTopic", in{"Name": topicName(topic), "Tags": []in{}})
		}},
		{id: "C98", title: "links have neither version nor signature", play: func(s *stage) {
			a := s.request(request{method: "GET", path: "/?Action=ConfirmSubscription&TopicArn=" + s.topic() + "&Token=abc123"})
			s.wentWrong("ConfirmSubscription", a, "InvalidParameter", "Invalid parameter: Token")
		}},
		{id: "C99", title: "void actions have no result", play: func(s *stage) {
			a := s.sns("DeleteTopic", in{"TopicArn": s.topic()})
			if want := `<ResponseMetadata><RequestId>`; !bytes.Contains(a.body, []byte(`2010-03-31/">`+want)) {
				s.Errorf("got %s, want %s alone", a.body, want)
			}
			a = s.sns("TagResource", in{"ResourceArn": s.topic(), "Tags": []in{}})
			if !bytes.Contains(a.body, []byte("<TagResourceResult/>")) {
				s.Errorf("got %s, want an empty TagResourceResult", a.body)
			}
		}},
		{id: "C100", title: "the request id of an error", play: func(s *stage) {
			a := s.sns("GetTopicAttributes", in{"TopicArn": s.arnOf("missing")})
			s.wentWrong("GetTopicAttributes", a, "NotFound", "Topic does not exist")
			if bytes.Contains(a.body, []byte("ResponseMetadata")) || !bytes.Contains(a.body, []byte("</Error><RequestId>")) {
				s.Errorf("got %s, want the RequestId beside the Error", a.body)
			}
		}},
		{id: "version", title: "told apart by version, action and signature", play: func(s *stage) {
			form := func(query string, service string) answer {
				return s.request(request{header: signature(service), body: []byte(query)})
			}
			s.succeeded("CreateTopic", form("Action=CreateTopic&Name="+s.name(), "sqs"))
			s.wentWrong("AddPermission", form("Action=AddPermission&Version=2010-03-31", "sqs"), "InvalidParameter",
				"Invalid parameter: TopicArn Reason: no value for required parameter")
			s.wentWrong("AddPermission", form("Action=AddPermission", "sns"), "InvalidParameter",
				"Invalid parameter: TopicArn Reason: no value for required parameter")
			for _, query := range []string{"Action=AddPermission", "Action=AddPermission&Version=2012-11-05"} {
				a, err := queryWire.do(client, s.endpoint, request{header: signature("sqs"), body: []byte(query)})
				if err != nil || a.code != "AWS.SimpleQueueService.NonExistentQueue" && a.code != "MissingParameter" {
					s.Errorf("%s: got %s %v, want an error of SQS", query, a.code, err)
				}
			}
		}},
		{id: "unknown", title: "an action that there is not", play: func(s *stage) {
			s.bad("Nothing", nil, "InvalidAction", "Could not find operation Nothing for version 2010-03-31")
			a := s.request(request{header: signature("sns"), body: []byte("Version=2010-03-31")})
			s.wentWrong("", a, "MissingAction", "…")
		}},
		{id: "get", title: "parameters in the query string, and in both places", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed()
			query := url.Values{"Action": {"Publish"}, "TopicArn": {topic}, "Message": {"by query"}, "Version": {snsVersion}}
			s.succeeded("Publish", s.request(request{method: "GET", path: "/?" + query.Encode(), header: signature("sns")}))
			s.succeeded("Publish", s.request(request{path: "/?" + query.Encode(), header: signature("sns")}))
			query.Del("Message")
			s.succeeded("Publish", s.request(request{path: "/?" + query.Encode(), header: signature("sns"), body: []byte("Message=by+both")}))
			s.gets(queueURL, "by query", "by query", "by both")
		}},
		{id: "lists", title: "numbers of elements in any order, and flattened lists", play: func(s *stage) {
			name := s.name()
			a := s.request(request{header: signature("sns"), body: []byte("Action=CreateTopic&Version=2010-03-31&Name=" + name +
				"&Tags.member.7.Key=b&Tags.member.7.Value=2&Tags.member.3.Key=a&Tags.member.3.Value=1")})
			s.succeeded("CreateTopic", a)
			a = s.request(request{header: signature("sns"), body: []byte("Action=TagResource&Version=2010-03-31&ResourceArn=" +
				s.arnOf(name) + "&Tags.1.Key=c&Tags.1.Value=3&Unknown=x")})
			s.succeeded("TagResource", a)
			var got []string
			for _, tag := range s.done("ListTagsForResource", in{"ResourceArn": s.arnOf(name)}).list("Tags") {
				got = append(got, tag.text("Key")+"="+tag.text("Value"))
			}
			if want := "a=1 b=2 c=3"; strings.Join(got, " ") != want {
				s.Errorf("got %v, want %s", got, want)
			}
		}},
		{id: "unsigned", title: "who does not say who he is", play: func(s *stage) {
			topic := s.topic()
			unsigned := func(action string, members in) answer {
				return s.request(request{
					header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
					body:   []byte(snsForm(action, members).Encode()),
				})
			}
			s.wentWrong("ListTopics", unsigned("ListTopics", nil), "MissingAuthenticationToken", "Request is missing Authentication Token")
			s.wentWrong("CreateTopic", unsigned("CreateTopic", in{"Name": "x"}), "MissingAuthenticationToken", "…")
			a := unsigned("GetTopicAttributes", in{"TopicArn": topic})
			s.wentWrong("GetTopicAttributes", a, "AuthorizationError", "User: anonymous is not authorized to perform: SNS:GetTopicAttributes on resource: "+topic+"…")
		}},
		{id: "json", title: "SNS has no JSON protocol", play: func(s *stage) {
			a, err := jsonWire.do(client, s.endpoint, request{
				header: map[string]string{"X-Amz-Target": "AmazonSNS.ListTopics", "Content-Type": "application/x-amz-json-1.0"}, body: []byte("{}"),
			})
			if err != nil || a.status != 400 {
				s.Errorf("got %d %v, want 400", a.status, err)
			}
		}},
	})
}
