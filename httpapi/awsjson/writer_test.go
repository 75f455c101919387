package awsjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast.internal/httpapi/awsjson"
	"holdfast.internal/httpapi/wire"
)

func TestWriter(t *testing.T) {
	var w awsjson.Writer
	w.Begin(nil)
	w.Text("Text", "a\"b")
	w.Int("Int", -5)
	w.Bool("Bool", true)
	w.Blob("Blob", []byte{1, 2, 3})
	w.OpenList(list)
	w.OpenStruct(list)
	w.CloseStruct(list)
	w.OpenStruct(list)
	w.Bytes("a", []byte("x"))
	w.CloseStruct(list)
	w.CloseList(list)
	w.OpenList(wire.List{JSON: "Texts"})
	w.Item(list, "a")
	w.Item(list, "b")
	w.CloseList(list)
	w.OpenMap(textMap)
	w.Pair(textMap, "k\n", "v")
	w.PairInt(textMap, "n", 7)
	w.OpenEntry(textMap, "e")
	w.Text("a", "b")
	w.CloseEntry(textMap)
	w.CloseMap(textMap)
	w.Hex("Hex", [16]byte{15: 0xab})
	w.UUID("UUID", [16]byte{0: 0x12, 15: 0xab})
	const want = `{"Text":"a\"b","Int":-5,"Bool":true,"Blob":"AQID","List":[{},{"a":"x"}],"Texts":["a","b"],` +
		`"Map":{"k\n":"v","n":"7","e":{"a":"b"}},"Hex":"000000000000000000000000000000ab","UUID":"12000000-0000-0000-0000-0000000000ab"}`
	if got := string(w.End()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzString has what was written read back by encoding/json.
func FuzzString(f *testing.F) {
	f.Add("a\"\\\b\f\n\r\t\x00\x1f\x7fé😀\xff\u2028")
	f.Add(strings.Repeat("a", 9) + "\n" + strings.Repeat("é", 9))
	f.Fuzz(func(t *testing.T, s string) {
		var w awsjson.Writer
		w.Begin(nil)
		w.Bytes("bytes", []byte(s))
		var got struct{ Bytes string }
		if err := json.Unmarshal(w.End(), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got.Bytes != want {
			t.Errorf("got %q, want %q", got.Bytes, want)
		}
		var text string
		if err := json.Unmarshal(awsjson.AppendString(nil, s), &text); err != nil {
			t.Fatal(err)
		}
		if text != got.Bytes {
			t.Errorf("got %q as a string and %q as bytes", text, got.Bytes)
		}
	})
}
