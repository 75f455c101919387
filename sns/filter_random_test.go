package sns_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// TestFilterAgainstNaive holds the engine against the naive one: a million
// evaluations, ten with HOLDFAST_LONG=1.
func TestFilterAgainstNaive(t *testing.T) {
	evaluations := 1_000_000
	switch {
	case os.Getenv("HOLDFAST_LONG") == "1":
		evaluations *= 10
	case testing.Short() || raceEnabled:
		evaluations /= 20
	}
	const policies, messages = 25, 40
	matched, accepted, tried := 0, 0, 0
	for seed := uint64(0); evaluations > 0; seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 6)), seed%2 == 1}
		bodies, attributes := g.messages(messages)
		for range policies {
			scope := sns.FilterScope(g.IntN(2))
			text := g.policy(scope)
			tried++
			p, err := sns.ParseFilterPolicy(text, scope)
			if err != nil {
				continue // over a limit
			}
			accepted++
			n, _ := parseNode(text)
			branches := naiveBranches(n, "", []wish{{}})
			for i := range messages {
				m := &bodies[i]
				if scope == sns.MessageAttributesScope {
					m = &attributes[i]
				}
				want := m.naive.unfit == sns.Matched && naiveMatches(branches, m.naive.leaves)
				if got := p.Matches(m.payload); got != want {
					t.Fatalf("seed %d: %s policy %s on %s: got %v, want %v", seed, scope, text, m.text, got, want)
				}
				if want {
					matched++
				}
				evaluations--
			}
		}
	}
	total := accepted * messages
	t.Logf("%d of %d policies accepted, %d of %d evaluations matched", accepted, tried, matched, total)
	if accepted < tried/2 || matched < total/20 || matched > total*19/20 {
		t.Error("what is generated is not worth comparing")
	}
}

// generator makes policies and messages of few names and values, so that they
// often meet.
type generator struct {
	*rand.Rand
	arrays bool // make many arrays of objects, and of the rest still less
}

type generated struct {
	text    string
	payload *sns.Payload
	naive   naiveMessage
}

func (g generator) messages(n int) (bodies, attributes []generated) {
	for range n {
		body := g.object(3)
		if g.IntN(20) == 0 {
			body = []string{"", "[1]", `"a"`, `{"a":`, `{"a":1} x`}[g.IntN(5)]
		}
		bodies = append(bodies, generated{body, sns.NewPayload(nil, body), naiveBody(body)})
		list := g.attributes()
		text := ""
		for _, a := range list {
			text += a.Name + "=" + a.DataType + ":" + a.Value + " "
		}
		attributes = append(attributes, generated{text, sns.NewPayload(list, ""), naiveAttributes(list)})
	}
	return bodies, attributes
}

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) name() string {
	if g.arrays {
		return g.pick("a", "b", "c", "a", "b", "a.b")
	}
	return g.pick("a", "b", "c", "a.b", "b.a")
}

func (g generator) text() string {
	if g.arrays {
		return g.pick("x", "y")
	}
	return g.pick("", "x", "y", "xy", "yx", "XY", "x*y", "Straße", "STRASSE", "äx", "ÄX", "xx", "xyx", "10.0.0.1", "10.0.0.01", "10.0.1.7",
		"::1", "0:0::01", "::ffff:a00:1", `x"y`, `x\"y`, `x\y`, `x\\y`, "true", "1")
}

func (g generator) number() string {
	return g.pick("0", "-0", "-2", "-3.5e-1", "1", "1.0", "10e-1", "2", "-1", "100", "1e2", "99.5", "100.0000001", "123456789012345678901", "0.1", "1E-1")
}

func (g generator) scalar() string {
	switch n := g.IntN(5); {
	case n < 2 || g.arrays:
		return strconv.Quote(g.text())
	case n < 4:
		return g.number()
	}
	return g.pick("true", "false", "null")
}

// list joins one to n of what f makes.
func (g generator) list(n int, f func() string) string {
	parts := make([]string, 1+g.IntN(n))
	for i := range parts {
		parts[i] = f()
	}
	return strings.Join(parts, ",")
}

func (g generator) object(depth int) string {
	if g.IntN(12) == 0 {
		return "{}"
	}
	return "{" + g.list(3, func() string { return strconv.Quote(g.name()) + ":" + g.value(depth) }) + "}"
}

