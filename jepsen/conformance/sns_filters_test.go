package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// filterCase is a policy, a message, and whether it is delivered.
type filterCase struct {
	ID            int
	Scope, Policy string
	Attributes    []struct{ Name, DataType, Value string }
	Body          string
	Outcome       string
}

// TestFilters has the cases of the filter engine, over the API, and C86–C96 beside
// them.
func TestFilters(t *testing.T) {
	acts := []act{
		{id: "C95", title: "a nested policy for attributes", play: func(s *stage) {
			const nested = "Filter policy scope MessageAttributes does not support nested filter policy"
			_, _, sub := s.subscribed()
			set := in{"SubscriptionArn": sub, "AttributeName": "FilterPolicy", "AttributeValue": `{"a":{"b":["x"]}}`}
			s.invalid("SetSubscriptionAttributes", set, nested)
			s.invalid("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "FilterPolicy", `{"a":{"b":["x"]}}`), nested)
			s.subscribe(s.topic(), s.queue(), "FilterPolicy", `{"a":{"b":["x"]}}`, "FilterPolicyScope", "MessageBody")
		}},
		{id: "C94", title: "complexity", play: func(s *stage) {
			_, _, sub := s.subscribed()
			policy := func(n int) string {
				return `{"a":["` + strings.Repeat(`x","`, n-1) + `x"]}`
			}
			s.setSubscription(sub, "FilterPolicy", policy(150))
			s.invalid("SetSubscriptionAttributes", in{"SubscriptionArn": sub, "AttributeName": "FilterPolicy", "AttributeValue": policy(151)},
				"FilterPolicy: Filter policy is too complex")
			s.invalid("SetSubscriptionAttributes", in{
				"SubscriptionArn": sub, "AttributeName": "FilterPolicy",
				"AttributeValue": `{"a":[1],"b":[1],"c":[1],"d":[1],"e":[1],"f":[1]}`,
			}, "FilterPolicy: Filter policy can not have more than 5 keys")
			s.has(s.subscriptionAttributes(sub), "FilterPolicy", policy(150))
		}},
		{id: "C92", title: "an $or that is none", play: func(s *stage) {
			const place = "\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 15]"
			s.invalid("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "FilterPolicy", `{"$or":[{"a":["x"]}]}`),
				"Attributes Reason: FilterPolicy: Unrecognized match type a"+place)
		}},
		{id: "C96", title: "with and without a place", play: func(s *stage) {
			s.invalid("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "FilterPolicy", `{"key":[{"cidr":"bad-filter"}]}`),
				"Attributes Reason: FilterPolicy: Malformed CIDR, one '/' required")
			s.bad("Subscribe", subscribeMembers(s.topic(), s.arn(s.queue()), "FilterPolicy", `{"key":[{"anything-but":null}]}`), "InvalidParameter",
				"Invalid parameter: Attributes Reason: FilterPolicy: Value of anything-but must be an array or single string/number value.\n at [Source: …")
		}},
		{id: "batch", title: "each entry by itself", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed("FilterPolicy", `{"a":["x"]}`)
			entries := publishEntries(4)
			entries[1]["MessageAttributes"] = in{"a": text("x")}
			entries[2]["MessageAttributes"] = in{"a": text("y")}
			entries[3]["MessageAttributes"] = in{"a": text("x")}
			out := s.done("PublishBatch", in{"TopicArn": topic, "PublishBatchRequestEntries": entries})
			if got := s.successes(out); got != "1 2 3 4" {
				s.Errorf("got %s, want success of all", got)
			}
			s.gets(queueURL, "message 2", "message 4")
		}},
		{id: "structure", title: "the body for the protocol", play: func(s *stage) {
			topic, queueURL, _ := s.subscribed("FilterPolicyScope", "MessageBody", "FilterPolicy", `{"a":["sqs"]}`)
			s.done("Publish", in{"TopicArn": topic, "MessageStructure": "json", "Message": `{"default":"{\"a\":\"default\"}","sqs":"{\"a\":\"sqs\"}"}`})
			s.done("Publish", in{"TopicArn": topic, "MessageStructure": "json", "Message": `{"default":"{\"a\":\"sqs\"}","sqs":"{\"a\":\"no\"}"}`})
			s.gets(queueURL, `{"a":"sqs"}`)
		}},
		{id: "change", title: "a policy holds from the next publish on", play: func(s *stage) {
			topic, queueURL, sub := s.subscribed("FilterPolicy", `{"a":["x"]}`)
			s.publish(topic, "x", messageAttributes(in{"a": text("x")}))
			s.setSubscription(sub, "FilterPolicy", `{"a":["y"]}`)
			s.publish(topic, "not x", messageAttributes(in{"a": text("x")}))
			s.publish(topic, "y", messageAttributes(in{"a": text("y")}))
			s.gets(queueURL, "x", "y")
		}},
	}
	for _, name := range []string{"filter_cases", "filter_more_cases"} {
		for _, c := range readFilterCases(t, name) {
			id := fmt.Sprintf("%s/%d", name, c.ID)
			if named := filterCaseNames[id]; named != "" {
				id = named + "/" + id
			}
			acts = append(acts, act{id: id, play: func(s *stage) { s.filter(&c) }})
		}
	}
	perform(t, acts)
}

// filterCaseNames are the names of those that are cases of the API as well.
var filterCaseNames = map[string]string{
	"filter_cases/67":      "C86",
	"filter_cases/14":      "C88",
	"filter_more_cases/76": "C88",
	"filter_cases/50":      "C89",
	"filter_cases/112":     "C90",
	"filter_cases/113":     "C91",
	"filter_cases/115":     "C91",
	"filter_cases/95":      "C93",
}

// readFilterCases reads the cases that the engine is tested with, too.
func readFilterCases(t *testing.T, name string) []filterCase {
	t.Helper()
	text, err := os.ReadFile("../../sns/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []filterCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// filter plays a case: what is not delivered when the publish is answered never
// will be.
func (s *stage) filter(c *filterCase) {
	topic, queueURL, sub := s.subscribed("FilterPolicyScope", c.Scope, "FilterPolicy", c.Policy)
	s.has(s.subscriptionAttributes(sub), "FilterPolicy", c.Policy, "FilterPolicyScope", c.Scope)
	attributes := in{}
	for _, a := range c.Attributes {
		value := in{"DataType": a.DataType, "StringValue": a.Value}
		if a.DataType == "Binary" {
			raw, err := base64.StdEncoding.DecodeString(a.Value)
			if err != nil {
				s.Fatal(err)
			}
			value = blob(raw)
		}
		attributes[a.Name] = value
	}
	body := c.Body
	if body == "" {
		body = "m"
	}
	members := in{"TopicArn": topic, "Message": body}
	if len(attributes) > 0 {
		members["MessageAttributes"] = attributes
	}
	if a := s.sns("Publish", members); a.status != 200 {
		if !strings.Contains(a.message, "Could not cast") {
			s.Errorf("got %d %s", a.status, a.message)
		}
		return // the attribute cannot be published at all
	}
	want := 0
	if c.Outcome == "matched" {
		want = 1
	}
	if got := len(s.receive(queueURL, in{})); got != want {
		s.Errorf("%s on %v %s: got %d messages, want %d", c.Policy, c.Attributes, c.Body, got, want)
	}
}
