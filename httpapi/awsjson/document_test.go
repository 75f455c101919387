package awsjson_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast.internal/httpapi/awsjson"
	"holdfast.internal/httpapi/wire"
)

var (
	list    = wire.List{JSON: "List"}
	textMap = wire.Map{JSON: "Map"}
)

func parse(t *testing.T, body string) wire.Input {
	t.Helper()
	in, err := new(awsjson.Document).Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return in
}

func TestText(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":"x"}`:                              "x",
		` { "a" : "x" } `:                        "x",
		`{"b":{"a":"y"},"a":"x"}`:                "x",
		`{"a":"y","a":"x"}`:                      "x",
		`{"\u0061":"x"}`:                         "x",
		`{"a":"\"\\\/\b\f\n\r\t\u00e9"}`:         "\"\\/\b\f\n\r\té",
		`{"a":"1234567\n12345678"}`:              "1234567\n12345678",
		`{"a":"\ud83d\ude00\uFFFF"}`:             "😀\uFFFF",
		`{"a":"` + strings.Repeat("é", 9) + `"}`: strings.Repeat("é", 9),
		`{"a":""}`:                               "",
	} {
		in := parse(t, body)
		if got, ok := in.Text("a"); got != want || !ok || in.Err() != nil {
			t.Errorf("%s: got %q, %v, %v, want %q", body, got, ok, in.Err(), want)
		}
	}
	for _, body := range []string{``, ` `, `{}`, `{"b":"x"}`, `{"a":null}`} {
		in := parse(t, body)
		if got, ok := in.Text("a"); ok || in.Err() != nil {
			t.Errorf("%s: got %q, %v, want nothing", body, got, in.Err())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, body := range []string{
		`{bad`, `[]`, `"x"`, `5`, `null`, `{"a":"x"`, `{"a":"x"}}`, `{"a":"x"} x`, `{"a":}`, `{"a" "x"}`, `{"a":"x",}`, `{a:"x"}`, `{,}`,
		`{"a":"x` + "\n" + `"}`, `{"a":"x` + "\x00" + `"}`, `{"a":"\q"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\`, `{"a":"x\`,
		`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":-}`, `{"a":nan}`, `{"a":inf}`, `{"a":tru}`, `{"a":True}`,
		`{"a":[1,]}`, `{"a":[1}`, `{'a':'x'}`, `{"a":"\ud800"}`, `{"a":"\ud800x"}`, `{"a":"\ud800\u0061"}`, `{"a":"\udc00\ud800"}`,
		"{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "\xef\xbb\xbf{}",
		`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
		`{"a":[` + strings.Repeat("0,", 20_000) + `0]}`,
	} {
		if _, err := new(awsjson.Document).Parse([]byte(body)); err == nil {
			t.Errorf("%.60q: got no error", body)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"Int":"5"}`, ""},
		{`{"Int":-5}`, ""},
		{`{"Int":2147483647}`, ""},
		{`{"Int":2147483648}`, "NUMBER_VALUE is out of the range of an Integer"},
		{`{"Int":"x"}`, "STRING_VALUE can not be converted to an Integer"},
		{`{"Int":""}`, "STRING_VALUE can not be converted to an Integer"},
		{`{"Int":1.5}`, "NUMBER_VALUE can not be converted to an Integer"},
		{`{"Int":true}`, "TRUE_VALUE can not be converted to an Integer"},
		{`{"Int":false}`, "FALSE_VALUE can not be converted to an Integer"},
		{`{"Int":[]}`, "Start of list found where not expected"},
		{`{"Int":{}}`, "Start of structure or map found where not expected."},
		{`{"Text":5}`, "NUMBER_VALUE can not be converted to a String"},
		{`{"Blob":"AQID"}`, ""},
		{`{"Blob":"AQI"}`, "Invalid base64 encoding."},
		{`{"Blob":"?"}`, "Invalid base64 encoding."},
		{`{"List":["a",null]}`, ""},
		{`{"List":"a"}`, "STRING_VALUE can not be converted to a List"},
		{`{"List":{}}`, "Start of structure or map found where not expected."},
		{`{"List":[1]}`, "NUMBER_VALUE can not be converted to a String"},
		{`{"Map":{"a":1,"b":true,"c":"x","d":null}}`, ""},
		{`{"Map":{"a":[]}}`, "Unrecognized collection type class java.lang.String"},
		{`{"Map":{"a":{}}}`, "Start of structure or map found where not expected."},
		{`{"Map":[]}`, "Start of list found where not expected"},
		{`{"Structs":[{},null]}`, ""},
		{`{"Structs":[1]}`, "NUMBER_VALUE can not be converted to a Structure"},
		{`{"Structs":[[]]}`, "Start of list found where not expected"},
		{`{"StructMap":{"a":{}}}`, ""},
		{`{"StructMap":{"a":"x"}}`, "STRING_VALUE can not be converted to a Structure"},
		{`{"Other":[[{}]],"Int":null}`, ""},
	} {
		in := parse(t, tt.body)
		in.Int("Int")
		in.Text("Text")
		in.Blob("Blob")
		in.Texts(list)
		in.TextMap(textMap)
		in.Structs(wire.List{JSON: "Structs"})
		in.StructMap(wire.Map{JSON: "StructMap"})
		got := ""
		if in.Err() != nil {
			got = in.Err().Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.body, got, tt.want)
		}
	}
}