func (g generator) value(depth int) string {
	switch n := g.IntN(6); {
	case n < 2 || depth == 0:
		return g.scalar()
	case n < 4 && !g.arrays || n < 3:
		return g.object(depth - 1)
	case g.IntN(12) == 0:
		return "[]"
	}
	return "[" + g.list(3, func() string { return g.value(depth - 1) }) + "]"
}

func (g generator) attributes() (list []sns.PayloadAttribute) {
	for _, name := range []string{"a", "b", "c", "a.b"} {
		a := sns.PayloadAttribute{Name: name}
		switch g.IntN(7) {
		case 0, 1:
			a.DataType, a.Value = g.pick("String", "String.x"), g.text()
		case 2:
			a.DataType, a.Value = g.pick("Number", "Number.int"), g.number()
		case 3:
			a.DataType, a.Value = "String.Array", "["+g.list(3, g.scalar)+"]"
			if g.IntN(20) == 0 {
				a.Value = g.pick("[", "{}", "[[1]]", "[1] 2")
			}
		case 4:
			a.DataType, a.Value = "Binary", "\x02"
		default:
			continue
		}
		list = append(list, a)
	}
	return list
}

func (g generator) policy(scope sns.FilterScope) string {
	depth := 0
	if scope == sns.MessageBodyScope {
		depth = 2
	}
	return g.policyObject(depth)
}

func (g generator) policyObject(depth int) string {
	return "{" + g.list(2+depth/2, func() string {
		switch n := g.IntN(8); {
		case n == 0:
			return `"$or":[` + g.list(2, func() string { return g.policyObject(max(0, depth-1)) }) + "," + g.policyObject(0) + "]"
		case n < 4 && depth > 0:
			return strconv.Quote(g.name()) + ":" + g.policyObject(depth-1)
		}
		return strconv.Quote(g.name()) + ":[" + g.list(2, g.condition) + "]"
	}) + "}"
}

func (g generator) condition() string {
	quoted := strconv.Quote(g.text())
	if g.arrays {
		return g.pick(quoted, quoted, quoted, `{"exists":false}`, `{"exists":true}`, `{"anything-but":"x"}`)
	}
	switch g.IntN(14) {
	case 0:
		return `{"` + g.pick("prefix", "suffix", "equals-ignore-case", "exactly") + `":` + quoted + `}`
	case 1:
		return `{"` + g.pick("prefix", "suffix") + `":{"equals-ignore-case":` + quoted + `}}`
	case 2:
		return `{"wildcard":` + strconv.Quote(g.wildcard()) + `}`
	case 3, 4:
		return g.anythingBut()
	case 5, 6:
		return `{"exists":` + g.pick("true", "false", "false") + `}`
	case 7:
		return `{"cidr":` + g.pick(`"10.0.0.0/24"`, `"10.0.0.0/16"`, `"::/64"`, `"10.0.0.0/31"`) + `}`
	case 8:
		return `{"numeric":[` + g.pick(`"=",1`, `"<",100`, `"<=",100`, `">",1`, `">=",1`, `">",0,"<=",100`, `">=",-1,"<",99.5`, `"<",-1`, `">",-1.5`) + `]}`
	}
	return g.scalar()
}

func (g generator) wildcard() string {
	return g.pick("*", "x*", "*y", "x*y", `x\*y`, "*x*", "", "x", "10.*", `x\\y`, "*x*y", "y*x*", "x*x", "xy*yx")
}

func (g generator) anythingBut() string {
	quote := func() string { return strconv.Quote(g.text()) }
	full := func() string { return strconv.Quote(g.pick("x", "y", "xy", "10.", "S")) }
	switch g.IntN(6) {
	case 0:
		return `{"anything-but":` + g.pick(quote(), g.pick("1", "100", "0.1")) + `}`
	case 1:
		return `{"anything-but":[` + g.list(3, quote) + `]}`
	case 2:
		return `{"anything-but":[` + g.list(3, func() string { return g.pick("1", "100", "2", "-1") }) + `]}`
	case 3:
		return `{"anything-but":{"` + g.pick("prefix", "suffix", "equals-ignore-case") + `":` + full() + `}}`
	case 4:
		return `{"anything-but":{"` + g.pick("prefix", "suffix", "equals-ignore-case") + `":[` + g.list(3, full) + `]}}`
	}
	return `{"anything-but":{"wildcard":` + strconv.Quote(g.wildcard()) + `}}`
}
