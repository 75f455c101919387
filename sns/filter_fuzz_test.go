package sns_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"holdfast.internal/sns"
)

// FuzzFilterPolicy: no policy and no message brings the engine down; what it
// accepts is JSON, reads back as it was given, and agrees with the naive engine.
func FuzzFilterPolicy(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":["x",1,null,{"prefix":"y"}]}`, `{"a":["x",{"b":1}]}`},
		{`{"$or":[{"a":["x"]},{"b":[{"anything-but":["x"]}]}]}`, `{"b":"y"}`},
		{`{"r":{"a":[{"exists":false}],"b":[{"wildcard":"a*b"}]}}`, `{"r":[{"b":"ab"},{"a":1}]}`},
		{`{"a":[{"numeric":[">",1,"<=",2e1]}]}`, `{"a":[1.5,"\ud83d\ude00"]}`},
		{`{"a":[{"cidr":"10.0.0.0/8"},{"equals-ignore-case":"ß"}]}`, `{"a":"SS"}`},
		{`{"a":[{"anything-but":{"suffix":["x","y"]}}]}`, `[]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, policy, message string) {
		if !utf8.ValidString(policy) || !utf8.ValidString(message) {
			return // httpapi lets no other text in
		}
		for _, scope := range []sns.FilterScope{sns.MessageAttributesScope, sns.MessageBodyScope} {
			p, err := sns.ParseFilterPolicy(policy, scope)
			if err != nil {
				if err.Error() == "" {
					t.Error("an error without words")
				}
				continue
			}
			if !json.Valid([]byte(policy)) {
				t.Errorf("%q was accepted, and is no JSON", policy)
			}
			attributes := []sns.PayloadAttribute{
				{Name: "a", DataType: "String", Value: message},
				{Name: "b", DataType: "String.Array", Value: message},
				{Name: "c", DataType: "Number", Value: message},
			}
			m := sns.NewPayload(attributes, message)
			if first, second := p.Evaluate(m), p.Evaluate(m); first != second {
				t.Errorf("got outcome %d, then %d", first, second)
			}
		}
	})
}
