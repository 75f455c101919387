package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// permit adds a permission to receive.
func (s *scene) permit(url, label string, accounts ...string) {
	s.Helper()
	s.ok("AddPermission", in{"QueueUrl": url, "Label": label, "AWSAccountIds": accounts, "Actions": []string{"ReceiveMessage"}})
}

// permitted is the statement of a permission to receive; principal is JSON.
func (s *scene) permitted(url, label, principal string) string {
	s.Helper()
	return fmt.Sprintf(`{"Sid":%q,"Effect":"Allow","Principal":{"AWS":%s},"Action":"SQS:ReceiveMessage","Resource":%q}`, label, principal, s.arn(url))
}

// hasPolicy checks the policy of a queue, which must be the default one with these
// statements; without any there must be none.
func (s *scene) hasPolicy(url string, statements ...string) {
	s.Helper()
	if len(statements) == 0 {
		if out := s.ok("GetQueueAttributes", in{"QueueUrl": url, "AttributeNames": []string{"Policy"}}); out.at("Attributes") != nil {
			s.Errorf("got %v, want no Attributes", out)
		}
		return
	}
	want := fmt.Sprintf(`{"Version":"2008-10-17","Id":"%s/SQSDefaultPolicy","Statement":[`, s.arn(url))
	for i, statement := range statements {
		if i > 0 {
			want += ","
		}
		want += statement
	}
	want += "]}"
	got := s.attributes(url, "Policy")["Policy"]
	var left, right any
	if err := json.Unmarshal([]byte(got), &left); err != nil {
		s.Fatalf("policy %q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &right); err != nil {
		s.Fatal(err)
	}
	if !reflect.DeepEqual(left, right) {
		s.Errorf("policy\n got %s\nwant %s", got, want)
	}
}

const (
	rootOf1 = `"arn:aws:iam::111122223333:root"`
	rootOf2 = `"arn:aws:iam::444455556666:root"`
)

// A1–A8: permissions (AWS recording test_sqs_permission_lifecycle).
func TestPermissions(t *testing.T) {
	label := func(label, reason string) failure {
		return fails(invalidValue, "Value "+label+" for parameter Label is invalid. Reason: "+reason)
	}
	play(t, []script{
		{id: "A1-A2", title: "two accounts come and go", play: func(s *scene) {
			q := s.queue()
			s.permit(q, "crossaccountpermission", "111122223333", "444455556666")
			s.hasPolicy(q, s.permitted(q, "crossaccountpermission", "["+rootOf1+","+rootOf2+"]"))
			s.ok("RemovePermission", in{"QueueUrl": q, "Label": "crossaccountpermission"})
			s.hasPolicy(q)
		}},
		{id: "A3", title: "a label is used once", play: func(s *scene) {
			q := s.queue()
			s.permit(q, "L", "111122223333")
			s.refused("AddPermission", in{"QueueUrl": q, "Label": "L", "AWSAccountIds": []string{"444455556666"}, "Actions": []string{"ReceiveMessage"}},
				label("L", "Already exists."))
			s.hasPolicy(q, s.permitted(q, "L", rootOf1))
		}},
		{id: "A4-A5", title: "one after the other", play: func(s *scene) {
			q := s.queue()
			s.permit(q, "L", "111122223333")
			s.permit(q, "L2", "444455556666")
			s.hasPolicy(q, s.permitted(q, "L", rootOf1), s.permitted(q, "L2", rootOf2))
			s.ok("RemovePermission", in{"QueueUrl": q, "Label": "L"})
			s.hasPolicy(q, s.permitted(q, "L2", rootOf2))
			s.refused("RemovePermission", in{"QueueUrl": q, "Label": "L"}, label("L", "can't find label on existing policy."))
			s.ok("RemovePermission", in{"QueueUrl": q, "Label": "L2"})
			s.hasPolicy(q)
			s.refused("RemovePermission", in{"QueueUrl": q, "Label": "L2"}, label("L2", "can't find label."))
		}},
		{id: "A6", title: "seven actions, twenty statements", play: func(s *scene) {
			q := s.queue()
			actions := []string{
				"ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl",
				"ListDeadLetterSourceQueues", "PurgeQueue", "ReceiveMessage", "SendMessage",
			}
			add := func(label string, n int) in {
				return in{"QueueUrl": q, "Label": label, "AWSAccountIds": []string{"111122223333"}, "Actions": actions[:n]}
			}
			s.refused("AddPermission", add("L", 8), fails("OverLimit", "8 Actions were found, maximum allowed is 7."))
			s.ok("AddPermission", add("L", 7))
			s.ok("RemovePermission", in{"QueueUrl": q, "Label": "L"})
			for i := range 20 {
				s.ok("AddPermission", add(fmt.Sprint("L", i), 1))
			}
			s.refused("AddPermission", add("L", 1), fails("OverLimit", "21 Statements were found, maximum allowed is 20."))
		}},
		{id: "A7", title: "actions that cannot be permitted", play: func(s *scene) {
			q := s.queue()
			add := func(action string) in {
				return in{"QueueUrl": q, "Label": "L", "AWSAccountIds": []string{"111122223333"}, "Actions": []string{action}}
			}
			s.refused("AddPermission", add("RemovePermission"), fails(invalidValue,
				"Value SQS:RemovePermission for parameter ActionName is invalid. Reason: Only the queue owner is allowed to invoke this action."))
			s.refused("AddPermission", add("X"), fails(invalidValue,
				"Value SQS:X for parameter ActionName is invalid. Reason: Please refer to the appropriate WSDL for a list of valid actions."))
			s.hasPolicy(q)
		}},
		{id: "A8", title: "an empty policy is none", play: func(s *scene) {
			q := s.queue()
			s.permit(q, "L", "111122223333")
			s.set(q, "Policy", "")
			s.hasPolicy(q)
		}},
		{id: "extended", title: "a policy that was set goes on", play: func(s *scene) {
			q := s.queue()
			s.set(q, "Policy", policy(s.arn(q)))
			s.permit(q, "L", "111122223333")
			s.ok("RemovePermission", in{"QueueUrl": q, "Label": "L"})
			var got, want any
			if err := json.Unmarshal([]byte(s.attributes(q, "Policy")["Policy"]), &got); err != nil {
				s.Fatal(err)
			}
			if err := json.Unmarshal([]byte(policy(s.arn(q))), &want); err != nil {
				s.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				s.Errorf("got %v, want %v", got, want)
			}
		}},
		{id: "missing", title: "missing parameters", play: func(s *scene) {
			q := s.queue()
			s.refused("AddPermission", in{"QueueUrl": q}, fails(missingParameter, "The request must contain the parameter Label."))
			s.refused("AddPermission", in{"QueueUrl": q, "Label": "L"}, fails(missingParameter,
				"The request must contain the parameter Actions.", "The request must contain the parameter ActionName."))
			s.refused("AddPermission", in{"QueueUrl": q, "Label": "L", "Actions": []string{"SendMessage"}}, fails(invalidValue,
				"Value [] for parameter PrincipalId is invalid. Reason: Unable to verify."))
			s.refused("RemovePermission", in{"QueueUrl": q}, fails(missingParameter))
		}},
		{id: "concurrent", title: "no permission is lost when many are added at a time", play: func(s *scene) {
			q := s.queue()
			added := make(chan answer, 6)
			for i := range cap(added) {
				go func() {
					a, _ := s.wire.do(client, s.endpoint, s.wire.render("AddPermission", in{
						"QueueUrl": q, "Label": fmt.Sprint("L", i), "AWSAccountIds": []string{"111122223333"}, "Actions": []string{"SendMessage"},
					}))
					added <- a
				}()
			}
			n := 0
			for range cap(added) {
				if a := <-added; a.status == 200 {
					n++
				}
			}
			var p struct{ Statement []any }
			if err := json.Unmarshal([]byte(s.attributes(q, "Policy")["Policy"]), &p); err != nil {
				s.Fatal(err)
			}
			if n == 0 || len(p.Statement) != n {
				s.Errorf("%d were added, got %d statements", n, len(p.Statement))
			}
		}},
	})
}

// The recorded test of permissions, call by call.
func TestRecordingsPermissions(t *testing.T) {
	play(t, []script{{id: "test_sqs_permission_lifecycle", play: func(s *scene) {
		g := s.recorded("test_sqs_permission_lifecycle")
		q := s.queue()
		const label, other, stranger = "crossaccountpermission", "crossaccountpermission2", "668614515564"
		own := account(q)
		add := func(label string, accounts ...string) answer {
			return s.call("AddPermission", in{"QueueUrl": q, "Label": label, "AWSAccountIds": accounts, "Actions": []string{"ReceiveMessage"}})
		}
		remove := func(label string) answer { return s.call("RemovePermission", in{"QueueUrl": q, "Label": label}) }
		shows := func(step string) {
			s.Helper()
			g.is(step, parsedPolicy(s, s.call("GetQueueAttributes", in{"QueueUrl": q, "AttributeNames": []string{"Policy"}})))
		}
		g.is("add-permission-response", add(label, stranger, own))
		shows("get-queue-policy-attribute")
		g.is("remove-permission-response", remove(label))
		shows("get-queue-policy-attribute-after-removal")
		add(label, own)
		shows("get-queue-policy-attribute-first-account-same-label")
		g.is("get-queue-policy-attribute-second-account-same-label", add(label, stranger))
		add(other, own)
		shows("get-queue-policy-attribute-second-account-different-label")
		remove(label)
		shows("get-queue-policy-attribute-delete-first-permission")
		remove(other)
		shows("get-queue-policy-attribute-delete-second-permission")
		g.is("get-queue-policy-attribute-delete-non-existent-label", remove(other))
	}}})
}

// parsedPolicy is an answer with its Policy as the recording has it: parsed.
func parsedPolicy(s *scene, a answer) answer {
	attributes, ok := a.out.at("Attributes").(map[string]any)
	if !ok {
		return a
	}
	text, _ := attributes["Policy"].(string)
	var parsed any
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		s.Fatalf("policy %q: %v", text, err)
	}
	attributes["Policy"] = parsed
	return a
}