func TestCollections(t *testing.T) {
	in := parse(t, `{"List":["a","b"],"Map":{"x":1,"y":true,"x":"z"},"Structs":[{"a":"1"},{"a":"2"}],"Empty":[]}`)
	if got, ok := in.Texts(list); !ok || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("texts: got %q, %v", got, ok)
	}
	if got, ok := in.TextMap(textMap); !ok || !slices.Equal(got, []wire.Pair{{Key: "x", Value: "z"}, {Key: "y", Value: "true"}}) {
		t.Errorf("map: got %q, %v", got, ok)
	}
	structs, _ := in.Structs(wire.List{JSON: "Structs"})
	var texts []string
	for _, s := range structs {
		text, _ := s.Text("a")
		texts = append(texts, text)
	}
	if !slices.Equal(texts, []string{"1", "2"}) {
		t.Errorf("structures: got %q", texts)
	}
	if got, ok := in.Structs(wire.List{JSON: "Empty"}); !ok || len(got) != 0 {
		t.Errorf("empty list: got %v, %v", got, ok)
	}
	if _, ok := in.Structs(wire.List{JSON: "None"}); ok {
		t.Error("a list that is not there was found")
	}
}

// A Document that is used again keeps nothing of the request before.
func TestDocumentAgain(t *testing.T) {
	var d awsjson.Document
	for _, body := range []string{`{"a":"\n","Int":[]}`, `{"b":1}`} {
		in, err := d.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := in.Text("a"); ok == strings.Contains(body, "b") || in.Err() != nil {
			t.Errorf("%s: got a %v, %v", body, ok, in.Err())
		}
		in.Int("Int")
		d.Release()
	}
}

// FuzzJSONRequest compares with encoding/json, which is laxer in two ways only:
// it takes what is not UTF-8, and surrogates without their other half.
func FuzzJSONRequest(f *testing.F) {
	for _, body := range []string{
		`{"QueueUrl":"http://x/000000000000/q","MessageBody":"hello\r\n"}`, `{"a":"\ud83d\ude00"}`, `{"a":[1,2.5e-3,null,true]}`, ` `, `{"a":{"a":"b"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := new(awsjson.Document).Parse(body)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(body, &want)
		if strings.Trim(string(body), " \t\r\n") == "" || string(body) == "null" {
			return
		}
		if err == nil && wantErr != nil {
			t.Fatalf("got no error, want %v", wantErr)
		}
		if err != nil {
			// A part of these only has other reasons for it.
			lax := !utf8.Valid(body) || strings.Contains(string(body), `\u`) || len(body) > 64 || want == nil
			var reason wire.ReadError
			if wantErr == nil && !lax || !errors.As(err, &reason) {
				t.Fatalf("got %v, want no error", err)
			}
			return
		}
		for name, raw := range want {
			var text string
			if json.Unmarshal(raw, &text) != nil || string(raw) == "null" {
				continue
			}
			if got, ok := in.Text(name); !ok || got != text {
				t.Errorf("%q: got %q, %v, want %q", name, got, ok, text)
			}
		}
	})
}
