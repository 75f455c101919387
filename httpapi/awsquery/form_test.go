package awsquery_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast.internal/httpapi/awsquery"
	"holdfast.internal/httpapi/wire"
)

var (
	list    = wire.List{Query: "A"}
	textMap = wire.Map{Query: "Attribute", Key: "Name", Value: "Value"}
)

func parse(t *testing.T, query string) wire.Input {
	t.Helper()
	var f awsquery.Form
	f.Reset()
	if err := f.Add([]byte(query)); err != nil {
		t.Fatalf("%.100s: %v", query, err)
	}
	return f.Root()
}

func TestText(t *testing.T) {
	for query, want := range map[string]string{
		"a=x":             "x",
		"a=x&a=y":         "x",
		"&&a=x&":          "x",
		"a=":              "",
		"a":               "",
		"a=b=c":           "b=c",
		"a=+%2B%c3%A9+":   " +é ",
		"%61=x":           "x",
		"a.b=y&a=x":       "x",
		"a=%00":           "\x00",
		"a=a;b":           "a;b",
		"a.1.2.3=y&a=x&b": "x",
	} {
		in := parse(t, query)
		if got, ok := in.Text("a"); got != want || !ok || in.Err() != nil {
			t.Errorf("%s: got %q, %v, %v, want %q", query, got, ok, in.Err(), want)
		}
	}
	if got, ok := parse(t, "b=x").Text("a"); ok {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestAddRefuses(t *testing.T) {
	for _, query := range []string{"a=%", "a=%4", "a=%g0", "a=%0g", "%=x", "a=%FF", "a=\xff", "a=%ED%A0%80", strings.Repeat("a=x&", 2001)} {
		var f awsquery.Form
		f.Reset()
		if err := f.Add([]byte(query)); err == nil {
			t.Errorf("%.60q: got no error", query)
		}
	}
}

// TestLists numbers elements in all ways that clients do, and in some that only
// an attacker would.
func TestLists(t *testing.T) {
	for query, want := range map[string][]string{
		"A.1=x&A.2=y":                   {"x", "y"},
		"A.2=y&A.1=x":                   {"x", "y"},
		"A.10=c&A.9=b&A.1=a":            {"a", "b", "c"},
		"A.5=x&A.4000000000000000000=y": {"x", "y"},
		"A=x":                           {"x"},
		"A=":                            nil,
		"A.1=x&A.1=y":                   {"x"},
		"A.1=":                          {""},
		"B.1=x&A.1=a":                   {"a"},
	} {
		got, ok := parse(t, query).Texts(list)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", query, got, ok, want)
		}
	}
	if got, ok := parse(t, "B.1=x").Texts(list); ok {
		t.Errorf("got %q, want nothing", got)
	}
}

// What is no element is refused, never left out.
func TestListsRefused(t *testing.T) {
	for _, query := range []string{
		"A.0=x", "A.1=x&A.0=y", "A.-1=x&A.1=y", "A.1x=x&A.1=y", "A.=x&A.1=y", "A.99999999999999999999=x", "A=x&A.1=y", "A.member.1=x",
	} {
		in := parse(t, query)
		if got, _ := in.Texts(list); in.Err() == nil {
			t.Errorf("%s: got %q and no error", query, got)
		}
	}
	in := parse(t, "A.Name=x&A.1.Name=y")
	if got, _ := in.Structs(list); in.Err() == nil {
		t.Errorf("got %d structures and no error", len(got))
	}
}

func TestMaps(t *testing.T) {
	in := parse(t, "Attribute.1.Name=a&Attribute.1.Value=x&Attribute.3.Value=y&Attribute.3.Name=b&Attribute.4.Name=a&Attribute.4.Value=z")
	if got, ok := in.TextMap(textMap); !ok || !slices.Equal(got, []wire.Pair{{Key: "a", Value: "x"}, {Key: "b", Value: "y"}}) {
		t.Errorf("got %q, %v", got, ok)
	}
	in = parse(t, "Attribute.Name=a&Attribute.Value=x") // as in the SQS developer guide
	if got, ok := in.TextMap(textMap); !ok || !slices.Equal(got, []wire.Pair{{Key: "a", Value: "x"}}) || in.Err() != nil {
		t.Errorf("without a number: got %q, %v (%v)", got, ok, in.Err())
	}
	in = parse(t, "Attribute.1.Name=a&Attribute.1.Value.DataType=String&Attribute.2.Name=b")
	entries, ok := in.StructMap(textMap)
	if !ok || len(entries) != 2 || entries[0].Key != "a" || entries[1].Key != "b" {
		t.Fatalf("got %v, %v", entries, ok)
	}
	if got, _ := entries[0].Value.Text("DataType"); got != "String" {
		t.Errorf("got %q, want String", got)
	}
	if got, ok := entries[1].Value.Text("DataType"); ok {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestTypes(t *testing.T) {
	for query, want := range map[string]string{
		"Int=5": "", "Int=-5": "", "Int=": "STRING_VALUE can not be converted to an Integer", "Int=x": "STRING_VALUE can not be converted to an Integer",
		"Int=2147483648": "NUMBER_VALUE is out of the range of an Integer", "Int.1=5": "Start of structure or map found where not expected.",
		"Blob=AQID": "", "Blob=%3F": "Invalid base64 encoding.", "A.1.2=x": "Start of structure or map found where not expected.",
	} {
		in := parse(t, query)
		in.Int("Int")
		in.Blob("Blob")
		in.Texts(list)
		got := ""
		if in.Err() != nil {
			got = in.Err().Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// A form that is used again keeps nothing of the request before.
func TestFormAgain(t *testing.T) {
	var f awsquery.Form
	for i := range 3 {
		f.Reset()
		if err := f.Add(fmt.Appendf(nil, "a%d=%%41&Int=x", i)); err != nil {
			t.Fatal(err)
		}
		in := f.Root()
		if err := in.Err(); err != nil {
			t.Errorf("got %v", err)
		}
		for j := range 3 {
			if _, ok := in.Text(fmt.Sprint("a", j)); ok != (i == j) {
				t.Errorf("request %d: found a%d: %v", i, j, ok)
			}
		}
		in.Int("Int")
		f.Release()
	}
}

// FuzzQueryForm compares with net/url.
func FuzzQueryForm(f *testing.F) {
	for _, query := range []string{
		"Action=SendMessage&MessageBody=a+b%26", "A.1=x&A.2.B=y&A.2.C.3=z", "A.18446744073709551615=x", "a=%", "&=&a&a=b", "A.........=x",
	} {
		f.Add([]byte(query))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		var form awsquery.Form
		form.Reset()
		if err := form.Add(query); err != nil {
			return
		}
		in := form.Root()
		in.Texts(list)
		in.Structs(list)
		in.TextMap(textMap)
		in.StructMap(textMap)
		// net/url takes no semicolons.
		if strings.Contains(string(query), ";") {
			return
		}
		want, err := url.ParseQuery(string(query))
		if err != nil {
			t.Fatalf("got no error, want %v", err)
		}
		for name, values := range want {
			if strings.Contains(name, ".") || !utf8.ValidString(name) {
				continue
			}
			if got, ok := in.Text(name); !ok || got != values[0] {
				t.Errorf("%q: got %q, %v, want %q", name, got, ok, values[0])
			}
		}
	})
}
