package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// recordings are the answers of AWS: test name, step, answer as boto3 shows it.
var recordings = sync.OnceValues(func() (map[string]recording, error) {
	text, err := os.ReadFile("testdata/recordings/test_sqs.json")
	if err != nil {
		return nil, err
	}
	var all map[string]recording
	return all, json.Unmarshal(text, &all)
})

type recording struct {
	Content map[string]any `json:"recorded-content"`
}

// golden compares answers with the steps of one recorded test. Equal marks
// must stand for equal values, different marks for different ones.
type golden struct {
	*scene
	name     string
	steps    map[string]any
	compared map[string]bool
	comparison
}

// comparison finds where values differ from recorded ones. The values of marks
// hold over all that it compares.
type comparison struct {
	values      map[string]string // by mark
	differences []string
}

// recorded is the recording of a test in the scene's protocol. The values of
// rename are replaced in it: old, new, old, new.
func (s *scene) recorded(name string, rename ...string) *golden {
	s.Helper()
	all, err := recordings()
	if err != nil {
		s.Fatal(err)
	}
	protocol := map[wire]string{jsonWire: "sqs", queryWire: "sqs_query"}[s.wire]
	test, variant, hasVariant := strings.Cut(name, "[")
	candidates := []string{test + "[" + protocol + "]", name}
	if hasVariant {
		candidates = []string{test + "[" + protocol + "-" + variant, name}
	}
	for _, candidate := range candidates {
		if r, ok := all[candidate]; ok {
			steps := renamed(r.Content, strings.NewReplacer(rename...)).(map[string]any)
			g := &golden{scene: s, name: candidate, steps: steps, compared: map[string]bool{}}
			s.Cleanup(g.finish)
			return g
		}
	}
	s.Fatalf("there is no recording of %s", name)
	return nil
}

// renamed copies a value with texts replaced in it.
func renamed(value any, r *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return r.Replace(value)
	case []any:
		copied := make([]any, len(value))
		for i := range value {
			copied[i] = renamed(value[i], r)
		}
		return copied
	case map[string]any:
		copied := map[string]any{}
		for name := range value {
			copied[name] = renamed(value[name], r)
		}
		return copied
	}
	return value
}

// finish checks that the test compared all that was recorded.
func (g *golden) finish() {
	if g.Failed() {
		return
	}
	for step := range g.steps {
		if !g.compared[step] {
			g.Errorf("%s: the step %s was not compared", g.name, step)
		}
	}
}

// is compares an answer with a step. A whole answer carries its status; some
// steps recorded only a message or a list.
func (g *golden) is(step string, a answer) {
	g.Helper()
	got := map[string]any{"ResponseMetadata": map[string]any{"HTTPStatusCode": float64(a.status)}}
	if a.status < 300 {
		maps.Copy(got, a.out)
	} else {
		e := map[string]any{"Code": a.code, "Message": a.message, "Type": a.fault}
		switch a.wire {
		case jsonWire:
			_, e["QueryErrorCode"], _ = strings.Cut(a.kind, "#")
		case queryWire:
			e["Detail"] = nil
		}
		got["Error"] = e
	}
	g.same(step, got)
}

// same compares a value with a step.
func (g *golden) same(step string, got any) {
	g.Helper()
	want, ok := g.steps[step]
	if !ok {
		g.Fatalf("%s: there is no step %s", g.name, step)
	}
	g.compared[step] = true
	if expected, ok := want.(map[string]any); ok {
		if e, ok := expected["Error"].(map[string]any); ok {
			// boto3 repeats the message of modeled errors at the top.
			if text, ok := expected["message"]; ok && text != e["Message"] {
				g.Errorf("%s: the recording contradicts itself: %v", g.name, expected)
			}
			delete(expected, "message")
			if g.wire == queryWire { // some tests of the Query protocol were recorded with a JSON client
				delete(e, "QueryErrorCode")
			}
			if _, ok := e["Detail"]; !ok { // older recordings left it out
				if given, ok := got.(map[string]any)["Error"].(map[string]any); ok {
					delete(given, "Detail")
				}
			}
		}
	}
	g.differences = nil
	g.match(step, want, got)
	for _, difference := range g.differences {
		g.Errorf("%s at %s", g.name, difference)
	}
}

func (c *comparison) differ(place string, got, want any) {
	c.differences = append(c.differences, fmt.Sprintf("%s:\n got %v\nwant %v", place, got, want))
}

func (c *comparison) match(place string, want, got any) {
	got = document(want, got)
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok || !slices.Equal(sortedKeys(members), sortedKeys(want)) {
			c.differ(place, got, want)
			return
		}
		for name := range want {
			c.match(place+"."+name, want[name], members[name])
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			c.differ(place, got, want)
			return
		}
		for i := range want {
			c.match(fmt.Sprintf("%s[%d]", place, i), want[i], list[i])
		}
	case string:
		c.matchText(place, want, got)
	default:
		if !reflect.DeepEqual(want, got) {
			c.differ(place, got, want)
		}
	}
}

