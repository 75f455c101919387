package sns_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// list returns n conditions that are text.
func texts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"v%d"`, i)
	}
	return "[" + b.String()[1:] + "]"
}

// TestFilterLimits: the complexities are those of AWS recordings
// test_policy_complexity and test_sub_filter_policy_nested_property_constraints,
// and of the SNS developer guide, "Filter policy constraints".
func TestFilterLimits(t *testing.T) {
	const tooMany, tooComplex = "FilterPolicy: Filter policy can not have more than 5 keys", "FilterPolicy: Filter policy is too complex"
	or := func(n, m int) string {
		return `{"$or":[{"a":` + texts(n) + `,"b":["x"]},{"c":` + texts(m) + `}]}`
	}
	for _, c := range []struct{ name, policy, want string }{
		{"five keys", `{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"]}`, ""},
		{"six keys", `{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}`, tooMany},
		{"six leaves", `{"r":{"a":["x"],"b":["x"],"c":["x"]},"s":{"d":["x"],"e":["x"],"f":["x"]}}`, tooMany},
		{"six keys of alternatives", `{"$or":[{"a":["x"],"b":["x"],"c":["x"]},{"d":["x"],"e":["x"],"f":["x"]}]}`, tooMany},
		{"one key in two alternatives", `{"e":["x"],"$or":[{"a":["x"],"b":["x"],"c":["x"]},{"d":["x"],"a":["x"]}]}`, ""},
		{"150 conditions", `{"a":` + texts(150) + `}`, ""},
		{"151 conditions", `{"a":` + texts(151) + `}`, tooComplex},
		{"product", `{"a":` + texts(100) + `,"b":` + texts(51) + `}`, tooComplex},
		{"product of 150", `{"a":` + texts(10) + `,"b":` + texts(15) + `}`, ""},
		{"nested 4@3 × 3@2", `{"r":{"s":{"a":` + texts(4) + `},"b":` + texts(3) + `}}`, ""},
		{"nested 4@3 × 3@2 × 3@1", `{"r":{"s":{"a":` + texts(4) + `},"b":` + texts(3) + `},"c":` + texts(3) + `}`, tooComplex},
		{"sum of 150", or(100, 50), ""},
		{"sum of 152", or(100, 52), tooComplex},
		{"a list of anything-but is one", `{"a":[{"anything-but":` + texts(1000) + `}]}`, ""},
		{"three stars", `{"a":[{"wildcard":"a*b*c*"}]}`, ""},
		{"four stars", `{"a":[{"wildcard":"a*b*c*d*"}]}`, tooComplex},
		{"wildcard points", `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"wildcard":"*x"},`, 10), ",") + `]}`, ""},
		{"too many wildcard points", `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"wildcard":"*x"},`, 11), ",") + `]}`, tooComplex},
		{"size", `{"a":["` + strings.Repeat("x", 256<<10-10) + `"]}`, ""},
		{"too long", `{"a":["` + strings.Repeat("x", 256<<10) + `"]}`, "FilterPolicy: Filter policy is too long"},
		{"product of alternatives", strings.Repeat(`{"$or":[{"a":["x"]},{"a":["x"]}],"o":`, 30) + `{"b":["x"]}` + strings.Repeat("}", 30), tooMany},
		{"exponential alternatives", `{` + strings.Repeat(`"$or":[{"a":["x"]},{"a":["x"]}],`, 1000) + `"b":["x"]}`, tooComplex},
		{"deep", strings.Repeat(`{"a":`, 999) + `["x"]` + strings.Repeat("}", 999), tooComplex},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if _, err := sns.ParseFilterPolicy(c.policy, sns.MessageBodyScope); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFilterErrorForms(t *testing.T) {
	for _, c := range []struct {
		policy          string
		scope           sns.FilterScope
		want, subscribe string
	}{
		{
			`{"key":[{"cidr":"bad-filter"}]}`, sns.MessageAttributesScope,
			"FilterPolicy: Malformed CIDR, one '/' required", "Attributes Reason: FilterPolicy: Malformed CIDR, one '/' required",
		},
		{
			`{"a":{"b":["x"]}}`, sns.MessageAttributesScope,
			"Filter policy scope MessageAttributes does not support nested filter policy",
			"Filter policy scope MessageAttributes does not support nested filter policy",
		},
		{
			`{"$or":[{"a":["x"]},{"b":{"c":["x"]}}]}`, sns.MessageAttributesScope,
			"Filter policy scope MessageAttributes does not support nested filter policy",
			"Filter policy scope MessageAttributes does not support nested filter policy",
		},
		{
			"{\n  \"é😀\" : [\r\n{ \"x\": 1 } ] }", sns.MessageBodyScope,
			"FilterPolicy: Unrecognized match type x\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 3, column: 9]",
			"Attributes Reason: FilterPolicy: Unrecognized match type x" +
				"\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 3, column: 9]",
		},
		{
			"{\"é😀\":5}", sns.MessageBodyScope,
			"FilterPolicy: \"é😀\" must be an object or an array" +
				"\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 9]",
			"Attributes Reason: FilterPolicy: \"é😀\" must be an object or an array" +
				"\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 9]",
		},
	} {
		_, err := sns.ParseFilterPolicy(c.policy, c.scope)
		refused, ok := errors.AsType[*sns.FilterError](err)
		if !ok {
			t.Errorf("%s: got %v, want a FilterError", c.policy, err)
			continue
		}
		if refused.Error() != c.want || refused.InSubscribe() != c.subscribe {
			t.Errorf("%s: got %q and %q, want %q and %q", c.policy, refused.Error(), refused.InSubscribe(), c.want, c.subscribe)
		}
	}
}

func TestEmptyFilterPolicy(t *testing.T) {
	for text, want := range map[string]bool{"": true, "{}": true, " { } ": true, "{": false, " ": false, `{"a":["x"]}`: false, "[]": false} {
		if got := sns.EmptyFilterPolicy(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	var none *sns.FilterPolicy
	if !none.Matches(sns.NewPayload(nil, "")) {
		t.Error("no policy: the message was filtered out")
	}
}
