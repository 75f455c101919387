package sns

import (
	"slices"
	"strconv"
	"strings"
)

// The defaults of the documents (AWS recording test_topic_delivery_policy_crud).
const (
	defaultRequestPolicy = `{"headerContentType":"text/plain; charset=UTF-8"}`
	defaultRetryPolicy   = `{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,"numMaxDelayRetries":0,` +
		`"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"}`
)

// canonicalTopicDeliveryPolicy returns the document as GetTopicAttributes shows
// it: the given members and disableSubscriptionOverrides.
func canonicalTopicDeliveryPolicy(value string) (text, reason string) {
	document, ok := parseMembers(value)
	if !ok {
		return "", "DeliveryPolicy: failed to parse JSON."
	}
	if name, ok := document.unexpected("http"); ok {
		return "", "DeliveryPolicy: Unexpected JSON member: " + name
	}
	policy, ok := parseMembers(document.value("http"))
	if !ok {
		return "", "DeliveryPolicy: http must be an object"
	}
	if name, ok := policy.unexpected("defaultHealthyRetryPolicy", "defaultSicklyRetryPolicy", "defaultThrottlePolicy",
		"defaultRequestPolicy", "disableSubscriptionOverrides"); ok {
		return "", "DeliveryPolicy: Unexpected JSON member: " + name
	}
	const path = "http.default"
	if reason := checkPolicies(policy, "default", path+"HealthyRetryPolicy", path+"ThrottlePolicy", path+"RequestPolicy"); reason != "" {
		return "", reason
	}
	var b strings.Builder
	b.WriteString(`{"http":{`)
	for _, name := range []string{"defaultHealthyRetryPolicy", "defaultThrottlePolicy"} {
		if text := policy.value(name); text != "" {
			b.WriteString(`"` + name + `":` + text + `,`)
		}
	}
	b.WriteString(`"disableSubscriptionOverrides":` + policy.or("disableSubscriptionOverrides", "false"))
	if text := policy.value("defaultRequestPolicy"); text != "" {
		b.WriteString(`,"defaultRequestPolicy":` + text)
	}
	b.WriteString(`}}`)
	return b.String(), ""
}

// effectiveTopicDeliveryPolicy fills a canonical document, or none, with the
// defaults.
func effectiveTopicDeliveryPolicy(text string) string {
	policy := topicPolicyOf(text)
	throttle := ""
	if t := policy.value("defaultThrottlePolicy"); t != "" {
		throttle = `"defaultThrottlePolicy":` + t + `,`
	}
	return `{"http":{"defaultHealthyRetryPolicy":` + filledRetryPolicy(policy.value("defaultHealthyRetryPolicy")) + `,` + throttle +
		`"disableSubscriptionOverrides":` + policy.or("disableSubscriptionOverrides", "false") +
		`,"defaultRequestPolicy":` + policy.or("defaultRequestPolicy", defaultRequestPolicy) + `}}`
}

// topicPolicyOf is what is in a canonical document.
func topicPolicyOf(text string) members {
	document, _ := parseMembers(text)
	policy, _ := parseMembers(document.value("http"))
	return policy
}

// subscriptionPolicies are the members of a subscription's document, in the order
// in which they are shown.
var subscriptionPolicies = []string{"healthyRetryPolicy", "sicklyRetryPolicy", "throttlePolicy", "requestPolicy", "guaranteed"}

// canonicalSubscriptionDeliveryPolicy returns the document as
// GetSubscriptionAttributes shows it: always all five members.
func canonicalSubscriptionDeliveryPolicy(value string) (text, reason string) {
	policy, ok := parseMembers(value)
	if !ok {
		return "", "DeliveryPolicy: failed to parse JSON."
	}
	if name, ok := policy.unexpected(subscriptionPolicies...); ok {
		return "", "DeliveryPolicy: Unexpected JSON member: " + name
	}
	if reason := checkPolicies(policy, "", "healthyRetryPolicy", "throttlePolicy", "requestPolicy"); reason != "" {
		return "", reason
	}
	retry := "null"
	if raw := policy.value("healthyRetryPolicy"); raw != "" {
		retry = filledRetryPolicy(raw)
	}
	return `{"healthyRetryPolicy":` + retry + `,"sicklyRetryPolicy":null,"throttlePolicy":` + policy.or("throttlePolicy", "null") +
		`,"requestPolicy":` + policy.or("requestPolicy", "null") + `,"guaranteed":false}`, ""
}

// effectiveSubscriptionDeliveryPolicy is what holds for a subscription: its own
// members, else those of its topic, else the defaults; the topic's first if it
// disables overrides.
func effectiveSubscriptionDeliveryPolicy(own, topicText string) string {
	policy, _ := parseMembers(own)
	topic := topicPolicyOf(topicText)
	if topic.value("disableSubscriptionOverrides") == "true" {
		policy = nil
	}
	retry := policy.value("healthyRetryPolicy")
	if retry == "" {
		retry = topic.value("defaultHealthyRetryPolicy")
	}
	return `{"healthyRetryPolicy":` + filledRetryPolicy(retry) +
		`,"sicklyRetryPolicy":null,"throttlePolicy":` + policy.or("throttlePolicy", topic.or("defaultThrottlePolicy", "null")) +
		`,"requestPolicy":` + policy.or("requestPolicy", topic.or("defaultRequestPolicy", defaultRequestPolicy)) + `,"guaranteed":false}`
}

