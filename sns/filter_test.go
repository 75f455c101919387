package sns_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// filterCase is a line of testdata/filter_cases.json, whose outcomes were
// executed with the engine of AWS, recorded at AWS, or are documented.
type filterCase struct {
	ID         int
	Scope      string
	Policy     string
	Attributes []sns.PayloadAttribute
	Body       string
	Outcome    string
}

func (c *filterCase) scope() sns.FilterScope {
	if c.Scope == "MessageBody" {
		return sns.MessageBodyScope
	}
	return sns.MessageAttributesScope
}

var outcomeNames = map[sns.FilterOutcome]string{
	sns.Matched:                        "matched",
	sns.FilteredOutMessageAttributes:   "attributes",
	sns.FilteredOutMessageBody:         "body",
	sns.FilteredOutNoMessageAttributes: "no attributes",
	sns.FilteredOutInvalidAttributes:   "invalid attributes",
	sns.FilteredOutInvalidMessageBody:  "invalid body",
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestFilterCases(t *testing.T) {
	for _, name := range []string{"filter_cases.json", "filter_more_cases.json"} {
		var cases []filterCase
		readJSON(t, name, &cases)
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(name, ".json"), c.ID), func(t *testing.T) {
				p, err := sns.ParseFilterPolicy(c.Policy, c.scope())
				if err != nil {
					t.Fatalf("%s: %v", c.Policy, err)
				}
				m := sns.NewPayload(c.Attributes, c.Body)
				for range 2 { // the second time it is parsed already
					if got := outcomeNames[p.Evaluate(m)]; got != c.Outcome {
						t.Errorf("%s on %v %s: got %s, want %s", c.Policy, c.Attributes, c.Body, got, c.Outcome)
					}
				}
			})
		}
	}
}

// TestFilterErrors holds the errors against testdata/filter_errors.json: those
// recorded at AWS, and those of its engine. A line without a detail is a policy
// that is surprising, and accepted.
func TestFilterErrors(t *testing.T) {
	var cases []struct {
		Policy, Detail string
		Column         int
		Twice, Syntax  bool
	}
	readJSON(t, "filter_errors.json", &cases)
	for _, c := range cases {
		_, err := sns.ParseFilterPolicy(c.Policy, sns.MessageBodyScope)
		want := ""
		if c.Detail != "" {
			want = "FilterPolicy: "
			if c.Syntax {
				want += "failed to parse JSON. "
			}
			want += c.Detail
			place := fmt.Sprintf("\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: %d]", c.Column)
			if c.Column > 0 {
				want += place
			}
			if c.Twice {
				want += place
			}
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", c.Policy, got, want)
		}
	}
}
