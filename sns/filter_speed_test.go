package sns_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// subscriptions are the policies of a thousand subscriptions of one topic, of
// the kinds that users write.
func subscriptions(tb testing.TB, scope sns.FilterScope) []*sns.FilterPolicy {
	tb.Helper()
	policies := make([]*sns.FilterPolicy, 1000)
	for i := range policies {
		var text string
		switch i % 5 {
		case 0:
			text = fmt.Sprintf(`{"store":["store-%d"],"event":["order_placed","order_cancelled"]}`, i)
		case 1:
			text = fmt.Sprintf(`{"price":[{"numeric":[">=",%d,"<",%d]}],"store":[{"prefix":"store-1"}]}`, i, i+10)
		case 2:
			text = fmt.Sprintf(`{"event":[{"anything-but":["order_cancelled","e%d"]}],"customer":["gold%d"]}`, i, i)
		case 3:
			text = fmt.Sprintf(`{"$or":[{"store":[{"wildcard":"*-%d"}]},{"customer":[{"equals-ignore-case":"GOLD%d"}]}]}`, i, i)
		case 4:
			text = fmt.Sprintf(`{"missing":[{"exists":false}],"store":["store-%d",{"suffix":"-%d"}]}`, i, i)
		}
		p, err := sns.ParseFilterPolicy(text, scope)
		if err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
		policies[i] = p
	}
	return policies
}

// messageFor has the same fields in attributes and body.
func messageFor() *sns.Payload {
	return sns.NewPayload([]sns.PayloadAttribute{
		{Name: "store", DataType: "String", Value: "store-17"},
		{Name: "event", DataType: "String", Value: "order_placed"},
		{Name: "price", DataType: "Number", Value: "210.75"},
		{Name: "customer", DataType: "String.Array", Value: `["gold2","silver"]`},
	}, `{"store":"store-17","event":"order_placed","price":210.75,"customer":["gold2","silver"],"items":[{"sku":"a","n":1},{"sku":"b","n":2}]}`)
}

func TestFilterDoesNotAllocate(t *testing.T) {
	policies := map[sns.FilterScope][]*sns.FilterPolicy{
		sns.MessageAttributesScope: subscriptions(t, sns.MessageAttributesScope),
		sns.MessageBodyScope:       subscriptions(t, sns.MessageBodyScope),
	}
	items, err := sns.ParseFilterPolicy(`{"items":{"sku":[{"anything-but":"a"}],"n":[{"numeric":[">",1]}],"x":[{"exists":false}]}}`, sns.MessageBodyScope)
	if err != nil {
		t.Fatal(err)
	}
	policies[sns.MessageBodyScope] = append(policies[sns.MessageBodyScope], items)
	for scope, list := range policies {
		m := messageFor()
		matched := 0
		for _, p := range list { // parses the message
			if p.Matches(m) {
				matched++
			}
		}
		if matched < 2 {
			t.Errorf("%s: %d of %d policies match, which is not worth measuring", scope, matched, len(list))
		}
		if n := testing.AllocsPerRun(10, func() {
			for _, p := range list {
				p.Matches(m)
			}
		}); n > 0 {
			t.Errorf("%s: got %v allocations, want none", scope, n)
		}
	}
}

// TestFilterWork: the work that is told is in proportion to what is looked at.
func TestFilterWork(t *testing.T) {
	p, err := sns.ParseFilterPolicy(`{"a":["x"],"b":["y"]}`, sns.MessageBodyScope)
	if err != nil {
		t.Fatal(err)
	}
	m := sns.NewPayload(nil, `{"a":["1","2","3"],"c":["4","5"],"b":1}`)
	p.Matches(m)
	p.Matches(m)
	if got, want := m.Work(), 2*(1+3+1); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	var prefixes []string
	for i := range 800 {
		prefixes = append(prefixes, fmt.Sprintf(`"p%d"`, i))
	}
	text := `{"a":"` + strings.Repeat("x", 25_600) + `"}`
	for _, c := range []struct {
		name, policy, body string
		want               int
	}{
		{"names of a path", `{"` + strings.Repeat("a.", 1599) + `a":["x"]}`, `{}`, 1 + 100},
		{"patterns", `{"a":[{"anything-but":{"prefix":[` + strings.Join(prefixes, ",") + `]}}]}`, `{"a":"x"}`, 1 + 1 + 100},
		{"a long text", `{"a":["x"]}`, text, 1 + 1 + 100},
		{"a long text, and patterns", `{"a":[{"wildcard":"a*b"},{"wildcard":"b*c"},{"suffix":"z"}]}`, text, 1 + 1 + 400},
	} {
		p, err := sns.ParseFilterPolicy(c.policy, sns.MessageBodyScope)
		if err != nil {
			t.Fatal(err)
		}
		m := sns.NewPayload(nil, c.body)
		p.Matches(m)
		if got := m.Work(); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestFilterHostile: what is made to be slow is not. Each of these takes minutes
// or gigabytes where the work is not bounded.
func TestFilterHostile(t *testing.T) {
	deep := strings.Repeat("[", 900) + strings.Repeat(`{"a":"x"},`, 20_000) + `{"b":"y"}` + strings.Repeat("]", 900)
	long := strings.Repeat("n", 1000)
	var nested strings.Builder
	for range 120 {
		nested.WriteString(`{"` + long + `":`)
	}
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	for _, c := range []struct{ name, policy, body string }{
		{"wildcard", `{"a":[{"wildcard":"*aaaaaaaaaaaaaaaaaaaaaaaab*aaaaaaab*c"}]}`, `{"a":"` + strings.Repeat("a", 250_000) + `"}`},
		{"elements deep down", `{"r":{"a":["x"],"b":["z"],"c":[{"exists":false}]}}`, `{"r":` + deep + `}`},
		{"long paths", `{"a":["x"]}`, nested.String() + "{" + strings.Join(names, ",") + "}" + strings.Repeat("}", 120)},
		{"points", `{"a":["x"]}`, `{"` + strings.Repeat(".", 250_000) + `":1}`},
		{
			"many elements", `{"r":{"a":["1"],"b":["2"],"c":["3"],"d":["4"],"e":["5"]}}`,
			`{"r":[` + strings.TrimSuffix(strings.Repeat(`[{"a":"1"},{"b":"2"},{"c":"3"},{"d":"4"}],`, 6_000), ",") + `]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := sns.ParseFilterPolicy(c.policy, sns.MessageBodyScope)
			if err != nil {
				t.Fatal(err)
			}
			m := sns.NewPayload(nil, c.body)
			for range 10 {
				if got := p.Evaluate(m); got != sns.FilteredOutMessageBody {
					t.Errorf("got outcome %d, want %d", got, sns.FilteredOutMessageBody)
				}
			}
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, scope := range []sns.FilterScope{sns.MessageAttributesScope, sns.MessageBodyScope} {
		b.Run(scope.String(), func(b *testing.B) {
			policies := subscriptions(b, scope)
			b.ReportAllocs()
			for b.Loop() { // one publish: parsed once, held against a thousand policies
				m := messageFor()
				for _, p := range policies {
					p.Matches(m)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(policies))/b.Elapsed().Seconds(), "evaluations/s")
		})
	}
}

func BenchmarkFilterParse(b *testing.B) {
	const text = `{"store":["a","b"],"price":[{"numeric":[">",0,"<=",100]}],"event":[{"anything-but":{"prefix":"order-"}}]}`
	for b.Loop() {
		if _, err := sns.ParseFilterPolicy(text, sns.MessageAttributesScope); err != nil {
			b.Fatal(err)
		}
	}
}