// document returns got, or what it says if it is a text of JSON that was recorded
// taken apart.
func document(want, got any) any {
	text, isText := got.(string)
	_, isObject := want.(map[string]any)
	_, isList := want.([]any)
	if !isText || !isObject && !isList {
		return got
	}
	var parsed any
	if json.Unmarshal([]byte(text), &parsed) != nil {
		return got
	}
	return parsed
}

var (
	mark      = regexp.MustCompile(`<[a-z][a-z0-9-]*(:[0-9]+)?>`)
	timestamp = regexp.MustCompile(`^[0-9]{10}([0-9]{3})?$`)
	date      = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

func (c *comparison) matchText(place, want string, got any) {
	text, isText := got.(string)
	switch {
	case want == "timestamp":
		if isText && !timestamp.MatchString(text) {
			c.differ(place, text, "a timestamp")
		}
		return // a whole attribute called timestamp was replaced as well
	case want == "date":
		if !date.MatchString(text) {
			c.differ(place, text, "a date")
		}
		return
	case strings.HasSuffix(place, ".NextToken"):
		if text == "" {
			c.differ(place, got, "a token")
		}
		return
	case strings.HasPrefix(want, "b'"):
		raw, err := base64.StdEncoding.DecodeString(text)
		bytes, unquoteErr := strconv.Unquote(`"` + want[2:len(want)-1] + `"`)
		if err != nil || unquoteErr != nil || string(raw) != bytes {
			c.differ(place, raw, want)
		}
		return
	}
	pattern := "^" + mark.ReplaceAllString(regexp.QuoteMeta(strings.ReplaceAll(want, "111111111111", "<account>")), "(.+)") + "$"
	values := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if !isText || values == nil {
		c.differ(place, got, want)
		return
	}
	for i, m := range mark.FindAllString(strings.ReplaceAll(want, "111111111111", "<account>"), -1) {
		c.bind(place, m, values[i+1])
	}
}

// unbound are marks that stand for another value each time.
var unbound = map[string]bool{"<signature>": true, "<md5-hash>": true, "<topic>": true}

// countedApart are kinds of which each owner has values of its own, which may be
// those of another: the sequence numbers of a topic and of its queue.
var countedApart = map[string]bool{"<sequence-number": true}

func (c *comparison) bind(place, mark, value string) {
	if unbound[mark] {
		return
	}
	kind, _, numbered := strings.Cut(mark, ":")
	if known, ok := c.values[mark]; ok {
		if known != value {
			c.differ(place, value, known+", which "+mark+" was before")
		}
		return
	}
	if numbered && !countedApart[kind] {
		for other, known := range c.values {
			if strings.HasPrefix(other, kind+":") && known == value {
				c.differ(place, value, "another value than that of "+other)
			}
		}
	}
	if c.values == nil {
		c.values = map[string]string{}
	}
	c.values[mark] = value
}

// matches says whether got is what was recorded.
func matches(want, got any) bool {
	var c comparison
	c.match("", want, got)
	return len(c.differences) == 0
}

// The comparison itself: marks, types and members that are not there.
func TestGoldenNotices(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		same      bool
	}{
		"equal":             {`{"a":["x",true,1,null]}`, `{"a":["x",true,1,null]}`, true},
		"other text":        {`{"a":"x"}`, `{"a":"y"}`, false},
		"member too many":   {`{"a":"x"}`, `{"a":"x","b":"y"}`, false},
		"member missing":    {`{"a":"x","b":"y"}`, `{"a":"x"}`, false},
		"shorter list":      {`["x","y"]`, `["x"]`, false},
		"null for a text":   {`"x"`, `null`, false},
		"number for a text": {`"1"`, `1`, false},
		"marks agree":       {`["<uuid:1>","<uuid:2>","<uuid:1>"]`, `["a","b","a"]`, true},
		"marks differ":      {`["<uuid:1>","<uuid:1>"]`, `["a","b"]`, false},
		"marks collide":     {`["<uuid:1>","<uuid:2>"]`, `["a","a"]`, false},
		"arn":               {`"arn:<partition>:sqs:<region>:111111111111:<resource:1>"`, `"arn:aws:sqs:eu-west-1:000000000000:q"`, true},
		"timestamp":         {`"timestamp"`, `"1700000000000"`, true},
		"no timestamp":      {`"timestamp"`, `"soon"`, false},
		"empty for a mark":  {`"<receipt-handle:1>"`, `""`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got any
			if json.Unmarshal([]byte(c.want), &want) != nil || json.Unmarshal([]byte(c.got), &got) != nil {
				t.Fatal("the case is no JSON")
			}
			if same := matches(want, got); same != c.same {
				t.Errorf("%s and %s: got %v, want %v", c.want, c.got, same, c.same)
			}
		})
	}
}