// filledRetryPolicy shows a retry policy with all its members.
func filledRetryPolicy(raw string) string {
	policy, _ := parseMembers(raw)
	if policy == nil {
		return defaultRetryPolicy
	}
	return `{"minDelayTarget":` + policy.or("minDelayTarget", "20") + `,"maxDelayTarget":` + policy.or("maxDelayTarget", "20") +
		`,"numRetries":` + policy.or("numRetries", "3") + `,"numMaxDelayRetries":` + policy.or("numMaxDelayRetries", "0") +
		`,"numNoDelayRetries":` + policy.or("numNoDelayRetries", "0") + `,"numMinDelayRetries":` + policy.or("numMinDelayRetries", "0") +
		`,"backoffFunction":` + policy.or("backoffFunction", `"linear"`) + `}`
}

// checkPolicies checks the three policies of either document. The members' names
// are those of the subscription's, with a prefix before the first letter's
// capital.
func checkPolicies(policy members, prefix, retryPath, throttlePath, requestPath string) (reason string) {
	name := func(s string) string {
		if prefix == "" {
			return s
		}
		return prefix + strings.ToUpper(s[:1]) + s[1:]
	}
	if raw := policy.value(name("healthyRetryPolicy")); raw != "" {
		if reason := checkRetryPolicy(raw, "DeliveryPolicy: "+retryPath); reason != "" {
			return reason
		}
	}
	if raw := policy.value(name("throttlePolicy")); raw != "" {
		throttle, ok := parseMembers(raw)
		path := "DeliveryPolicy: " + throttlePath
		if n, isNumber := throttle.number("maxReceivesPerSecond", 1); !ok || !isNumber || n < 1 {
			return path + ".maxReceivesPerSecond must be greater than or equal to 1"
		}
	}
	if raw := policy.value(name("requestPolicy")); raw != "" {
		request, ok := parseMembers(raw)
		_, other := request.unexpected("headerContentType")
		if _, isText := plain(request.value("headerContentType")); !ok || other || !isText {
			return "DeliveryPolicy: " + requestPath + ".headerContentType is invalid"
		}
	}
	if text := policy.value("disableSubscriptionOverrides"); text != "" && text != "true" && text != "false" {
		return "DeliveryPolicy: http.disableSubscriptionOverrides must be a boolean"
	}
	return ""
}

// maxRetryTime is the longest that all delays of a policy may take together, in
// seconds.
const maxRetryTime = 3600

// checkRetryPolicy checks the bounds of a retry policy (SNS developer guide, "Message
// delivery retries"; AWS recording test_topic_delivery_policy_crud).
func checkRetryPolicy(raw string, path string) (reason string) {
	policy, ok := parseMembers(raw)
	if !ok {
		return path + " must be an object"
	}
	if name, ok := policy.unexpected("minDelayTarget", "maxDelayTarget", "numRetries", "numNoDelayRetries", "numMinDelayRetries",
		"numMaxDelayRetries", "backoffFunction"); ok {
		return "DeliveryPolicy: Unexpected JSON member: " + name
	}
	var n [6]int
	for i, f := range []struct {
		name               string
		least, most, usual int
	}{
		{"minDelayTarget", 1, maxRetryTime, 20},
		{"maxDelayTarget", 1, maxRetryTime, 20},
		{"numRetries", 0, 100, 3},
		{"numNoDelayRetries", 0, 100, 0},
		{"numMinDelayRetries", 0, 100, 0},
		{"numMaxDelayRetries", 0, 100, 0},
	} {
		var isNumber bool
		n[i], isNumber = policy.number(f.name, f.usual)
		switch {
		case i < 3 && policy.value(f.name) == "":
			return path + "." + f.name + " must be specified"
		case !isNumber:
			return path + "." + f.name + " must be an integer"
		case n[i] < f.least:
			return path + "." + f.name + " must be greater than or equal to " + strconv.Itoa(f.least)
		case n[i] > f.most:
			return path + "." + f.name + " must be less than or equal to " + strconv.Itoa(f.most)
		}
	}
	least, most, retries, none, short, long := n[0], n[1], n[2], n[3], n[4], n[5]
	backoff := retries - none - short - long
	switch {
	case most < least:
		return path + ".maxDelayTarget must be greater than or equal to minDelayTarget"
	case backoff < 0:
		return path + ".numRetries must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and numMaxDelayRetries"
	}
	curve, _ := plain(policy.or("backoffFunction", `"linear"`))
	if !slices.Contains([]string{"linear", "arithmetic", "geometric", "exponential"}, curve) {
		return path + ".backoffFunction must be one of linear, arithmetic, geometric, exponential"
	}
	// Every curve lies between the two targets; a straight line is near enough to
	// tell what AWS calls too long.
	if short*least+long*most+backoff*(least+most)/2 > maxRetryTime {
		return path + ": Total policy retry time cannot be greater than 3600 seconds"
	}
	return ""
}
